"""Tells the doctor about this machine, this repository and its state; and what the doctor makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from becket.app.compose import App
from becket.app.parts import failed, installed, loaded, part_names, unique
from becket.app.sections import load_config
from becket.app.settings import read_config
from becket.app.state import StateFolder, find_state, holder
from becket.app.writing import unwritable
from becket.kernel.checks import doctor
from becket.kernel.checks.facts import (
    Check,
    ContentFacts,
    Diagnosis,
    DoctorFacts,
    Exam,
    LockFact,
    RefsFacts,
    SandboxFact,
    StoreFacts,
    TreeFact,
)
from becket.kernel.checks.host import disk_free, inotify, process_alive, read_lock, write_problem
from becket.kernel.contract.candidate import BrokenRef
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import BecketError, Finding, PartFailed, UsageError
from becket.kernel.contract.git import TreeHealth
from becket.kernel.contract.part import Part
from becket.kernel.contract.process import Holds
from becket.kernel.contract.spec import Autonomy, LoopSpec
from becket.kernel.git import lfs
from becket.kernel.git.candidates import GitCandidates
from becket.kernel.git.repository import MIN_VERSION, GitRepository, discover
from becket.kernel.git.resident import no_folder
from becket.kernel.git.submodules import absent
from becket.kernel.git.workspace import health, set_aside
from becket.kernel.process import available
from becket.kernel.process.choice import SandboxOffer
from becket.kernel.process.places import unseen
from becket.kernel.spec.book import BUILT_IN
from becket.kernel.spec.document import read
from becket.kernel.spec.problems import suggestion
from becket.kernel.store import open_memory
from becket.kernel.store.backups import backups, problem
from becket.kernel.store.damage import damaged
from becket.parts.agents.doctor import look, probe, works
from becket.parts.gates.tools_doctor import trouble
from becket.parts.heal.holdouts.languages import spoken

__all__ = ["Diagnosis", "examine", "facts", "mend", "probe", "to_look_at", "works"]

GIT_LOCK_LIFE = 60.0
PATIENCE = 20.0
"""For a check that does not come with Becket."""
AT_FIRST = ("tools", "toolchains", "contents", "agents", "sandbox")


def examine(folder: Path) -> tuple[Diagnosis, ...]:
    """Everything found, inside a repository or not."""
    return doctor.examine(facts(folder), of_parts=of_parts())


def to_look_at(folder: Path) -> tuple[Diagnosis, ...]:
    """What a person should know of this repository who has just begun: whatever there is something to do about."""
    return tuple(found for found in doctor.examine(facts(folder), AT_FIRST, of_parts()) if found.mend)


def of_parts() -> dict[str, Check]:
    """Each is loaded when its turn comes. Raises UsageError where two have one name."""
    brought = [
        (name, partial(_asked, part, target), part) for part in installed() for name, target in part.checks.items()
    ]
    return unique("check", brought, doctor.CHECKS)


def _asked(part: Part, target: str, exam: Exam) -> tuple[Diagnosis, ...]:
    """Those that come with Becket have limits of their own, each for what it asks; a stranger's gets one for all."""
    check = loaded(part, target)
    return tuple(check(exam)) if target.startswith("becket.") else _in_time(part, target, lambda: tuple(check(exam)))


def _in_time(part: Part, target: str, look: Callable[[], tuple[Diagnosis, ...]]) -> tuple[Diagnosis, ...]:
    answer: Queue[tuple[Diagnosis, ...] | Exception] = Queue()

    def tell() -> None:
        try:
            answer.put(look())
        except BecketError as error:
            answer.put(error)
        except (Exception, SystemExit) as error:
            answer.put(failed(part, target, error))

    Thread(target=tell, name=target, daemon=True).start()  # one that hangs must not hold up the end of the process
    try:
        said = answer.get(timeout=PATIENCE)
    except Empty:
        raise PartFailed(
            f"the check of the part {part.name} ({target}) did not answer within {PATIENCE:g} s; mend it, or remove "
            f"{part_names(part.name)}"
        ) from None
    if isinstance(said, Exception):
        raise said
    return said


def facts(folder: Path) -> DoctorFacts:
    state = _state(folder)
    return DoctorFacts(
        git_version=_git(folder, "--version"),
        git_minimum=MIN_VERSION,
        python_version=tuple(sys.version_info[:3]),
        root=state.root if state else None,
        state=state.folder if state else None,
        socket=None,  # the doorbell finds a short name for itself, however deep the repository lies
        working_text=_working_text(state),
        committed_text=_git(state.root, "show", "HEAD:becket.yaml") if state else None,
        load_config=_load,
        sandboxes=tuple(_sandbox(offer) for offer in available()),
        open_store=partial(_open_store, state),
        last_backup=partial(_last_backup, state),
        now=time.time,
        locks=_locks(state),
        alive=process_alive,
        disk_free=disk_free,
        write_problem=write_problem,
        which=shutil.which,
        unseen=partial(_unseen, state),
        trouble=partial(trouble, state),
        contents=partial(_contents, state),
        remotes=lambda: tuple((_git(state.root, "remote") or "").split()) if state is not None else (),
        env=os.environ,
        inotify=lambda: inotify(state.common if state else Path.cwd()),
        lint_loops=partial(_lint, state),
        absent_branches=partial(_absent_branches, state),
        refs=partial(_refs, state),
        look_at_tree=partial(_tree, state),
        unwritable=lambda: unwritable(state) if state is not None else "",
        not_held_out=lambda: _not_held_out(state),
        look_at_agents=lambda config: look(config, state.root if state else folder),
    )


def _unseen(state: StateFolder | None, config: Config, word: str) -> Path | None:
    found = shutil.which(word)
    if found is None or state is None:
        return None
    return unseen(Path(found), os.environ.get("PATH", ""), config.sandbox.places(state.common))


def _not_held_out(state: StateFolder | None) -> str:
    listed = _git(state.root, "ls-files") if state is not None else None
    return spoken((), listed.splitlines())[1] if listed else ""


def _contents(state: StateFolder | None) -> ContentFacts:
    if state is None:
        return ContentFacts()

    git = discover(state.root)

    async def not_here() -> list[str]:
        source = git.source
        return await absent(source.git_dirs, (await source.inventory("HEAD")).submodules, await source.modules("HEAD"))

    by_lfs = _git(state.root, "grep", "--name-only", "filter=lfs", "HEAD", "--", ".gitattributes", "*/.gitattributes")
    large = [line.removeprefix("HEAD:") for line in (by_lfs or "").splitlines()]
    if large and lfs.installed():
        large = asyncio.run(lfs.absent(git.place, state.common, "HEAD"))
    has_modules = _git(state.root, "cat-file", "-e", "HEAD:.gitmodules") is not None
    submodules = tuple(asyncio.run(not_here())) if has_modules else ()
    return ContentFacts(submodules, tuple(large), lfs=lfs.installed())


def _tree(state: StateFolder | None) -> TreeFact | None:
    if state is None:
        return None
    folder, tree = state.resident
    found = health(folder, tree)
    if found is TreeHealth.good and asyncio.run(_is_pruned(discover(state.root), folder)):
        found = TreeHealth.pruned
    return TreeFact(no_folder(tree) or tree, found, set_aside(tree))


async def _is_pruned(git: GitRepository, folder: Path) -> bool:
    workspace = await git.find_workspace(folder)
    return workspace is not None and await git.resolve(workspace.sha) is None


def _state(folder: Path) -> StateFolder | None:
    try:
        return find_state(folder)
    except UsageError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, check=False, env=clean, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.decode("utf-8", "surrogateescape") if told.returncode == 0 else None


def _working_text(state: StateFolder | None) -> str | None:
    if state is None or not state.config.is_file():
        return None
    return state.config.read_text(encoding="utf-8", errors="surrogateescape")


def _load(text: str) -> Config:
    return load_config(text.encode("utf-8", "surrogateescape"), "becket.yaml", os.environ)


def _sandbox(offer: SandboxOffer) -> SandboxFact:
    nothing = Holds(kind=offer.kind, files=False, processes=False, network=False)
    return SandboxFact(holds=offer.holds or nothing, available=offer.holds is not None, reason=offer.reason)


def _locks(state: StateFolder | None) -> tuple[LockFact, ...]:
    """Who holds ours, which of ours a killed process left its name in, and git's own that nobody seems to use."""
    if state is None:
        return ()
    found = []
    for path in (state.engine_lock, state.daemon_lock, state.watchdog_lock, *state.drivers.glob("*")):
        left = read_lock(path)
        if (pid := holder(path)) is not None:
            found.append(LockFact(path, pid))
        elif left is not None and (left.pid is not None or path.is_dir()):
            found.append(left)
    return (*found, *_old_git_locks(state))


def _old_git_locks(state: StateFolder) -> Iterator[LockFact]:
    """git removes its locks within moments; one that has lain for a minute stops every commit and every promotion."""
    for path in (*state.common.glob("*.lock"), *state.common.glob("refs/heads/**/*.lock")):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > GIT_LOCK_LIFE:
                yield LockFact(path, None)


def _open_store(state: StateFolder | None) -> StoreFacts | None:
    if state is None or not (state.database.exists() or state.journal_mark.exists() or read_config(state).database):
        return None

    async def ask(found: StateFolder) -> StoreFacts:
        app = App.open(found)
        try:
            if wrong := await app.store.faults():
                raise damaged(found.database, wrong[0])
            return StoreFacts(await app.store.now(), await app.store.workers())
        finally:
            await app.store.close()

    return asyncio.run(ask(state))


def _last_backup(state: StateFolder | None) -> str | None:
    kept = backups(state.backups) if state is not None else ()
    return next((one.name for one in kept if not problem(one)), None)


def _refs(state: StateFolder | None) -> RefsFacts:
    if state is None:
        return RefsFacts()

    async def ask(candidates: GitCandidates) -> RefsFacts:
        broken = await candidates.broken()
        bad = {found.sha for found in broken}
        saved = [item for item in await candidates.rescued() if item.sha not in bad]
        return RefsFacts(broken, len(saved), await candidates.size(*saved))

    return asyncio.run(ask(discover(state.root).candidates()))


def mend(folder: Path) -> tuple[BrokenRef, ...]:
    """Remove refs of Becket's own that name what is not there. Nobody else's are touched."""
    state = _state(folder)
    return () if state is None else asyncio.run(discover(state.root).candidates().mend())


def _lint(state: StateFolder | None) -> Iterable[Finding]:
    """Needs no journal: a broken one must not hide what is wrong with the loops."""
    if state is None:
        return ()
    app = App(state.make(), open_memory())
    found = [finding for findings in app.loops.findings().values() for finding in findings]
    return [*found, *_budgets_for_nobody(app), *_caps_of_nothing(app), *_branch_of_another_name(app)]


def _absent_branches(state: StateFolder | None) -> Iterator[Finding]:
    """A branch may come to exist later, so its absence is no fault; a misspelt one never does."""
    if state is None:
        return
    app = App(state.make(), open_memory())
    heads = _git(state.root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")
    written = "branch" in app.config.model_fields_set
    if heads and written and app.config.branch not in heads.split("\n"):
        yield _in_config(app, ("branch",), "absent-branch", app.config.branch, "")
    for loop in app.loops.all() if heads else ():
        for number, trigger in enumerate(loop.spec.trigger):
            branch = trigger.commit.branch if trigger.commit else None
            if branch is not None and branch not in (heads or "").split("\n"):
                line, column = read(loop.text, loop.source).place(("trigger", number, "commit", "branch")).value
                yield Finding(loop.source, line, column, "absent-branch", branch, "")


def _budgets_for_nobody(app: App) -> Iterator[Finding]:
    """A budget whose loop does not exist holds nothing: most likely its name is misspelt."""
    asleep = {Path(name.removesuffix(f" ({BUILT_IN})")).stem for name in app.loops.findings()}
    there = sorted(asleep | {loop.spec.loop_id for loop in app.loops.all()})
    for name in app.config.budgets.loops if not app.loops.broken() else ():
        if name not in there:
            message = f"`budgets.loops.{name}` bounds a loop that does not exist"
            yield _in_config(app, ("budgets", "loops", name), "unknown-loop", message, suggestion(name, there))


def _caps_of_nothing(app: App) -> Iterator[Finding]:
    """A cap on an effect that nobody has holds nothing back."""
    there = {*app.registry.effects, *(name for loop in app.loops.all() for name in _own_effects(loop.spec))}
    for name in app.config.effect_caps if not app.loops.broken() else ():
        if name not in there:
            message = f"`effect_caps.{name}` caps an effect that does not exist"
            yield _in_config(app, ("effect_caps", name), "unknown-effect", message, suggestion(name, there))


def _branch_of_another_name(app: App) -> Iterator[Finding]:
    branch = app.config.branch
    target = asyncio.run(app.git.leads_to(branch))
    if target and app.config.autonomy.allows(Autonomy.merge):
        message = f"{branch} is only another name of {target} (a symbolic ref), which promote does not move"
        yield _in_config(app, ("branch",), "symbolic-branch", message, f"branch: {target}")


def _own_effects(spec: LoopSpec) -> Iterator[str]:
    for action in spec.output_makers().values():
        if action.effects is not None:
            yield action.effects.name


def _in_config(app: App, path: tuple[str, ...], rule: str, message: str, fix: str) -> Finding:
    document = read(app.state.config.read_bytes(), "becket.yaml")
    return document.finding(document.place(path).key, rule, message, fix)
