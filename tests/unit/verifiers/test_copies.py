"""A hold-out check that is a failing test under another name counts for nothing; an honest one is let alone."""

from __future__ import annotations

import pytest

from becket.parts.gates.copies import FRAMEWORKS, share, why_not

TEST = """
import pytest
from calc import add, parse

def test_add():
    assert add(2, 3) == 5

@pytest.mark.parametrize("text, value", [("1,5", 1.5), ("-7", -7.0)])
def test_parse(text, value):
    assert parse(text) == value
"""
JS_TEST = """
const { gcd } = require('../gcd.js');
test('gcd of two', () => { expect(gcd(12, 18)).toBe(6); expect(gcd(17, 5)).toBe(1); });
"""
SIDE = ("tests/test_calc.py", "tests/data/cases.json", "spec/gcd.test.js", "conftest.py")

AMONG_MANY = """
from calc import add
cases = [(8, 1, 9), (2, 3, 5), (70, 7, 77), (6, 6, 12)]
for left, right, total in cases:
    assert add(left, right) == total
"""

COPIES = {
    "word for word": ("Python", "from calc import add\nassert add(2, 3) == 5\n"),
    "as an exit code": ("Python", "import sys\nfrom calc import add\nif add(2,\n   3) != 5:\n    sys.exit(1)\n"),
    "with a remark on each line": (
        "Python",
        "from calc import add  # the sum\nassert add(2, 3) == 5  # five, that is\n",
    ),
    "another test's values": (
        "Python",
        "from calc import parse\nfor t, v in [('1,5', 1.5), ('-7', -7.0)]:\n    pass\n",
    ),
    "in JavaScript": ("JavaScript", "import { gcd } from '../gcd.js';\nif (gcd(12, 18) !== 6) process.exit(1);\n"),
}
HONEST = {
    "other values": ("Python", "from calc import add\nassert add(19, 23) == 42 and add(-4, 4) == 0\n"),
    "a rule": ("Python", "from calc import add\nfor a in range(50):\n    assert add(a, 3) - 3 == a\n"),
    "a word like a framework's": ("Python", "import calc\ncontest = calc.add(1, 1)\nassert contest == 2\n"),
    "one value of a test among many": ("Python", AMONG_MANY),
    "in JavaScript": ("JavaScript", "import { gcd } from '../gcd.js';\nif (gcd(91, 35) !== 7) process.exit(1);\n"),
}


def judged(language: str, text: str) -> str:
    return why_not(text, FRAMEWORKS[language], (TEST, JS_TEST), SIDE)


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_found_out(name: str) -> None:
    assert judged(*COPIES[name]) == "it is mostly a copy of a failing test", share(COPIES[name][1], (TEST, JS_TEST))


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_check_is_let_alone(name: str) -> None:
    assert judged(*HONEST[name]) == ""


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("Python", "import pytest"),
        ("Python", "from unittest import TestCase"),
        ("Python", "__import__('pytest')"),
        ("JavaScript", "import test from 'node:test';"),
        ("TypeScript", 'import { expect } from "vitest";'),
        ("Go", 'package main\nimport "testing"\n'),
    ],
)
def test_a_test_framework_is_found_out(language: str, text: str) -> None:
    assert judged(language, text) == "it uses a test framework"


@pytest.mark.parametrize(
    "text",
    [
        "from tests.test_calc import test_add",
        "import test_calc",
        "cases = open('tests/data/cases.json')",
        "cases = folder / 'cases.json'",
        "import './../spec/gcd.test.js'",
    ],
)
def test_a_use_of_the_test_side_is_found_out(text: str) -> None:
    assert "belongs to the tests" in judged("Python", text)
