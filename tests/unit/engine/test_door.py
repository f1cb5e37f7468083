"""What the door lets out, in which form, and what it says afterwards."""

from __future__ import annotations

import asyncio

import pytest
from door_outside import CALL, ORIGIN, SECRET, Crashed, House, Outside

from becket.kernel.contract.base import Json
from becket.kernel.contract.config import EffectCap
from becket.kernel.contract.effect import EffectCall, EffectState, LookUpResult, Permit
from becket.kernel.contract.errors import EffectFailed, EffectRefused, Fenced
from becket.kernel.contract.run import NewRun, Subject
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.store import WorkerInfo
from becket.kernel.engine.door import Patience

Q, K, B, R = EffectClass.queryable, EffectClass.keyed, EffectClass.blind, EffectClass.repeatable
NOTICE = CALL.model_copy(update={"defer": True})


def with_payload(**payload: Json) -> EffectCall:
    return CALL.model_copy(update={"payload": payload})


def refused(runtime: House, call: EffectCall = CALL, **how: Autonomy) -> str:
    """The reason; it is on record, the same when asked again, and nothing went out."""
    with pytest.raises(EffectRefused) as first:
        runtime.perform(call, **how)
    with pytest.raises(EffectRefused) as second:
        runtime.perform(call, **how)
    row = runtime.row(call)
    assert str(first.value) == str(second.value) == row.reason
    assert (row.state, runtime.outside.asked) == (EffectState.refused, 0)
    return row.reason


def test_an_effect_leaves_once_and_its_answer_stays() -> None:
    runtime = House()
    report = runtime.perform()
    assert (report.state, report.result, report.happened) == ("done", {"receipt": 1}, True)
    assert runtime.perform() == report
    assert runtime.outside.asked == 1


def test_too_little_autonomy_is_refused_and_shown() -> None:
    """L18: the message says what is needed, what there is, and where to change it."""
    reason = refused(House(), autonomy=Autonomy.observe)
    assert "needs autonomy propose" in reason
    assert "becket.yaml" in reason


def test_an_adapter_may_still_refuse_at_the_last_moment() -> None:
    runtime = House(K, "refuses")
    for _ in range(2):
        with pytest.raises(EffectRefused, match="not allowed"):
            runtime.perform()
    assert (runtime.state(), runtime.outside.asked) == (EffectState.refused, 1)


def test_a_check_that_objects_is_a_refusal() -> None:
    assert "the payload is bad" in refused(House(), with_payload(bad=1))


def test_an_unknown_effect_is_refused_with_the_known_ones() -> None:
    runtime = House()
    assert "known here: outside.tell" in refused(runtime, CALL.model_copy(update={"name": "outside.tel"}))


def test_a_cap_counts_what_was_let_out_within_its_time() -> None:
    """Refused and dry-run effects do not count; a retry of the same effect is the same effect."""
    runtime = House(K, "busy")
    runtime.caps["outside.tell"] = EffectCap(count=2, per=100.0)
    calls = [CALL.model_copy(update={"label": str(number)}) for number in range(6)]
    runtime.perform(calls[0], dry_run=True)
    assert runtime.perform(calls[1]).happened
    assert runtime.perform(calls[2]).happened
    with pytest.raises(EffectRefused, match="effect_caps"):
        runtime.perform(calls[3])
    runtime.clock.advance(101)
    assert runtime.perform(calls[4]).happened


def test_two_callers_at_once_do_not_pass_a_cap_together() -> None:
    runtime = House()
    runtime.move_the_journal_far_away()
    runtime.caps["outside.tell"] = EffectCap(count=1)

    async def both() -> list[object]:
        door = runtime.door()
        calls = [CALL.model_copy(update={"label": label}) for label in "ab"]
        asked = (door.perform(call, ORIGIN, None, Autonomy.merge, False) for call in calls)
        return list(await asyncio.gather(*asked, return_exceptions=True))

    kinds = {type(end).__name__ for end in asyncio.run(both())}
    assert kinds == {"EffectReport", "EffectRefused"}
    assert runtime.outside.happened == 1


def test_a_dry_run_records_what_would_have_left() -> None:
    runtime = House()
    report = runtime.perform(dry_run=True)
    assert (report.state, report.happened) == ("dry_run", False)
    assert runtime.perform(dry_run=True) == report
    assert (runtime.row().call.payload, runtime.outside.asked) == (CALL.payload, 0)


def test_the_same_key_with_other_contents_is_an_error() -> None:
    runtime = House()
    runtime.perform()
    with pytest.raises(EffectRefused, match="other contents"):
        runtime.perform(with_payload(text="good bye"))
    assert runtime.perform(CALL.model_copy(update={"label": "second", "payload": {"text": "good bye"}})).happened


def test_what_leaves_and_what_is_stored_is_redacted() -> None:
    """L25: the row keeps the digest of what was asked, and nowhere the secret."""
    runtime = House()
    call = with_payload(text=f"use {SECRET}", password="x")
    runtime.perform(call)
    left, row = runtime.outside.calls[0], runtime.row()
    assert left == row.call
    assert left.payload == {"text": "use [redacted:DEPLOY_TOKEN]", "password": "[redacted:secret]"}
    assert row.digest == call.digest != left.digest
    assert SECRET not in row.model_dump_json()


def test_a_leak_that_cannot_be_redacted_is_refused_by_name() -> None:
    """L25: the refusal names the variable; neither it nor the row holds a piece of the value."""
    runtime = House()
    reason = refused(runtime, with_payload(one=SECRET[:9], two=SECRET[9:]))
    assert "DEPLOY_TOKEN" in reason
    assert SECRET[:9] not in runtime.row().model_dump_json()


def test_a_secret_in_the_target_is_refused() -> None:
    runtime = House()
    call = CALL.model_copy(update={"target": "https://hooks.slack.com/services/T0/B0/abcdefghij"})
    reason = refused(runtime, call)
    assert "name the target in the configuration" in reason
    assert "abcdefghij" not in runtime.row(call).model_dump_json()


class Exact(Outside):
    """An outside whose payload must arrive as it was meant."""

    def check(self, call: EffectCall) -> str | None:
        return None if str(call.payload["text"]).isalnum() else "not an exact text"


def test_contents_that_must_be_exact_are_not_sent_redacted() -> None:
    runtime = House()
    runtime.outside = Exact(K, runtime.clock)
    assert runtime.perform(with_payload(text="4b825dc642cb6eb9a060e54bf8d69288fbee4904")).happened
    runtime = House()
    runtime.outside = Exact(K, runtime.clock)
    assert "no use without it" in refused(runtime, with_payload(text="AKIAIOSFODNN7EXAMPLE"))


def test_results_and_reasons_are_redacted_too() -> None:
    class Chatty(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            if call.label:
                raise EffectFailed(f"{SECRET} is not welcome")
            return {"said": f"thanks for {SECRET}"}

    runtime = House()
    runtime.outside = Chatty(K, runtime.clock)
    assert runtime.perform().result == {"said": "thanks for [redacted:DEPLOY_TOKEN]"}
    with pytest.raises(EffectFailed, match=r"^\[redacted:DEPLOY_TOKEN\] is not welcome$"):
        runtime.perform(CALL.model_copy(update={"label": "x"}))


def test_a_busy_outside_is_asked_four_times_with_growing_pauses() -> None:
    runtime = House(B, *["busy"] * 9)
    with pytest.raises(EffectFailed, match="given up after 4 attempts: busy"):
        runtime.perform()
    assert (runtime.outside.asked, runtime.slept, runtime.row().attempts) == (4, [1.0, 4.0, 16.0], 4)


def test_a_pause_is_stretched_by_chance() -> None:
    runtime = House(K, "busy")
    runtime.patience = Patience(jitter=0.5)
    runtime.perform()
    assert 1.0 <= runtime.slept[0] <= 1.5


def test_without_patience_there_is_one_attempt() -> None:
    """So the watchdog tells an alarm: it has rounds of its own."""
    runtime = House(K, *["busy"] * 9)
    runtime.patience = Patience(delays=())
    with pytest.raises(EffectFailed, match="given up after 1 attempts: busy"):
        runtime.perform()
    assert runtime.slept == []


def test_the_outside_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    class Strict(Outside):
        pauses = (30.0, 61.0)

        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            self.asked += 1
            raise EffectFailed("later", retryable=True, retry_after=self.pauses[self.asked - 1])

    runtime = House()
    runtime.outside = Strict(K, runtime.clock)
    with pytest.raises(EffectFailed, match="given up after 2 attempts: later"):
        runtime.perform()
    assert runtime.slept == [30.0]


def test_an_answer_that_never_comes_is_cut_off() -> None:
    class Silent(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            self.asked += 1
            await asyncio.Event().wait()
            raise AssertionError

    runtime = House()
    runtime.outside = Silent(B, runtime.clock)
    runtime.outside.timeout, runtime.patience = 0.01, Patience(grace=0.02)
    report = runtime.perform()
    assert (report.state, report.reason, runtime.outside.asked) == ("unknown", "no answer within 0.01 s", 1)


def test_an_unknown_outcome_is_returned_not_raised_and_never_tried_again() -> None:
    runtime = House(B, "lost")
    report = runtime.perform()
    assert (report.state, report.happened) == ("unknown", False)
    assert runtime.perform() == report
    assert (runtime.outside.asked, runtime.slept) == (1, [])


def test_a_keyed_effect_in_doubt_waits_until_the_first_attempt_has_settled() -> None:
    """Rule 4: two requests with one key must not be at the receiver at the same time."""
    runtime = House(K, "lost")
    assert runtime.perform().happened
    assert (runtime.slept, runtime.outside.asked) == ([12.0], 2)


def test_giving_up_in_doubt_is_unknown_not_failed() -> None:
    """An answer was lost, and the last attempts were turned down: nobody can say that nothing happened."""
    for last in ("no", "busy", "refuses"):
        runtime = House(K, "lost", last, last, last)
        assert runtime.perform().state == "unknown"
        assert runtime.outside.happened == 1


def test_a_look_up_that_cannot_tell_is_unknown() -> None:
    runtime = House(Q, "lost")
    runtime.outside.answers = [LookUpResult.cannot_tell]
    assert (runtime.perform().state, runtime.outside.asked) == ("unknown", 1)


def test_a_look_up_that_fails_is_tried_again() -> None:
    runtime = House(Q, "lost")
    runtime.outside.answers = [OSError("no route"), EffectFailed("busy", retryable=True)]
    assert runtime.perform().result == {"observed": True}
    assert (runtime.outside.asked, runtime.outside.looked_up) == (1, 3)


def test_a_look_up_that_always_fails_is_unknown() -> None:
    runtime = House(Q, "lost")
    runtime.outside.answers = [OSError("no route")] * 9
    assert (runtime.perform().state, runtime.outside.looked_up) == ("unknown", 4)


def test_the_last_attempt_in_doubt_is_still_looked_up() -> None:
    runtime = House(Q, "busy", "busy", "busy", "lost")
    assert runtime.perform().result == {"observed": True}


def test_autonomy_counts_as_it_is_at_the_second_attempt() -> None:
    """L18: a person who lowered autonomy after a crash is not overruled by the intent of before."""
    runtime = House(Q, "crash_before")
    with pytest.raises(Crashed):
        runtime.perform()
    with pytest.raises(EffectFailed, match="needs autonomy propose"):
        runtime.perform(autonomy=Autonomy.observe)
    assert (runtime.outside.asked, runtime.outside.looked_up) == (1, 1)


def test_cancelling_leaves_the_truth_in_the_journal() -> None:
    class Slow(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

    runtime = House()
    runtime.outside = Slow(K, runtime.clock)
    begun = asyncio.Event()

    async def cancelled() -> None:
        task = asyncio.create_task(runtime.door().perform(CALL, ORIGIN, None, Autonomy.merge, False))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert runtime.state() is EffectState.intended


def test_two_callers_of_one_effect_take_turns() -> None:
    """The second one in the same process gets the first one's answer instead of judging it as in doubt."""

    class Thoughtful(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            for _ in range(50):
                await asyncio.sleep(0)
            return await super().perform(call, permit)

    runtime = House()
    runtime.outside = Thoughtful(B, runtime.clock)

    async def both() -> list[str]:
        door = runtime.door()
        asked = (door.perform(CALL, ORIGIN, None, Autonomy.merge, False) for _ in range(2))
        return [report.state for report in await asyncio.gather(*asked)]

    assert asyncio.run(both()) == ["done", "done"]
    assert (runtime.outside.happened, runtime.slept) == (1, [])


class _Requeues(Outside):
    """While the outside acts, the worker loses its run."""

    def __init__(self, runtime: House) -> None:
        super().__init__(K, runtime.clock)
        self._store = runtime.store

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        result = await super().perform(call, permit)
        if self.asked == 1:
            await self._store.leave("w1")
        return result


def test_a_fenced_worker_writes_nothing_more() -> None:
    """The run was taken over in mid-effect: the old worker stops, the new one finds the intent and goes on."""
    runtime = House()
    runtime.outside = _Requeues(runtime)

    async def story() -> None:
        new = NewRun(
            run_id="run_1", loop_id="x", spec_digest="d", spec_text="t", subject=Subject(name="s"), deadline=3600.0
        )
        await runtime.store.start_run(new)
        for worker in ("w1", "w2"):
            now = runtime.clock()
            info = WorkerInfo(
                worker_id=worker, pid=1, host="h", role="daemon", version="1", started_at=now, beat_at=now, dead=False
            )
            await runtime.store.join(info, alone=False)
        epoch = await _claimed(runtime, "w1")
        with pytest.raises(Fenced):
            await runtime.door().perform(CALL, ORIGIN, epoch, Autonomy.merge, False)
        row = await runtime.store.get_effect(ORIGIN.key(CALL))
        assert row is not None
        assert row.state is EffectState.intended
        with pytest.raises(Fenced):
            await runtime.door().perform(CALL, ORIGIN, epoch, Autonomy.merge, False)
        report = await runtime.door().perform(CALL, ORIGIN, await _claimed(runtime, "w2"), Autonomy.merge, False)
        assert report.happened

    asyncio.run(story())
    assert (runtime.outside.happened, runtime.outside.asked) == (1, 2)


async def _claimed(runtime: House, worker: str) -> int:
    run = await runtime.store.get_run("run_1")
    claim = await runtime.store.claim("run_1", run.segment, worker, 600.0)
    assert claim is not None
    return claim.run.epoch


def test_a_deferred_notice_does_not_hold_up_its_run() -> None:
    """L36: it is on record, delivered later by whoever resumes it, and the run went on at once."""
    runtime = House(K, "busy", "busy")
    report = runtime.perform(NOTICE)
    assert (report.state, runtime.slept, runtime.due()) == ("retrying", [], ())
    runtime.clock.advance(5)
    assert [effect.key for effect in runtime.due()] == [report.key]
    assert runtime.resume().state == "retrying"
    runtime.clock.advance(20)
    assert runtime.resume().state == "done"
    assert (runtime.outside.happened, runtime.slept) == (1, [])


def test_a_deferred_notice_in_doubt_is_retried_by_class() -> None:
    runtime = House(Q, "lost")
    assert runtime.perform(NOTICE).state == "retrying"
    runtime.clock.advance(12)
    assert runtime.resume().result == {"observed": True}
    assert (runtime.outside.happened, runtime.slept) == (1, [])


def test_a_deferred_notice_is_given_up_after_a_day_and_said_to_have_failed() -> None:
    """L42: who raised the alert learns that nobody was told."""
    runtime = House(K, *["busy"] * 100)
    began = runtime.clock()
    runtime.perform(NOTICE)
    pauses = []
    while runtime.state() is EffectState.retrying:
        pause = (runtime.row().next_at or 0.0) - runtime.clock()
        pauses.append(pause)
        runtime.clock.advance(pause)
        last = runtime.resume()
    assert (last.state, last.reason.startswith("given up after")) == ("failed", True)
    assert pauses[:6] == [5.0, 20.0, 80.0, 320.0, 1280.0, 3600.0]
    assert max(pauses) == 3600.0
    assert 22 * 3600 < runtime.clock() - began <= 24 * 3600


def test_a_final_no_to_a_notice_is_raised() -> None:
    runtime = House(K, "no")
    with pytest.raises(EffectFailed, match="no such room"):
        runtime.perform(NOTICE)


def test_resuming_too_early_or_twice_changes_nothing() -> None:
    runtime = House(K, "busy")
    runtime.perform(NOTICE)
    assert runtime.resume().state == "retrying"
    runtime.clock.advance(5)
    stale = runtime.row()
    assert runtime.resume().state == "done"
    assert asyncio.run(runtime.door().resume(stale)).state == "done"
    assert runtime.outside.asked == 2


@pytest.mark.parametrize("class_", [Q, K, B])
def test_two_processes_that_resume_one_notice_deliver_it_once(class_: EffectClass) -> None:
    runtime = House(class_, "busy")
    runtime.perform(NOTICE)
    runtime.clock.advance(5)
    runtime.move_the_journal_far_away()
    row = runtime.row()

    async def both() -> None:
        await asyncio.gather(runtime.door().resume(row), runtime.door().resume(row))

    asyncio.run(both())
    assert (runtime.state(), runtime.outside.asked) == (EffectState.done, 2)


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
    runtime = House(class_, trouble)
    with pytest.raises(Crashed):
        runtime.perform()
    runtime.clock.advance(12)
    assert [effect.state for effect in runtime.due()] == [EffectState.intended]
    assert runtime.resume().state == state
    assert runtime.outside.asked == 1


def test_a_notice_whose_adapter_is_gone_ends_honestly() -> None:
    runtime = House(K, "crash_after")
    with pytest.raises(Crashed):
        runtime.perform(NOTICE)
    runtime.clock.advance(12)
    report = runtime.resume(registered=False)
    assert (report.state, "no effect named" in report.reason) == ("unknown", True)


def test_an_adapter_of_its_own_stands_in_for_the_registered_one() -> None:
    runtime = House()
    own = Outside(Q, runtime.clock)
    report = asyncio.run(runtime.door(registered=False).perform(CALL, ORIGIN, None, Autonomy.merge, False, adapter=own))
    assert report.happened
    assert (own.asked, runtime.row().class_) == (1, Q)


def test_a_permit_is_for_one_call_and_only_the_door_makes_it() -> None:
    class Forger(Outside):
        async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
            return await super().perform(with_payload(text="something else"), permit)

    runtime = House()
    runtime.outside = Forger(K, runtime.clock)
    with pytest.raises(EffectRefused, match="without a permit for this call"):
        runtime.perform()
    assert runtime.outside.asked == 0
    with pytest.raises(TypeError, match="only the door"):
        Permit("key", CALL.digest, object())
