"""By which commands a person enters the tree of a run that handed over."""

from __future__ import annotations

import shlex

from becket.app.compose import App
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.handoff import Handoff

ENDS_WITH = 12


async def take_over(app: App, handoff: Handoff) -> tuple[str, ...]:
    """A work tree of one's own at what the run left: its candidate, else what was saved of it, else its commit."""
    place = shlex.quote(f"../{app.git.root.name}-{handoff.run_id[-ENDS_WITH:]}")
    begin = f"cd {shlex.quote(str(app.git.root))}"
    if sha := await _candidate(app, handoff):
        return begin, f"git worktree add --detach {place} {sha}", f"cd {place}"
    for name, parent in await _saved(app, handoff.run_id):
        return (
            begin, f"git worktree add --detach {place} {parent}", f"cd {place}", f"becket rescue apply {name} --to .",
        )  # fmt: skip
    sha = str((await app.store.get_run(handoff.run_id)).subject.fields.get("sha") or "")
    return (begin, f"git worktree add --detach {place} {sha}", f"cd {place}") if sha else (begin,)


async def _candidate(app: App, handoff: Handoff) -> str:
    if sha := handoff.evidence.get("candidate"):
        return str(sha)
    known = [one for one in await app.store.conditions(handoff.run_id) if one.ref == "candidate.exists"]
    return str(known[-1].evidence.get("sha", "")) if known else ""


async def _saved(app: App, run_id: str) -> list[tuple[str, str]]:
    try:
        found = await app.git.candidates().rescued()
    except BecketError:
        return []
    return [(shlex.quote(one.name), one.parent) for one in found if one.name.startswith(run_id) and one.parent]
