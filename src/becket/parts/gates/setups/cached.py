"""The implementation of the `Setups` port: entries in the state folder, found by key, built in place, contained."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from becket.kernel.contract.base import show_duration
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.process import ChildEnd, ChildResult, ChildSpec, ChildWatcher, Processes
from becket.parts.gates.ports.setup import OpenRuns, SetupFailed, SetupReady
from becket.parts.gates.reports.folder import ReportFolder
from becket.parts.gates.section import SetupConfig
from becket.parts.gates.setups import words
from becket.parts.gates.setups.entries import SetupContent, SetupEntry, SetupState, entries, new_entry
from becket.parts.gates.setups.keys import NoSetupKey, key_files, key_of
from becket.parts.gates.setups.links import LinkPlan, PathOccupied, made_paths, opened_folders, provide
from becket.parts.gates.setups.locks import held, held_if_free

before_run = CrashPoint("setup.before_run", "the entry holds its key files, the command has not run")
after_run = CrashPoint("setup.after_run", "the command has ended, the entry still counts as half built")
after_record = CrashPoint("setup.after_record", "the entry is quarantined, its run does not know of it yet")

MOST_UNPROVEN = 2
"""Kept beyond their runs: whoever tries a step usually tries it again."""
_NOT_FOUND = (126, 127)
_ITSELF = re.compile(
    r"(-e|--editable)[\s=]+['\"]?\.|install\s+(?:-\S+\s+)*['\"]?\.(?![\w-])|setup\.py\s+(develop|install)"
)
_RUN_ID = re.compile(r"[\w.-]*\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One call of `ensure`."""

    sha: str
    setup: SetupConfig
    run_id: str
    key: str
    files: Mapping[str, str]  # the key files
    listing: Mapping[str, str]  # all files of the commit
    watcher: ChildWatcher | None
    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]

    @property
    def command(self) -> str:
        return words.short(self.setup.run)


class CachedSetups:
    """Keeps entries below `folder`; the `keep` trusted ones that were used last survive a sweep, and a few new ones."""

    def __init__(
        self, folder: Path, git: Git, processes: Processes, *, keep: int = 5, clock: Callable[[], float] = time.time
    ) -> None:
        self._home = folder.absolute()
        self._git = git
        self._processes = processes
        self._keep = keep
        self._clock = clock

    async def ensure(
        self,
        sha: str,
        setup: SetupConfig,
        run_id: str,
        *,
        watcher: ChildWatcher | None = None,
        hidden: tuple[Path, ...] = (),
        readable: tuple[Path, ...] = (),
    ) -> SetupReady | SetupFailed:
        if not _RUN_ID.fullmatch(run_id):
            raise ValueError(f"{run_id!r} is no name of a run")
        listing = await self._git.listing(sha)
        try:
            files = key_files(setup, listing, sha)
        except NoSetupKey as problem:
            return SetupFailed(reason=str(problem), environment=False)
        key = key_of(setup, files, self._processes.holds())
        wanted = _Wanted(sha, setup, run_id, key, files, listing, watcher, hidden, readable)
        try:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with held(self._lock(key)):
                return await self._found_or_built(wanted)
        except OSError as error:
            reason = words.NO_ROOM.format(folder=self._home, reason=error.strerror or error)
            return SetupFailed(reason=reason, environment=True)

    async def trust(self, key: str, run_id: str) -> bool:
        if not self._home.is_dir():
            return False
        async with held(self._lock(key)):
            of_key = [entry for entry in entries(self._home, key[:16]) if entry.record.key == key]
            for entry in of_key:
                if entry.record.state is SetupState.quarantined and entry.used_by(run_id) and entry.whole:
                    entry.write(SetupState.trusted)
            return any(entry.record.state is SetupState.trusted for entry in of_key)

    def provide(self, workspace: Workspace, ready: SetupReady) -> None:
        provide(workspace, ready)

    async def sweep(self, open_runs: OpenRuns) -> None:
        if self._home.is_dir():
            seen = {entry.folder: entry.used_at for entry in entries(self._home)}
            await asyncio.to_thread(self._sweep, frozenset(await open_runs()), seen)

    def _lock(self, key: str) -> Path:
        return self._home / f"{key[:16]}.lock"

    async def _found_or_built(self, wanted: _Wanted) -> SetupReady | SetupFailed:
        of_key = [entry for entry in entries(self._home, wanted.key[:16]) if entry.record.key == wanted.key]
        now, read_only = self._clock(), self._processes.holds().files
        usable = [entry for entry in of_key if entry.serves(wanted.run_id, now, read_only=read_only)]
        if usable:
            best = max(usable, key=lambda entry: (entry.record.state is SetupState.trusted, entry.record.made_at))
            return self._ready(best, wanted, built=False)
        made = await self._build(wanted)
        return self._ready(made, wanted, built=True) if isinstance(made, SetupEntry) else made

    def _ready(self, entry: SetupEntry, wanted: _Wanted, *, built: bool) -> SetupReady | SetupFailed:
        made = entry.record.made
        assert made is not None
        try:
            plan = LinkPlan(entry.tree, made.paths, frozenset(made.opened), wanted.listing.keys())
        except PathOccupied as path:
            reason = words.IN_THE_WAY.format(path=path, sha=wanted.sha[:12])
            return SetupFailed(reason=reason, log=entry.log, environment=False)
        if entry.record.untouched and not self._processes.holds().files:
            entry.write(entry.record.state, untouched=False)
        entry.use(wanted.run_id)
        return SetupReady(
            key=wanted.key,
            folder=entry.tree,
            links=tuple(plan.links),
            paths=tuple(plan.paths),
            built=built,
            trusted=entry.record.state is SetupState.trusted,
            seconds=made.seconds,
            log=entry.log,
        )

    async def _build(self, wanted: _Wanted) -> SetupEntry | SetupFailed:
        entry = new_entry(self._home, wanted.key, wanted.run_id, self._clock())
        await asyncio.to_thread(self._remove_leftovers, wanted.key, entry.folder)
        for path, kind in wanted.files.items():
            content = await self._git.read_bytes(wanted.sha, path)
            if content is None:
                entry.remove()
                reason = words.NO_CONTENT.format(path=path, sha=wanted.sha[:12])
                return SetupFailed(reason=reason, environment=True)
            file = entry.tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755 if kind.startswith("100755") else 0o644)
        before_run()
        result = await self._run(entry, wanted)
        after_run()
        made = await asyncio.to_thread(_judge, entry, wanted, result)
        if isinstance(made, SetupFailed):
            await asyncio.to_thread(entry.fail)
            return made
        entry.write(SetupState.quarantined, made, untouched=self._processes.holds().files)
        after_record()
        return entry

    def _remove_leftovers(self, key: str, new: Path) -> None:
        """What nobody will ever use: we hold the key's lock, so what is half built is a crash's."""
        for entry in entries(self._home, key[:16]):
            dead = entry.record.state in (SetupState.building, SetupState.failed)
            if entry.folder != new and (dead or (entry.record.made is not None and not entry.whole)):
                entry.remove()

    async def _run(self, entry: SetupEntry, wanted: _Wanted) -> ChildResult:
        spec = ChildSpec(
            argv=("sh", "-euc", wanted.setup.run),
            tree=entry.tree,
            env=wanted.setup.variables(os.environ),
            network=wanted.setup.network,
            timeout=wanted.setup.timeout,
            output=entry.log,
            hidden=wanted.hidden,
            readable=wanted.readable,
        )
        return await self._processes.run(spec, wanted.watcher)

    def _sweep(self, open_runs: frozenset[str], seen: Mapping[Path, float]) -> None:
        kept = {entry.folder for entry in (*self._latest_trusted(), *self._latest_new())}
        for lock in {self._lock(folder.name) for folder in seen} | set(self._home.glob("*.lock")):
            with held_if_free(lock) as ours:
                if ours:
                    self._sweep_key(lock.stem, kept, open_runs, seen)
                    if not entries(self._home, lock.stem):
                        lock.unlink(missing_ok=True)

    def _latest_trusted(self) -> list[SetupEntry]:
        trusted = [entry for entry in entries(self._home) if entry.record.state is SetupState.trusted]
        trusted.sort(key=lambda entry: entry.record.made_at)
        latest = {entry.record.key: entry for entry in trusted}  # two runs may have built one key, each for itself
        return sorted(latest.values(), key=lambda entry: entry.used_at, reverse=True)[: self._keep]

    def _latest_new(self) -> list[SetupEntry]:
        now = self._clock()
        new = [entry for entry in entries(self._home) if entry.record.untouched and entry.is_new(now)]
        return sorted(new, key=lambda entry: entry.used_at, reverse=True)[:MOST_UNPROVEN]

    def _sweep_key(
        self, start: str, kept: Collection[Path], open_runs: frozenset[str], seen: Mapping[Path, float]
    ) -> None:
        for entry in entries(self._home, start):
            if entry.folder not in seen or entry.used_at != seen[entry.folder]:
                continue  # by a run that may have begun after the open ones were asked for
            unused = entry.forget_users(open_runs)
            mine = entry.record.made_by in open_runs
            needed = {
                SetupState.building: False,
                SetupState.failed: mine,
                SetupState.quarantined: mine or not unused or entry.folder in kept,
                SetupState.trusted: entry.folder in kept or not unused,
            }
            if not needed[entry.record.state]:
                entry.remove()


def _judge(entry: SetupEntry, wanted: _Wanted, result: ChildResult) -> SetupContent | SetupFailed:
    """What the command made, or why it is nothing that a proof could use."""
    reason, environment = _problem(wanted, result), False
    if reason:
        environment = result.end is not ChildEnd.exited or result.exit_code in _NOT_FOUND
    else:
        paths = made_paths(entry.tree, wanted.files.keys())
        if not paths:
            reason = words.NOTHING_MADE.format(command=wanted.command)
        elif editable := _editable(entry.tree, paths):
            reason = words.EDITABLE.format(command=wanted.command, path=editable)
        else:
            return SetupContent(paths=paths, opened=opened_folders(entry.tree, paths), seconds=result.seconds)
    log = entry.log if entry.log.exists() else None
    return SetupFailed(reason=reason, log=log, exit_code=result.exit_code, environment=environment)


def _problem(wanted: _Wanted, result: ChildResult) -> str:
    """Why the command did not do its work; empty if it did."""
    command = wanted.command
    if result.end is ChildEnd.not_started:
        return words.NOT_STARTED.format(command=command, message=result.message)
    if result.end is ChildEnd.timeout:
        return words.TIMED_OUT.format(command=command, timeout=show_duration(wanted.setup.timeout))
    if result.end is ChildEnd.killed:
        return words.KILLED.format(command=command, message=result.message)
    if result.exit_code in _NOT_FOUND:
        return words.NO_TOOL.format(command=command, code=result.exit_code)
    if result.exit_code:
        said = words.FAILED.format(command=command, code=result.exit_code, files=words.named(tuple(wanted.files)))
        return f"{said}. {words.INSTALLS_ITSELF}" if _ITSELF.search(wanted.setup.run) else said
    return ""


def _editable(tree: Path, paths: Collection[str]) -> str | None:
    """What pip installed as a mere reference to this folder: in a tree being proven it would lead back here.

    Whoever wrote the packages chose what lies there: a pipe is not waited for, and nothing outside is read.
    """
    reports = ReportFolder(tree)
    for path in paths:
        for told in (tree / path).glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
            try:
                source = json.loads(reports.read(told.relative_to(tree).as_posix()) or b"")
                place = Path(unquote(urlsplit(source["url"]).path))
                if source["dir_info"].get("editable") and place.is_relative_to(tree):
                    return place.relative_to(tree).as_posix()
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
    return None
