"""What the guard makes of a change, without a run: its class, the lines that made it so, and what it would need."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from becket.app.compose import App
from becket.app.project import FILE
from becket.app.sections import config_model, load_config
from becket.app.state import find_state
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import BecketError, UsageError
from becket.kernel.contract.guard import Change, ChangeClass, Classification, Refusal
from becket.kernel.contract.trust import trust_words
from becket.kernel.git.compared import Sides, of_index, of_range
from becket.kernel.git.repository import GitRepository, discover
from becket.parts.gates.judging.history import newest_proven
from becket.parts.gates.section import SET_UP
from becket.parts.guard.actions.side import commands_run, find_side
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.found.names import LARGEST
from becket.parts.guard.reading.side import test_side_of
from becket.parts.guard.section import GUARD

PROOF = "the guard, the crossing proof and every gate"


class Explained(Record):
    """The field names are the keys of `becket guard explain --json`."""

    old: str
    new: str
    files: int
    reading: Classification
    refusals: tuple[Refusal, ...]
    test_side: tuple[str, ...]  # the changed files that count as tests
    needs: tuple[str, ...]  # before it would be promoted by itself, in plain words
    promote: ChangeClass
    trust: str
    rules: str  # whose becket.yaml counts


async def explain(folder: Path, named: str, staged: bool) -> Explained:
    """By the rules that the older side has committed. Raises UsageError for what cannot be compared."""
    git = discover(folder)
    if not staged:
        return await _explained(git, await of_range(git, named))
    async with of_index(git) as sides:
        return await _explained(git, sides)


async def _explained(git: GitRepository, sides: Sides) -> Explained:
    change = await sides.change()
    config, rules = await _rules(git, sides.base)
    side = await find_side(git, sides.base, config) if sides.base else test_side_of(config)
    limits, commands = config.section(GUARD), await commands_run(git, sides.base, config)
    refusals = examine(change, limits, side, commands, config.section(SET_UP))
    reading = classify(change, side, limits.pure)
    if reading.kind is not ChangeClass.plain and sides.base:
        reading = classify(change, side, limits.pure, await _as_proven(git, sides.base, change))
    return Explained(
        old=sides.old_name,
        new=sides.new_name,
        files=len(change.files),
        reading=reading,
        refusals=tuple(refusals),
        test_side=tuple(file.path for file in change.files if side.belongs(file.path)),
        needs=tuple(needed(reading.kind, refusals, config)),
        promote=limits.promote,
        trust=trust_words(limits.promote),
        rules=rules,
    )


async def _as_proven(git: GitRepository, base: str, change: Change) -> Mapping[str, bytes]:
    """The changed files as on the last proven commit before base, as a run would read them; nothing where no journal
    tells of one.
    """
    try:
        state = find_state(git.root)
        if not state.folder.exists():
            return {}
        app = App.open(state, tolerant=True)
    except BecketError:  # a bare repository has none, and what cannot be read proves nothing
        return {}

    async def known(fact: str, subject: str) -> bool:
        return await app.store.recorded_by(fact, subject) is not None

    try:
        found = await newest_proven(git, known, {app.config.branch}, base)
    finally:
        await app.store.close()
    paths = [file.path for file in change.files if file.in_candidate]
    return {} if found is None else await git.read_files(found[0], paths, LARGEST)


async def _rules(git: GitRepository, base: str) -> tuple[Config, str]:
    """As committed in base; the defaults where there is none, or none that can be read."""
    text = await git.read_bytes(base, FILE) if base else None
    if text is None:
        return config_model()(version=1), f"the defaults: no {FILE} in {base[:12]}" if base else "the defaults"
    try:
        return load_config(text, f"{FILE} of {base[:12]}", os.environ), f"{FILE} of {base[:12]}"
    except UsageError as error:
        why = str(error).splitlines()[0]
        return config_model()(version=1), f"the defaults: {FILE} of {base[:12]} cannot be read ({why})"


def needed(kind: ChangeClass, refusals: tuple[Refusal, ...] | list[Refusal], config: Config) -> Iterator[str]:
    """What must happen before main moves to such a repair without a person, or why it never does."""
    if any(not refusal.asks for refusal in refusals):
        yield "it would be refused, and sent back to the agent once: see the rules above"
        return
    if refusals:
        yield "a person approves exactly this change before it is proven: `becket approve`"
    yield PROOF
    trusted = config.section(GUARD).promote
    if kind.rank > trusted.rank:
        yield f"a person: guard.promote is {trusted}, so it would be proposed and not promoted"
    elif kind is ChangeClass.ordinary and trusted is not ChangeClass.powerful:
        yield _hold_out(config.heal.hold_out)


def _hold_out(agent: str | None) -> str:
    if agent is not None:
        return f"a hold-out proof, with checks by the agent {agent}"
    return "a hold-out proof; nobody is configured to write it (heal: {hold_out: AGENT}), so it would be proposed"
