"""Which paths are tests: those the repository declares, and those every runner of their language would take."""

from __future__ import annotations

import re
from collections.abc import Sequence

from becket.contract.config import Config
from becket.verifiers.guard.globs import matches

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


class TestSide:
    """The test side of one repository."""

    __test__ = False

    def __init__(self, globs: Sequence[str]) -> None:
        self._globs = tuple(globs)

    @property
    def globs(self) -> tuple[str, ...]:
        return self._globs

    def declared(self, path: str) -> bool:
        """Is it in `test_side`?"""
        return matches(path, self._globs)

    def belongs(self, path: str) -> bool:
        """Does the crossing proof put the parent's version back? All that the guard holds for tests, but for Python
        files that are only named so: they may be the source that was repaired."""
        return self.declared(path) or (self.holds(path) and not self.only_by_name(path))

    def only_by_name(self, path: str) -> bool:
        """Named like a test, but not declared, although others are: `ab_test.py` may be source."""
        return bool(self._globs) and not self.declared(path) and path.endswith(".py")

    def holds(self, path: str) -> bool:
        return self.declared(path) or _TEST_FILE.search(path) is not None


def test_side_of(config: Config) -> TestSide:
    """The one test side of a repository, for the guard and for the crossing proof: as committed in base."""
    return TestSide(config.test_side or USUAL)


test_side_of.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it


def would_run(path: str) -> bool:
    """Would the usual runner of its language find tests in this file?"""
    return bool(_RUNS.search(path)) and not _PASSED_BY.search(path) and not _GO_SYSTEM.search(path)
