"""What the door lets out, in which form, and what it says afterwards."""

from __future__ import annotations

import asyncio

import pytest
from door_outside import CALL, ORIGIN, SECRET, Crashed, House, Outside

from becket.kernel.contract.base import Json
from becket.kernel.contract.config import EffectCap
from becket.kernel.contract.effect import EffectCall, EffectState, Permit, Seen
from becket.kernel.contract.errors import EffectFailed, EffectRefused, Fenced
from becket.kernel.contract.run import NewRun, Subject
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.store import WorkerInfo
from becket.kernel.engine.door import Patience

Q, K, B, R = EffectClass.queryable, EffectClass.keyed, EffectClass.blind, EffectClass.repeatable
NOTICE = CALL.model_copy(update={"defer": True})


def with_payload(**payload: Json) -> EffectCall:
    return CALL.model_copy(update={"payload": payload})


def refused(house: House, call: EffectCall = CALL, **how: Autonomy) -> str:
    """The reason; it is on record, the same when asked again, and nothing went out."""
    with pytest.raises(EffectRefused) as first:
        house.perform(call, **how)
    with pytest.raises(EffectRefused) as second:
        house.perform(call, **how)
    row = house.row(call)
    assert str(first.value) == str(second.value) == row.reason
    assert (row.state, house.outside.asked) == (EffectState.refused, 0)
    return row.reason


def test_an_effect_leaves_once_and_its_answer_stays() -> None:
    house = House()
    report = house.perform()
    assert (report.state, report.result, report.happened) == ("done", {"receipt": 1}, True)
    assert house.perform() == report
    assert house.outside.asked == 1


def test_too_little_autonomy_is_refused_and_shown() -> None:
    """L18: the message says what is needed, what there is, and where to change it."""
    reason = refused(House(), autonomy=Autonomy.observe)
    assert "needs autonomy propose" in reason
    assert "becket.yaml" in reason


def test_an_adapter_may_still_refuse_at_the_last_moment() -> None:
    house = House(K, "refuses")
    for _ in range(2):
        with pytest.raises(EffectRefused, match="not allowed"):
            house.perform()
    assert (house.state(), house.outside.asked) == (EffectState.refused, 1)


def test_a_check_that_objects_is_a_refusal() -> None:
    assert "the payload is bad" in refused(House(), with_payload(bad=1))


def test_an_unknown_effect_is_refused_with_the_known_ones() -> None:
    house = House()
    assert "known here: outside.tell" in refused(house, CALL.model_copy(update={"name": "outside.tel"}))


def test_a_cap_counts_what_was_let_out_within_its_time() -> None:
    """Refused and dry-run effects do not count; a retry of the same effect is the same effect."""
    house = House(K, "busy")
    house.caps["outside.tell"] = EffectCap(count=2, per=100.0)
    calls = [CALL.model_copy(update={"label": str(number)}) for number in range(6)]
    house.perform(calls[0], dry_run=True)
    assert house.perform(calls[1]).happened
    assert house.perform(calls[2]).happened
    with pytest.raises(EffectRefused, match="effect_caps"):
        house.perform(calls[3])
    house.clock.advance(101)
    assert house.perform(calls[4]).happened


def test_two_callers_at_once_do_not_pass_a_cap_together() -> None:
    house = House()
    house.move_the_journal_far_away()
    house.caps["outside.tell"] = EffectCap(count=1)

    async def both() -> list[object]:
        door = house.door()
        calls = [CALL.model_copy(update={"label": label}) for label in "ab"]
        asked = (door.perform(call, ORIGIN, None, Autonomy.merge, False) for call in calls)
        return list(await asyncio.gather(*asked, return_exceptions=True))

    kinds = {type(end).__name__ for end in asyncio.run(both())}
    assert kinds == {"EffectReport", "EffectRefused"}
    assert house.outside.happened == 1


def test_a_dry_run_records_what_would_have_left() -> None:
    house = House()
    report = house.perform(dry_run=True)
    assert (report.state, report.happened) == ("dry_run", False)
    assert house.perform(dry_run=True) == report
    assert (house.row().call.payload, house.outside.asked) == (CALL.payload, 0)


def test_the_same_key_with_other_contents_is_an_error() -> None:
    house = House()
    house.perform()
    with pytest.raises(EffectRefused, match="other contents"):
        house.perform(with_payload(text="good bye"))
    assert house.perform(CALL.model_copy(update={"label": "second", "payload": {"text": "good bye"}})).happened


def test_what_leaves_and_what_is_stored_is_redacted() -> None:
    """L25: the row keeps the digest of what was asked, and nowhere the secret."""
    house = House()
    call = with_payload(text=f"use {SECRET}", password="x")
    house.perform(call)
    left, row = house.outside.calls[0], house.row()
    assert left == row.call
    assert left.payload == {"text": "use [redacted:DEPLOY_TOKEN]", "password": "[redacted:secret]"}
    assert row.digest == call.digest != left.digest
    assert SECRET not in row.model_dump_json()


def test_a_leak_that_cannot_be_redacted_is_refused_by_name() -> None:
    """L25: the refusal names the variable; neither it nor the row holds a piece of the value."""
    house = House()
    reason = refused(house, with_payload(one=SECRET[:9], two=SECRET[9:]))
    assert "DEPLOY_TOKEN" in reason
    assert SECRET[:9] not in house.row().model_dump_json()


def test_a_secret_in_the_target_is_refused() -> None:
    house = House()
    call = CALL.model_copy(update={"target": "https://hooks.slack.com/services/T0/B0/abcdefghij"})
    reason = refused(house, call)
    assert "name the target in the configuration" in reason
    assert "abcdefghij" not in house.row(call).model_dump_json()


class Exact(Outside):
    """An outside whose payload must arrive as it was meant."""

    def check(self, call: EffectCall) -> str | None:
        return None if str(call.payload["text"]).isalnum() else "not an exact text"


def test_contents_that_must_be_exact_are_not_sent_redacted() -> None:
    house = House()
    house.outside = Exact(K, house.clock)
    assert house.perform(with_payload(text="4b825dc642cb6eb9a060e54bf8d69288fbee4904")).happened
    house = House()
    house.outside = Exact(K, house.clock)
    assert "no use without it" in refused(house, with_payload(text="AKIAIOSFODNN7EXAMPLE"))


def test_results_and_reasons_are_redacted_too() -> None:
    class Chatty(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            if call.label:
                raise EffectFailed(f"{SECRET} is not welcome")
            return {"said": f"thanks for {SECRET}"}

    house = House()
    house.outside = Chatty(K, house.clock)
    assert house.perform().result == {"said": "thanks for [redacted:DEPLOY_TOKEN]"}
    with pytest.raises(EffectFailed, match=r"^\[redacted:DEPLOY_TOKEN\] is not welcome$"):
        house.perform(CALL.model_copy(update={"label": "x"}))


def test_a_busy_outside_is_asked_four_times_with_growing_pauses() -> None:
    house = House(B, *["busy"] * 9)
    with pytest.raises(EffectFailed, match="given up after 4 attempts: busy"):
        house.perform()
    assert (house.outside.asked, house.slept, house.row().attempts) == (4, [1.0, 4.0, 16.0], 4)


def test_a_pause_is_stretched_by_chance() -> None:
    house = House(K, "busy")
    house.patience = Patience(jitter=0.5)
    house.perform()
    assert 1.0 <= house.slept[0] <= 1.5


def test_without_patience_there_is_one_attempt() -> None:
    """So the watchdog tells an alarm: it has rounds of its own."""
    house = House(K, *["busy"] * 9)
    house.patience = Patience(delays=())
    with pytest.raises(EffectFailed, match="given up after 1 attempts: busy"):
        house.perform()
    assert house.slept == []


def test_the_outside_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    class Strict(Outside):
        pauses = (30.0, 61.0)

        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            self.asked += 1
            raise EffectFailed("later", retryable=True, retry_after=self.pauses[self.asked - 1])

    house = House()
    house.outside = Strict(K, house.clock)
    with pytest.raises(EffectFailed, match="given up after 2 attempts: later"):
        house.perform()
    assert house.slept == [30.0]


def test_an_answer_that_never_comes_is_cut_off() -> None:
    class Silent(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            self.asked += 1
            await asyncio.Event().wait()
            raise AssertionError

    house = House()
    house.outside = Silent(B, house.clock)
    house.outside.timeout, house.patience = 0.01, Patience(grace=0.02)
    report = house.perform()
    assert (report.state, report.reason, house.outside.asked) == ("unknown", "no answer within 0.01 s", 1)


def test_an_unknown_outcome_is_returned_not_raised_and_never_tried_again() -> None:
    house = House(B, "lost")
    report = house.perform()
    assert (report.state, report.happened) == ("unknown", False)
    assert house.perform() == report
    assert (house.outside.asked, house.slept) == (1, [])


def test_a_keyed_effect_in_doubt_waits_until_the_first_attempt_has_settled() -> None:
    """Rule 4: two requests with one key must not be at the receiver at the same time."""
    house = House(K, "lost")
    assert house.perform().happened
    assert (house.slept, house.outside.asked) == ([12.0], 2)


def test_giving_up_in_doubt_is_unknown_not_failed() -> None:
    """An answer was lost, and the last attempts were turned down: nobody can say that nothing happened."""
    for last in ("no", "busy", "refuses"):
        house = House(K, "lost", last, last, last)
        assert house.perform().state == "unknown"
        assert house.outside.happened == 1


def test_a_look_up_that_cannot_tell_is_unknown() -> None:
    house = House(Q, "lost")
    house.outside.answers = [Seen.cannot_tell]
    assert (house.perform().state, house.outside.asked) == ("unknown", 1)


def test_a_look_up_that_fails_is_tried_again() -> None:
    house = House(Q, "lost")
    house.outside.answers = [OSError("no route"), EffectFailed("busy", retryable=True)]
    assert house.perform().result == {"observed": True}
    assert (house.outside.asked, house.outside.looked_up) == (1, 3)


def test_a_look_up_that_always_fails_is_unknown() -> None:
    house = House(Q, "lost")
    house.outside.answers = [OSError("no route")] * 9
    assert (house.perform().state, house.outside.looked_up) == ("unknown", 4)


def test_the_last_attempt_in_doubt_is_still_looked_up() -> None:
    house = House(Q, "busy", "busy", "busy", "lost")
    assert house.perform().result == {"observed": True}


def test_autonomy_counts_as_it_is_at_the_second_attempt() -> None:
    """L18: a person who lowered autonomy after a crash is not overruled by the intent of before."""
    house = House(Q, "crash_before")
    with pytest.raises(Crashed):
        house.perform()
    with pytest.raises(EffectFailed, match="needs autonomy propose"):
        house.perform(autonomy=Autonomy.observe)
    assert (house.outside.asked, house.outside.looked_up) == (1, 1)


def test_cancelling_leaves_the_truth_in_the_journal() -> None:
    class Slow(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

    house = House()
    house.outside = Slow(K, house.clock)
    begun = asyncio.Event()

    async def cancelled() -> None:
        task = asyncio.create_task(house.door().perform(CALL, ORIGIN, None, Autonomy.merge, False))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert house.state() is EffectState.intended


def test_two_callers_of_one_effect_take_turns() -> None:
    """The second one in the same process gets the first one's answer instead of judging it as in doubt."""

    class Thoughtful(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            for _ in range(50):
                await asyncio.sleep(0)
            return await super().perform(call, permit)

    house = House()
    house.outside = Thoughtful(B, house.clock)

    async def both() -> list[str]:
        door = house.door()
        asked = (door.perform(CALL, ORIGIN, None, Autonomy.merge, False) for _ in range(2))
        return [report.state for report in await asyncio.gather(*asked)]

    assert asyncio.run(both()) == ["done", "done"]
    assert (house.outside.happened, house.slept) == (1, [])


class _Requeues(Outside):
    """While the outside acts, the worker loses its run."""

    def __init__(self, house: House) -> None:
        super().__init__(K, house.clock)
        self._store = house.store

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        result = await super().perform(call, permit)
        if self.asked == 1:
            await self._store.leave("w1")
        return result


def test_a_fenced_worker_writes_nothing_more() -> None:
    """The run was taken over in mid-effect: the old worker stops, the new one finds the intent and goes on."""
    house = House()
    house.outside = _Requeues(house)

    async def story() -> None:
        new = NewRun(
            run_id="run_1", loop_id="x", spec_digest="d", spec_text="t", subject=Subject(name="s"), deadline=3600.0
        )
        await house.store.start_run(new)
        for worker in ("w1", "w2"):
            now = house.clock()
            info = WorkerInfo(
                worker_id=worker, pid=1, host="h", role="daemon", version="1", started_at=now, beat_at=now, dead=False
            )
            await house.store.join(info, alone=False)
        epoch = await _claimed(house, "w1")
        with pytest.raises(Fenced):
            await house.door().perform(CALL, ORIGIN, epoch, Autonomy.merge, False)
        row = await house.store.get_effect(ORIGIN.key(CALL))
        assert row is not None
        assert row.state is EffectState.intended
        with pytest.raises(Fenced):
            await house.door().perform(CALL, ORIGIN, epoch, Autonomy.merge, False)
        report = await house.door().perform(CALL, ORIGIN, await _claimed(house, "w2"), Autonomy.merge, False)
        assert report.happened

    asyncio.run(story())
    assert (house.outside.happened, house.outside.asked) == (1, 2)


async def _claimed(house: House, worker: str) -> int:
    run = await house.store.get_run("run_1")
    claim = await house.store.claim("run_1", run.segment, worker, 600.0)
    assert claim is not None
    return claim.run.epoch


def test_a_deferred_notice_does_not_hold_up_its_run() -> None:
    """L36: it is on record, delivered later by whoever resumes it, and the run went on at once."""
    house = House(K, "busy", "busy")
    report = house.perform(NOTICE)
    assert (report.state, house.slept, house.due()) == ("retrying", [], ())
    house.clock.advance(5)
    assert [effect.key for effect in house.due()] == [report.key]
    assert house.resume().state == "retrying"
    house.clock.advance(20)
    assert house.resume().state == "done"
    assert (house.outside.happened, house.slept) == (1, [])


def test_a_deferred_notice_in_doubt_is_retried_by_class() -> None:
    house = House(Q, "lost")
    assert house.perform(NOTICE).state == "retrying"
    house.clock.advance(12)
    assert house.resume().result == {"observed": True}
    assert (house.outside.happened, house.slept) == (1, [])


def test_a_deferred_notice_is_given_up_after_a_day_and_said_to_have_failed() -> None:
    """L42: who raised the alert learns that nobody was told."""
    house = House(K, *["busy"] * 100)
    began = house.clock()
    house.perform(NOTICE)
    pauses = []
    while house.state() is EffectState.retrying:
        pause = (house.row().next_at or 0.0) - house.clock()
        pauses.append(pause)
        house.clock.advance(pause)
        last = house.resume()
    assert (last.state, last.reason.startswith("given up after")) == ("failed", True)
    assert pauses[:6] == [5.0, 20.0, 80.0, 320.0, 1280.0, 3600.0]
    assert max(pauses) == 3600.0
    assert 22 * 3600 < house.clock() - began <= 24 * 3600


def test_a_final_no_to_a_notice_is_raised() -> None:
    house = House(K, "no")
    with pytest.raises(EffectFailed, match="no such room"):
        house.perform(NOTICE)


def test_resuming_too_early_or_twice_changes_nothing() -> None:
    house = House(K, "busy")
    house.perform(NOTICE)
    assert house.resume().state == "retrying"
    house.clock.advance(5)
    stale = house.row()
    assert house.resume().state == "done"
    assert asyncio.run(house.door().resume(stale)).state == "done"
    assert house.outside.asked == 2


@pytest.mark.parametrize("class_", [Q, K, B])
def test_two_processes_that_resume_one_notice_deliver_it_once(class_: EffectClass) -> None:
    house = House(class_, "busy")
    house.perform(NOTICE)
    house.clock.advance(5)
    house.move_the_journal_far_away()
    row = house.row()

    async def both() -> None:
        await asyncio.gather(house.door().resume(row), house.door().resume(row))

    asyncio.run(both())
    assert (house.state(), house.outside.asked) == (EffectState.done, 2)


@pytest.mark.parametrize(
    ("class_", "trouble", "state"),
    [
        (Q, "crash_after", "done"),
        (Q, "crash_before", "failed"),
        (K, "crash_before", "unknown"),
        (B, "crash_before", "unknown"),
    ],
)
def test_once_its_run_is_over_an_effect_is_looked_up_and_not_done_again(
    class_: EffectClass, trouble: str, state: str
) -> None:
    house = House(class_, trouble)
    with pytest.raises(Crashed):
        house.perform()
    house.clock.advance(12)
    assert [effect.state for effect in house.due()] == [EffectState.intended]
    assert house.resume().state == state
    assert house.outside.asked == 1


def test_a_notice_whose_adapter_is_gone_ends_honestly() -> None:
    house = House(K, "crash_after")
    with pytest.raises(Crashed):
        house.perform(NOTICE)
    house.clock.advance(12)
    report = house.resume(registered=False)
    assert (report.state, "no effect named" in report.reason) == ("unknown", True)


def test_an_adapter_of_its_own_stands_in_for_the_registered_one() -> None:
    house = House()
    own = Outside(Q, house.clock)
    report = asyncio.run(house.door(registered=False).perform(CALL, ORIGIN, None, Autonomy.merge, False, adapter=own))
    assert report.happened
    assert (own.asked, house.row().class_) == (1, Q)


def test_a_permit_is_for_one_call_and_only_the_door_makes_it() -> None:
    class Forger(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            return await super().perform(with_payload(text="something else"), permit)

    house = House()
    house.outside = Forger(K, house.clock)
    with pytest.raises(EffectRefused, match="without a permit for this call"):
        house.perform()
    assert house.outside.asked == 0
    with pytest.raises(TypeError, match="only the door"):
        Permit("key", CALL.digest, object())
