"""Lives of a promoter, each in a process of its own, for the tests that kill them."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from promote_world import permit_for, request_for

from becket.kernel.contract import crash
from becket.kernel.contract.base import Json
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.promote import promoter_of


async def life(
    folder: Path, do: str, old: str = "", new: str = "", with_git_at: str = "", home: str = "home"
) -> dict[str, Json]:
    """`do` is promote or recover; `with_git_at` is a point at which the git that holds the ref dies with us."""
    log = IntentFile(folder / "state")
    promoter = promoter_of(discover(folder / home))
    if with_git_at:
        _die_together(with_git_at, log)
    if do == "recover":
        answer = await promoter.recover(log)
    else:
        request = request_for(old, new)
        answer = await promoter.promote(request, permit_for(request), log)
    return {} if answer is None else {"kind": type(answer).__name__, **answer.model_dump(mode="json")}


def _die_together(at: str, log: IntentFile) -> None:
    def hook(name: str) -> None:
        if name == at:
            intent = log.read()
            assert intent is not None
            os.kill(intent.transaction.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # dead and buried
                os.waitid(os.P_PID, intent.transaction.pid, os.WEXITED | os.WNOWAIT)
            os.kill(os.getpid(), signal.SIGKILL)

    crash.install(hook)
