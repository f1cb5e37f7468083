"""Does the journal hold what the phase was to bring?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from becket.kernel.contract.action import ActionContext, Conclusion, NamesCondition, NamesOutput, Verdict, VerifierDef
from becket.kernel.contract.base import Record
from becket.kernel.contract.run import ENDED


class OutputsParams(Record):
    outputs: Annotated[tuple[str, ...], Field(min_length=1), NamesOutput()]


class ConditionParams(Record):
    all_of: Annotated[tuple[str, ...], Field(min_length=1), NamesCondition()]


async def outputs_present(context: ActionContext, params: OutputsParams) -> Verdict:
    """Each `id.output` was made and is not empty."""
    missing = []
    for ref in params.outputs:
        action, _, name = ref.partition(".")
        if context.outputs.get(action, {}).get(name) in (None, "", [], {}):
            missing.append(ref)
    return Verdict(
        Conclusion.failed if missing else Conclusion.passed, {"missing": missing, "checked": list(params.outputs)}
    )


async def conditions_hold(context: ActionContext, params: ConditionParams) -> Verdict:
    """Each condition is raised; the evidence names where it came from."""
    missing = [ref for ref in params.all_of if ref not in context.conditions]
    found = {ref: condition.evidence for ref in params.all_of if (condition := context.conditions.get(ref))}
    return Verdict(Conclusion.failed if missing else Conclusion.passed, {"missing": missing, "evidence": found})


async def children_ended(context: ActionContext, params: Record) -> Verdict:
    """Every child run has ended; with none started, nobody can tell."""
    children = await context.child_runs()
    if not children:
        return Verdict(Conclusion.undecided, {"error": "no child run was started"})
    still_open = [run.run_id for run in children if run.status not in ENDED]
    return Verdict(
        Conclusion.failed if still_open else Conclusion.passed, {"open": still_open, "children": len(children)}
    )


VERIFIERS = (
    VerifierDef("outputs_present", "Named outputs were made and are not empty.", outputs_present, OutputsParams),
    VerifierDef("conditions_hold", "Named conditions are raised.", conditions_hold, ConditionParams),
    VerifierDef("children_ended", "Every child run has ended.", children_ended),
)
