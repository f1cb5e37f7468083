"""Kill -9 on the way from a red commit to a promoted main, start again: the repair ends once, whole and proven.

The points are those that a repair which nobody kills passes; a point of its own rooms that it does not pass is a
failure that names it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from heal_cases import HealCase, HealMatrix
from heal_world import REPAIR

from becket.testing.crashes import ProcessLife, every_point

OWN = ("candidate.", "fix.", "gate.", "history.", "holdout.", "objects.", "proof.", "promote.", "setup.", "workspace.")
"""Points of the rooms that only a repair enters; the engine's own matrix has the others."""

UNDOING = {"promote.mid_undo", "promote.before_old_index"}
"""Passed only by a promotion that fails half way; tests/contracts/test_promote_crashes.py kills there."""

EVERY_DAY = [
    "setup.after_run",
    "gate.step_judged",
    "fix.agent_ended",
    "candidate.kept",
    "history.layered",
    "proof.trusted",
    "promote.after_prepare",
    "promote.after_checkout",
    "promote.after_commit",
    "promote.after_effect",
    "walk.decision_written",
]
POINTS = sorted(set(every_point()) - UNDOING)

SHARES = 24
"""Which points there are is known only when a repair has passed them; so many tests share them out."""


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[HealMatrix]:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    matrix = HealMatrix(tmp_path_factory.mktemp("heal"), shared)
    with matrix.nursery:
        yield matrix


def test_a_repair_passes_every_point_of_its_rooms(matrix: HealMatrix) -> None:
    hits = matrix.baseline().hits
    missed = [point for point in POINTS if point.startswith(OWN) and point not in hits]
    assert not missed, f"no repair passes {missed}; let tests/acceptance/heal_world.py do so, or name them in UNDOING"
    assert len(hits) >= 60


@pytest.mark.parametrize("point", EVERY_DAY)
def test_killed_on_the_way(point: str, matrix: HealMatrix) -> None:
    """L3, L7, L31: main is at the old or at the new proven commit, and the next life brings it to the new one."""
    matrix.check(point, 1)


def kills(hits: dict[str, int]) -> list[tuple[str, int]]:
    """Every point that a repair passes, at its first and its last hit; and after every action."""
    first = [(point, 1) for point in sorted(hits) if point not in EVERY_DAY]
    last = [(point, count) for point, count in sorted(hits.items()) if count > 1]
    return [*first, *last, *(("step.action_done", nth) for nth in range(2, hits["step.action_done"]))]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_point(share: int, matrix: HealMatrix) -> None:
    """L3, L7, L31: the same at every point, whatever was under way; its row is not written, so it is done again."""
    mine = kills(matrix.baseline().hits)[share::SHARES]
    assert len(mine) >= 4
    for point, nth in mine:
        try:
            matrix.check(point, nth)
        except AssertionError as error:
            error.add_note(f"killed at {point}@{nth}")
            raise


def test_a_green_whose_receipt_was_lost_is_not_believed(matrix: HealMatrix) -> None:
    """L16: the kill came between the memory of a green and the row with its receipt; the step runs again."""
    matrix.check("gate.green_remembered", matrix.baseline().hits["gate.green_remembered"])


def test_what_the_agent_left_at_a_kill_is_saved(matrix: HealMatrix) -> None:
    """L7: the agent's work was in its checkout and nowhere else."""
    with matrix.case() as case:
        assert case.live("fix.agent_ended").killed
        case.repaired(case.live())
        saved = case.git("for-each-ref", "--format=%(refname)", "refs/becket/rescue/").splitlines()
        assert [case.git("show", f"{ref}:it.py") for ref in saved] == [REPAIR.strip()]


@pytest.mark.parametrize(
    ("point", "nth"), [("fix.agent_ended", 2), ("holdout.written", 1), ("holdout.counted", 1), ("holdout.tried", 1)]
)
def test_whoever_wrote_the_hold_out_checks_is_not_paid_twice(point: str, nth: int, matrix: HealMatrix) -> None:
    found = matrix.check(point, nth)
    assert found["calls"] == [["fix", "fixer"], ["holdout", "judge"]]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["setup.after_run", "candidate.written", "promote.after_checkout"])
@pytest.mark.parametrize("second", ["serve.recovered", "store.claim.after_commit", "promote.after_effect"])
def test_killed_twice(first: str, second: str, matrix: HealMatrix) -> None:
    """L31: the life that cleans up may be killed as well; the third one ends it."""
    with matrix.case() as case:
        assert case.live(first).killed
        case.main_may_be_here()
        case.live(second)
        case.main_may_be_here()
        case.repaired(case.live())


def killed(case: HealCase, kind: str) -> dict[str, ProcessLife]:
    """One child of this kind is killed while it works; the process that runs it lives on."""
    case.stop(kind)
    killing = threading.Thread(target=case.kill_stopped, args=(kind,))
    killing.start()
    try:
        return {"life": case.live()}
    finally:
        killing.join()


def test_a_killed_step_is_run_again(matrix: HealMatrix) -> None:
    """L14: a step that somebody killed says nothing about the code; the runs after it do. It named no tests, though, so
    that an ordinary repair is for a person to take.
    """
    with matrix.case() as case:
        found = killed(case, "gate")["life"].value
        assert (found["status"], found["reason"]) == ("ready_for_handoff", "repair_ready"), found
        assert "candidate.crossed" in found["raised"]
        assert "the red step unit named no tests" in found["detail"]["why"]
        assert case.git("rev-parse", "refs/heads/main") == case.bad


def test_a_killed_agent_is_called_again(matrix: HealMatrix) -> None:
    """L20: it did not end, so it claims nothing; what it left is saved and the next call begins anew."""
    with matrix.case() as case:
        found = case.repaired(killed(case, "agent")["life"])
        assert found["attempts"] == {"fix": 2}


def test_a_killed_set_up_is_the_machines_fault(matrix: HealMatrix) -> None:
    """L13: nobody repairs code for it. A person hears of it, and the next run builds the set-up anew."""
    with matrix.case() as case:
        found = case.handed_over(killed(case, "setup")["life"], "environment_broken")
        assert "killed" in str(found["detail"])
        case.repaired(case.live(again="2"))


@pytest.mark.parametrize("point", ["promote.before_checkout", "promote.after_checkout", "promote.after_index"])
def test_the_git_of_a_promotion_is_killed(point: str, matrix: HealMatrix) -> None:
    """L3: the ref's lock was that git's; the files are put back, and the door tries again."""
    with matrix.case() as case:
        case.repaired(case.live(git_dies_at=point))
