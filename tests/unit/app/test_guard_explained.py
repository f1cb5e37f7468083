"""What a change would need before it is promoted by itself, by its class and by how far classes are trusted."""

from __future__ import annotations

import pytest

from becket.app.sections import config_model
from becket.cli.plain import Paint
from becket.kernel.contract.config import Config
from becket.kernel.contract.guard import ChangeClass, ClassFinding, Classification, GuardRule, Refusal
from becket.parts.guard.desk import PROOF, Explained, needed
from becket.parts.guard.verbs.guard import explanation_lines

PLAIN, ORDINARY, POWERFUL = ChangeClass


def config(promote: str = "ordinary", hold_out: str = "") -> Config:
    agents = {"checker": {"driver": "command", "run": "true"}} if hold_out else {}
    heal = {"hold_out": hold_out} if hold_out else {}
    return config_model().model_validate({"version": 1, "guard": {"promote": promote}, "agents": agents, "heal": heal})


def refusal(*, asks: bool) -> Refusal:
    return Refusal(rule=GuardRule.test_changed, path="t.py", line=1, message="m", fix="f", asks=asks)


@pytest.mark.parametrize(
    ("kind", "promote", "hold_out", "last"),
    [
        (PLAIN, "plain", "", PROOF),
        (PLAIN, "ordinary", "", PROOF),
        (ORDINARY, "plain", "checker", "a person: guard.promote is plain"),
        (ORDINARY, "ordinary", "", "a hold-out proof; nobody is configured"),
        (ORDINARY, "ordinary", "checker", "a hold-out proof, with checks by the agent checker"),
        (ORDINARY, "powerful", "", PROOF),
        (POWERFUL, "ordinary", "checker", "a person: guard.promote is ordinary"),
        (POWERFUL, "powerful", "", PROOF),
    ],
)
def test_the_class_and_the_trust_decide(kind: ChangeClass, promote: str, hold_out: str, last: str) -> None:
    needs = list(needed(kind, [], config(promote, hold_out)))
    assert needs[0] == PROOF
    assert needs[-1].startswith(last)


def test_a_change_of_tests_needs_a_yes_first() -> None:
    assert next(iter(needed(PLAIN, [refusal(asks=True)], config()))).startswith("a person approves")


def test_what_is_refused_needs_nothing_more() -> None:
    (only,) = needed(PLAIN, [refusal(asks=True), refusal(asks=False)], config())
    assert only.startswith("it would be refused")


def test_each_power_is_told_with_its_line_and_no_text_of_a_change_steers_the_terminal() -> None:
    finding = ClassFinding(
        kind=POWERFUL, power="environment", path="gcd\x1b[31m.py", line=9,
        message="adds the power to read the environment", shown="os.environ\x1b[0m",
    )  # fmt: skip
    found = Explained(
        old="a", new="b", files=1, reading=Classification.of([finding]), refusals=(), test_side=(), needs=(PROOF,),
        promote=ORDINARY, trust="", rules="the defaults",
    )  # fmt: skip
    text = "\n".join(explanation_lines(found, Paint()))
    assert "powerful: adds the power to read the environment: gcd.py:9" in text
    assert "\x1b" not in text
