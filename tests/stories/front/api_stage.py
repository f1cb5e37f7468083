"""A front over a repository with a run that waits for a yes, one that was handed over, and one that is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from becket.kernel.contract.run import Run
from becket.parts.front.accounts import PageRole
from becket.parts.front.api.operations import BELOW, OPERATIONS, Operation
from front_stage import FrontStage, make_front

LOOPS = (
    """
    version: 1
    loop_id: ask
    goal: People decide.
    trigger:
      - manual: {}
      - event: {name: ci.failed}
    subject: s
    max_iterations: 3
    deadline: 7d
    inputs: {colour: {default: red}}
    stop_conditions: [first.approved, fine.pass]
    handoff_conditions: [first.denied, first.revoked]
    wait_conditions:
      first.asked: {wake: approval, for: 3d}
    phases:
      decide:
        objective: Ask.
        actions:
          - {id: one, uses: approval.ask, with: {question: "Publish?", about: the text, of: first}}
      verify:
        objective: Nothing to doubt.
        verifiers:
          - {id: fine, run: "true", in: scratch}
    """,
    """
    version: 1
    loop_id: look
    goal: It is there.
    trigger:
      - manual: {}
    subject: t
    max_iterations: 1
    deadline: 1h
    stop_conditions: [fine.pass]
    handoff_conditions: [fine.fail]
    phases:
      verify:
        objective: It is there.
        verifiers:
          - {id: fine, run: "echo hello; exit CODE", in: scratch}
    """,
)


class ApiStage:
    """Counts which operations were answered."""

    def __init__(self, folder: Path) -> None:
        self.front: FrontStage = make_front(folder, "sandbox: {use: none, without: [files, processes, network]}\n")
        self.world = self.front.world
        for text in LOOPS:
            self.world.loop(text.replace("CODE", "1"))
        self.world.commit()
        self.answered: set[str] = set()
        self.clients: dict[PageRole, httpx.AsyncClient] = {}

    async def begin(self) -> None:
        for role in ("viewer", "member", "approver", "owner"):
            self.clients[role] = await self.front.token(role)

    async def run(self, loop_id: str) -> Run:
        return await self.world.run(loop_id)

    async def ask(self, name: str, role: PageRole = "owner", given: Any = None, **params: str) -> httpx.Response:
        operation = next(one for one in OPERATIONS if one.name == name)
        answer = await self.send(operation, role, given, params)
        if answer.status_code == 200:
            self.answered.add(name)
        return answer

    async def send(
        self, operation: Operation, role: PageRole, given: Any = None, params: dict[str, str] | None = None
    ) -> httpx.Response:
        values = dict.fromkeys(operation.params, "nothing") | (params or {})
        path = BELOW + operation.path.format(**values)
        client = self.clients[role]
        if operation.method == "GET":
            return await client.get(path, params=given or {})
        return await client.request(operation.method, path, json=given if given is not None else {})

    async def close(self) -> None:
        await self.front.close()
