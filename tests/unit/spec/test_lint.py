"""Lint proves specs: each bad file of the corpus has exactly its one fault, the good ones have none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from becket.kernel.contract.action import ActionDef, Registry, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import ConditionGroup
from becket.kernel.contract.config import Names
from becket.kernel.contract.errors import Finding
from becket.kernel.spec.lint import lint_text
from becket.kernel.verifiers import git, record

from .registry import CONFIG, OTHERS, REGISTRY

SPECS = Path(__file__).parents[2] / "specs"
GOOD = sorted((SPECS / "good").glob("*.yaml"))
BAD = sorted((SPECS / "bad").glob("*.yaml"))
EXPECTED = re.compile(rb"# expect: ([a-z0-9-]+) (\d+):(\d+)\n")

RULES_WITHOUT_A_FILE = {"too-large", "empty-document", "duplicate-loop", "built-in-loop"}
"""Their files would be a megabyte, have no first line, or be two of one name; test_document and test_book hold them."""

SPEC = """\
version: 1
loop_id: sample
goal: Say something.
trigger: [{manual: {}}]
max_iterations: 1
deadline: 1h
autonomy: release
stop_conditions: [check.pass]
phases:
  act: {objective: do, actions: [ACTIONS]}
  verify: {objective: check, verifiers: [{id: check, run: "true"}]}
"""


def lint(actions: str, registry: Registry = REGISTRY) -> list[Finding]:
    return lint_text(SPEC.replace("ACTIONS", actions), "f.yaml", registry, OTHERS)[1]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_spec_has_no_finding(path: Path) -> None:
    spec, findings = lint_text(path.read_bytes(), path.name, REGISTRY, OTHERS, CONFIG)
    assert findings == []
    assert spec is not None


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_spec_has_its_one_fault_at_its_place_and_no_other(path: Path) -> None:
    """L45: a typo is an error, and the failure names what was seen."""
    text = path.read_bytes()
    expected = EXPECTED.match(text)
    assert expected is not None, "the first line says what to expect"
    _, findings = lint_text(text, path.name, REGISTRY, OTHERS, CONFIG)
    assert [(item.rule, item.line, item.column) for item in findings] == [
        (expected[1].decode(), int(expected[2]), int(expected[3]))
    ]
    (finding,) = findings
    assert finding.message
    assert finding.fix
    assert path.stem.split("-", 1)[1].startswith(finding.rule), "the file is named after its rule"


def test_every_rule_has_a_file() -> None:
    """A rule that no file can break would be a rule that cannot fail."""
    source = Path(lint_text.__code__.co_filename).parent
    named = set()
    for file in source.rglob("*.py"):
        named |= set(
            re.findall(r'"((?:[a-z0-9]+-)+[a-z0-9]+|anchor|tag|tab|contradiction|unreachable)"', file.read_text())
        )
    named = {
        name for name in named if name not in {"utf-8", "utf-8-sig", "bad-size", "bad-variable", "undefined-variable"}
    }
    named |= {"unknown-action", "unknown-verifier", "unraisable-stop", "unraisable-handoff", "unraisable-wait"}
    for definition in REGISTRY.actions.values():
        marks = [mark for field in definition.params.model_fields.values() for mark in field.metadata]
        named |= {mark.rule for mark in marks if isinstance(mark, Names)}
    seeded = {match[1].decode() for path in BAD if (match := EXPECTED.match(path.read_bytes()))}
    assert named - seeded == RULES_WITHOUT_A_FILE
    assert seeded <= named


def test_the_corpus_is_not_empty() -> None:
    assert len(BAD) >= 100
    assert len(GOOD) >= 8


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    findings = lint('{id: a, uses: nobody.knows}, {id: a, run: "x", when: "b and"}, {id: c, run: x, parse: yaml}')
    assert [item.rule for item in findings] == ["unknown-action", "duplicate-id", "bad-when", "bad-parse"]


def test_an_unknown_action_does_not_set_off_findings_about_what_it_would_raise() -> None:
    text = SPEC.replace("[check.pass]", "[main_proven]").replace("ACTIONS", "{id: p, uses: promot, when: base.red}")
    assert [item.rule for item in lint_text(text, "f", REGISTRY)[1]] == ["unknown-action"]


def test_a_bad_parameter_does_not_set_off_findings_about_its_conditions() -> None:
    text = SPEC.replace("[check.pass]", "[base.fast_green]")
    text = text.replace("ACTIONS", "{id: g, uses: gate.run, with: {of: base, gate: fsat}}")
    assert [item.rule for item in lint_text(text, "f", REGISTRY)[1]] == ["bad-parameter"]


def test_parameters_decide_what_can_be_raised() -> None:
    gate = "{id: g, uses: gate.run, with: {of: tree, gate: slow}}"
    assert lint(gate + ", {id: x, run: x, when: tree.slow_red}") == []
    assert [item.rule for item in lint(gate + ", {id: x, run: x, when: tree.fast_red}")] == ["unknown-condition"]


@pytest.mark.parametrize(
    ("parameters", "rules"),
    [
        ("{of: '{base.sha}', gate: fast}", []),
        ("{of: base, gate: '{base.sha}'}", []),
        ("{of: base, gate: fast, reruns: '{base.sha}', patience: '{base.sha}'}", []),
        ("{of: base, gate: fast, reruns: '{base.sha}1'}", ["bad-parameter"]),
        ("{of: base, gate: fast, reruns: '{{base.sha}}'}", ["bad-parameter"]),
        ("{of: base, gate: '{base.sha}', reruns: 9}", ["bad-parameter"]),
    ],
)
def test_a_template_stands_for_a_value_that_is_not_known_yet(parameters: str, rules: list[str]) -> None:
    actions = f"{{id: base, uses: git.read_base}}, {{id: g, uses: gate.run, with: {parameters}}}"
    assert [item.rule for item in lint(actions)] == rules


def test_a_pattern_is_not_held_against_a_template() -> None:
    post = "{id: base, uses: git.read_base}, {id: p, uses: http.post, with: {url: 'VALUE'}}"
    assert lint(post.replace("VALUE", "{base.sha}://x")) == []
    assert [item.rule for item in lint(post.replace("VALUE", "ftp://x"))] == ["bad-parameter"]


def test_parameters_are_named_as_in_yaml() -> None:
    start = "{id: s, uses: run.start, with: {loop: build, from: here}}"
    assert lint(start) == []
    assert [item.rule for item in lint(start.replace("from:", "from_:"))] == ["unknown-parameter"]


@pytest.mark.parametrize(
    ("verifier", "rules"),
    [
        ("{id: v, uses: outputs_present, with: {outputs: [base.sha, say.text]}}", []),
        ("{id: v, uses: outputs_present, with: {outputs: [base.sha, nosuch.text]}}", ["unknown-output"]),
        ("{id: v, uses: outputs_present, with: {outputs: [say.txet]}}", ["unknown-output"]),
        ("{id: v, uses: conditions_hold, with: {all_of: [said, check.pass]}}", []),
        ("{id: v, uses: conditions_hold, with: {all_of: [nosuch]}}", ["unknown-condition"]),
        ("{id: v, uses: conditions_hold, with: {all_of: [v.pass]}}", ["unreachable"]),
        ("head_is_base", []),
        ("{id: v, uses: head_is_base, with: {base: say}}", ["unknown-output"]),
        ("{id: v, uses: head_is_base, with: {base: nosuch}}", ["unknown-output"]),
    ],
)
def test_what_a_verifier_asks_for_can_be_there(verifier: str, rules: list[str]) -> None:
    registry = Registry(
        actions=REGISTRY.actions, verifiers={item.name: item for item in record.VERIFIERS + git.VERIFIERS}
    )
    actions = '{id: base, uses: git.read_base}, {id: say, run: "x", outputs: {text: stdout}, raises: {0: said}}'
    text = SPEC.replace("ACTIONS", actions).replace('run: "true"}]', f'run: "true"}}, {verifier}]')
    assert [item.rule for item in lint_text(text, "f.yaml", registry)[1]] == rules


@pytest.mark.parametrize(
    ("wake", "rules"),
    [
        ("clock", []),
        ("worktree_changed", []),
        ("review", []),
        ("reviewed", ["unknown-signal"]),
        ("approval", ["wait-without-ask"]),
        ("child", ["wait-without-ask"]),
    ],
)
def test_a_wait_names_a_signal_that_the_runtime_or_one_of_its_actions_leads_to(wake: str, rules: list[str]) -> None:
    asked = ConditionGroup(names=("asked",))
    ask = replace(REGISTRY.actions["git.read_base"], name="review.ask", raises=(asked,), signals=("review",))
    registry = replace(REGISTRY, actions={**REGISTRY.actions, ask.name: ask})
    text = SPEC.replace("phases:", f"wait_conditions: {{asked: {{wake: {wake}, for: 1h}}}}\nphases:")
    found = lint_text(text.replace("ACTIONS", "{id: a, uses: review.ask}"), "f.yaml", registry)[1]
    assert [item.rule for item in found] == rules


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("false || echo x", True),
        ("false &", True),
        ("pytest || true # ok", True),
        ("pytest || true;", True),
        ("(pytest || true)", True),
        ("pytest || /bin/true", True),
        ("pytest | wc -l", True),
        ("pytest || echo 'a; b'", True),
        ("set -o pipefail; pytest | tee x", False),
        ("pytest > log 2>&1", False),
        ("test -f a || test -f b", False),
        ("make && true", False),
        ('grep -q "x || echo" log', False),
        ("pytest || { echo red; exit 1; }", False),
    ],
)
def test_a_verifier_whose_command_loses_how_its_check_ended_is_refused(command: str, lost: bool) -> None:
    text = SPEC.replace("ACTIONS", "").replace('run: "true"', f"run: {json.dumps(command)}")
    assert [item.rule for item in lint_text(text, "f.yaml", REGISTRY)[1]] == ["exit-code-lost"] * lost


def test_a_message_says_what_is_wrong_in_the_words_of_the_file() -> None:
    text = SPEC.replace("ACTIONS", "").replace("max_iter", "inputs: {n: {type: integer, default: true}}\nmax_iter")
    [finding] = lint_text(text, "f.yaml", REGISTRY)[1]
    assert finding.message == "`true` is not of type integer"
    [finding] = lint_text(text.replace("sample", "x" * 300), "f.yaml", REGISTRY)[1]
    assert "at most 63" in finding.message


def test_an_input_is_not_called_like_what_every_run_has() -> None:
    for name in ("sha", "branch", "subject", "run_id", "loop_id", "data", "decision", "iteration"):
        text = SPEC.replace("ACTIONS", "").replace("max_iter", f"inputs: {{{name}: {{optional: true}}}}\nmax_iter")
        assert [item.rule for item in lint_text(text, "f.yaml", REGISTRY)[1]] == ["reserved-id"], name
    other = text.replace("iteration:", "name:")
    assert lint_text(other, "f.yaml", REGISTRY)[1] == []
    by_event = other.replace("[{manual: {}}]", "[{event: {name: x}}]")
    assert [item.rule for item in lint_text(by_event, "f.yaml", REGISTRY)[1]] == ["reserved-id"]


def test_outputs_of_an_earlier_step_are_there_and_kept_ones_of_a_later_step_too() -> None:
    later = "{id: x, run: 'echo {y.text}'}, {id: y, run: echo, outputs: {text: stdout}}"
    assert [item.rule for item in lint(later)] == ["output-used-before-made"]
    kept = SPEC.replace("[ACTIONS]", f"[{later}], persist_outputs: [y.text]")
    assert lint_text(kept, "f", REGISTRY)[1] == []


def test_conditions_of_the_run_raised_by_one_command_do_not_exclude_each_other() -> None:
    raising = "{id: a, run: x, parse: json, raises: {0: one, 'json:x=1': two}}"
    assert lint(raising + ", {id: b, run: x, when: one and two}") == []
    apart = raising.replace("one", "o.one").replace("two", "o.two")
    assert [item.rule for item in lint(apart + ", {id: b, run: x, when: o.one and o.two}")] == ["unreachable"]


def test_conditions_that_live_for_the_run_can_come_from_a_later_step() -> None:
    late = "{id: a, run: x, when: seen}, {id: b, run: x, raises: {0: seen}, keep: KEEP}"
    assert lint(late.replace("KEEP", "run")) == []
    assert [item.rule for item in lint(late.replace("KEEP", "iteration"))] == ["unreachable"]


def test_conditions_raised_by_steps_with_different_groups_may_meet() -> None:
    """Only if every raiser of both lowers the other can the two never meet."""
    first = "{id: a, run: x, raises: {0: t.red, 1: t.green}}, {id: b, run: x, raises: {0: t.green, 1: t.blue}}"
    assert lint(first + ", {id: c, run: x, when: t.red and t.green}") == []


def test_without_knowledge_of_the_other_loops_nothing_is_said_about_them() -> None:
    text = SPEC.replace("[{manual: {}}]", "[{after: {loop: elsewhere}}]").replace("ACTIONS", "")
    assert lint_text(text, "f", REGISTRY)[1] == []
    assert [item.rule for item in lint_text(text, "f", REGISTRY, [])[1]] == ["unknown-loop"]


def test_a_bound_anywhere_in_a_cycle_of_loops_is_enough() -> None:
    text = SPEC.replace("ACTIONS", "").replace("loop_id: sample", "loop_id: cycle")
    bounded = text.replace("[{manual: {}}]", "[{after: {loop: bounded}}]")
    assert lint_text(bounded, "f", REGISTRY, OTHERS)[1] == []
    endless = text.replace("[{manual: {}}]", "[{after: {loop: deploy}}]")
    assert [item.rule for item in lint_text(endless, "f", REGISTRY, OTHERS)[1]] == ["self-feeding"]


@pytest.mark.parametrize("guard", ["unless: completed", "max_chain: 3"])
def test_a_guarded_commit_trigger_may_move_its_branch(guard: str) -> None:
    move = "{id: m, uses: git.update_ref, with: {ref: refs/heads/main, to: '{sha}'}}"
    text = SPEC.replace("ACTIONS", move).replace("[{manual: {}}]", f"[{{commit: {{{guard}}}}}]\nsubject: '{{sha}}'")
    assert lint_text(text, "f", REGISTRY, OTHERS)[1] == []


@pytest.mark.parametrize(
    ("data", "rules"),
    [("{a: '2'}", []), ("{b: '1'}", []), ("{a: '1'}", ["self-feeding"]), ("{a: '{sha}'}", ["self-feeding"])],
)
def test_a_loop_may_post_what_its_own_trigger_does_not_match(data: str, rules: list[str]) -> None:
    post = f"{{id: p, uses: event.post, with: {{name: x, data: {data}}}}}"
    text = SPEC.replace("ACTIONS", post).replace("{manual: {}}", "{event: {name: x, match: {a: '1'}}}")
    assert [item.rule for item in lint_text(text, "f", REGISTRY, OTHERS)[1]] == rules


def test_a_loop_may_post_other_events_than_its_own() -> None:
    post = "{id: p, uses: event.post, with: {name: other.thing}}"
    text = SPEC.replace("ACTIONS", post).replace("[{manual: {}}]", "[{event: {name: this.thing}}]")
    assert lint_text(text, "f", REGISTRY, OTHERS)[1] == []


def test_a_declaration_that_cannot_cope_with_a_template_does_not_break_lint() -> None:
    class Count(Record):
        count: int

    async def never(_: object, __: object) -> Result:
        raise AssertionError

    def groups(params: Count) -> tuple[ConditionGroup, ...]:
        return (ConditionGroup(names=tuple(f"n{number}" for number in range(params.count))),)

    registry = Registry(actions={"count": ActionDef("count", "counts", never, Count, groups)})
    assert lint("{id: c, uses: count, with: {count: 2}}, {id: x, run: x, when: n1}", registry) == []
    assert lint("{id: c, uses: count, with: {count: '{iteration}'}}, {id: x, run: x, when: n7}", registry) == []


def test_texts_that_a_model_strips_are_still_pointed_into() -> None:
    text = SPEC.replace("[ACTIONS]", '[{id: x, run: "   echo {sah}"}]')
    (finding,) = lint_text(text, "f", REGISTRY)[1]
    line = text.split("\n")[finding.line - 1]
    assert line[finding.column - 1 :].startswith("{sah}")
