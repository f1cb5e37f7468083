"""What the gates' commands run by name: straight, through a Makefile's targets, or through the scripts of a package."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence

from becket.parts.guard.reading.found.names import in_product_folder, is_data, is_source, says_check
from becket.parts.guard.reading.found.reader import Reader
from becket.parts.guard.reading.gates import GatePrograms

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
READ_FOR_TARGETS = (*_MAKEFILES, "package.json")
_TARGET = re.compile(r"^([\w./ -]+?)\s*:(?![=:])\s*([^=\n]*)$")
_WORD = re.compile(r"[\w./@+-]+")
_RUST_MAIN = re.compile(rb"^(?:pub )?(?:async )?fn main\b", re.MULTILINE)
_DECIDES = re.compile(rb"\bassert|\bexpect\(|\bexit[ (]*1\b|\bdiff\b|\bcmp\b|\bFAIL")


def run_by_gates(commands: Sequence[str], paths: Collection[str], read: Reader) -> set[str]:
    """Programs that decide, and data that they are given. A program of the product that a gate runs decides nothing."""
    texts = [*commands, *behind(commands, read)]
    named = {posixpath.normpath(word) for text in texts for word in _WORD.findall(text)}
    return {path for path in named if path in paths and _decides(path, read)}


def _decides(path: str, read: Reader) -> bool:
    if is_data(path):
        return True
    if not is_source(path) or says_check(path):
        return is_source(path)
    content = read(path) or b""
    if path.endswith(".rs") and in_product_folder(path) and not _RUST_MAIN.search(content):
        return False  # a library decides by the tests within it alone, and these are judged there
    return _DECIDES.search(content) is not None


def behind(commands: Sequence[str], read: Reader) -> Iterator[str]:
    """What the targets and scripts do that the commands name."""
    targets = GatePrograms.of(commands).targets
    scripts = list(_scripts(read("package.json") or b"", targets))
    yield from scripts
    makefile = next((content for name in _MAKEFILES if (content := read(name))), b"")
    yield from _recipes(makefile.decode("utf-8", "replace"), targets | GatePrograms.of(scripts).targets)


def _recipes(makefile: str, targets: Collection[str]) -> Iterator[str]:
    rules: dict[str, tuple[list[str], list[str]]] = {}
    current: list[tuple[list[str], list[str]]] = []
    for line in makefile.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            for _, recipe in current:
                recipe.append(line.strip().lstrip("@-+"))
        elif match := _TARGET.match(line):
            current = [rules.setdefault(name, ([], [])) for name in match[1].split()]
            for needs, _ in current:
                needs.extend(match[2].split())
    waiting, seen = list(targets), set[str]()
    while waiting and len(seen) < 200:
        name = waiting.pop()
        if name in seen or name not in rules:
            continue
        seen.add(name)
        needs, recipe = rules[name]
        yield from (*recipe, " ".join(needs))
        waiting += [*needs, *GatePrograms.of(recipe).targets]


def _scripts(manifest: bytes, targets: Collection[str]) -> Iterator[str]:
    try:
        told = json.loads(manifest or b"{}")
    except ValueError:
        return
    scripts = told.get("scripts") if isinstance(told, dict) else None
    if isinstance(scripts, dict):
        yield from (text for name in targets if isinstance(text := scripts.get(name), str))
