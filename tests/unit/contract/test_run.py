"""The table of moves, exhaustively: what is not in it cannot happen."""

from __future__ import annotations

from itertools import product

import pytest

from becket.kernel.contract.run import ENDED, OPEN, TRANSITIONS, IllegalMove, Move, RunStatus, after

ALLOWED = {
    RunStatus.queued: {
        Move.claim: RunStatus.running,
        Move.cancel: RunStatus.cancelled,
        Move.fail: RunStatus.failed,
    },
    RunStatus.running: {
        Move.requeue: RunStatus.queued,
        Move.next_segment: RunStatus.queued,
        Move.wait: RunStatus.waiting,
        Move.complete: RunStatus.completed,
        Move.complete_dry_run: RunStatus.completed_dry_run,
        Move.hand_off: RunStatus.ready_for_handoff,
        Move.fail: RunStatus.failed,
        Move.cancel: RunStatus.cancelled,
    },
    RunStatus.waiting: {
        Move.wake: RunStatus.queued,
        Move.cancel: RunStatus.cancelled,
    },
}
"""Written out a second time on purpose: a change of the table must be meant."""


def test_every_pair_of_status_and_move() -> None:
    for status, move in product(RunStatus, Move):
        expected = ALLOWED.get(status, {}).get(move)
        if expected is not None:
            assert after(status, move) is expected, (status, move)
        else:
            with pytest.raises(IllegalMove, match=f"a {status} run cannot {move}"):
                after(status, move)


def test_statuses_are_open_or_ended_and_never_both() -> None:
    assert set(RunStatus) == OPEN | ENDED
    assert not OPEN & ENDED
    assert {RunStatus.queued, RunStatus.running, RunStatus.waiting} == OPEN


def test_an_ended_run_never_moves_again() -> None:
    assert not [key for key in TRANSITIONS if key[0] in ENDED]


def test_every_move_and_every_status_is_of_use() -> None:
    assert {move for _, move in TRANSITIONS} == set(Move)
    reached = set(TRANSITIONS.values()) | {RunStatus.queued}
    assert reached == set(RunStatus)


def test_every_open_run_can_be_cancelled() -> None:
    assert {after(status, Move.cancel) for status in OPEN} == {RunStatus.cancelled}


def test_only_a_run_at_work_says_how_it_ended() -> None:
    """A queued run may fail (its spec is gone), but completion and handoffs need somebody who did the work."""
    verdicts = {Move.complete, Move.complete_dry_run, Move.hand_off}
    assert {status for status, move in TRANSITIONS if move in verdicts} == {RunStatus.running}
