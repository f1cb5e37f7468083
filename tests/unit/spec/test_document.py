"""Reading YAML: plain data, the place of everything in it, and a refusal of what specs do not need."""

from __future__ import annotations

import pytest

from becket.kernel.contract.errors import InvalidDocument
from becket.kernel.spec.document import MAX_BYTES, MAX_DEPTH, read


def refused(text: str | bytes) -> list[tuple[str, int, int]]:
    with pytest.raises(InvalidDocument) as caught:
        read(text, "f.yaml")
    return [(finding.rule, finding.line, finding.column) for finding in caught.value.findings]


def test_every_key_and_value_has_its_place() -> None:
    document = read("a: [1, {b: x}]\nc:\n  d: |\n    text\n", "f.yaml")
    assert document.data == {"a": [1, {"b": "x"}], "c": {"d": "text\n"}}
    assert document.place(("a",)).key == (1, 1)
    assert document.place(("a",)).value == (1, 4)
    assert document.place(("a", 1, "b")).key == (1, 9)
    assert document.place(("a", 1, "b")).value == (1, 12)
    assert document.place(("c", "d")).value == (3, 6)
    assert document.place(("c", "gone", "deeper")).key == (2, 1), "the nearest thing around it"


def test_scalars_are_those_of_yaml_1_2() -> None:
    """The traps of YAML 1.1 (no, on, 12:30, 0o17 as octal, dates) are texts."""
    text = "[no, on, yes, 12:30, 2024-01-01, 1_000, 0o17, 0x1f, true, 12, -1.5, ~, '', '1', .inf, .nan, 1e3]"
    wanted = ["no", "on", "yes", "12:30", "2024-01-01", "1_000", "0o17", "0x1f"]
    assert read(text, "f").data == [*wanted, True, 12, -1.5, None, "", "1", ".inf", ".nan", 1000.0]


def test_numbers_too_long_to_be_meant_stay_texts() -> None:
    assert read("a: " + "9" * 5000, "f").data == {"a": "9" * 5000}


def test_every_key_is_a_text() -> None:
    assert read("{0: a, true: b, 1.10: c, no: d}", "f").data == {"0": "a", "true": "b", "1.10": "c", "no": "d"}


@pytest.mark.parametrize(
    ("text", "path", "part", "spot"),
    [
        ("a: one two", ("a",), "two", (1, 8)),
        ("a: 'one two'", ("a",), "two", (1, 9)),
        ('a: "é 𝄞 two"', ("a",), "two", (1, 9)),
        ("- |\n  one\n    two\n", (0,), "two", (3, 5)),
        ("- |-\n\n  one\n\n  two", (0,), "two", (5, 3)),
        ('a: "o\\ne two"', ("a",), "two", (1, 4)),
        ("a: one\n  two", ("a",), "two", (1, 4)),
        ("a: >\n  one\n  two\n", ("a",), "two", (1, 4)),
        ("a: 'it''s two'", ("a",), "two", (1, 4)),
    ],
)
def test_a_place_inside_a_text_is_exact_or_that_of_the_text(
    text: str, path: tuple[str | int, ...], part: str, spot: tuple[int, int]
) -> None:
    document = read(text, "f")
    assert document.inside(path, document.at(path).index(part)) == spot


def test_a_byte_order_mark_is_no_content() -> None:
    document = read(b"\xef\xbb\xbfa: 1\n", "f")
    assert document.data == {"a": 1}
    assert document.place(("a",)).key == (1, 1)


def test_aliases_cannot_multiply() -> None:
    """A few lines of aliases could otherwise stand for gigabytes."""
    laughs = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdefg", "bcdefgh", strict=True))
    assert {rule for rule, _, _ in refused(laughs)} == {"anchor"}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (b"a: \xff", ("not-utf8", 1, 4)),
        ("a: 1\nb: \udcff", ("not-utf8", 2, 4)),
        ("x" * (MAX_BYTES + 1), ("too-large", 1, 1)),
        ("é" * (MAX_BYTES // 2 + 1), ("too-large", 1, 1)),
        ("", ("empty-document", 1, 1)),
        ("# nothing\n", ("empty-document", 1, 1)),
        ("a: 1\n--- \nb: 2\n", ("many-documents", 2, 1)),
        ("a:\n\tb: 1\n", ("tab", 2, 1)),
        ("a: [1\n", ("bad-yaml", 2, 1)),
        ("a: 1\nb: é\x01\n", ("bad-yaml", 2, 5)),
        ("a: 1\nb: {a: 1, a: 2}\n", ("duplicate-key", 2, 11)),
        ("1: a\n'1': b\n", ("duplicate-key", 2, 1)),
        ("? {a: b}\n: c\n", ("bad-key", 1, 3)),
        ("~: a\n", ("bad-key", 1, 1)),
        ("a: !!binary aGVsbG8=\n", ("tag", 1, 4)),
        ("a: !mine {}\n", ("tag", 1, 4)),
        ("[" * 5000, ("too-deep", 1, MAX_DEPTH + 1)),
    ],
)
def test_what_is_refused_and_where(text: str | bytes, finding: tuple[str, int, int]) -> None:
    assert refused(text) == [finding]


@pytest.mark.parametrize("character", ["\r", "\x85", "\u2028", "\u2029"])
def test_no_key_hides_behind_a_comment(character: str) -> None:
    """YAML begins a line there; editors and diffs show the rest of the comment."""
    text = f"a: 1\nb: g # remark{character}autonomy: release\n"
    assert refused(text) == refused(text.encode()) == [("bad-character", 2, 14)]
    assert read(f'a: 1 # one\r\nb: "\\u{ord(character):04x}"\r\n', "f").data == {"a": 1, "b": character}


def test_several_problems_are_told_at_once() -> None:
    assert refused("a: 1\na: 2\nb: &x 1\nb: *x\n") == [
        ("duplicate-key", 2, 1),
        ("anchor", 3, 4),
        ("duplicate-key", 4, 1),
        ("anchor", 4, 4),
    ]
