"""Where a failure happened: the file:line that a traceback, a panic or an assertion names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from becket.parts.gates.reports.text import line_number
from becket.parts.gates.reports.tree import Tree

MOST_TEXT = 64_000
MOST_PLACES = 60

_PYTHON = re.compile(r"^((?:[A-Za-z]:)?[^\s:<>][^:\n]{0,400}\.py):(\d{1,8}): ", re.MULTILINE)
_PYTHON_NATIVE = re.compile(r'^(?:E\s)?\s*File "([^"\n]{1,400})", line (\d{1,8})', re.MULTILINE)
_RUST = re.compile(r"(?:panicked at (?:'[^\n]{0,400}', )?|--> )([^\s:']{1,400}\.rs):(\d{1,8})")
_GO = re.compile(r"^\s*([^\s:]{1,400}\.go):(\d{1,8})(?::\d+)?: ", re.MULTILINE)
_GO_FRAME = re.compile(r"^\s*([^\s:]{1,400}\.go):(\d{1,8}) \+0x", re.MULTILINE)
_SCRIPT = re.compile(r"(?<![^\s('\"])((?:file://)?[^\s()'\"]{1,400}\.(?:[cm]?[jt]sx?)):(\d{1,8}):\d+")
_JVM = re.compile(
    r"\bat (?:[\w.@-]{0,100}/){0,3}([\w.$]{1,400})\.[\w$<>]{1,200}"
    r"\(([\w$]{1,200}\.(?:java|kt|groovy|scala)):(\d{1,8})\)"
)
_PERL = re.compile(r"\bat ([^\s:]{1,400}) line (\d{1,8})\b")
_ANY = re.compile(r"(?:^|[\s('\"])((?:\.{0,2}/)?[\w][\w./-]{0,300}\.[A-Za-z]{1,6}):(\d{1,8})\b", re.MULTILINE)

_FOREIGN = ("node_modules/", "node:", "site-packages/", "dist-packages/", "/rustc/", "<frozen", "/usr/lib/")
_JVM_SOURCES = (
    "src/test/java",
    "src/test/kotlin",
    "src/main/java",
    "src/main/kotlin",
    "src/test/groovy",
    "src",
    "test",
)


@dataclass(frozen=True, slots=True)
class FailurePlace:
    file: str
    line: int | None


def find_place(text: str, tree: Tree, about: str = "") -> FailurePlace | None:
    """The innermost place within the tree, else the innermost that is not a library's, else none.

    `about` is the class of a JVM test: its own frame is wanted, not the assertion library's.
    """
    text = text[:MOST_TEXT]
    jvm = _jvm_place(text, tree, about)
    if jvm is not None:
        return jvm
    places = list(_places(text))[:MOST_PLACES]
    for place in places:
        if tree.owns(place.file):
            return FailurePlace(tree.relative(place.file), place.line)
    for place in places:
        if not any(mark in place.file for mark in _FOREIGN):
            return FailurePlace(tree.relative(place.file), place.line)
    return None


def _places(text: str) -> Iterator[FailurePlace]:
    """Innermost first, as each language prints its traces."""
    for pattern in (_PYTHON, _PYTHON_NATIVE, _GO):
        yield from reversed([FailurePlace(match[1], line_number(match[2])) for match in pattern.finditer(text)])
    for pattern in (_RUST, _GO_FRAME, _SCRIPT, _PERL, _ANY):
        yield from (FailurePlace(match[1], line_number(match[2])) for match in pattern.finditer(text))


def go_module(tree: Tree) -> str:
    """The module path that go.mod declares."""
    match = re.search(rb"^module\s+\"?([^\s\"]{1,300})", tree.read("go.mod") or b"", re.MULTILINE)
    return match[1].decode("utf-8", "replace") if match else ""


def go_file(file: str, package: str, module: str, tree: Tree) -> str:
    """A file as the repository names it; go prints only its name, and the package tells the folder."""
    if "/" in file:
        return tree.relative(file)
    if module and (package == module or package.startswith(module + "/")):
        return "/".join(part for part in (package[len(module) + 1 :], file) if part)
    path = f"{package}/{file}"
    return tree.relative(path) if tree.owns(path) else file


def _jvm_place(text: str, tree: Tree, about: str) -> FailurePlace | None:
    frames = [(match[1], match[2], line_number(match[3])) for match in _JVM.finditer(text)]
    if not frames:
        return None
    outer = about.partition("$")[0]
    own = next((frame for frame in frames if outer and frame[0].partition("$")[0] == outer), frames[0])
    package = own[0].partition("$")[0].rpartition(".")[0].replace(".", "/")
    path = f"{package}/{own[1]}" if package else own[1]
    for folder in _JVM_SOURCES:
        if tree.has(f"{folder}/{path}"):
            return FailurePlace(f"{folder}/{path}", own[2])
    return FailurePlace(path, own[2])
