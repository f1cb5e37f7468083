"""With `stands` one yes counts for the rest of the run: for that question, that hash and that role, and no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.caller import Role
from becket.kernel.contract.handoff import Approval, ApprovalState
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.people import person
from becket.testing.world import World

LOOP = """
version: 1
loop_id: ask
goal: People decide.
trigger:
  - manual: {}
subject: s
max_iterations: 3
deadline: 7d
stop_conditions: [first.approved, second.approved, fine.pass]
handoff_conditions: [first.denied, second.denied, first.revoked, second.revoked]
wait_conditions:
  first.asked: {wake: approval, for: 3d}
  second.asked: {wake: approval, for: 3d}
phases:
  decide:
    objective: Ask.
    actions:
      - {id: one, uses: approval.ask, with: {question: "Publish?", about: the text, of: first, stands: STANDS}}
      - {id: two, uses: approval.ask, with: {SECOND, about: the text, of: second, stands: STANDS}}
  verify:
    objective: Nothing to doubt.
    verifiers:
      - {id: fine, run: "true", in: scratch}
"""


class Asking:
    """A run that asks twice about one and the same text."""

    def __init__(self, folder: Path, second: str, stands: str = "true") -> None:
        self.world = World(folder)
        self.world.loop(LOOP.replace("SECOND", second).replace("STANDS", stands))
        self.world.commit({"it.txt": "x\n"})

    async def asked(self, state: ApprovalState = ApprovalState.asked) -> list[Approval]:
        return [one for one in await self.world.store.approvals() if one.state is state]

    async def answer(self, approval: Approval, role: Role, *, approve: bool = True) -> Run:
        await self.world.store.decide_approval(
            approval.approval_id, approve, person("ada", role), approval.bound_to, ""
        )
        await self.world.settle()
        return await self.world.store.get_run(approval.run_id)


def test_details_do_not_make_it_another_question_and_the_first_yes_stands(tmp_path: Path) -> None:
    stage = Asking(tmp_path, 'question: "Publish?", details: "line 7"')

    async def story() -> None:
        await stage.world.run("ask")
        (approval,) = await stage.asked()
        run = await stage.answer(approval, "approver")
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        (only,) = await stage.world.store.approvals()
        assert only.state is ApprovalState.used

    asyncio.run(story())


@pytest.mark.parametrize(
    "second", ['question: "Delete?"', 'question: "Publish?", role: owner'], ids=["question", "role"]
)
def test_a_yes_counts_for_its_question_and_its_role_only(tmp_path: Path, second: str) -> None:
    stage = Asking(tmp_path, second)

    async def story() -> None:
        await stage.world.run("ask")
        one, other = await stage.asked()
        run = await stage.answer(one, "approver" if one.role == "approver" else "owner")
        assert run.status is RunStatus.waiting, (run.reason, run.detail)
        assert [item.approval_id for item in await stage.asked()] == [other.approval_id]
        run = await stage.answer(other, "owner")
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert len(await stage.asked(ApprovalState.used)) == 2

    asyncio.run(story())


def test_without_it_each_step_spends_a_yes_of_its_own(tmp_path: Path) -> None:
    stage = Asking(tmp_path, 'question: "Publish?"', stands="false")

    async def story() -> None:
        await stage.world.run("ask")
        (approval,) = await stage.asked()
        run = await stage.answer(approval, "approver")
        assert run.status is RunStatus.waiting, (run.reason, run.detail)
        assert len(await stage.asked()) == 1

    asyncio.run(story())


def test_a_no_stands_too(tmp_path: Path) -> None:
    stage = Asking(tmp_path, 'question: "Publish?", details: "line 7"')

    async def story() -> None:
        await stage.world.run("ask")
        (approval,) = await stage.asked()
        run = await stage.answer(approval, "approver", approve=False)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "first.denied")
        assert {one.state for one in await stage.world.store.approvals()} == {ApprovalState.denied}

    asyncio.run(story())
