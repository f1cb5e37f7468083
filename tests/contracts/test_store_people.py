"""Contract of the store: approvals are one person's decision about one exact thing, once (L41)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from store_worlds import (
    START,
    ManualClock,
    asleep,
    claim_again,
    claimed,
    contents,
    every_store,
    question,
    told,
    wait_for,
)

from becket.kernel.contract.caller import Role
from becket.kernel.contract.errors import ActionFailed, NotFound, UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import Approval, ApprovalState
from becket.kernel.contract.run import Move, RunStatus
from becket.kernel.contract.store import Carried, End, Store
from becket.testing.people import person


async def asked(store: Store) -> Approval:
    """A run at work that has asked."""
    await claimed(store, "run_a")
    return await store.ask_approval("run_a", 1, question())


async def approved(store: Store) -> Approval:
    await asked(store)
    return await store.decide_approval("apr_1", True, person("ann"), "sha1", "fine")


@every_store
async def test_a_question_is_asked_once_per_binding(store: Store, clock: ManualClock) -> None:
    assert await asked(store) == question() == await store.get_approval("apr_1")
    before = await contents(store)
    again = question("apr_2", expires_at=START + 999)
    assert await store.ask_approval("run_a", 1, again) == question(), "it stands as it was asked first"
    assert await contents(store) == before
    other = await store.ask_approval("run_a", 1, question("apr_3", bound_to="sha2"))
    assert other.approval_id == "apr_3"
    assert await store.approvals("run_a") == (question(), other)
    assert await store.approvals("run_b") == ()
    higher = await store.ask_approval("run_a", 1, question("apr_5", role="owner"))
    assert (higher.approval_id, higher.role) == ("apr_5", "owner"), "who may say yes is part of the question"
    with pytest.raises(UsageError, match="not a role"):
        await store.ask_approval("run_a", 1, question("apr_4", bound_to="sha4", role="king"))


@every_store
async def test_a_very_long_question_can_be_asked(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    long = "é" * 6000
    assert (await store.ask_approval("run_a", 1, question(question=long))).question == long
    assert (await store.ask_approval("run_a", 1, question("apr_2", question=long + "?"))).approval_id == "apr_2"


@every_store
async def test_an_answer_wakes_the_run_that_waits_for_it(store: Store, clock: ManualClock) -> None:
    for number, state in enumerate((ApprovalState.approved, ApprovalState.denied), 1):
        run_id, approval_id = f"run_{number}", f"apr_{number}"
        claim = await claimed(store, run_id)
        await store.ask_approval(run_id, 1, question(approval_id, run_id=run_id))
        await asleep(store, claim, wait_for("approval", START + 500))
        clock.forward(7)
        approve = state is ApprovalState.approved
        answer = await store.decide_approval(approval_id, approve, person("ann", "approver"), "sha1", "because")
        assert (answer.state, answer.decided_by, answer.decided_role) == (state, "ann", "approver")
        assert (answer.decided_at, answer.note) == (clock.at, "because")
        assert (await store.get_run(run_id)).status is RunStatus.queued
        [woken] = await store.conditions(run_id)
        [signal] = woken.evidence["signals"]
        by = {"by": "ann", "role": "approver", "via": "command_line"}
        assert signal["payload"] == {"approval_id": approval_id, "state": state.value, **by}
        [event] = [event for event in await store.events(run_id) if event.kind is EventKind.approval_decided]
        assert (event.data["state"], event.data["bound_to"]) == (state.value, "sha1")


@every_store
async def test_an_answer_that_comes_before_the_wait_is_found_by_it(store: Store, clock: ManualClock) -> None:
    await approved(store)
    assert await store.wait("run_a", 1, [wait_for("approval", START + 500)], {}, Carried()) is False


@every_store
async def test_wrong_answers_change_nothing(store: Store, clock: ManualClock) -> None:
    """L41: not by anybody, not about another text, not from an old comment, not twice."""
    await asked(store)
    before = await contents(store)
    with pytest.raises(ValidationError, match="role"):
        person("ann", "king")  # type: ignore[arg-type]
    wrong: list[tuple[tuple[str, Role, str], str]] = [
        (("ann", "member", "sha1"), "needs the role approver"),
        (("ann", "owner", "sha2"), "is about sha1, not about sha2"),
    ]
    for (by, role, bound_to), words in wrong:
        with pytest.raises(UsageError, match=words):
            await store.decide_approval("apr_1", True, person(by, role), bound_to, "")
    with pytest.raises(NotFound, match="becket approvals"):
        await store.decide_approval("apr_x", True, person("ann"), None, "")
    clock.forward(100)
    with pytest.raises(UsageError, match="expired"):
        await store.decide_approval("apr_1", True, person("ann"), "sha1", "")
    assert await contents(store) == before
    clock.at = START
    await store.decide_approval("apr_1", False, person("ann"), None, "")
    with pytest.raises(UsageError, match="is denied already"):
        await store.decide_approval("apr_1", True, person("bob"), "sha1", "")


@every_store
async def test_an_approval_is_used_once(store: Store, clock: ManualClock) -> None:
    await approved(store)
    used = await store.use_approval("apr_1", "run_a", 1, "sha1", "effect-1")
    assert (used.state, used.used_by) == (ApprovalState.used, "effect-1")
    clock.forward(1000)
    before = await contents(store)
    assert await store.use_approval("apr_1", "run_a", 1, "sha1", "effect-1") == used, "a replay after a crash"
    with pytest.raises(ActionFailed, match="used by effect-1 already") as caught:
        await store.use_approval("apr_1", "run_a", 1, "sha1", "effect-2")
    assert caught.value.kind == "approval"
    with pytest.raises(ActionFailed, match="is about sha1"):
        await store.use_approval("apr_1", "run_a", 1, "sha2", "effect-1")
    with pytest.raises(UsageError, match="is used"):
        await store.revoke_approval("apr_1", person("ann"), "")
    assert await contents(store) == before
    [event] = [event for event in await store.events("run_a") if event.kind is EventKind.approval_used]
    assert told(event) == {"approval_id": "apr_1", "bound_to": "sha1", "used_by": "effect-1"}


@every_store
async def test_what_is_not_approved_cannot_be_used(store: Store, clock: ManualClock) -> None:
    await asked(store)

    async def refused(words: str, approval_id: str = "apr_1", run_id: str = "run_a", bound_to: str = "sha1") -> None:
        before = await contents(store)
        with pytest.raises(ActionFailed, match=words) as caught:
            await store.use_approval(approval_id, run_id, 1, bound_to, "e")
        assert caught.value.kind == ("approval.expired" if "expired" in words else "approval")
        assert await contents(store) == before

    await refused("is asked, not approved")
    await refused("no approval apr_x", approval_id="apr_x")
    await store.decide_approval("apr_1", True, person("ann"), "sha1", "")
    await refused("is about sha1, not about sha2", bound_to="sha2")
    await claimed(store, "run_b")
    await refused("no approval apr_1", run_id="run_b")
    clock.forward(100)
    await refused("has expired")
    clock.at = START + 99
    await store.revoke_approval("apr_1", person("ann"), "no")
    await refused("is revoked, not approved")


@every_store
async def test_an_approval_can_be_taken_back(store: Store, clock: ManualClock) -> None:
    await approved(store)
    claim = await store.get_run("run_a")
    await store.wait("run_a", claim.epoch, [wait_for("approval", START + 500)], {}, Carried())
    await asleep(store, await claim_again(store, "run_a"), wait_for("approval", START + 500))
    revoked = await store.revoke_approval("apr_1", person("bob"), "changed my mind")
    assert (revoked.state, revoked.note, revoked.decided_by) == (ApprovalState.revoked, "changed my mind", "ann")
    assert (await store.get_run("run_a")).status is RunStatus.queued
    for wrong in (
        store.revoke_approval("apr_1", person("bob"), ""),
        store.decide_approval("apr_1", True, person("a"), None, ""),
    ):
        with pytest.raises(UsageError, match="is revoked"):
            await wrong


@every_store
async def test_a_question_can_be_withdrawn_before_the_answer(store: Store, clock: ManualClock) -> None:
    await asked(store)
    assert (await store.revoke_approval("apr_1", person("ann"), "")).state is ApprovalState.revoked


@every_store
async def test_approvals_expire_and_wake_the_run(store: Store, clock: ManualClock) -> None:
    await asked(store)
    await store.wait("run_a", 1, [wait_for("approval", START + 500)], {}, Carried())
    assert await store.next_due() == START + 100
    clock.forward(99)
    assert await store.wake_due() == ()
    assert len(await store.approvals(open_only=True)) == 1
    clock.forward(1)
    assert await store.approvals(open_only=True) == (), "nobody can answer it any more, swept or not"
    assert await store.wake_due() == ("run_a",)
    assert (await store.get_approval("apr_1")).state is ApprovalState.expired
    [woken] = await store.conditions("run_a")
    assert woken.evidence["signals"][0]["payload"] == {"approval_id": "apr_1", "state": "expired"}
    assert await store.wake_due() == ()


@every_store
async def test_an_approval_that_nobody_used_expires_too(store: Store, clock: ManualClock) -> None:
    await approved(store)
    clock.forward(100)
    assert await store.wake_due() == ()
    assert (await store.get_approval("apr_1")).state is ApprovalState.expired
    assert await store.next_due() == START + 30, "the lease of its run, and nothing else"


@every_store
async def test_open_questions_end_with_their_run(store: Store, clock: ManualClock) -> None:
    await asked(store)
    await store.end("run_a", 1, End(move=Move.fail, reason="x"))
    closed = await store.get_approval("apr_1")
    assert (closed.state, closed.note) == (ApprovalState.expired, "the run ended")
    with pytest.raises(UsageError, match="expired already"):
        await store.decide_approval("apr_1", True, person("ann"), None, "")


@every_store
async def test_an_approval_is_found_by_a_prefix(store: Store, clock: ManualClock) -> None:
    await asked(store)
    await store.ask_approval("run_a", 1, question("apr_22", bound_to="sha2"))
    assert (await store.get_approval("apr_2")).approval_id == "apr_22"
    with pytest.raises(NotFound, match="several approvals"):
        await store.get_approval("apr_")
    assert (await store.decide_approval("apr_2", True, person("ann"), "sha2", "")).approval_id == "apr_22"
