"""Which paths are tests: those the repository declares, and those every runner of their language would take."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from becket.kernel.contract.config import Config
from becket.kernel.contract.globs import matches
from becket.parts.guard.section import TEST_SIDE

USUAL = (
    *("tests/**", "test/**", "**/tests/**", "**/test_*.py", "**/*_test.py", "**/conftest.py"),
    *("**/*_test.go", "**/testdata/**"),
    *("**/__tests__/**", "**/__snapshots__/**", "**/__mocks__/**", "**/*.test.*", "**/*.spec.*"),
    *("**/src/test/**", "**/src/it/**", "**/src/integrationTest/**", "**/src/androidTest/**", "**/src/testFixtures/**"),
    *("spec/**", "**/*_spec.rb"),
)
"""The test side of a repository that declares none: where the usual runners look."""

_TEST_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$"
    r"|_test\.go$"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?$"
    r"|(?:^|/)__(?:tests|snapshots|mocks)__/"
    r"|(?:^|/)src/(?:test|it|integrationTest|androidTest|testFixtures)/"
    r"|(?:^|/)tests/[^/]+\.rs$"
)
_RUNS = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$"
    r"|_test\.go$"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?$"
    r"|(?:^|/)__tests__/.*\.[cm]?[jt]sx?$"
    r"|(?:^|/)tests?/(?:.*/)?[^/]+\.[cm]?jsx?$"
    r"|(?:^|/)src/test/(?:.*/)?(?:Test[^/]*|[^/]*(?:Test|Tests|TestCase|IT))\.java$"
    r"|(?:^|/)(?:tests|src)/(?:.*/)?[^/]+\.rs$"
)
# Folders that pytest, go or jest pass by, and systems a Go file name may restrict it to.
_PASSED_BY = re.compile(r"(?:^|/)(?:[._][^/]*|build|dist|node_modules|venv|CVS|testdata|vendor|[^/]*\.egg)/")
_GO_SYSTEM = re.compile(
    r"_(?:aix|android|darwin|dragonfly|freebsd|illumos|ios|js|netbsd|openbsd|plan9|solaris|wasip1|windows"
    r"|386|arm|arm64|loong64|mips\w*|ppc64\w*|riscv64|s390x|wasm)_test\.go$"
)


class SideReason(StrEnum):
    """Why a file belongs to the tests, the most certain first."""

    declared = "declared"  # `test_side` names it, or where nothing is declared, the usual globs do
    ran = "ran"  # a report names it for a test that ran
    framework = "framework"  # it imports or calls a test framework
    gate = "gate"  # a gate runs it by name
    only_from_tests = "only-from-tests"  # nothing but tests imports or reads it
    sits_with = "sits-with"  # it lies among tests
    named = "named"  # a runner would take it by its name


class TestSide:
    """The test side of one repository.

    `found` has a reason for each file of base that was looked at beyond the globs, `folders` are those in which a new
    file would sit with tests, `known` are all paths of base: of those the reasons alone decide.
    """

    __test__ = False

    def __init__(
        self,
        globs: Sequence[str],
        found: Mapping[str, SideReason] = {},
        folders: Collection[str] = (),
        known: Collection[str] = (),
    ) -> None:
        self.globs = tuple(globs)
        self.found = found
        """Every file of base that belongs to the tests; empty where nobody looked."""
        self.folders = frozenset(folders)
        self._known = known

    def reason(self, path: str) -> SideReason | None:
        """Why it belongs to the tests; None if it does not. Answers for paths that are new in a candidate too."""
        if self.declared(path):
            return SideReason.declared
        if (found := self.found.get(path)) is not None:
            return found
        if path not in self._known and self.folder_of(path):
            return SideReason.sits_with
        return SideReason.named if named_like_a_test(path) else None

    def declared(self, path: str) -> bool:
        """Is it in `test_side`?"""
        return matches(path, self.globs)

    def belongs(self, path: str) -> bool:
        """Does the crossing proof put the parent's version back? All that the guard holds for tests, but for Python
        files that are only named so: they may be the source that was repaired."""
        return self.holds(path) and not self.only_by_name(path)

    def only_by_name(self, path: str) -> bool:
        """Named like a test, but not declared, although others are, nor found: `ab_test.py` may be source."""
        return bool(self.globs) and path.endswith(".py") and self.reason(path) in (SideReason.named, None)

    def holds(self, path: str) -> bool:
        return self.reason(path) is not None

    def folder_of(self, path: str) -> str:
        """The outermost folder above it that is all tests'; empty if there is none."""
        parts = path.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return next((folder for folder in above if folder in self.folders), "")


def test_side_of(config: Config) -> TestSide:
    """The one test side of a repository, for the guard and for the crossing proof: as committed in base."""
    return TestSide(config.section(TEST_SIDE) or USUAL)


test_side_of.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it


def named_like_a_test(path: str) -> bool:
    return _TEST_FILE.search(path) is not None


def would_run(path: str) -> bool:
    """Would the usual runner of its language find tests in this file?"""
    return bool(_RUNS.search(path)) and not _PASSED_BY.search(path) and not _GO_SYSTEM.search(path)
