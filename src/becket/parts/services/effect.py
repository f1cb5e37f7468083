"""The effect that orders a release. Done means: the watchdog has the order on disk, once for its key."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.parts.services.line import WatchdogCallFailed, WatchdogRefused, WatchdogUnreachable, ask
from becket.parts.services.ports import RELEASE_EFFECT, ReleaseOrder, ServiceOperation, ServiceRequest


class ReleaseEffect:
    """Target is the service, payload a ReleaseOrder. How the release ends is read from the watchdog afterwards:
    a release takes minutes, and an attempt that long could not be told from a lost one after a crash.
    """

    name = RELEASE_EFFECT
    class_ = EffectClass.keyed
    needs = Autonomy.release
    timeout = 15.0

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def check(self, call: EffectCall) -> str | None:
        try:
            order = ReleaseOrder.model_validate(call.payload)
        except ValidationError as error:
            found = error.errors()[0]
            return f"the payload is not an order for a release: {'.'.join(map(str, found['loc']))}: {found['msg']}"
        return None if order.service == call.target else "the target must be the service that the payload names"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        order = ReleaseOrder.model_validate(call.payload)
        request = ServiceRequest(
            key=permit.key, op=ServiceOperation.release, service=order.service, sha=order.sha, proof=order.proof
        )
        try:
            await asyncio.to_thread(ask, self._socket, {"request": request.model_dump(mode="json")})
        except WatchdogUnreachable as nobody:
            raise EffectFailed(str(nobody), retryable=True) from nobody
        except WatchdogCallFailed as failed:
            raise EffectFailed(str(failed), retryable=True, ambiguous=True) from failed
        except WatchdogRefused as refused:
            raise EffectFailed(str(refused)) from refused
        return {"accepted": True, "service": order.service, "sha": order.sha}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell  # keyed: asking again is the look-up
