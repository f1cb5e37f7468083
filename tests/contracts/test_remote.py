"""Fetch and push: one ref each, nobody's commit lost, nobody asked for anything, and every trouble has its name."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git, planted_script
from remote_world import World, silent_port, web

from becket.kernel.contract.effect import Permit, door_mint
from becket.kernel.contract.errors import EffectRefused, GitFailed
from becket.kernel.contract.remote import (
    NotPushed,
    Pushed,
    PushRequest,
    RemoteFailed,
    RemoteTrouble,
    WhyNotPushed,
    push_call,
)
from becket.kernel.git.program import GitCommandFailed, run
from becket.testing.ports import unused_port


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class TestFetch:
    def test_it_tells_where_the_branch_is_and_whether_that_is_news(self, world: World) -> None:
        first = world.fetch()
        assert (first.sha, first.moved) == (world.base, True)
        assert not world.fetch().moved
        theirs = world.theirs()
        again = world.fetch()
        assert (again.sha, again.moved) == (theirs, True)

    def test_one_ref_of_ours_changes_and_nothing_else(self, world: World) -> None:
        world.fetch()
        before = world.refs()
        git(world.other, "tag", "v1")
        git(world.other, "push", "--quiet", "origin", "v1", "HEAD:refs/heads/side")
        sha = world.theirs()
        world.fetch()
        assert world.refs() == before.replace(f"{world.base} commit\trefs/remotes", f"{sha} commit\trefs/remotes")
        assert not (world.home / ".git/FETCH_HEAD").exists()
        assert git(world.home, "status", "--porcelain") == ""

    def test_a_rewritten_branch_is_told_as_it_is(self, world: World) -> None:
        world.theirs()
        world.fetch()
        git(world.other, "reset", "--quiet", "--hard", world.base)
        other = commit(world.other, {"again": "a\n"})
        git(world.other, "push", "--quiet", "--force", "origin", "main")
        assert world.fetch().sha == other

    def test_a_branch_that_is_not_there(self, world: World) -> None:
        assert world.fetch(branch="none").sha is None

    @pytest.mark.parametrize("refspec", ["+refs/*:refs/*", "+refs/heads/*:refs/heads/*"])
    def test_what_is_configured_for_fetching_does_not_count(self, world: World, refspec: str) -> None:
        """L10: a mirror's refspec would move the person's own branches."""
        git(world.home, "config", "remote.origin.fetch", refspec)
        git(world.home, "config", "remote.origin.prune", "true")
        git(world.home, "switch", "--quiet", "--create", "side")
        theirs = world.theirs()
        assert world.fetch().sha == theirs
        assert git(world.home, "rev-parse", "main", "side").split() == [world.base, world.base]

    def test_no_hook_of_ours_runs(self, world: World, tmp_path: Path) -> None:
        new = world.mine()
        marker = tmp_path / "ran"
        hooks = world.home / ".git/hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("reference-transaction", "post-merge", "pre-push"):
            (hooks / name).symlink_to(planted_script(tmp_path, marker))
        world.fetch()
        assert isinstance(world.push(new), Pushed)
        assert not marker.exists()

    def test_git_variables_of_our_environment_do_not_leak(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """L1."""
        monkeypatch.setenv("GIT_DIR", str(world.other / ".git"))
        monkeypatch.setenv("GIT_NAMESPACE", "x")
        git_of_home = world.git
        assert asyncio.run(git_of_home.remote().fetch("origin", "main")).sha == world.base
        assert git(world.home, "rev-parse", "refs/remotes/origin/main") == world.base


class TestTrouble:
    def trouble(self, world: World, **options: Any) -> RemoteFailed:
        with pytest.raises(RemoteFailed) as failed:
            world.fetch(**options)
        return failed.value

    @pytest.mark.parametrize("name", ["upstream", "../hub.git", "--upload-pack=touch x", "a b"])
    def test_a_name_that_is_no_remote_is_never_taken_for_an_address(self, world: World, name: str) -> None:
        with pytest.raises((RemoteFailed, GitFailed)) as failed:
            world.fetch(remote=name)
        if isinstance(failed.value, RemoteFailed):
            assert failed.value.trouble is RemoteTrouble.unknown
            assert "git remote -v" in str(failed.value)

    def test_nobody_listens(self, world: World) -> None:
        for url in (
            f"git://127.0.0.1:{unused_port()}/hub.git",
            f"http://127.0.0.1:{unused_port()}/hub.git",
            str(world.folder / "gone.git"),
        ):
            world.at(url)
            failed = self.trouble(world)
            assert failed.trouble is RemoteTrouble.unreachable, failed

    def test_a_protocol_that_runs_programs_is_not_allowed(self, world: World, tmp_path: Path) -> None:
        world.at(f"ext::sh -c touch% {tmp_path}/ran")
        git(world.home, "config", "protocol.ext.allow", "always")
        assert self.trouble(world).trouble is RemoteTrouble.unreachable
        assert not (tmp_path / "ran").exists()

    def test_somebody_listens_and_does_not_answer(self, world: World) -> None:
        with silent_port() as port:
            world.at(f"git://127.0.0.1:{port}/hub.git")
            failed = self.trouble(world, timeout=0.5)
        assert failed.trouble is RemoteTrouble.timed_out

    def test_a_login_that_nobody_can_give_is_never_asked_for(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        marker = tmp_path / "asked"
        asker = str(planted_script(tmp_path, marker))
        git(world.home, "config", "core.askPass", asker)
        monkeypatch.setenv("SSH_ASKPASS", asker)
        monkeypatch.setenv("GIT_ASKPASS", asker)
        monkeypatch.setenv("DISPLAY", ":0")
        with web(404) as (port, came):
            world.at(f"http://127.0.0.1:{port}/hub.git")
            failed = self.trouble(world)
            pushed = world.push(world.mine())
        assert failed.trouble is RemoteTrouble.login
        assert "by a key or a helper" in str(failed)
        assert isinstance(pushed, NotPushed)
        assert pushed.reason is WhyNotPushed.login
        assert set(came) == {""}
        assert not marker.exists()

    def test_the_persons_own_helper_gives_the_login(self, world: World, tmp_path: Path) -> None:
        helper = tmp_path / "helper"
        helper.write_text("#!/bin/sh\necho username=ada; echo password=sesame\n")
        helper.chmod(0o755)
        git(world.home, "config", "credential.helper", str(helper))
        with web(404) as (port, came):
            world.at(f"http://127.0.0.1:{port}/hub.git")
            assert self.trouble(world).trouble is RemoteTrouble.unreachable
        assert f"Basic {base64.b64encode(b'ada:sesame').decode()}" in came

    def test_ssh_asks_nobody_and_is_otherwise_the_persons_own(self, world: World, tmp_path: Path) -> None:
        ssh = tmp_path / "my ssh"
        ssh.write_text(
            f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/said'\necho 'Permission denied (publickey).' >&2\nexit 255\n"
        )
        ssh.chmod(0o755)
        git(world.home, "config", "core.sshCommand", f"'{ssh}' -F mine")
        git(world.home, "config", "ssh.variant", "ssh")
        world.at("ssh://git@hub.invalid/hub.git")
        assert self.trouble(world).trouble is RemoteTrouble.login
        said = (tmp_path / "said").read_text()
        assert said.startswith("-F mine -o BatchMode=yes")
        assert "git-upload-pack" in said

    def test_other_commands_stay_inside(self, world: World) -> None:
        world.fetch()
        with pytest.raises(GitCommandFailed, match="not allowed"):
            asyncio.run(run(world.git.place, "ls-remote", "origin"))


class TestPush:
    def test_a_fast_forward_arrives(self, world: World) -> None:
        new = world.mine()
        assert world.push(new, expected=world.base) == Pushed(new=new, old=world.base)
        assert world.there() == new
        assert git(world.home, "rev-parse", "origin/main") == new

    def test_what_is_there_already_is_as_good_as_pushed(self, world: World) -> None:
        new = world.mine()
        world.push(new)
        assert isinstance(world.push(new), Pushed)

    def test_a_new_branch(self, world: World) -> None:
        assert world.push(world.base, branch="becket/one") == Pushed(new=world.base, old=None)
        assert world.there("becket/one") == world.base

    def test_only_the_one_branch_goes_out(self, world: World) -> None:
        new = world.mine()
        git(world.home, "tag", "-m", "v1", "v1")
        git(world.home, "branch", "side")
        git(world.home, "config", "push.followTags", "true")
        git(world.home, "config", "--add", "remote.origin.push", "refs/heads/*:refs/heads/*")
        world.push(new)
        assert git(world.hub, "for-each-ref", "--format=%(refname)") == "refs/heads/main"

    def test_a_remote_that_moved_keeps_its_commit(self, world: World) -> None:
        theirs = world.theirs()
        answer = world.push(world.mine())
        assert isinstance(answer, NotPushed)
        assert (answer.reason, answer.remote) == (WhyNotPushed.moved, theirs)
        assert "merge or rebase" in answer.message
        assert world.there() == theirs

    def test_a_lease_is_broken_even_by_a_fast_forward(self, world: World) -> None:
        """Whoever gave an expectation wants to know of every move."""
        theirs = world.theirs()
        world.fetch()
        git(world.home, "merge", "--quiet", "--ff-only", "origin/main")
        answer = world.push(world.mine(), expected=world.base)
        assert isinstance(answer, NotPushed)
        assert (answer.reason, answer.remote) == (WhyNotPushed.moved, theirs)
        assert isinstance(world.push(git(world.home, "rev-parse", "HEAD")), Pushed)

    def test_history_is_never_taken_back(self, world: World) -> None:
        """A lease alone would allow it."""
        new = world.mine()
        world.push(new)
        answer = world.push(world.base, expected=new)
        assert isinstance(answer, NotPushed)
        assert answer.reason is WhyNotPushed.moved
        assert world.there() == new

    def test_a_hook_that_says_no_is_heard(self, world: World) -> None:
        world.hook("pre-receive", "echo 'main is protected: open a pull request' >&2; exit 1")
        answer = world.push(world.mine())
        assert isinstance(answer, NotPushed)
        assert answer.reason is WhyNotPushed.refused
        assert "hook declined" in answer.message
        assert "open a pull request" in answer.message
        assert world.there() == world.base

    def test_somebody_is_faster_while_the_push_is_on_its_way(self, world: World) -> None:
        """The server's own compare-and-swap decides, whatever it calls it."""
        theirs = commit(world.other, {"their.txt": "t\n"})
        git(world.other, "push", "--quiet", "origin", "HEAD:refs/heads/side")
        faster = f"unset GIT_QUARANTINE_PATH; exec git update-ref refs/heads/main {theirs}"
        world.hook("pre-receive", faster)
        answer = world.push(world.mine())
        assert isinstance(answer, NotPushed), answer
        assert (answer.reason, answer.remote) == (WhyNotPushed.moved, theirs)
        assert world.there() == theirs

    def test_an_answer_that_never_came_is_in_doubt(self, world: World) -> None:
        world.hook("pre-receive", "sleep 30")
        new = world.mine()
        request = PushRequest(remote="origin", branch="main", new=new)
        with pytest.raises(RemoteFailed) as failed:
            asyncio.run(world.remote(1.0).push(request, door_mint()("key", push_call(request))))
        assert failed.value.trouble is RemoteTrouble.timed_out

    def test_a_remote_that_is_gone_leaves_nothing_in_doubt(self, world: World) -> None:
        with silent_port() as port:
            world.at(f"git://127.0.0.1:{port}/hub.git")
            request = PushRequest(remote="origin", branch="main", new=world.base)
            with pytest.raises(RemoteFailed) as failed:
                asyncio.run(world.remote(0.5).push(request, door_mint()("key", push_call(request))))
        assert failed.value.trouble is RemoteTrouble.unreachable

    def test_nothing_goes_out_without_a_permit(self, world: World) -> None:
        new = world.mine()
        request = PushRequest(remote="origin", branch="main", new=new)
        other = door_mint()("key", push_call(request.model_copy(update={"branch": "side"})))
        no_permit: Any = None
        permits: list[Permit] = [no_permit, other]
        for permit in permits:
            with pytest.raises(EffectRefused):
                asyncio.run(world.remote().push(request, permit))
        assert world.there() == world.base


@contextmanager
def git_daemon(folder: Path) -> Iterator[int]:
    port = unused_port()
    program = Path(git(folder, "--exec-path")) / "git-daemon"
    options = (f"--base-path={folder}", "--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1")
    daemon = subprocess.Popen([program, *options, f"--port={port}", str(folder)], start_new_session=True)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < until, "git-daemon does not listen"
                assert daemon.poll() is None
        yield port
    finally:
        os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait(60)


@pytest.mark.slow  # git-daemon is a package of its own on some systems
def test_over_a_real_connection(world: World) -> None:
    with git_daemon(world.folder) as port:
        world.at(f"git://127.0.0.1:{port}/hub.git")
        theirs = world.theirs()
        assert world.fetch().sha == theirs
        answer = world.push(world.mine())
        assert isinstance(answer, NotPushed)
        assert answer.reason is WhyNotPushed.moved
        git(world.home, "rebase", "--quiet", "origin/main")
        assert isinstance(world.push(git(world.home, "rev-parse", "HEAD")), Pushed)
        world.hook("pre-receive", "exit 1")
        refused = world.push(world.mine({"more": "m\n"}))
        assert isinstance(refused, NotPushed)
        assert refused.reason is WhyNotPushed.refused
