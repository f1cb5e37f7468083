"""Put a proven commit into service, and try one beforehand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from becket.kernel.actions.candidate import REVERT, current
from becket.kernel.contract.action import ActionContext, ActionDef, EffectReport, Result
from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import ActionFailed, EffectFailed
from becket.kernel.contract.git import Git
from becket.kernel.contract.guard import NOT_SOURCE, ChangeClass, ClassFinding
from becket.kernel.contract.project import Projects
from becket.kernel.contract.promote import NOT_WATCHED
from becket.kernel.contract.spec import Autonomy, Name
from becket.parts.guard.section import GUARD
from becket.parts.services.ports import (
    RELEASE_EFFECT,
    ReleaseDesk,
    ReleaseOrder,
    RequestEnding,
    RequestOutcome,
    Smoked,
    Smokes,
)
from becket.parts.services.section import SERVICES, ServiceConfig, ServiceName

RELEASED = ("release_settled", "release_rolled_back", "release_failed")
SMOKED = ("smoke_ok", "smoke_failed", "smoke_waits")

NOTHING_TO_RELEASE = "nothing to release: becket.yaml has no service"
NO_SERVICE = "no service"
WAITS = "a person decides first: a build would have the network, the service's variables and copies of its data"
SAID_YES = ("change.approved", "proposal.stands", "proposal.moved")
"""How a run knows that a person took this very change."""
_LOOK_EVERY = 0.2


class ReleaseParams(Record):
    """`proof` names what proved the commit; without `service`, every service of the commit is released."""

    sha: str
    proof: str
    service: ServiceName = ""
    within: Duration = 3600.0


class SmokeParams(Record):
    """With `by`, a base, a change that this does not trust waits for a person's yes: a build has the network, the
    service's variables and copies of its data.
    """

    sha: str
    of: Name = "candidate"
    by: str = ""


async def release(context: ActionContext, params: ReleaseParams) -> Result:
    """One effect per service. The order is on the watchdog's disk when the effect is done; its end is awaited here.

    A commit that is in service already is left alone by the watchdog, which knows what runs now.
    """
    services = await _services(context, params.sha, params.service)
    if not services:
        return _released(RELEASED[0], {"why": NOTHING_TO_RELEASE}, {})
    if told := context.conditions.get(NOT_WATCHED):
        return _released(RELEASED[0], {"why": f"{told.evidence.get('branch')} is not watched: not released"}, {})
    if not context.autonomy.allows(Autonomy.release):
        return _released(RELEASED[0], {"why": f"{context.autonomy_told}: not released"}, {})
    ends = {name: await _one(context, params, name) for name in services}
    worst = max((_severity(end) for end in ends.values()), default=0)
    evidence: dict[str, Json] = {"sha": params.sha, "proof": params.proof}
    evidence["services"] = {name: end.model_dump(mode="json") for name, end in ends.items()}
    return _released(RELEASED[worst], evidence, {name: end.sha for name, end in ends.items() if end.good})


async def _services(context: ActionContext, sha: str, wanted: str) -> Mapping[str, ServiceConfig]:
    services = (await context.port(Projects).committed(sha)).section(SERVICES)
    if not wanted:
        return services
    if wanted not in services:
        known = ", ".join(sorted(services)) or "none"
        raise ActionFailed(f"{sha[:12]} has no service {wanted!r}; it has {known}", kind="no_service")
    return {wanted: services[wanted]}


async def _one(context: ActionContext, params: ReleaseParams, name: str) -> RequestOutcome:
    order = ReleaseOrder(service=name, sha=params.sha, proof=params.proof)
    try:
        report = await context.perform(EffectCall(name=RELEASE_EFFECT, target=name, payload=order.model_dump()))
    except EffectFailed as failed:
        return RequestOutcome(ending=RequestEnding.failed, sha=params.sha, reason=str(failed))
    if report.state == "dry_run":
        return RequestOutcome(ending=RequestEnding.done, reason="dry run: not released")
    if not report.happened:
        return RequestOutcome(
            ending=RequestEnding.failed, sha=params.sha, reason=report.reason or f"the order is {report.state}"
        )
    return await _awaited(context, params, report)


async def _awaited(context: ActionContext, params: ReleaseParams, report: EffectReport) -> RequestOutcome:
    desk = context.port(ReleaseDesk)
    until = time.monotonic() + min(params.within, context.seconds_left)
    while (outcome := await desk.outcome(report.key)) is None:
        if time.monotonic() > until:
            reason = "the watchdog has the order and has not said how it ended; see `becket status`"
            return RequestOutcome(ending=RequestEnding.failed, sha=params.sha, reason=reason)
        await asyncio.sleep(_LOOK_EVERY)
    return outcome


def _severity(end: RequestOutcome) -> int:
    if end.good:
        return 0
    return 1 if end.ending in (RequestEnding.rolled_back, RequestEnding.handed_over) else 2


def _released(name: str, evidence: dict[str, Json], released: dict[str, str]) -> Result:
    return Result(
        outputs={"released": released, "state": name.removeprefix("release_")},
        conditions=(Condition(name=name, group=RELEASED, evidence=evidence),),
        note=str(evidence.get("why", "")),
    )


async def smoke(context: ActionContext, params: SmokeParams) -> Result:
    """Every service of the commit: built in a checkout of its own, contained, one good answer on a free port."""
    services = await _services(context, params.sha, "")
    if not services:
        return _smoked(params.of, SMOKED[0], {"why": NO_SERVICE})
    if await _waits(context, params):
        return _smoked(params.of, SMOKED[2], {"sha": params.sha, "why": WAITS})
    said: dict[str, Json] = {}
    good = True
    for name, config in services.items():
        tried, log = await _try(context, params.sha, name, config)
        good = good and tried.ok
        said[name] = {"ok": tried.ok, "reason": tried.reason, "log": log}
    return _smoked(params.of, SMOKED[0] if good else SMOKED[1], {"sha": params.sha, "services": said})


async def _waits(context: ActionContext, params: SmokeParams) -> bool:
    """A revert brings back what was in service. Tests judge source where base says so, and never what is none."""
    powerful = context.conditions.get(f"{params.of}.{ChangeClass.powerful}")
    ordinary = context.conditions.has(f"{params.of}.{ChangeClass.ordinary}")
    said_yes = any(context.conditions.has(ref) for ref in SAID_YES)
    if not params.by or said_yes or current(context).kind == REVERT or not (powerful or ordinary):
        return False
    trusted = (await context.port(Projects).committed(params.by)).section(GUARD).promote
    if powerful is None:  # a person decides all the same where nobody writes hold-out checks
        return trusted is ChangeClass.plain or context.port(Projects).current().heal.hold_out is None
    found = [ClassFinding.model_validate(one) for one in powerful.evidence.get("findings", ())]
    unread = bool(powerful.evidence.get("findings_left_out")) or any(one.power == NOT_SOURCE for one in found)
    return unread or trusted is not ChangeClass.powerful


async def _try(context: ActionContext, sha: str, name: str, config: ServiceConfig) -> tuple[Smoked, str]:
    git, smokes = context.port(Git), context.port(Smokes)
    folder = await context.scratch() / f"smoke-{name}"
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    workspace = await git.open_workspace(folder / "checkout", sha)
    tried = await smokes.build(config, workspace.tree, log)
    if tried.ok:
        tried = await smokes.smoke(config, workspace.tree, log)
    kept = await context.keep(log, f"smoke-{name}.log") if log.exists() else ""
    await git.close_workspace(folder / "checkout")
    return tried, kept


def _smoked(of: str, name: str, evidence: dict[str, Json]) -> Result:
    return Result(
        outputs={"state": name}, conditions=(Condition(object=of, name=name, group=SMOKED, evidence=evidence),)
    )


def _smoke_groups(params: SmokeParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=SMOKED),)


ACTIONS = (
    ActionDef(
        name="service.release",
        summary="Put a proven commit into service; keep it, or go back to the old one.",
        run=release,
        params=ReleaseParams,
        raises=(ConditionGroup(names=RELEASED),),
        outputs=("released", "state"),
        effects=(RELEASE_EFFECT,),
    ),
    ActionDef(
        name="service.smoke",
        summary="Build the services of a commit and see one good answer of each, beside everything else.",
        run=smoke,
        params=SmokeParams,
        raises=_smoke_groups,
        outputs=("state",),
    ),
)
