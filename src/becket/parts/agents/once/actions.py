"""What only the once loop does: the brief around a person's words, and the result in one place."""

from __future__ import annotations

from importlib.resources import files

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.git import Git
from becket.kernel.contract.template import fill

BRIEF_LIMIT = 200_000
JUDGED = "call_judged"


class OnceBriefParams(Record):
    brief: str
    base: str


async def brief(context: ActionContext, params: OnceBriefParams) -> Result:
    """A person's own words are the task itself: they are not fenced, and not shortened either."""
    if not params.brief.strip():
        raise ActionFailed("the brief is empty; say what is to be done", kind="no_brief")
    if len(params.brief) > BRIEF_LIMIT:
        raise ActionFailed(f"the brief is longer than {BRIEF_LIMIT:,} characters; shorten it", kind="long_brief")
    if await context.port(Git).resolve(params.base) is None:
        raise ActionFailed(f"there is no commit {params.base[:12]} here", kind="no_base")
    template = (files(__package__) / "prompts" / "call.md").read_text("utf-8")
    text = fill(template, {"brief": params.brief, "base": params.base[:12]}.__getitem__)
    first = next(line.strip() for line in params.brief.splitlines() if line.strip())
    outputs: dict[str, Json] = {"brief": await context.keep(text.encode(), "brief.md"), "subject": first}
    return Result(outputs=outputs)


class OnceSettleParams(Record):
    outcome: str
    said: str = ""
    sha: str = ""
    patch: str = ""


async def settle(context: ActionContext, params: OnceSettleParams) -> Result:
    evidence: dict[str, Json] = {"outcome": params.outcome, "sha": params.sha}
    return Result(
        outputs=params.model_dump(mode="json"),
        conditions=(Condition(name=JUDGED, evidence=evidence),),
        note=params.outcome,
    )


ACTIONS = (
    ActionDef(
        name="once.brief", summary="Write the brief around a person's words.", run=brief, params=OnceBriefParams,
        outputs=("brief", "subject"),
    ),
    ActionDef(
        name="once.settle", summary="Say what came of the call.", run=settle, params=OnceSettleParams,
        raises=(ConditionGroup(names=(JUDGED,)),), outputs=("outcome", "said", "sha", "patch"),
    ),
)  # fmt: skip
