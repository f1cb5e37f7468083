"""Where the test behind an id of a report stands: ids name files, dotted classes or packages, as their runner does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from becket.verifiers.guard.side import would_run

_STEP = re.compile(r"^[A-Za-z0-9_-]+: ")
_DIVIDER = re.compile(r"::| > | \u203a ")
_DOTTED = re.compile(r"^[\w$]+(?:\.[\w$]+)+$")
_MOST = 4  # files of one package
_MOST_IDS = 40


def places_of(ids: Collection[str], paths: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Path and test's name for each id that can be traced to files among `paths`; each pair once."""
    found = {place: None for test in list(ids)[:_MOST_IDS] for place in _places(_STEP.sub("", test), paths)}
    return tuple(found)


def _places(test: str, paths: Collection[str]) -> Iterator[tuple[str, str]]:
    head, *rest = _DIVIDER.split(test)
    name = rest[-1] if rest else ""
    if head in paths:
        yield head, name
    elif _DOTTED.match(head):
        yield from _of_class(head, name, paths)
    elif rest:
        tests = sorted(path for path in paths if path.endswith("_test.go") and _is_package(head, path))
        yield from ((path, name) for path in tests[:_MOST])


def _of_class(dotted: str, name: str, paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """`app.CalcTest.adds`, `tests.test_core.TestDivision`: the longest beginning that is a file."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        stem = "/".join(parts[:end])
        owners = [
            path for path in paths if path in _files(stem) or path.endswith(tuple(f"/{file}" for file in _files(stem)))
        ]
        if owners and any(would_run(path) for path in owners):
            yield min(owners, key=len), name or parts[-1]
            return


def _files(stem: str) -> tuple[str, str]:
    return f"{stem}.py", f"{stem}.java"


def _is_package(package: str, path: str) -> bool:
    """The module's own prefix is unknown: the end of the package's path must be the file's folder."""
    folder = path.rpartition("/")[0]
    return package == folder or package.endswith(f"/{folder}") or (not folder and "/" not in package)
