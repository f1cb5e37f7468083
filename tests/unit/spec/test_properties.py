"""Whatever the text, reading it ends in a spec or in findings, never in another error."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from becket.app.sections import load_config
from becket.kernel.contract.errors import InvalidDocument
from becket.kernel.spec.lint import lint_text
from becket.kernel.spec.load import load_spec

from .registry import OTHERS, REGISTRY
from .test_config import WHOLE

GOOD = [path.read_text() for path in sorted((Path(__file__).parents[2] / "specs" / "good").glob("*.yaml"))]
PIECES = ["{", "}", "[", "]", ": ", "- ", "\n", "  ", "'", '"', "&a ", "*a", "!!int ", "~", "true", "1e9", "-1", ".nan"]
PIECES += [
    "${A}",
    "{base.sha}",
    "{{",
    "and",
    "when: ",
    "\t",
    "\x00",
    "\ud800",
    "é",
    "9" * 400,
    "? ",
    "|\n",
    "<<: ",
    "#",
]

patient = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good spec with a few pieces put in, cut out or doubled."""
    text = draw(st.sampled_from([*GOOD, WHOLE]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        kind = draw(st.sampled_from(["insert", "cut", "double", "swap"]))
        piece = draw(st.sampled_from(PIECES))
        middle = {"insert": piece + text[start:end], "cut": "", "double": text[start:end] * 2, "swap": piece}[kind]
        text = text[:start] + middle + text[end:]
    return text


def found_in_config(text: str | bytes) -> bool:
    try:
        load_config(text, "f.yaml", {"A": "b"})
    except InvalidDocument as error:
        return bool(error.findings)
    return True


def check(text: str | bytes) -> None:
    assert found_in_config(text)
    spec, findings = lint_text(text, "f.yaml", REGISTRY, OTHERS)
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    lines = len(re.split(r"\r\n|[\n\r\x85\u2028\u2029]", shown))
    for finding in findings:
        assert 1 <= finding.line <= lines + 1
        assert finding.column >= 1
        assert finding.message
        assert finding.fix
    if spec is None:
        assert findings
    else:
        assert load_spec(text, "f.yaml") == spec


@given(st.text(max_size=200))
@patient
def test_any_text(text: str) -> None:
    check(text)


@given(st.text(alphabet=st.sampled_from("abc:-?[]{}&*!|>'\"%@`,# \n\t01~."), max_size=60))
@patient
def test_any_text_that_looks_like_yaml(text: str) -> None:
    check(text)


@given(st.binary(max_size=60))
@patient
def test_any_bytes(text: bytes) -> None:
    check(text)


@given(mutated())
@patient
def test_good_files_with_something_broken_in_them(text: str) -> None:
    check(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["goal", "trigger", "subject", "inputs", "max_iterations", "deadline", "budget", "wait_conditions", "phases"]
KEYS += ["concurrency", "autonomy", "stop_conditions", "state_refs", "gates", "services", "sandbox", "people", "remote"]


@given(st.dictionaries(st.sampled_from(["version", "loop_id", *KEYS]), values))
@patient
def test_any_value_under_any_key(data: dict[str, object]) -> None:
    """JSON is YAML: every value of every type is tried under every key."""
    check(json.dumps(data))
