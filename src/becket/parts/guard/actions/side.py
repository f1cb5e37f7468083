"""The test side of a commit, found once and remembered: guard, crossing proof and brief ask for the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.config import Config
from becket.kernel.contract.gate import GateVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.project import Projects
from becket.parts.gates.ports.report import TestReport
from becket.parts.gates.section import GATES, SET_UP
from becket.parts.guard.reading.found.commands import READ_FOR_TARGETS, behind
from becket.parts.guard.reading.found.find import NOTHING_RAN, ExecutedTests, find_test_side
from becket.parts.guard.reading.found.names import LARGEST
from becket.parts.guard.reading.found.reader import wanted
from becket.parts.guard.reading.side import TestSide, test_side_of

_Key = tuple[Path, str, tuple[str, ...], tuple[str, ...], ExecutedTests]
_MOST_REMEMBERED = 16
_KNOWN: dict[_Key, TestSide] = {}  # a commit stays what it is


async def side_of(context: ActionContext, base: str, verdicts: Sequence[str]) -> TestSide:
    """By base's own rules. `verdicts`: artifacts that tell which tests ran on it."""
    config = await context.port(Projects).committed(base)
    return await find_side(context.port(Git), base, config, await tests_run(context, base, verdicts))


async def find_side(git: Git, commit: str, config: Config, ran: ExecutedTests = NOTHING_RAN) -> TestSide:
    globs, commands = test_side_of(config).globs, gate_commands(config)
    key = (git.common_dir, commit, globs, commands, ran)
    if key not in _KNOWN:
        paths = frozenset(await git.listing(commit))
        contents = await git.read_files(commit, wanted(paths), LARGEST)
        if len(_KNOWN) >= _MOST_REMEMBERED:
            _KNOWN.clear()
        _KNOWN[key] = find_test_side(paths, globs, contents.get, ran, commands)
    return _KNOWN[key]


def gate_commands(config: Config) -> tuple[str, ...]:
    """Everything that base's gates and set-up run: programs of the tree named here are part of the proof."""
    steps = [step for gate in config.section(GATES).values() for step in gate]
    setup = config.section(SET_UP)
    runs = [*(step.run for step in steps), *(step.rerun for step in steps), setup.run if setup else None]
    return tuple(run for run in runs if run)


async def commands_run(git: Git, commit: str, config: Config) -> tuple[str, ...]:
    """And what these lead to through a Makefile's targets and a package's scripts, as the commit has them."""
    commands = gate_commands(config)
    contents = await git.read_files(commit, READ_FOR_TARGETS, LARGEST) if commit else {}
    return (*commands, *behind(commands, contents.get))


async def tests_run(context: ActionContext, base: str, verdicts: Sequence[str]) -> ExecutedTests:
    """Of the verdicts about this very commit: after main moved an older one may still be at hand."""
    found = [GateVerdict.model_validate_json(await context.read(digest)) for digest in verdicts if digest]
    steps = [step for verdict in found if verdict.commit == base for step in verdict.steps]
    reports = [TestReport.model_validate_json(await context.read(step.report)) for step in steps]
    cases = [case for report in reports for case in report.executed]
    return ExecutedTests(
        frozenset(case.id for case in cases),
        frozenset((case.id, case.defined_in) for case in cases if case.defined_in),
    )
