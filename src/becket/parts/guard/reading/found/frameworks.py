"""Which files import or call a test framework: one row per language, read by patterns.

A Rust source with `#[cfg(test)] mod tests { }` and a Python module with doctests are product that holds tests: they are
left out here, and the guard judges the tests within them. A Python module that defines functions or classes of its own
beside its tests is left out too, unless it is named for tests: a report that names it decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum, auto

from becket.parts.guard.reading.found.names import (
    JVM,
    PYTHON,
    SCRIPT,
    SHELL,
    C,
    in_product_folder,
    named_for_tests,
    suffix,
)

_PYTHON = re.compile(
    rb"^[ \t]{0,8}(?:import|from)[ \t]+(_?pytest|unittest2?|nose2?|hypothesis|testtools|asynctest|ward|behave|absltest"
    rb"|django\.test|rest_framework\.test|twisted\.trial|absl\.testing)\b",
    re.MULTILINE,
)
_PYTHON_HINT = (b"test", b"nose", b"hypothesis", b"ward", b"behave", b"trial")
_PYTHON_TEST = re.compile(
    rb"^[ \t]*(?:async )?def test\w*\(|^class \w+\([^)]*Test(?:Case|Base)|^class Test\w*\b", re.MULTILINE
)
_PYTHON_OWN = re.compile(
    rb"^(?<!@pytest\.fixture\n)"
    rb"(?:(?:async )?def (?!test|_|main\b|pytest_|setup|teardown|setUp|tearDown)|class (?!Test))(?!\w*\([^)]*Test)\w+",
    re.MULTILINE,
)
_SCRIPT_IMPORT = re.compile(
    rb"""(?:\bfrom|\brequire\(|\bimport\(?)\s*["'](?:node:test|bun:test|vitest|@jest/globals|ava|tape|tap|uvu)["']"""
)
_SCRIPT_CALL = re.compile(
    rb"""^[ \t]*(?:describe|it|test|suite|context|specify|QUnit\.test)(?:\.\w+)*\(\s*["'`][^\n]*,\s*"""
    rb"""(?:async\b\s*)?(?:function\b|\(|\w+\s*=>)""",
    re.MULTILINE,
)
_SCRIPT_ASSERT = re.compile(rb"""["'](?:node:)?assert(?:/strict)?["']|\bconsole\.assert\(""")
_RUST_TEST = (
    rb"test|all\(test[^\]]*\)"
    rb"|any\(test(?:\s*,\s*(?:doctest|miri|feature\s*=\s*\"[^\"]*(?:test|mock|fake|bench|fuzz)[^\"]*\"))*\s*,?\s*\)"
)
"""Not `any(test, feature = "std")`: that is the product too."""
_RUST_MODULE = re.compile(
    rb"#\[cfg\((?:" + _RUST_TEST + rb")\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;"
)
_ROWS: tuple[tuple[frozenset[str], re.Pattern[bytes]], ...] = (
    (frozenset({"go"}), re.compile(rb'"testing"|"github\.com/(?:stretchr/testify|onsi/(?:ginkgo|gomega))[^"]*"')),
    (
        JVM,
        re.compile(
            rb"^import\s+(?:static\s+)?(?:org\.junit|junit\.framework|org\.testng|org\.assertj|kotlin\.test|spock\.lang"
            rb"|org\.scalatest|org\.mockito|io\.kotest)\b|@org\.junit\.|@Test\b",
            re.MULTILINE,
        ),
    ),
    (
        frozenset({"rb"}),
        re.compile(
            rb"""require\w*[ (]["'](?:minitest|test/unit|rspec|spec_helper|rails_helper|test_helper)"""
            rb"""|^\s*RSpec\.describe\b|<\s*(?:Minitest::Test|Test::Unit::TestCase|ActiveSupport::TestCase)""",
            re.MULTILINE,
        ),
    ),
    (frozenset({"php"}), re.compile(rb"\bPHPUnit\\|\bextends\s+\\?(?:\w+\\)*TestCase\b")),
    (frozenset({"cs", "fs"}), re.compile(rb"\b(?:using|open)\s+(?:Xunit|NUnit|Microsoft\.VisualStudio\.TestTools)\b")),
    (frozenset({"swift"}), re.compile(rb"^import\s+(?:XCTest|Testing)\b", re.MULTILINE)),
    (frozenset({"ex", "exs"}), re.compile(rb"\buse\s+ExUnit\.Case\b|\bExUnit\.start\b")),
    (frozenset({"dart"}), re.compile(rb"package:(?:flutter_)?test/")),
    (frozenset({"pl", "t"}), re.compile(rb"^\s*use\s+Test2?::", re.MULTILINE)),
    (
        C,
        re.compile(
            rb"""#\s*include\s*[<"](?:gtest/|gmock/|catch2?/|catch\.hpp|doctest|cmocka|unity\.h|check\.h|CUnit/|boost/test)"""
        ),
    ),
    (SHELL, re.compile(rb"^@test\s+[\"']|\bshunit2\b|\bbats-(?:core|support|assert)\b", re.MULTILINE)),
)
_BY_SUFFIX = {name: pattern for names, pattern in _ROWS for name in names}


class FrameworkUse(Enum):
    """What a file has to do with a test framework."""

    none = auto()
    helps = auto()  # uses one, and holds no test: a helper, if only tests import it
    tests = auto()


def use_of(path: str, content: bytes, own: Collection[str]) -> FrameworkUse:
    """`own`: modules of the repository itself, in which using such a name makes no test."""
    kind = suffix(path)
    if kind in PYTHON:
        return _python(path, content, own)
    if kind in SCRIPT:
        return FrameworkUse.tests if _script(path, content) else FrameworkUse.none
    if kind in JVM and "/src/main/" in f"/{path}":
        return FrameworkUse.none
    pattern = _BY_SUFFIX.get(kind)
    return FrameworkUse.tests if pattern is not None and pattern.search(content) else FrameworkUse.none


def _python(path: str, content: bytes, own: Collection[str]) -> FrameworkUse:
    if not any(hint in content for hint in _PYTHON_HINT):
        return FrameworkUse.none
    imported = {match[1].decode().partition(".")[0] for match in _PYTHON.finditer(content)} - set(own)
    named, tests = named_for_tests(path), _PYTHON_TEST.search(content) is not None
    if imported and (named or (tests and _PYTHON_OWN.search(content) is None)):
        return FrameworkUse.tests
    if imported and not tests and not in_product_folder(path):
        return FrameworkUse.helps
    return FrameworkUse.tests if tests and named and b"assert" in content else FrameworkUse.none


def _script(path: str, content: bytes) -> bool:
    if b"import.meta.vitest" in content:  # product that holds tests
        return False
    if _SCRIPT_IMPORT.search(content) or _SCRIPT_CALL.search(content):
        return True
    return named_for_tests(path) and _SCRIPT_ASSERT.search(content) is not None


def test_modules(path: str, content: bytes) -> Iterator[str]:
    """Files that a Rust source takes in only when it is tested."""
    if b"cfg(" not in content:
        return
    folder, _, file = path.rpartition("/")
    stem = file.removesuffix(".rs")
    inside = folder if stem in {"lib", "main", "mod"} else f"{folder}/{stem}".lstrip("/")
    for match in _RUST_MODULE.finditer(content):
        below = f"{inside}/{match[1].decode()}".lstrip("/")
        yield from (f"{below}.rs", f"{below}/mod.rs")


test_modules.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it
