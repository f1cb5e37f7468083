"""Chains of starts: every cycle without a bound is found, whatever its arcs are, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

import pytest

from becket.kernel.contract.errors import Finding
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.spec.lint import lint_text
from becket.kernel.spec.load import load_spec

from .registry import REGISTRY

TEXT = """\
version: 1
loop_id: NAME
goal: cause something
trigger: [TRIGGERS]
max_iterations: 1
deadline: 1h
autonomy: merge
stop_conditions: [check.pass]
phases:
  act: {objective: do, actions: [ACTIONS]}
  verify: {objective: check, verifiers: [{id: check, run: "true"}]}
"""

Arc = tuple[str, str, str, bool]
"""Who causes, who is started, by what, and whether it has a bound."""

WAYS = ("run.start", "event", "after", "commit")


def loop(name: str, arcs: Sequence[Arc]) -> LoadedLoop:
    triggers, actions = ["manual: {}"], []
    for number, (cause, started, way, bounded) in enumerate(arcs):
        bound = ", max_chain: 2" if bounded else ""
        if cause == name:
            actions += _doing(number, started, way, bound)
        if started == name:
            triggers += _hearing(cause, started, way, bound)
    listed = ", ".join(f"{{{trigger}}}" for trigger in dict.fromkeys(triggers))
    text = TEXT.replace("NAME", name).replace("TRIGGERS", listed).replace("ACTIONS", ", ".join(actions))
    return LoadedLoop(spec=load_spec(text, f"{name}.yaml"), text=text, digest=name, source=f"{name}.yaml")


def _doing(number: int, started: str, way: str, bound: str) -> list[str]:
    does = {
        "run.start": f"uses: run.start, with: {{loop: {started}{bound}}}",
        "event": f"uses: event.post, with: {{name: for.{started}}}",
        "commit": "uses: git.update_ref, with: {ref: refs/heads/main, to: '{sha}'}",
    }
    return [f"{{id: do{number}, {does[way]}}}"] if way in does else []


def _hearing(cause: str, started: str, way: str, bound: str) -> list[str]:
    hears = {
        "event": f"event: {{name: for.{started}{bound}}}",
        "after": f"after: {{loop: {cause}{bound}}}",
        "commit": f"commit: {{{bound.removeprefix(', ')}}}",
    }
    return [hears[way]] if way in hears else []


def refused(loops: Sequence[LoadedLoop]) -> dict[str, list[Finding]]:
    """What lint says about chains, by loop."""
    told = {}
    for one in loops:
        others = [other for other in loops if other is not one]
        findings = lint_text(one.text, one.source, REGISTRY, others)[1]
        assert {item.rule for item in findings} <= {"self-feeding"}
        told[one.spec.loop_id] = findings
    return told


@pytest.mark.parametrize("way", ["run.start", "after", "event", "commit"])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_loop_that_starts_itself_is_refused_unless_something_bounds_it(way: str, bounded: bool) -> None:
    told = refused([loop("alone", [("alone", "alone", way, bounded)])])
    assert bool(told["alone"]) is not bounded


def test_the_finding_names_every_arc_of_the_cycle_with_its_place() -> None:
    arcs = [("a", "b", "run.start", False), ("b", "c", "event", False), ("c", "a", "after", False)]
    told = refused([loop(name, arcs) for name in "abc"])
    places = ("a.yaml:10:44", "c.yaml:4:26", "a.yaml:4:26")
    for findings in (told["a"], told["c"]):
        (finding,) = findings
        assert all(place in finding.message for place in places), finding.message
    assert told["b"] == [], "nothing in its file leads on by itself"


def test_one_bound_anywhere_in_the_cycle_is_enough() -> None:
    for bounded in range(3):
        ways = zip("abc", "bca", ("run.start", "event", "after"), strict=True)
        arcs = [(cause, to, way, number == bounded) for number, (cause, to, way) in enumerate(ways)]
        assert not any(refused([loop(name, arcs) for name in "abc"]).values())


def test_a_loop_whose_name_is_known_only_at_run_time_may_be_any_loop() -> None:
    text = loop("alone", [("alone", "other", "run.start", False)]).text
    start = text.replace("loop: other", "loop: '{subject}'")
    assert [item.rule for item in lint_text(start, "f.yaml", REGISTRY, [])[1]] == ["self-feeding"]
    assert lint_text(start.replace("'{subject}'", "'{subject}', max_chain: 2"), "f.yaml", REGISTRY, [])[1] == []


def random_arcs(seed: int) -> list[Arc]:
    """Up to four loops and seven arcs. A branch has no name here: whoever moves it starts all who watch it."""
    chance = random.Random(seed)
    names = "abcd"[: chance.randint(1, 4)]
    count = chance.randint(1, 7)
    drawn = [(chance.choice(names), chance.choice(names), chance.choice(WAYS)) for _ in range(count)]
    return [(*arc, chance.random() < 0.4) for arc in dict.fromkeys(drawn)]


def endless_by_trying_all(loops: Sequence[LoadedLoop]) -> bool:
    """Every order of every choice of loops is tried as a cycle, by what the specs say and nothing of lint's."""
    leads = {(one.spec.loop_id, other.spec.loop_id) for one in loops for other in loops if _leads(one, other)}
    names = [one.spec.loop_id for one in loops]
    for size in range(1, len(names) + 1):
        for ring in permutations(names, size):
            if all((ring[i], ring[(i + 1) % size]) in leads for i in range(size)):
                return True
    return False


def _leads(one: LoadedLoop, other: LoadedLoop) -> bool:
    actions = [action for phase in one.spec.phases.values() for action in phase.actions]
    posted = {action.with_["name"] for action in actions if action.uses == "event.post"}
    moves = any(action.uses == "git.update_ref" for action in actions)
    starts = any(
        action.uses == "run.start" and action.with_["loop"] == other.spec.loop_id and "max_chain" not in action.with_
        for action in actions
    )
    heard = any(
        (item.event and item.event.max_chain is None and item.event.name in posted)
        or (item.commit and item.commit.max_chain is None and moves)
        or (item.after and item.after.max_chain is None and item.after.loop == one.spec.loop_id)
        for item in other.spec.trigger
    )
    return starts or heard


def test_random_loops_are_refused_exactly_where_a_search_of_all_cycles_finds_one() -> None:
    verdicts = []
    for seed in range(300):
        arcs = random_arcs(seed)
        names = sorted({name for cause, started, _, _ in arcs for name in (cause, started)})
        loops = [loop(name, arcs) for name in names]
        found = any(refused(loops).values())
        assert found is endless_by_trying_all(loops), f"seed {seed}: {arcs}"
        verdicts.append(found)
    assert 60 < sum(verdicts) < 240, "both verdicts are common"
