"""`becket store`: is the journal whole, copy it, bring a copy back, or go on knowingly with what is there."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.app.liveness import drivers
from becket.app.record.verify import Checked, all_events, check_chain
from becket.app.settings import read_config
from becket.app.state import Lock, StateFolder, holder
from becket.app.unrecorded import Unrecorded, note_restored, unrecorded
from becket.app.writing import undecided, unwritable
from becket.kernel.contract.errors import NotFound, StoreUnavailable, UnfitTables, UsageError
from becket.kernel.contract.git import TreeHealth
from becket.kernel.contract.store import RunFilter
from becket.kernel.git.resident import made_once, no_folder
from becket.kernel.git.workspace import health
from becket.kernel.store.backups import Backup, backups, free_name, make_backup, problem, put_aside, put_in_place
from becket.kernel.store.damage import faults, is_damage, own_mark, read_only
from becket.kernel.store.mark import JournalMark, objection, read_mark, write_mark
from becket.kernel.store.quick import readable_run_ids

__all__ = ["AcceptedJournal", "Backup", "Restored", "StoreCheck", "Unrecorded", "accept", "backup", "check", "restore"]

_RUN_ID = re.compile(rb"run_[0-9a-z]{1,40}")


@dataclass(frozen=True, slots=True)
class StoreCheck:
    where: str
    checks: tuple[Checked, ...]
    backups: tuple[Backup, ...]

    @property
    def ok(self) -> bool:
        return all(item.ok for item in self.checks)


@dataclass(frozen=True, slots=True)
class Restored:
    backup: Backup
    aside: Path | None  # where the old journal is kept
    lost_runs: tuple[str, ...]  # as far as the old journal could still be read
    unrecorded: Unrecorded


@dataclass(frozen=True, slots=True)
class AcceptedJournal:
    anew: bool  # the journal is a new and empty one
    aside: Path | None
    unrecorded: Unrecorded
    tree: Path | None = None  # where the test tree of before is kept
    in_the_way: Path | None = None  # what lies where the test tree belongs, and is not known as ours


async def check(state: StateFolder) -> StoreCheck:
    """Everything that can be asked of the journal. Changes nothing, on SQLite not even the version of its tables."""
    if read_config(state).database:
        app = App.open(state)
        try:
            return StoreCheck(
                "Postgres", (Checked(True, "file", "Postgres sees to its own"), *await _contents(app)), ()
            )
        finally:
            await app.store.close()
    found = [_file(state)]
    if found[-1].ok and state.database.exists():
        found += [_integrity(state), _mark(state)]
        if all(item.ok for item in found):
            found += await _opened(state)
    return StoreCheck(str(state.database), tuple(found), backups(state.backups))


def _file(state: StateFolder) -> Checked:
    path = state.database
    if path.is_dir():
        return Checked(False, "file", "it is a folder")
    if path.exists() and path.stat().st_size:
        stands = unwritable(state)
        return Checked(True, "file", f"{path.stat().st_size} bytes{'; ' if stands else ''}{stands}")
    gone = objection(read_mark(state.journal_mark), None)
    return Checked(not gone, "file", gone or "there is no journal yet; the first run makes it")


def _integrity(state: StateFolder) -> Checked:
    """Raises StoreUnavailable where it cannot be told: a disk that is full or read-only is no damage."""
    try:
        wrong = faults(state.database, whole=True)
    except sqlite3.Error as error:
        raise undecided(state, error) from error
    return Checked(not wrong, "integrity", "; ".join(wrong[:3]) or "pages, rows and indexes fit together")


def _mark(state: StateFolder) -> Checked:
    """The mark is read first: it is never ahead of a journal that is being written."""
    kept = read_mark(state.journal_mark)
    wrong = objection(kept, _own(state))
    return Checked(not wrong, "identity", wrong or "it is the journal that was here")


def _own(state: StateFolder) -> JournalMark | None:
    try:
        with closing(read_only(state.database)) as raw:
            return own_mark(raw)
    except (sqlite3.Error, ValueError) as error:  # what it says may be no text
        if is_damage(error):
            return None
        raise undecided(state, error) from error


async def _opened(state: StateFolder) -> list[Checked]:
    try:
        app = App.open(state)
    except UnfitTables:  # no damage: to restore or to accept would mend nothing
        raise
    except StoreUnavailable as error:
        return [Checked(False, "opening", str(error))]
    try:
        return await _contents(app)
    except StoreUnavailable as error:
        return [Checked(False, "rows", str(error))]
    finally:
        await app.store.close()


async def _contents(app: App) -> list[Checked]:
    runs = await app.store.list_runs(RunFilter(limit=None))
    chains = {run.run_id: check_chain(run, await all_events(app, run.run_id)) for run in runs}
    bad = [Checked(False, f"chain of {run_id}", one.detail) for run_id, one in chains.items() if not one.ok]
    found = await unrecorded(app)
    told = f"the journal knows nothing of {found}; `becket store accept` says that you have seen it"
    return [
        *(bad or [Checked(True, "chains", f"{len(runs)} runs, each in one unbroken chain")]),
        Checked(not found, "git", told if found else "every promotion that git tells of is on record"),
    ]


def backup(state: StateFolder) -> Backup:
    _on_sqlite(state, "pg_dump")
    if not state.database.exists():
        raise NotFound(f"there is no journal at {state.database} to copy; the first run makes it")
    if not (found := _mark(state)).ok:
        raise UsageError(f"no backup was made of {state.database}: {found.detail}; see `becket store check`")
    return make_backup(state.database, state.backups, "asked", read_config(state).retention.backups)


async def restore(state: StateFolder, name: str | None) -> Restored:
    """Put a backup in the journal's place; the old one is kept aside.

    Refused while an engine runs, and where the journal cannot be looked at: it may be whole, and newer.
    """
    _on_sqlite(state, "pg_restore")
    with _alone(state):
        if _file(state).ok and state.database.exists():
            _integrity(state)
        chosen = _chosen(state, name)
        aside = free_name(state.make().folder, "damaged")
        put_in_place(chosen.path, state.database, aside)
        if (mark := _own(state)) is not None:
            write_mark(state.journal_mark, mark)
        found, known = await _told(state, accepted=False)
    return Restored(chosen, aside if aside.exists() else None, _lost(aside / state.database.name, known), found)


def _chosen(state: StateFolder, name: str | None) -> Backup:
    """The one that is named, or the newest one that is whole."""
    all_ = backups(state.backups)
    named = [one for one in all_ if name is None or one.name.startswith(name)]
    if not named:
        shown = ", ".join(one.name for one in all_[:5]) or "none"
        raise NotFound(f"there is no backup {name or ''!r} in {state.backups}; there: {shown}".replace(" ''", ""))
    troubles = []
    for one in named:
        if not (trouble := problem(one)):
            return one
        troubles.append(f"{one.name}: {trouble}")
    raise UsageError(f"no backup is whole, and nothing was changed. {'; '.join(troubles)}")


async def accept(state: StateFolder) -> AcceptedJournal:
    """Go on with the journal as it is; one that is gone or damaged is kept aside, and a new one begun."""
    _on_sqlite(state, "your database's own tools")
    with _alone(state):
        whole = _file(state).ok and state.database.exists() and _integrity(state).ok
        own = _own(state) if whole else None
        aside = free_name(state.make().folder, "damaged")
        if own is not None and own.journal:
            write_mark(state.journal_mark, own)
        else:
            if not whole:
                put_aside(state.database, aside)
            state.journal_mark.unlink(missing_ok=True)
        found, _ = await _told(state, accepted=True)
        tree = _tree_aside(state)
    return AcceptedJournal(not whole, aside if aside.exists() else None, found, tree, _in_the_way(state))


def _in_the_way(state: StateFolder) -> Path | None:
    tree = state.resident[1]
    foreign = tree if health(*state.resident) is TreeHealth.foreign else None
    return no_folder(tree) or foreign


def _tree_aside(state: StateFolder) -> Path | None:
    """The record of the test tree may be lost with the journal: a tree that was ours then stands in its own way."""
    tree = state.resident[1]
    if health(*state.resident) is not TreeHealth.foreign or not made_once(tree):
        return None
    aside = free_name(tree.parent, f"{tree.name}-kept")
    try:
        tree.rename(aside)
    except OSError:
        return None
    return aside


async def _told(state: StateFolder, accepted: bool) -> tuple[Unrecorded, frozenset[str]]:
    """What git tells of and this journal does not; and the runs that it knows."""
    app = App.open(state)
    try:
        if not accepted:
            await note_restored(app, accepted=False)
        found = await unrecorded(app)
        if accepted:
            await note_restored(app, accepted=True)
        return found, frozenset(run.run_id for run in await app.store.list_runs(RunFilter(limit=None)))
    finally:
        await app.store.close()


def _lost(old: Path, known: frozenset[str]) -> tuple[str, ...]:
    """As far as a damaged file can be read: a name that is none is left out, and what comes behind a bad page too."""
    found = [said.decode("ascii") for said in readable_run_ids(old) if _RUN_ID.fullmatch(said)]
    return tuple(one for one in dict.fromkeys(found) if one not in known)


def _on_sqlite(state: StateFolder, instead: str) -> None:
    if read_config(state).database:
        raise UsageError(
            f"the journal is on Postgres, which has its own ways: use {instead}; `becket store check` works"
        )


@contextmanager
def _alone(state: StateFolder) -> Iterator[None]:
    """Nobody is the engine, and nobody becomes it meanwhile."""
    with ExitStack() as held:
        for path in (state.make().daemon_lock, state.engine_lock):
            if not held.enter_context(Lock(path)).acquire():
                raise UsageError(f"process {holder(path)} works with the journal; `becket down` first, then try again")
        if busy := [one for one in drivers(state) if one.pid != os.getpid()]:  # whoever begins now meets our lock
            raise UsageError(
                f"process {busy[0].pid} (`{busy[0].command}`) works with the journal; wait for it, or end it"
            )
        yield
