"""Loading specs: everything wrong with the form is found at once, at its place, with what was probably meant."""

from __future__ import annotations

import pytest

from becket.kernel.contract.errors import Finding, InvalidDocument
from becket.kernel.contract.spec import ActionSpec, LoopSpec, Phase
from becket.kernel.spec.load import load_spec

HEAD = """\
version: 1
loop_id: sample
goal: Say something.
trigger: [{manual: {}}]
max_iterations: 1
deadline: 1h
stop_conditions: [check.pass]
"""
PHASES = """\
phases:
  verify: {objective: check, verifiers: [{id: check, run: "true"}]}
"""


def findings(text: str) -> tuple[Finding, ...]:
    with pytest.raises(InvalidDocument) as caught:
        load_spec(text, "f.yaml")
    return caught.value.findings


def only(text: str) -> Finding:
    (finding,) = findings(text)
    return finding


def action(text: str) -> ActionSpec:
    spec = load_spec(HEAD + PHASES + f"  act: {{objective: do, actions: [{text}]}}\n", "f.yaml")
    return spec.phase(Phase.act).actions[0]


def test_a_spec_loads() -> None:
    spec = load_spec(HEAD + PHASES, "f.yaml")
    assert isinstance(spec, LoopSpec)
    assert spec.deadline == 3600
    assert spec.phase(Phase.verify).verifiers[0].run == "true"


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    """L45: unknown keys are errors."""
    text = "goal: x\nversoin: 1\ntrigger: [{manual: {}}]\nmax_iterations: many\nstop_conditions: []\nphases: {}\n"
    assert [(finding.rule, finding.line, finding.column) for finding in findings(text)] == [
        ("missing-bound", 1, 1),
        ("missing-key", 1, 1),
        ("missing-key", 1, 1),
        ("unknown-key", 2, 1),
        ("bad-value", 4, 17),
        ("bad-value", 5, 18),
    ]


def test_an_unknown_key_suggests_the_nearest_one_of_its_own_mapping() -> None:
    assert "did you mean `handoff_conditions`?" in only(HEAD + PHASES + "handof_conditions: []\n").fix
    wait = only(HEAD + PHASES + "wait_conditions:\n  x: {wake: y, for: 1h, than: fail}\n")
    assert "did you mean `then`?" in wait.fix


def test_a_value_outside_a_closed_set_suggests_the_nearest() -> None:
    finding = only(HEAD + PHASES + "autonomy: obseve\n")
    assert finding.fix == "did you mean `observe`?"
    assert "observe, propose, merge, release" in finding.message


def test_the_names_of_python_are_no_keys() -> None:
    assert only(HEAD + PHASES + "wait_conditions: {x: {wake: y, for: 1h, for_: 2h}}\n").rule == "unknown-key"


def test_keys_and_words_are_texts() -> None:
    """0 is an exit code and `no` a text: of YAML's old guesses only numbers, true, false and null are left."""
    made = action("{id: x, run: echo, env: {A: '1.10', C: no}, raises: {0: a.ok, 2-5: a.bad}}")
    assert made.env == {"A": "1.10", "C": "no"}
    assert dict(made.raises) == {"0": "a.ok", "2-5": "a.bad"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("run: x, env: {A: 1.10}", "is 1.10, not a text (put it in quotes)"),
        ("run: x, env: {A: true}", "is true, not a text (put it in quotes)"),
        ("run: 12", "is 12, not a text (put it in quotes)"),
        ("run: x, retry: '3'", "is '3', not a whole number (write a whole number, without quotes)"),
        ("run: x, retry: 3.0", "is 3.0, not a whole number (write a whole number)"),
        ("run: x, retry: yes", "is yes, not a whole number (write a whole number)"),
        ("run: x, retry: true", "is true, not a whole number (write a whole number)"),
        ("run: x, timeout: '600'", "'600' is not a duration"),
        ("run: x, timeout: 0s", "is '0s', not a value of more than 0"),
        ("run: x, timeout: 0", "is 0, not a value of more than 0"),
        ("run: x, timeout: true", "True is not a duration"),
    ],
)
def test_nothing_is_read_as_another_kind(written: str, said: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        action(f"{{id: x, {written}}}")
    (finding,) = caught.value.findings
    assert said in str(finding)


def test_parameters_of_actions_keep_their_types() -> None:
    assert action("{id: x, uses: a.b, with: {n: 1.10, yes: [true, 2, on, ~]}}").with_ == {
        "n": 1.1,
        "yes": [True, 2, "on", None],
    }


def test_true_is_no_number() -> None:
    assert only(HEAD.replace("max_iterations: 1", "max_iterations: true") + PHASES).rule == "bad-value"
    assert only(HEAD + PHASES + "budget: {usd: false}\n").column == 15


def test_not_a_number_is_no_budget() -> None:
    """L21: with NaN every comparison is false."""
    assert only(HEAD + PHASES + "budget: {usd: .nan}\n").rule == "bad-value"
    assert only(HEAD + PHASES + "budget: {usd: nan}\n").rule == "bad-value"


@pytest.mark.parametrize("empty", ["manual:", "commit:", "manual: {}"])
def test_a_trigger_without_settings_takes_the_defaults(empty: str) -> None:
    text = HEAD.replace("trigger: [{manual: {}}]", f"trigger:\n  - {empty}\n") + PHASES
    assert load_spec(text, "f").trigger[0].kind == empty.partition(":")[0]


def test_a_schedule_without_settings_is_refused() -> None:
    text = HEAD.replace("trigger: [{manual: {}}]", "trigger: [{schedule: }]") + PHASES
    assert only(text).rule == "bad-value"


@pytest.mark.parametrize("text", ["[]", "just text", "12", "~"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    assert only(text).rule == "bad-value"


def test_variables_are_not_expanded_in_specs() -> None:
    assert action('{id: x, run: "echo ${HOME}"}').run == "echo ${HOME}"


def test_a_finding_reads_as_one_line_with_its_place_and_the_way_out() -> None:
    said = str(only(HEAD + PHASES + "autonmy: merge\n"))
    assert said == "f.yaml:10:1: unknown-key: `autonmy` is not a key here (did you mean `autonomy`?)"
