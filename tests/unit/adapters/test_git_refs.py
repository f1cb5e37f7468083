"""Ref names and status lines, without a repository."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.naming import ref_problem
from becket.kernel.git.status import parse_status


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "refs/heads/a/b-c_d", "refs/heads/ünï", "refs/heads/a.b", "refs/x/@"]
)
def test_a_good_name_has_no_problem(ref: str) -> None:
    assert ref_problem(ref) is None


@pytest.mark.parametrize(
    "ref",
    [
        "main",
        "HEAD",
        "refs/",
        "refs/heads/",
        "refs/heads/a..b",
        "refs/heads/.a",
        "refs/heads/a/.b",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a.",
        "refs/heads//a",
        "refs/heads/a b",
        "refs/heads/a\tb",
        "refs/heads/a\x7fb",
        "refs/heads/a\0b",
        "refs/heads/a~1",
        "refs/heads/a@{1}",
        "refs/heads/../../../etc",
        "/refs/heads/a",
    ],
)
def test_a_bad_name_is_refused(ref: str) -> None:
    assert ref_problem(ref) is not None


_PIECES = [*"ab./@{}~^:?*[]\\ -_\x7f\x1f", "é", ".lock", "..", "@{", "//"]
_TRICKY = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)


@settings(max_examples=150, deadline=None)
@given(_TRICKY)
def test_the_rules_are_gits_own(name: str) -> None:
    ref = f"refs/heads/{name}"
    said = subprocess.run(["git", "check-ref-format", ref], check=False).returncode
    assert (ref_problem(ref) is None) == (said == 0), ref


def test_every_kind_of_status_line_is_understood() -> None:
    zeros, ones = "0" * 40, "1" * 40
    lines = [
        f"# branch.oid {ones}",
        "# branch.head feature/x",
        "# branch.upstream origin/feature/x",
        "# stash 3",
        f"1 .M N... 100644 100644 100644 {zeros} {ones} with blank.py",
        f"1 D. N... 100644 000000 000000 {ones} {zeros} deleted.py",
        f"u UU N... 100644 100644 100644 100644 {ones} {ones} {ones} both sides.py",
        "? new\nline.py",
    ]
    raw = "\0".join(lines).encode() + b"\0? \xff.bin\0"
    state = parse_status(raw)
    assert (state.head, state.branch) == (ones, "feature/x")
    assert state.changed == ("with blank.py", "deleted.py", "both sides.py")
    assert state.untracked == ("new\nline.py", "\\xff.bin")
    assert state.model_dump_json()


def test_an_unborn_and_a_detached_head() -> None:
    unborn = parse_status(b"# branch.oid (initial)\0# branch.head main\0")
    assert (unborn.head, unborn.branch, unborn.clean) == (None, "main", True)
    detached = parse_status(b"# branch.oid " + b"a" * 40 + b"\0# branch.head (detached)\0")
    assert (detached.head, detached.branch) == ("a" * 40, None)
