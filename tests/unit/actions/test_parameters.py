"""Lint refuses parameters of the real actions that say nothing: a question without words, a yes that has expired."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.app.registry import load_registry
from becket.kernel.notices.file import FileNotice
from becket.kernel.spec.lint import lint_text

SPEC = """\
version: 1
loop_id: sample
goal: Do one thing.
trigger: [{manual: {}}]
max_iterations: 1
deadline: 1h
autonomy: merge
stop_conditions: [check.pass]
phases:
  act:
    objective: do
    actions:
      - {id: base, uses: git.read_base}
      - {id: x, uses: USES, with: {WITH}}
  verify: {objective: check, verifiers: [{id: check, run: "true"}]}
"""
ASK, GATE = "question: May I?, about: x", "at: '{base.sha}', by: '{base.sha}'"


@pytest.mark.parametrize(
    ("uses", "given", "bad"),
    [
        ("approval.ask", ASK, ""),
        ("approval.ask", "question: '', about: x", "question"),
        ("approval.ask", "question: ' ', about: x", "question"),
        ("approval.ask", "question: May I?, about: ''", "about"),
        ("approval.ask", ASK + ", expires: 0s", "expires"),
        ("gate.run", GATE, ""),
        ("gate.run", "at: '', by: '{base.sha}'", "at"),
        ("event.post", "name: a.b", ""),
        ("event.post", "name: a b", "name"),
        ("event.post", "name: '{base.sha}'", ""),
    ],
)
def test_a_parameter_that_says_nothing_is_refused(uses: str, given: str, bad: str) -> None:
    text = SPEC.replace("USES", uses).replace("WITH", given)
    _, found = lint_text(text, "f.yaml", load_registry([FileNotice([Path()])]))
    assert [(item.rule, f"`phases.act.actions[1].with.{bad}`" in item.message) for item in found] == (
        [("bad-parameter", True)] if bad else []
    )
