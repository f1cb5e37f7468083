"""Where the test behind an id of a report stands: ids name files, classes, packages or titles, as their runner does."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from becket.parts.gates.reports.cargo_text import BUILD_ID
from becket.parts.gates.reports.formats import PLAIN_ID
from becket.parts.guard.reading.found.names import JVM, SCRIPT, SHELL, C, is_foreign, named_for_tests, suffix
from becket.parts.guard.reading.found.reader import Reader, nothing
from becket.parts.guard.reading.side import would_run

_STEP = re.compile(r"^[A-Za-z0-9_-]+: ")
_DIVIDER = re.compile(r"::| > | \u203a ")
_CLASS = re.compile(r"^[\w$]+(?:[.\\][\w$]+)*$")
_BINARY = re.compile(r"^binary \d+$")
_CRATE = re.compile(r"^[\w-]+:(doc|[^:]+\.rs)$")
_GO_TEST = re.compile(r"^(?:Test|Benchmark|Example|Fuzz)(?![a-z])")
_GO_PACKAGE = re.compile(r"^[\w-]+(?:\.[\w-]+)+/\S+$")
_MOST = 4  # files of one package, or with one title
_MOST_IDS = 40
_MOST_TITLES = 200
_SHORTEST_TITLE = 8  # a shorter one stands in too many texts
_MOST_WORDS = 16
_QUOTES = (b"'", b'"', b"`")
_NO_TEST = frozenset({PLAIN_ID, BUILD_ID})
_CLASSES = ("py", *sorted(JVM), "php", "cs", "rb", "swift")
_TITLED = SCRIPT | SHELL | C | {"t", "pl", "rb", "php", "lua", "py"}


def places_of(ids: Collection[str], paths: Collection[str], read: Reader = nothing) -> tuple[tuple[str, str], ...]:
    """Path and test's name for each id that can be traced to files among `paths`; each pair once."""
    tree = _Tree(paths, read)
    found = {place: None for test in list(ids)[:_MOST_IDS] for place in tree.places(_STEP.sub("", test))}
    return tuple(found)


def names_tests(ids: Iterable[str]) -> bool:
    """Is one of these a test, and not only what stands for compilation or for a command as a whole?"""
    return any(_STEP.sub("", test) not in _NO_TEST for test in ids)


def homes_of(
    ids: Iterable[str], homes: Iterable[tuple[str, str]], paths: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """Path and name for each of the ids whose file a report gives: pairs of id and file."""
    wanted = {_STEP.sub("", test) for test in ids}
    found = [(path, _DIVIDER.split(test)[-1]) for test, path in sorted(homes) if test in wanted and path in paths]
    return tuple(found[:_MOST_IDS])


def files_of(ids: Iterable[str], paths: Collection[str], read: Reader = nothing) -> set[str]:
    """The files of all tests that ran; a product module whose doctests ran is not one, nor is a file that a runner only
    tried: node takes whatever lies below a folder named `test`."""
    tree, found, titles = _Tree(paths, read), set[str](), list[str]()
    heads: set[str] = set()
    for test in sorted(set(ids) - _NO_TEST):
        if is_doctest(test):
            continue
        head, *rest = _DIVIDER.split(test, 1)
        if not rest and head in paths and not (would_run(head) or named_for_tests(head)):
            continue
        if head not in heads:
            heads.add(head)
            placed = {path for path, _ in tree.untitled(test)}
            found |= placed
            if not placed:
                titles.append(test)
    for test in titles[:_MOST_TITLES]:
        found.update(path for path, _ in tree.titled(_DIVIDER.split(test)[-1]))
    return found


def is_doctest(test: str) -> bool:
    """`src/calc.py::calc.add`, as pytest names the examples of a module."""
    path, name = (*_DIVIDER.split(test, 1), "")[:2]
    if not path.endswith(".py"):
        return False
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    stem = module.rpartition(".")[2]
    return name in (stem, module) or name.startswith((f"{module}.", f"{stem}."))


def _put_together(title: bytes, text: bytes) -> bool:
    """Titles of a suite and of its test, joined by spaces, as some reporters do: each stands there in quotes."""
    words = title.split(b" ")[:_MOST_WORDS]
    reached = {0}
    for begin in range(len(words)):
        if begin in reached and any(quote + words[begin] in text for quote in _QUOTES):
            pieces = ((end, b" ".join(words[begin:end])) for end in range(begin + 1, len(words) + 1))
            reached |= {end for end, piece in pieces if any(quote + piece + quote in text for quote in _QUOTES)}
    return len(words) in reached


class _Tree:
    """The paths of a commit, to be asked about many ids."""

    def __init__(self, paths: Collection[str], read: Reader) -> None:
        self._paths, self._read = paths, read
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._by_name[path.rpartition("/")[2]].append(path)

    def places(self, test: str) -> Iterator[tuple[str, str]]:
        head, *rest = _DIVIDER.split(test)
        found = list(self.untitled(test)) or (list(self._by_function(rest[-1])) if rest and _BINARY.match(head) else [])
        yield from found or self.titled((head, *rest)[-1])

    def _by_function(self, name: str) -> Iterator[tuple[str, str]]:
        """Where cargo's words about its binaries are not seen, a test's function still has its name."""
        pattern = re.compile(rb"\bfn\s+" + re.escape(name.encode()) + rb"\s*\(")
        sources = sorted(path for path in self._paths if path.endswith(".rs"))
        found = [path for path in sources if pattern.search(self._read(path) or b"")]
        yield from ((path, name) for path in found[:_MOST])

    def untitled(self, test: str) -> Iterator[tuple[str, str]]:
        head, *rest = _DIVIDER.split(test)
        name = rest[-1] if rest else ""
        if head in self._paths:
            yield head, name
        elif crate := _CRATE.match(head):
            yield from self._of_crate(crate[1], rest, name)
        elif found := list(self._of_class(head, name)):
            yield from found
        elif len(alone := self._by_name.get(head, [])) == 1:
            yield alone[0], name
        elif _GO_TEST.match(rest[0]) if rest else _GO_PACKAGE.match(head):
            yield from ((path, name) for path in self._of_package(head))

    def _of_crate(self, file: str, rest: list[str], name: str) -> Iterator[tuple[str, str]]:
        """`calc:src/lib.rs::shape::tests::adds`: the deepest module that is a file."""
        if file == "doc":
            file, name = rest[0].partition(" - ")[0] if rest else "", ""
        top = posixpath.dirname(file)
        modules = [f"{top}/{'/'.join(rest[:end])}" for end in range(len(rest) - 1, 0, -1)]
        wanted = [f"{module}{ending}" for module in modules for ending in (".rs", "/mod.rs")]
        for one in (*wanted, file):
            owners = [path for path in self._by_name[one.rpartition("/")[2]] if f"/{path}".endswith(f"/{one}")]
            if owners:
                yield min(owners, key=len), name
                return

    def _of_class(self, dotted: str, name: str) -> Iterator[tuple[str, str]]:
        """`app.CalcTest.adds`, `tests.test_core.TestDivision`: the longest beginning that is a file."""
        if not _CLASS.match(dotted):
            return
        parts = re.split(r"[.\\]", dotted.partition("$")[0])
        for end in range(len(parts), 0, -1):
            stem = "/".join(parts[:end])
            owners = [
                path
                for kind in _CLASSES
                for path in self._by_name.get(f"{parts[end - 1]}.{kind}", ())
                if f"/{path}".endswith(f"/{stem}.{kind}") and (would_run(path) or named_for_tests(path))
            ]
            if owners:
                yield min(owners, key=len), name or parts[-1]
                return

    def _of_package(self, package: str) -> list[str]:
        """The tests of a Go package. The module's own prefix is unknown: the package's path ends with its folder, or
        it is the module itself."""
        tests = sorted(path for path in self._paths if path.endswith("_test.go"))
        folders = {path.rpartition("/")[0] for path in tests}
        own = max((each for each in folders if each and f"/{package}".endswith(f"/{each}")), key=len, default="")
        return [path for path in tests if path.rpartition("/")[0] == own][:_MOST]

    def titled(self, title: str) -> Iterator[tuple[str, str]]:
        """Files in whose text the title stands: of tests, or the only one."""
        wanted = title.strip().encode("utf-8", "replace")
        if len(wanted) < 3:
            return
        found = [path for path in self._scripts() if wanted in (self._read(path) or b"")]
        tests = [path for path in found if would_run(path) or named_for_tests(path)]
        if not tests and len(wanted) >= _SHORTEST_TITLE and len(found) == 1:
            tests = found
        if not tests and b" " in wanted:
            likely = (path for path in self._scripts() if would_run(path) or named_for_tests(path))
            tests = [path for path in likely if _put_together(wanted, self._read(path) or b"")]
        yield from ((path, title) for path in tests[:_MOST])

    def _scripts(self) -> list[str]:
        if self._read is nothing:
            return []
        return [path for path in sorted(self._paths) if suffix(path) in _TITLED and not is_foreign(path)]
