"""The `when:` grammar means what Python's own `and`, `or` and `not` mean, and refuses everything else with a column."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.when import MAX_DEPTH, And, Expr, Not, Or, Ref, WhenError, parse

WORDS = {word: word for word in ("and", "or", "not")}
NAMES = ("a", "b.c", "no_progress", "base.fast_red")


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from(NAMES).map(Ref)

    def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(inner.map(Not), several.map(And), several.map(Or))

    return st.recursive(leaves, grown, max_leaves=12)


@given(expressions())
@settings(deadline=None)
def test_the_text_of_an_expression_reads_back_as_the_same_expression(expr: Expr) -> None:
    assert parse(str(expr)) == expr


@given(expressions(), st.sets(st.sampled_from(NAMES)))
@settings(deadline=None)
def test_it_holds_exactly_when_python_says_so(expr: Expr, raised: set[str]) -> None:
    as_python = re.sub(r"[a-z_.]+", lambda word: WORDS.get(word[0]) or repr(word[0] in raised), str(expr))
    assert expr.holds(raised.__contains__) is eval(as_python)


@given(st.text(alphabet=st.sampled_from("abor nt().d&|!_A1\n"), max_size=40))
@settings(deadline=None)
def test_any_text_is_either_an_expression_or_an_error_with_a_column_in_it(text: str) -> None:
    try:
        expr = parse(text)
    except WhenError as caught:
        column = caught.column
    else:
        assert parse(str(expr)) == expr
        return
    assert 1 <= column <= len(text) + 1


def test_not_binds_closer_than_and_and_and_closer_than_or() -> None:
    assert parse("a or not b and c") == Or((Ref("a"), And((Not(Ref("b")), Ref("c")))))


def test_refs_are_named_once_and_leaves_know_their_columns() -> None:
    expr = parse("base.red and\n (x or base.red)")
    assert expr.refs() == ("base.red", "x")
    assert [(leaf.name, leaf.column) for leaf in expr.leaves()] == [("base.red", 1), ("x", 16), ("base.red", 21)]


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "missing at the end"),
        ("a and", 6, "missing at the end"),
        ("a and or b", 7, "missing before 'or'"),
        ("a b", 3, "`and` or `or` is missing"),
        ("(a", 1, "never closed"),
        ("a)", 2, "without its `(`"),
        ("()", 2, "missing before ')'"),
        ("a && b", 3, "write `and`"),
        ("a || b", 3, "write `or`"),
        ("! a", 1, "write `not`"),
        ("a AND b", 3, "write `and`"),
        ("a.b.c", 1, "conditions look like"),
        ("Base.red", 1, "conditions look like"),
        ("a == b", 3, "conditions look like"),
        ("a and 1", 7, "conditions look like"),
    ],
)
def test_errors_point_at_their_column_and_say_what_to_write(text: str, column: int, said: str) -> None:
    with pytest.raises(WhenError) as caught:
        parse(text)
    assert caught.value.column == column
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 5000, "not " * 300 + "a", "a or " * 1000 + "a"])
def test_a_hostile_text_is_refused_before_it_costs_anything(text: str) -> None:
    with pytest.raises(WhenError):
        parse(text)


def test_reasonable_nesting_is_accepted() -> None:
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == Ref("a")


def test_parsing_twice_gives_the_same_object() -> None:
    assert parse("a and not b.c") is parse("a and not b.c")


def test_expressions_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse("a").name = "b"  # type: ignore[attr-defined]
