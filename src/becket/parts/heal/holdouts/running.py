"""Run checks on a commit where nothing says that this is a test: another place, other names, hardly a variable."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.loop import Places
from becket.kernel.contract.process import ChildEnd, ChildResult, ChildSpec, Processes
from becket.kernel.contract.removal import removed
from becket.kernel.contract.toolchains import find
from becket.parts.gates.judging.tree import ProofTree, open_tree
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.section import GATES
from becket.parts.heal.holdouts.languages import CheckLanguage, language_of, program_of

CHEAP = 30.0
"""Seconds within which a round of all checks is worth a second one."""

_PLACES = "places"
_WORDS = ("app", "batch", "data", "desk", "item", "page", "plan", "site", "store", "work")
_START = 'cd "$1"; shift; exec env -i PATH="$PATH" LANG=C.UTF-8 "$@"'
"""The shell is replaced: what remains is the program, its file, and the few variables given here."""


class Check(Record):
    """One check, kept as an artifact."""

    name: str  # as its writer called it, such as check_3.py
    digest: str


class CheckExits(Record):
    """How one check ended on one commit, each time it ran: its exit code, or `timeout` and the like."""

    ends: tuple[int | str, ...]

    @property
    def passed(self) -> bool:
        return bool(self.ends) and all(end == 0 for end in self.ends)


@dataclass(frozen=True, slots=True)
class Trial:
    """One commit at a place of its own, without its tests and without git."""

    context: ActionContext
    proof: ProofTree
    place: Path
    root: Path

    async def rounds(self, checks: Sequence[tuple[Check, str]], most: int) -> dict[str, CheckExits]:
        """Every check in a process of its own, each round in another order; more rounds only where they are cheap."""
        ends: dict[str, list[int | str]] = {check.name: [] for check, _ in checks}
        for _ in range(most):
            took = 0.0
            for check, text in random.sample(list(checks), len(checks)):
                done = await self._run(check, text)
                took += done.seconds
                ends[check.name].append(_told(done))
            if took > CHEAP:
                break
        return {name: CheckExits(ends=tuple(told)) for name, told in ends.items()}

    async def can_run(self, language: CheckLanguage) -> bool:
        return (await self._start(language, language.ready, language.seconds)).ok

    def shown(self, language: CheckLanguage) -> str:
        """How a person would run one by hand, from the project's root."""
        told = [part.replace("{file}", f"FOLDER/check_1{language.endings[0]}") for part in language.run]
        return " ".join([self._program(language), *told])

    async def _run(self, check: Check, text: str) -> ChildResult:
        language = language_of(check.name)
        assert language is not None
        folder = self.root / _innocuous()
        file = folder / f"{_innocuous()}{Path(check.name).suffix}"
        folder.mkdir()
        file.write_text(text, encoding="utf-8")
        words = [part.replace("{file}", str(file)) for part in language.run]
        try:
            done = await self._start(language, words, language.seconds)
            # Killed by somebody else: that says nothing about the code (L14).
            return await self._start(language, words, language.seconds) if done.end is ChildEnd.killed else done
        finally:
            removed(folder)

    async def _start(self, language: CheckLanguage, words: Iterable[str], seconds: float) -> ChildResult:
        home, cache = self.place / _innocuous(), self.place / "cache"
        home.mkdir()
        cache.mkdir(exist_ok=True)
        known = {"{root}": str(self.root), "{cache}": str(cache)}
        given = dict(find(os.environ).variables)
        given |= {name: _filled(value, known) for name, value in language.variables.items()}
        variables = [f"{name}={value}" for name, value in {"HOME": str(home), "TMPDIR": str(home), **given}.items()]
        spec = ChildSpec(
            argv=("sh", "-euc", _START, "sh", str(self.root), *variables, self._program(language), *words),
            tree=home,
            timeout=min(seconds, self.context.seconds_left),
            output=self.place / "said",
            output_cap=200_000,
            readable=(self.root, *self.proof.readable),
            writable=(cache,),
            hidden=self.context.port(Places).hidden(),
        )
        try:
            done = await self.context.port(Processes).run(spec, self.context.watcher())
        finally:
            removed(home)
        if done.end is ChildEnd.not_started:
            raise ActionFailed(f"a hold-out check could not be started: {done.message}", kind="environment")
        return done

    def _program(self, language: CheckLanguage) -> str:
        steps = [step for gate in self.proof.config.section(GATES).values() for step in gate]
        return program_of(language, [step.run for step in steps], self.root)


def _filled(value: str, known: dict[str, str]) -> str:
    for name, text in known.items():
        value = value.replace(name, text)
    return value


def _told(done: ChildResult) -> int | str:
    return done.exit_code if done.end is ChildEnd.exited and done.exit_code is not None else done.end.value


@asynccontextmanager
async def trial(context: ActionContext, sha: str, base: str, is_test: Callable[[str], bool]) -> AsyncIterator[Trial]:
    """The commit as it would be used: its files but for the tests, its set-up, at a path that nobody can foretell."""
    proof = await open_tree(context, sha, base)
    if isinstance(proof, SetupFailed):
        raise ActionFailed(f"the set-up of {sha[:12]} fails: {proof.reason}", kind="environment")
    forget_places(context)
    place = Path(tempfile.gettempdir()).resolve() / _innocuous()
    _remember(context, place)
    try:
        place.mkdir(mode=0o700)
        root = place / _innocuous()
        await asyncio.to_thread(_copy, proof.root, root, is_test)
        yield Trial(context, proof, place, root)
    finally:
        forget_places(context)


def _copy(source: Path, target: Path, is_test: Callable[[str], bool]) -> None:
    def left_out(folder: str, names: list[str]) -> list[str]:
        inside = Path(folder).relative_to(source)
        if inside == Path():
            return [name for name in names if name == ".git" or is_test(name)]
        return [name for name in names if is_test((inside / name).as_posix())]

    shutil.copytree(source, target, symlinks=True, ignore=left_out)
    for folder, _, _ in os.walk(target, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()  # git knows no empty folder; these held tests


def _remember(context: ActionContext, place: Path) -> None:
    """Written before the place is made: a life that is killed leaves nothing that the next one does not find."""
    write_whole(context.folder("holdout") / _PLACES, str(place))


def write_whole(file: Path, text: str) -> None:
    """All of it, or what was there before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def forget_places(context: ActionContext) -> None:
    file = context.folder("holdout") / _PLACES
    if file.exists():
        place = Path(file.read_text())
        if place.is_absolute() and place.parent == Path(tempfile.gettempdir()).resolve() and not place.is_symlink():
            removed(place)
        file.unlink()


def _innocuous() -> str:
    return f"{secrets.choice(_WORDS)}{secrets.token_hex(4)}"
