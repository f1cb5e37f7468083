"""Does the repository stand as the run believes?"""

from __future__ import annotations

from typing import Annotated

from becket.kernel.contract.action import ActionContext, Conclusion, NamesOutput, Verdict, VerifierDef
from becket.kernel.contract.base import Record, digest_of
from becket.kernel.contract.git import Git
from becket.kernel.contract.process import Processes

MOST_REFS = 500


class OfBase(Record):
    """`base` is the id of the `git.read_base` action that named the commit."""

    base: Annotated[str, NamesOutput(of="sha")] = "base"


async def head_is_base(context: ActionContext, params: OfBase) -> Verdict:
    """The checkout's HEAD is exactly the commit that was read (L4)."""
    expected = context.outputs.get(params.base, {}).get("sha")
    workspace = await context.existing_workspace()
    if expected is None or workspace is None:
        return Verdict(Conclusion.undecided, {"error": "there is no base or no checkout to compare"})
    state = await context.port(Git).status(workspace)
    return _verdict(state.head == expected, {"expected": expected, "found": state.head})


async def tree_clean(context: ActionContext, params: Record) -> Verdict:
    """The checkout has no changed and no untracked file (L5)."""
    workspace = await context.existing_workspace()
    if workspace is None:
        return Verdict(Conclusion.undecided, {"error": "the run has no checkout"})
    state = await context.port(Git).status(workspace)
    return _verdict(state.clean, {"changed": list(state.changed[:20]), "untracked": list(state.untracked[:20])})


async def refs_untouched(context: ActionContext, params: OfBase) -> Verdict:
    """Every ref of the repository is where it was when the base was read (L1)."""
    before = context.outputs.get(params.base, {}).get("refs")
    if before is None:
        return Verdict(Conclusion.undecided, {"error": f"no action {params.base} read the refs"})
    after = refs_shown(dict(await context.port(Git).refs()))
    names = sorted(set(before) | set(after))
    return _verdict(before == after, {"moved": [name for name in names if before.get(name) != after.get(name)]})


async def refs_moved_only_by_people(context: ActionContext, params: OfBase) -> Verdict:
    """No contained program moved a ref (L1). People may: where files are held apart, a move is theirs.

    Where nothing holds files apart, a branch that only went forward is taken for a person's commit, and anything else
    (a branch that went back, vanished, or HEAD on another one) for an escape.
    """
    before = context.outputs.get(params.base, {}).get("refs")
    if before is None:
        return Verdict(Conclusion.undecided, {"error": f"no action {params.base} read the refs"})
    git = context.port(Git)
    after = refs_shown(dict(await git.refs()))
    moved = sorted(name for name in set(before) | set(after) if before.get(name) != after.get(name))
    contained = context.port(Processes).holds().files
    suspect = [] if contained else [name for name in moved if not await _went_on(git, before, after, name)]
    return _verdict(not suspect, {"contained": contained, "moved": moved[:20], "suspect": suspect[:20]})


async def _went_on(git: Git, before: dict[str, str], after: dict[str, str], name: str) -> bool:
    old, new = before.get(name), after.get(name)
    if new is None or name in {"HEAD", "every ref"}:
        return False
    return old is None or await git.contains(new, old)


def refs_shown(refs: dict[str, str]) -> dict[str, str]:
    """Every ref by name, or one digest where there are very many."""
    return refs if len(refs) <= MOST_REFS else {"every ref": digest_of(refs)}


def _verdict(good: bool, evidence: dict[str, object]) -> Verdict:
    return Verdict(Conclusion.passed if good else Conclusion.failed, evidence)


VERIFIERS = (
    VerifierDef("head_is_base", "The checkout stands at the commit that was read.", head_is_base, OfBase),
    VerifierDef("tree_clean", "The checkout has no changed or untracked file.", tree_clean),
    VerifierDef("refs_untouched", "No ref of the repository moved.", refs_untouched, OfBase),
    VerifierDef("refs_moved_only_by_people", "No contained program moved a ref.", refs_moved_only_by_people, OfBase),
    VerifierDef(
        "refs_moved_by_nobody", "The older name of `refs_moved_only_by_people`.", refs_moved_only_by_people, OfBase
    ),
)
