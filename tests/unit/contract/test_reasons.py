"""No reason reaches a person by the name that it has in the journal."""

from __future__ import annotations

import re

import yaml

from becket.app.alerts import handoff_alert
from becket.app.parts import built_in_loops
from becket.kernel.contract.condition import RUNTIME_HANDOFFS
from becket.kernel.contract.handoff import Handoff
from becket.kernel.contract.reasons import REASONS, WAITS, reason_words, wait_words

LOOPS = [yaml.safe_load(text) for text in built_in_loops().values()]
HANDOFFS = sorted({name for loop in LOOPS for name in loop.get("handoff_conditions", ())} | set(RUNTIME_HANDOFFS))
WAITED_FOR = sorted({name for loop in LOOPS for name in loop.get("wait_conditions", {})})
EVERY = sorted({*REASONS, *HANDOFFS, *WAITED_FOR, "no_such_thing.of_ours", "unit_tests.fail"})
RAW = re.compile(r"[a-z]+(?:[._][a-z]+)+")
PLAIN = {"becket.yaml", "rescue list"}


def raw_words(text: str) -> set[str]:
    return {word for word in RAW.findall(text) if word not in PLAIN}


def test_every_reason_is_worded() -> None:
    assert len(EVERY) > 40
    assert [code for code in EVERY if raw_words(f"{reason_words(code)} {wait_words(code)}")] == []


def test_what_a_built_in_loop_hands_over_or_waits_for_has_words_of_its_own() -> None:
    assert (len(HANDOFFS) > 20, len(WAITED_FOR) > 3) == (True, True)
    assert set(HANDOFFS) - set(REASONS) == set()
    assert set(WAITED_FOR) - set(WAITS) == set()


def test_a_notification_says_it_in_the_same_words() -> None:
    for code in HANDOFFS:
        item = Handoff(
            handoff_id="hnd_1", run_id="run_1", loop_id="heal", subject="main", owner="ada", reason=code,
            next_step="look", created_at=1.0, updated_at=1.0,
        )  # fmt: skip
        alert = handoff_alert(item)
        found = raw_words(f"{alert.data['title']} {alert.text}".replace("hnd_1", "").replace("run_1", ""))
        assert not found, code


def test_a_verifier_is_named_with_what_it_said() -> None:
    assert reason_words("unit_tests.fail") == "unit tests failed"
    assert wait_words("approval.asked") == "approval asked"
