"""What a repair brings back to the letter from the last proven commit is nothing new; a mixture is."""

from __future__ import annotations

from random import Random

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
GO = "package v\n\ntype Version int\n\nfunc (a Version) Equal(b Version) bool { return a - b == 0 }\n"
RUBY = """\
module Minitest
  module Assertions
    def assert_nil(object)
      assert(object == nil)
    end
  end
end
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
    newer = SCRIPT + "function late(day) { return day > 28; }\n"
    assert of(SCRIPT, but(newer, WRONG), newer, "lib/shop.js") is PLAIN
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
    assert of(PROVEN, but(guarded, ADDED), but(PROVEN, ADDED)) is ORDINARY


def test_a_power_that_somebody_took_away_is_not_given_back_by_a_proof() -> None:
    proven = "import os\n\n\ndef home():\n    return os.environ['HOME']\n"
    newer = "\n\ndef age():\n    return 3\n"
    assert of(proven, "def home():\n    return ''\n" + newer, proven + newer) is POWERFUL
    both = proven + "\n\ndef user():\n    return os.environ['USER']\n"
    taken = both.replace("os.environ['HOME']", "''") + newer
    assert of(both, taken, both + newer) is ORDINARY, "the file has the power, this function had lost it"


@pytest.mark.parametrize(
    ("path", "proven", "parent"),
    [
        ("shop.py", "import os\n\n\ndef home():\n    return os.environ['HOME']\n", "def home():\n    return ''\n"),
        ("shop.py", PROVEN, but(PROVEN, ("return day > 28", "return day >"))),
        (
            "shop.py",
            PROVEN,
            but(PROVEN, ("    return day > 28", "    if day < 0:\n        raise OSError\n    return 1")),
        ),
        ("v.go", GO, but(GO, ("a - b", "b - a"))),
        ("lib/minitest/assertions.rb", RUBY, but(RUBY, ("assert(object", "refute(object"))),
        ("lib/table.zig", "const a = 1;\n", "const a = 2;\n"),
    ],
    ids=["a power", "could not be read", "a check since", "Go", "of a test framework", "no product source"],
)
def test_the_very_file_that_was_proven_is_plain_whatever_it_can_do(path: str, proven: str, parent: str) -> None:
    whole = PLAIN if not path.endswith(".zig") else POWERFUL  # tests cannot judge what nobody can read
    assert of("", parent, proven, path) is not PLAIN, "without the proof"
    assert of(proven, parent, proven, path) is whole
    assert of(proven, parent, proven + "\n", path) is of("", parent, proven + "\n", path), "one byte more"


def test_the_same_text_that_means_something_else_by_now_is_new() -> None:
    """The words came back; what they name did not."""
    proven = "from tax import run\n\n\ndef pay(sum):\n    return run(sum)\n"
    parent = "from os import system as run\n\n\ndef log(text):\n    return text\n"
    assert of(proven, parent, parent + "\n\ndef pay(sum):\n    return run(sum)\n") is not PLAIN


def test_a_file_that_could_not_be_read_before_stays_ordinary() -> None:
    """Nobody can tell which checks were in it."""
    broken = but(PROVEN, ("return day > 28", "return day >"), ADDED)
    assert of(PROVEN, broken, but(PROVEN, ADDED)) is ORDINARY


def test_statements_that_come_back_in_another_order_are_a_mixture() -> None:
    """Which of two constants of one name counts is told by their order alone."""
    proven = "RATE = 0\nRATE = 7\nNAMES = {'apple': 'Apfel'}\n\n\ndef price(count):\n    return count * RATE\n"
    parent = but(proven, ("RATE = 0\n", ""), ("{'apple': 'Apfel'}", "{}"))
    assert of(proven, parent, but(proven, ("RATE = 0\nRATE = 7", "RATE = 7\nRATE = 0"))) is ORDINARY
    assert of(proven, parent, proven) is PLAIN


def test_of_two_functions_of_one_name_none_comes_back_alone() -> None:
    first, second = "def late(day):\n    return day > 28\n", "def late(day):\n    return day > 3\n"
    rest = "\n\ndef early(day):\n    return not late(day)\n"
    proven = f"{first}\n\n{second}{rest}"
    assert of(proven, second + rest, f"{second}\n\n{first}{rest}") is ORDINARY


STATEMENTS = {
    "py": ["RATE = 0\n", "RATE = 7\n", "NAMES = {'apple': 'Apfel'}\n", "NAMES = {}\n", "MOST = RATE\n"],
    "js": [
        "let rate = 0;\n",
        "rate = 7;\n",
        "const names = {apple: 'Apfel'};\n",
        "rate = names;\n",
        "exports.a = rate;\n",
    ],
}
FUNCTIONS = {
    "py": ["def price(n):\n    return n * RATE\n", "def price(n):\n    return n * 144\n",
           "def late(n):\n    return n > 28\n"],
    "js": ["function price(n) { return n * rate; }\n", "function price(n) { return n * 144; }\n",
           "function late(n) { return n > 28; }\n"],
}  # fmt: skip
CLASSES = {"py": ("class Cart:\n{}", "    most = {}\n"), "js": ("class Cart {{\n{}}}\n", "  static most = {};\n")}


def some(random: Random, language: str) -> list[str]:
    """The pieces of a file: statements, functions and now and then a class."""
    chosen = random.sample(STATEMENTS[language], random.randint(2, 4))
    for function in random.sample(FUNCTIONS[language], random.randint(1, 3)):
        chosen.insert(random.randint(0, len(chosen)), function)
    if random.random() < 0.4:
        frame, member = CLASSES[language]
        chosen.append(frame.format("".join(member.format(n) for n in random.sample((7, 70, 700), 2))))
    return chosen


def mixed(random: Random, one: list[str], other: list[str]) -> list[str]:
    """Mostly what one of them has, with a few pieces of the other, or in another order."""
    pieces = [*(one if random.random() < 0.7 else other)]
    for _ in range(random.randint(0, 2)):
        place = random.randrange(len(pieces))
        deed = random.random()
        if deed < 0.4:
            pieces.insert(place, random.choice(other))
        elif deed < 0.7 and len(pieces) > 1:
            pieces.insert(random.randrange(len(pieces)), pieces.pop(place))
        else:
            pieces[place] = random.choice(other)
    return pieces


def outside(language: str, pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if piece not in FUNCTIONS[language]]


def functions(language: str, name: str, pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if piece in FUNCTIONS[language] and f" {name}(" in piece]


@pytest.mark.parametrize("language", ["py", "js"])
def test_what_is_plain_by_the_proof_alone_is_no_mixture(language: str) -> None:
    random, back = Random(7), 0
    for _ in range(400):
        proven = some(random, language)
        parent = mixed(random, proven, some(random, language))
        made = mixed(random, proven, parent)
        texts = ["".join(each) for each in (proven, parent, made)]
        if of("", *texts[1:], f"shop.{language}") is PLAIN or of(*texts, f"shop.{language}") is not PLAIN:  # type: ignore[call-arg]
            continue
        back += 1
        told = "\n---\n".join(texts)
        assert outside(language, made) in (outside(language, parent), outside(language, proven)), told
        for name in ("price", "late"):
            mine = functions(language, name, made)
            assert mine in (functions(language, name, parent), functions(language, name, proven)), told
    assert back > 20, "enough of them come back"
