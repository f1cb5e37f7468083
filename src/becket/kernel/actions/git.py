"""Read the repository, and move a ref by compare-and-swap."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.git import Git
from becket.kernel.contract.naming import BranchName, alone
from becket.kernel.verifiers.git import refs_shown


class BaseParams(Record):
    """With `follow`, a later iteration is about the branch as it stands then: main moves while a run works (L2)."""

    branch: BranchName | None = None
    follow: bool = False


class UpdateRefParams(Record):
    ref: str
    new: str
    old: str | None = None


async def read_base(context: ActionContext, params: BaseParams) -> Result:
    """The subject's commit where the run is about one; otherwise the branch's head now."""
    git = context.port(Git)
    fields = context.run.subject.fields
    branch = params.branch or str(fields.get("branch", "main"))
    sha = None if params.branch else fields.get("sha")
    if params.follow and context.run.iteration > 1 and sha and branch != alone(str(sha)):
        sha = None
    found = await git.resolve(str(sha) if sha else f"refs/heads/{branch}")
    if found is None:
        raise ActionFailed(f"{branch} has no commit here; is `branch:` in becket.yaml right?", kind="no_base")
    refs = dict(await git.refs())
    outputs = {"sha": found, "branch": branch, "tree": await git.tree_of(found), "refs": refs_shown(refs)}
    return Result(outputs=outputs)


async def update_ref(context: ActionContext, params: UpdateRefParams) -> Result:
    payload = {"new": params.new, "old": params.old}
    report = await context.perform(EffectCall(name="git.update_ref", target=params.ref, payload=payload))
    return Result(
        outputs={"state": report.state, "effect": report.key},
        note=report.reason,
        facts={"moved": params.new} if report.happened else {},  # so that a loop does not feed itself for ever
    )


ACTIONS = (
    ActionDef(
        name="git.read_base",
        summary="Name the commit this run is about.",
        run=read_base,
        params=BaseParams,
        outputs=("sha", "branch", "tree", "refs"),
        about="base",
    ),
    ActionDef(
        name="git.update_ref",
        summary="Move a ref from an exact commit to an exact commit.",
        run=update_ref,
        params=UpdateRefParams,
        outputs=("state", "effect"),
        effects=("git.update_ref",),
        facts=("moved",),
    ),
)
