"""Which files of the repository a source file imports, as far as its text tells."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from becket.parts.guard.reading.found.names import JVM, PYTHON, SCRIPT, C, folders_of, suffix

_RELATIVE = re.compile(rb"""["'`](\.\.?(?:/[^"'`\n]{0,300})?)["'`]""")
_RUBY = re.compile(rb"""\b(?:require|autoload[ (]+:\w+,)(_relative)?[ (]+["']([^"'\n]{1,300})["']""")
_INCLUDE = re.compile(rb"""#\s*include\s*"([^"\n]{1,300})\"""")
_GO = re.compile(rb'"([\w.~-]+(?:/[\w.~-]+)+)"')
_JVM = re.compile(rb"import\s+(?:static\s+)?([\w.]{3,300})")
_ANY = re.compile(rb"")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_ENDINGS = ("", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", ".mts", ".cts", "/index.js", "/index.ts", "/index.mjs")
_ROOTS = ("", "src", "lib")


class Imports:
    """Resolves imports against the paths of one commit."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = paths
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._go: dict[str, list[str]] = defaultdict(list)
        self._tops: set[str] = set()
        for path in paths:
            folder, _, file = path.rpartition("/")
            kind = suffix(path)
            if kind in JVM:
                self._by_name[file.rpartition(".")[0]].append(path)
            elif kind == "go":
                self._go[folder].append(path)
            elif kind in PYTHON:
                self._tops.add(file.partition(".")[0])
                self._tops.update(folder.split("/"))

    def of(self, path: str, content: bytes, about: re.Pattern[bytes] | None = None) -> Iterator[str]:
        """Files that it names. What comes from elsewhere is left out; each may be told more than once.

        `about`: only statements in which this stands need be looked at.
        """
        kind = suffix(path)
        if kind in PYTHON:
            yield from self._python(path, content, about or _ANY)
        elif kind in SCRIPT:
            yield from self._script(path, content)
        elif kind == "go":
            yield from self._golang(path, content)
        elif kind in JVM:
            yield from self._java(content)
        elif kind == "rb":
            yield from self._ruby(path, content)
        elif kind in C:
            yield from self._included(path, content)

    def _python(self, path: str, content: bytes, about: re.Pattern[bytes]) -> Iterator[str]:
        at = content.find(b"import")
        while at >= 0:
            begin = content.rfind(b"\n", 0, at) + 1
            before = content[begin:at].strip()
            if not before or before.startswith((b"from ", b"from\t")):
                origin, names = before[4:].strip(), self._names(content, at + 6)
                if about.search(origin) or about.search(names):
                    yield from self._statement(path, origin, names)
            at = content.find(b"import", at + 6)

    @staticmethod
    def _names(content: bytes, begin: int) -> bytes:
        line = content.find(b"\n", begin)
        end = len(content) if line < 0 else line
        opening = content.find(b"(", begin, end)
        if opening >= 0:
            closing = content.find(b")", opening, opening + 4_000)
            return content[opening + 1 : closing if closing >= 0 else end]
        return content[begin:end].partition(b"#")[0]

    def _statement(self, path: str, origin: bytes, names: bytes) -> Iterator[str]:
        if not origin:
            for item in names.split(b","):
                module = item.split(b" as ")[0].strip().decode("ascii", "ignore")
                if module.partition(".")[0] in self._tops:
                    yield from self._modules(path, module, ())
            return
        module = origin.decode("ascii", "ignore")
        if module.startswith(".") or module.partition(".")[0] in self._tops:
            yield from self._modules(path, module, tuple(name.decode() for name in _NAME.findall(names)[:200]))

    def _modules(self, path: str, module: str, names: tuple[str, ...]) -> Iterator[str]:
        dots = len(module) - len(module.lstrip("."))
        inside = module.lstrip(".").replace(".", "/")
        above = path.rpartition("/")[0]
        if dots:
            for _ in range(dots - 1):
                above = above.rpartition("/")[0]
            yield from self._module_at(_joined(above, inside), names)
            return
        for root in dict.fromkeys((above, *_ROOTS, *folders_of(above))):
            found = list(self._module_at(_joined(root, inside), names))
            if found:
                yield from found
                return

    def _module_at(self, place: str, names: tuple[str, ...]) -> Iterator[str]:
        known = self._paths
        if (file := f"{place}.py") in known:
            yield file
            return
        if (package := _joined(place, "__init__.py")) in known:
            yield package
        for name in names:
            for file in (f"{place}/{name}.py", f"{place}/{name}/__init__.py"):
                if file in known:
                    yield file

    def _script(self, path: str, content: bytes) -> Iterator[str]:
        folder = path.rpartition("/")[0]
        for match in _RELATIVE.finditer(content):
            name = posixpath.normpath(posixpath.join(folder, match[1].decode("utf-8", "replace")))
            bare = name.rpartition(".")[0] if name.endswith((".js", ".mjs", ".cjs", ".jsx")) else name
            stems = (name, bare) if bare != name else (name,)  # TypeScript names what it compiles to
            for file in (f"{stem}{ending}".removeprefix("./") for stem in stems for ending in _ENDINGS):
                if file in self._paths:
                    yield file
                    break

    def _golang(self, path: str, content: bytes) -> Iterator[str]:
        """A package is a folder, and its files see each other. The module's own prefix is unknown."""
        folder = path.rpartition("/")[0]
        if not path.endswith("_test.go"):
            yield from (other for other in self._go[folder] if not other.endswith("_test.go"))
        for match in _GO.finditer(content.partition(b"\nfunc ")[0][:20_000]):
            parts = match[1].decode("ascii", "ignore").split("/")
            for begin in range(1, len(parts)):
                found = self._go.get("/".join(parts[begin:]))
                if found:
                    yield from (other for other in found if not other.endswith("_test.go"))
                    break

    def _java(self, content: bytes) -> Iterator[str]:
        for match in _JVM.finditer(content[:40_000]):
            dotted = match[1].decode("ascii", "ignore")
            for file in self._by_name.get(dotted.rpartition(".")[2], ()):
                if file.rpartition(".")[0].endswith(dotted.replace(".", "/")):
                    yield file

    def _ruby(self, path: str, content: bytes) -> Iterator[str]:
        above = path.rpartition("/")[0]
        for match in _RUBY.finditer(content):
            name = match[2].decode("utf-8", "replace").removesuffix(".rb")
            for root in (above,) if match[1] else ("lib", "spec", "test", ""):
                file = posixpath.normpath(posixpath.join(root, f"{name}.rb"))
                if file in self._paths:
                    yield file
                    break

    def _included(self, path: str, content: bytes) -> Iterator[str]:
        above = path.rpartition("/")[0]
        for match in _INCLUDE.finditer(content):
            name = match[1].decode("utf-8", "replace")
            for root in (above, "include", "src", ""):
                file = posixpath.normpath(posixpath.join(root, name))
                if file in self._paths:
                    yield file
                    break


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}".strip("/")
