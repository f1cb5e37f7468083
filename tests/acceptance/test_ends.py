"""What a person sees in a terminal of 24 rows at each end of a heal: what is so, what shows it, what to type next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from calc_stage import GOOD, HEAL, REPAIR, Calculator
from terminal import ROWS, Terminal, watched

pytestmark = pytest.mark.slow


class Project(Calculator):
    """Watched in a terminal."""

    def heal(self) -> tuple[int, list[str]]:
        return watched(HEAL, self.root)


def commit(line: str) -> str:
    return re.sub(r"\b[0-9a-f]{7}\b", "SHA", re.sub(r"run_\w+", "RUN", line))


def ends(lines: list[str], headline: str, following: str) -> str:
    """The headline is the first thing of the end, and the command the last on the screen; nothing has scrolled away."""
    shown = [commit(line) for line in lines]
    print("\n".join(lines))
    assert len(lines) <= ROWS
    assert shown[0] == headline, shown
    assert shown[-1] == f"Next: {following}", shown
    text = "\n".join(shown)
    for word in ("raised", "worker", "segment", "base_fast", "skipped", "Traceback"):
        assert word not in text
    return text


def test_green_already(tmp_path: Path) -> None:
    code, lines = Project(tmp_path, calc=GOOD).heal()
    assert code == 0
    ends(lines, "main is green at SHA", "becket up -d")


def test_repaired_and_promoted_with_the_agents_last_line_on_the_screen_meanwhile(tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def look(terminal: Terminal) -> None:
        rows = terminal.lines
        if rows[-1:] == ["      It was the sign."] and "▸ fix  fixer" in rows[-2]:
            seen.touch()

    project = Project(tmp_path / "repo", f"{REPAIR}; while [ ! -e {seen} ]; do sleep 0.05; done")
    code, lines = watched(HEAL, project.root, look)
    assert code == 0, lines
    text = ends(lines, "main is green at SHA, repaired by fixer", "git show SHA")
    assert "+    return left + right" in text


def test_a_repair_is_ready(tmp_path: Path) -> None:
    code, lines = Project(tmp_path, REPAIR, autonomy="propose").heal()
    assert code == 1
    text = ends(lines, "main is red at SHA; a proven repair by fixer waits for you", "becket proposals accept RUN")
    assert "autonomy is propose" in text
    assert "+    return left + right" in text


def test_there_is_no_agent(tmp_path: Path) -> None:
    code, lines = Project(tmp_path).heal()
    assert code == 1
    text = ends(lines, "main is red at SHA; no agent is configured that could repair it", "becket run heal")
    assert "FAIL tests/test_calc.py::test_add at tests/test_calc.py:8" in text
    assert "add(2, 3) is -1, not 5" in text
    assert "fixer: {driver: codex}" in text


def test_the_agents_program_is_not_found(tmp_path: Path) -> None:
    project = Project(tmp_path, "mend-it --now")
    code, lines = project.heal()
    assert code == 1
    text = ends(lines, "main is red at SHA; fixer could not be started: mend-it is not found where", "becket doctor")
    assert "the agent runs (exit code 127)" in text
    assert "add(2, 3) is -1, not 5" in text
    (run,) = project.json("runs", "list")
    assert run["reason"] == "agent_not_found"
    assert len(project.json("runs", "show", run["run_id"])["calls"]) == 1


def test_the_agent_gives_up(tmp_path: Path) -> None:
    code, lines = Project(tmp_path, "echo I do not know what to do.").heal()
    assert code == 1
    text = ends(lines, "main is red at SHA; fixer gave up", "becket runs show RUN --all")
    assert "fixer said: I do not know what to do." in text
    assert "add(2, 3) is -1, not 5" in text


def test_the_guard_refuses(tmp_path: Path) -> None:
    cheat = 'echo "# more" >> becket.yaml; echo It was the gate.'
    code, lines = Project(tmp_path, cheat).heal()
    assert code == 1
    text = ends(lines, "main is red at SHA; the guard refused what fixer changed", "becket runs show RUN --all")
    assert "fixer said: It was the gate." in text
    assert "becket.yaml gate-definition: this defines the gates and rules" in text
    assert "+# more" in text


def test_the_machine_is_at_fault(tmp_path: Path) -> None:
    broken = "setup: {run: echo no such package; exit 3, key: [calc.py]}\n"
    project = Project(tmp_path, more=broken)
    code, lines = project.heal()
    assert code == 1
    headline = "main at SHA could not be judged: machine, set-up or becket.yaml is at fault"
    assert "  no such package" in ends(lines, headline, "becket runs show RUN --log setup")
    command = lines[-1].removeprefix("Next: becket ").split()
    assert project.becket(*command).out == "no such package\n"


def test_cancelled(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.becket("run", "heal", "--no-follow")
    (run,) = project.json("runs", "list")
    project.becket("runs", "cancel", run["run_id"])
    _, lines = watched(("runs", "show", run["run_id"]), project.root)
    assert commit(lines[0]).startswith("main at SHA: cancelled by ")
    assert commit(lines[-1]) == "Next: becket runs retry RUN"


def test_it_was_never_green(tmp_path: Path) -> None:
    code, lines = watched(("run", "heal"), Project(tmp_path, REPAIR).root)
    assert code == 1
    text = ends(lines, "main is red at SHA; it was never green here, so no agent was called", "becket gates try")
    assert "test_add" in text
