"""What a repair brings back to the letter from the last proven commit is nothing new; a mixture is."""

from __future__ import annotations

import pytest
from guard_stage import change_of, tree

from becket.kernel.contract.guard import ChangeClass
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.side import USUAL, TestSide

PLAIN, ORDINARY, POWERFUL = ChangeClass
PROVEN = """\
from tax import rate

LIMIT = 250
SHARE = 40


class Cart:
    most = 70

    def total(self, items):
        return sum(item.price for item in items) * rate(SHARE)


class Bag:
    most = 90


def check(cart):
    return cart.total([]) <= LIMIT


def late(day):
    return day > 28
"""
JAVA = """\
class Cart { static int most = 70; int total(int n) { return n * 3; } }
class Bag { static int most = 90; }
"""
SCRIPT = (
    "const LIMIT = 250;\nconst SHARE = 40;\nfunction check(n) { return n <= LIMIT; }\nmodule.exports = { check };\n"
)


def of(proven: str, parent: str, candidate: str, path: str = "shop.py", at: str = "") -> ChangeClass:
    """`at` is where the proven text stood, if not in the same place."""
    beside = {"tax.py": "def rate(share):\n    return share\n"}
    change = change_of(tree({path: parent, **beside}), tree({path: candidate, **beside}))
    return classify(change, TestSide(USUAL), proven={at or path: proven.encode()}).kind


def but(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


WRONG = ("LIMIT = 250", "LIMIT = 205")
OTHER = ("SHARE = 40", "SHARE = 41")
ADDED = ("def late(day)", "def early(day):\n    return day < 3\n\n\ndef late(day)")


@pytest.mark.parametrize(
    ("parent", "candidate"),
    [
        (but(PROVEN, WRONG), PROVEN),
        (but(PROVEN, WRONG, ADDED), but(PROVEN, ADDED)),  # somebody's newer work stays
        (but(PROVEN, ("most = 70", "most = 7")), PROVEN),
        (but(PROVEN, ("def late(day):\n    return day > 28\n", "")), PROVEN),
        (but(PROVEN, ("from tax import rate\n", "rate = int\n")), PROVEN),
    ],
    ids=["constant", "beside newer work", "of a class", "function", "import of the project"],
)
def test_what_comes_back_to_the_letter_is_plain(parent: str, candidate: str) -> None:
    assert of("", parent, candidate) is ORDINARY, "without the proof"
    assert of(PROVEN, parent, candidate) is PLAIN


def test_in_other_languages_a_whole_statement_comes_back() -> None:
    assert of(SCRIPT, but(SCRIPT, WRONG), SCRIPT, "lib/shop.js") is PLAIN
    assert of(JAVA, but(JAVA, ("= 70", "= 7")), JAVA, "src/main/java/a/C.java") is PLAIN
    both = but(JAVA, ("= 70", "= 7"), ("= 90", "= 9"))
    assert of(JAVA, both, but(both, ("= 9;", "= 70;")), "src/main/java/a/C.java") is ORDINARY, "of another class"


@pytest.mark.parametrize(
    ("parent", "candidate"),
    [
        (but(PROVEN, WRONG), but(PROVEN, ("LIMIT = 250", "LIMIT = 251"))),
        (but(PROVEN, WRONG, OTHER), but(PROVEN, ("LIMIT = 250", "LIMIT = 40"), OTHER)),
        (but(PROVEN, ("most = 70", "most = 7"), ("most = 90", "most = 9")), but(PROVEN, ("most = 70", "most = 90"))),
        (but(PROVEN, WRONG), but(PROVEN, ("SHARE = 40", "SHARE = 44"))),
        (but(PROVEN, ("def late(day):\n    return day > 28\n", "")), but(PROVEN, ("day > 28", "day > 250"))),
    ],
    ids=["another value", "the value of another name", "of another class", "and one more", "a function that differs"],
)  # fmt: skip
def test_a_mixture_is_as_new_as_ever(parent: str, candidate: str) -> None:
    assert of(PROVEN, parent, candidate) is ORDINARY


def test_only_the_same_path_counts() -> None:
    assert of(PROVEN, but(PROVEN, WRONG), PROVEN, at="other.py") is ORDINARY


def test_a_check_that_somebody_added_since_is_missed_although_it_was_not_there_then() -> None:
    guarded = but(
        PROVEN, ("    return day > 28", "    if day < 0:\n        raise ValueError(day)\n    return day > 29")
    )
    assert of(PROVEN, guarded, PROVEN) is ORDINARY


def test_a_power_that_somebody_took_away_is_not_given_back_by_a_proof() -> None:
    proven = "import os\n\n\ndef home():\n    return os.environ['HOME']\n"
    assert of(proven, "def home():\n    return ''\n", proven) is POWERFUL
    both = proven + "\n\ndef user():\n    return os.environ['USER']\n"
    taken = both.replace("os.environ['HOME']", "''")
    assert of(both, taken, both) is ORDINARY, "the file has the power, this function had lost it"


def test_the_same_text_that_means_something_else_by_now_is_new() -> None:
    """The words came back; what they name did not."""
    proven = "from tax import run\n\n\ndef pay(sum):\n    return run(sum)\n"
    parent = "from os import system as run\n\n\ndef log(text):\n    return text\n"
    assert of(proven, parent, parent + "\n\ndef pay(sum):\n    return run(sum)\n") is not PLAIN


def test_a_file_that_could_not_be_read_before_stays_ordinary() -> None:
    """Nobody can tell which checks were in it."""
    assert of(PROVEN, but(PROVEN, ("return day > 28", "return day >")), PROVEN) is ORDINARY
