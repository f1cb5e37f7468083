"""Fetch and push by the git program: with the person's own keys and helpers, and without ever asking them anything."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from becket.kernel.contract.effect import Permit, demand
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.contract.remote import (
    Fetched,
    NotPushed,
    Pushed,
    PushRequest,
    RemoteFailed,
    RemoteTrouble,
    WhyNotPushed,
    push_call,
)
from becket.kernel.git.program import GitOutput, GitPlace, GitTimedOut, run
from becket.kernel.git.refs import Refs

TIMEOUT = 120.0
_PROTOCOLS = "file:git:ssh:http:https"
_SAID = 1000

_FETCH = (
    "fetch", "--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap=",
    "--no-auto-maintenance", "--no-show-forced-updates",
)  # fmt: skip
_PUSH = ("push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")

_SIGNS: Mapping[RemoteTrouble, re.Pattern[str]] = {
    RemoteTrouble.login: re.compile(
        r"terminal prompts disabled|could not read (?:Username|Password)|Authentication failed"
        r"|HTTP Basic: Access denied|Permission denied \(|Host key verification failed|error: 401"
    ),
    RemoteTrouble.unreachable: re.compile(
        r"Could not resolve host|unable to look up|Name or service not known|[Cc]onnection refused"
        r"|[Cc]onnection timed out|unable to connect|Failed to connect|[Nn]etwork is unreachable|No route to host"
        r"|(?:not|to be) a git repository|[Rr]epository .*not (?:found|exported)|error: 404|transport '.*' not allowed"
        r"|dubious ownership|cannot run ssh|unable to fork"
    ),
}
_FORBIDDEN = re.compile(r"(?i)error: 403|denied to |access denied|not allowed to push|read.?only|service not enabled")
_NO_SUCH_BRANCH = "couldn't find remote ref"


class GitRemote:
    """The remotes of one repository. Nothing here ever asks for a login or waits without bound."""

    def __init__(self, refs: Refs, timeout: float = TIMEOUT) -> None:
        self._refs = refs
        self._timeout = timeout

    async def fetch(self, remote: str, branch: str) -> Fetched:
        """Bring the remote's branch here, as `refs/remotes/<remote>/<branch>`; no other ref changes.

        Called by the clock and before every push. Raises RemoteFailed, and GitFailed where git fails on this side.
        """
        here, tracking = f"refs/heads/{branch}", f"refs/remotes/{remote}/{branch}"
        for ref in (here, tracking):
            if problem := ref_problem(ref):
                raise GitFailed(problem)
        place = await self._outside(remote)
        before = await self._refs.value(tracking)
        # With `+`: what the remote's branch is, is not for us to judge.
        command = (*_FETCH, "--", remote, f"+{here}:{tracking}")
        output = await self._run(place, remote, command)
        if output.code != 0:
            if _NO_SUCH_BRANCH in output.stderr:
                return Fetched(sha=None, moved=False)
            raise _failed(remote, output)
        sha = await self._refs.value(tracking)
        return Fetched(sha=sha, moved=sha != before)

    async def push(self, request: PushRequest, permit: Permit) -> Pushed | NotPushed:
        """Move the remote's branch forward to an exact commit, if it is where it was seen to be.

        Raises EffectRefused without a permit for exactly this request, RemoteFailed where the remote gave no answer,
        and GitFailed where git fails on this side.
        """
        demand(permit, push_call(request))
        try:
            return await self._push(request)
        except RemoteFailed as failed:
            if failed.trouble is not RemoteTrouble.login:
                raise
            return NotPushed(reason=WhyNotPushed.login, message=str(failed))

    async def _push(self, request: PushRequest) -> Pushed | NotPushed:
        there = await self._found(request)
        if there == request.new:
            return Pushed(new=request.new, old=there)
        if not await self._may_follow(request, there):
            return _moved(request, there)
        place = await self._outside(request.remote)
        # A lease alone would let a push go back in history; the check above is what forbids that.
        lease = f"--force-with-lease={request.ref}:{there or ''}"
        command = (*_PUSH, lease, "--", request.remote, f"{request.new}:{request.ref}")
        output = await self._run(place, request.remote, command)
        if output.code == 0:
            return Pushed(new=request.new, old=there)
        if refusal := _refusal(output):
            return await self._explained(request, there, refusal)
        if _FORBIDDEN.search(output.stderr):
            return _refused(request, there, _words(output))
        raise _failed(request.remote, output)

    async def _found(self, request: PushRequest) -> str | None:
        """Where the remote's branch is. As long as this fails, nothing was pushed, and nothing is in doubt."""
        try:
            return (await self.fetch(request.remote, request.branch)).sha
        except RemoteFailed as failed:
            if failed.trouble in (RemoteTrouble.timed_out, RemoteTrouble.broken_off):
                raise RemoteFailed(RemoteTrouble.unreachable, str(failed)) from failed
            raise

    async def _may_follow(self, request: PushRequest, there: str | None) -> bool:
        """What the remote has is what was expected, and is part of what is pushed."""
        if request.expected is not None and there != request.expected:
            return False
        if there is None:
            return True
        ancestry = ("merge-base", "--is-ancestor", there, f"{request.new}^{{commit}}")
        return (await run(self._refs.place, *ancestry, ok=(0, 1))).code == 0

    async def _explained(self, request: PushRequest, there: str | None, refusal: str) -> Pushed | NotPushed:
        """Servers call a lost race by many names; where its branch is now tells more than any of them."""
        try:
            now = (await self.fetch(request.remote, request.branch)).sha
        except RemoteFailed:
            return _refused(request, there, refusal)
        if now == request.new:
            return Pushed(new=request.new, old=there)
        return _moved(request, now) if now != there else _refused(request, now, refusal)

    async def _outside(self, remote: str) -> GitPlace:
        """A place from which git may go out, to a remote of that name; anything else it would take for an address."""
        settings = await self._settings(remote)
        if f"remote.{remote}.url" not in settings:
            message = f"there is no remote named {remote!r} here; see `git remote -v` and `remote:` in becket.yaml"
            raise RemoteFailed(RemoteTrouble.unknown, message)
        program = shlex.quote(os.environ.get("GIT_SSH") or "ssh")
        ssh = os.environ.get("GIT_SSH_COMMAND") or settings.get("core.sshcommand") or program
        variables = {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_ASKPASS": "",  # set and empty, it also keeps core.askPass and SSH_ASKPASS from being asked
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            # Appended, so that the person's own command and configuration count for everything else.
            "GIT_SSH_COMMAND": ssh if "plink" in ssh else f"{ssh} -o BatchMode=yes",
        }
        return replace(self._refs.place, variables=tuple(variables.items()))

    async def _settings(self, remote: str) -> dict[str, str]:
        pattern = rf"^(core\.sshcommand|remote\.{re.escape(remote)}\.url)$"
        output = await run(self._refs.place, "config", "--null", "--get-regexp", pattern, ok=(0, 1))
        return dict(line.split("\n", 1) for line in output.text.split("\0") if "\n" in line)

    async def _run(self, place: GitPlace, remote: str, command: tuple[str, ...]) -> GitOutput:
        try:
            return await run(place, *command, ok=(0, 1, 128), timeout=self._timeout)
        except GitTimedOut as error:
            message = f"{remote} gave no answer within {self._timeout:g} s; see whether `git fetch {remote}` works"
            raise RemoteFailed(RemoteTrouble.timed_out, message) from error


def _refusal(output: GitOutput) -> str | None:
    """What was said against the ref, where the remote was reached: `!<tab>new:ref<tab>[rejected] (why)`."""
    lines = (line for line in output.text.splitlines() if line.startswith("!\t"))
    summary = next((line.split("\t")[-1] for line in lines), None)
    if summary is None or "[remote failure]" in summary:
        return None
    hints = [line for line in output.stderr.splitlines() if line.startswith("remote:")]
    return "\n".join((summary, *hints))[:_SAID]


def _failed(remote: str, output: GitOutput) -> RemoteFailed:
    found = next((trouble for trouble, sign in _SIGNS.items() if sign.search(output.stderr)), RemoteTrouble.broken_off)
    advice = {
        RemoteTrouble.login: f"it wants a login; make `git fetch {remote}` work without asking, by a key or a helper",
        RemoteTrouble.unreachable: f"it cannot be reached; see whether `git fetch {remote}` works",
        RemoteTrouble.broken_off: "git could not finish; it will be tried again",
    }[found]
    return RemoteFailed(found, f"{remote}: {advice}. Git said: {_words(output)}")


def _words(output: GitOutput) -> str:
    return output.stderr.strip()[-_SAID:] or f"nothing (exit code {output.code})"


def _moved(request: PushRequest, there: str | None) -> NotPushed:
    message = (
        f"{request.branch} at {request.remote} is at {there or 'no commit'}, which {request.new} does not follow; "
        f"nothing was pushed. Fetch it, and merge or rebase"
    )
    return NotPushed(reason=WhyNotPushed.moved, message=message, remote=there)


def _refused(request: PushRequest, there: str | None, said: str) -> NotPushed:
    message = f"{request.remote} does not take a push to {request.branch}: {said}"
    return NotPushed(reason=WhyNotPushed.refused, message=message, remote=there)
