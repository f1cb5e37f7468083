"""What a path alone says: is it source, data or a document, and does its name speak of tests?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

PYTHON = frozenset({"py", "pyi"})
SCRIPT = frozenset({"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte"})
JVM = frozenset({"java", "kt", "kts", "groovy", "scala"})
C = frozenset({"c", "h", "cc", "cpp", "cxx", "hpp", "hh"})
SHELL = frozenset({"sh", "bash", "bats"})
SOURCE = (
    PYTHON | SCRIPT | JVM | C | SHELL
    | {"go", "rs", "rb", "php", "cs", "fs", "swift", "ex", "exs", "dart", "pl", "t", "lua", "jl", "r", "zig", "m", "mm"}
)  # fmt: skip
LARGEST = 400_000
"""A source file beyond this many bytes is not looked into: hardly anybody wrote it by hand."""

_DOCUMENT = frozenset({"md", "rst", "adoc", "html", "css", "po", "pot", "mo", "svg", "png", "jpg", "gif", "pdf"})
_SETTING = re.compile(
    r"(?:^|/)(?:\.[^/]+|[\w.-]*requirements[\w.-]*\.(?:txt|in)|[\w.-]+\.lock|package(?:-lock)?\.json|go\.(?:sum|mod|work)"
    r"|tsconfig[\w.-]*\.json|jsconfig\.json|becket\.ya?ml|py\.typed|[\w.-]+\.(?:toml|cfg|ini|gradle|gradle\.kts|mk|cmake)|pom\.xml"
    r"|(?:GNU)?[Mm]akefile|justfile|Dockerfile[\w.-]*|CMakeLists\.txt|(?:LICEN[CS]E|README|CHANGELOG|NOTICE)[\w.-]*)$"
)
_PROSE = re.compile(r"(?:^|/)(?:docs?|documentation|locales?)/")
_FOREIGN = re.compile(r"(?:^|/)(?:node_modules|vendor|third_party|\.git|\.venv|venv|target|dist)/")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TEST_WORDS = frozenset(
    {"test", "tests", "testcase", "testcases", "testdata", "testlib", "testutil", "testutils", "testsuite", "conftest"}
    | {"spec", "specs", "e2e", "unittest", "unittests", "doctest", "doctests", "selftest", "smoketest"}
)
_SUPPORT_WORDS = frozenset({"fixture", "fixtures", "mock", "mocks", "stub", "stubs", "fake", "fakes", "golden"})
_CHECK_WORDS = frozenset({"check", "checks", "verify", "smoke", "suite", "acceptance", "expected"})
_BARE = frozenset({"test", "spec", "testing"})  # `werkzeug/test.py`, `click/testing.py`: for those who use the product


@lru_cache(maxsize=20_000)  # asked again and again about each path of a commit
def suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def is_source(path: str) -> bool:
    return suffix(path) in SOURCE


def is_foreign(path: str) -> bool:
    """Somebody else's code, kept here."""
    return _FOREIGN.search(path) is not None


@lru_cache(maxsize=20_000)
def is_data(path: str) -> bool:
    """Neither source, nor a setting, nor prose. What has no suffix is as often a program."""
    if is_source(path) or suffix(path) in _DOCUMENT or not suffix(path):
        return False
    return _SETTING.search(path) is None and _PROSE.search(path) is None


def folders_of(path: str) -> Iterator[str]:
    """Every folder above it but the root, the nearest first."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


@lru_cache(maxsize=20_000)
def words_of(name: str) -> frozenset[str]:
    """`load_testdata`, `loadTestData`, `load-test-data`."""
    return frozenset(word.lower() for word in _WORD.findall(name)) | {name.lower()}


def named_for_tests(path: str) -> bool:
    """Does the file's own name, or a folder above it, speak of tests? A bare `test.py` may be the product's."""
    folder, _, file = path.rpartition("/")
    stem = file.partition(".")[0]
    if any(folder_for_tests(part) for part in folder.split("/")):
        return True
    if stem.lower() in _BARE:
        return suffix(path) in SCRIPT | SHELL
    return bool(words_of(stem) & (_TEST_WORDS if in_product_folder(path) else _TEST_WORDS | _SUPPORT_WORDS))


def in_product_folder(path: str) -> bool:
    """Where a mock or an import of a test framework may be what the product offers to its users."""
    return path.startswith(("src/", "lib/")) or "/src/" in path or "/lib/" in path


def folder_for_tests(name: str) -> bool:
    """By the name of one folder."""
    return bool(words_of(name) & _TEST_WORDS)


def says_check(path: str) -> bool:
    """What a gate runs under such a name decides, rather than being decided about."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return bool(words_of(stem) & (_TEST_WORDS | _CHECK_WORDS))
