"""What the project itself is: which modules are its own, and where a new file would be found instead of another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import cached_property

_ROOTS = ("src/", "lib/", "python/")
_COMPILED_TOGETHER = (".go", ".java", ".cs", ".kt")


def module_name(path: str) -> str:
    """What a file is imported as."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder.rpartition("/")[2] if stem in ("__init__", "index", "mod", "lib", "main") and folder else stem


class OwnModules:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = paths

    def of(self, language: str) -> Callable[[str], bool]:
        """Is a name, as it resolves, one of the project's?"""
        found = {"Python": self._python, "Go": self._go, "Java": self._java, "C": self._header, "C++": self._header}
        found |= {"C#": self._namespace, "PHP": self._autoloaded, "Ruby": self._required}
        return found.get(language, _relative)

    @cached_property
    def _roots(self) -> frozenset[str]:
        found = set()
        for path in self._paths:
            if path.endswith(".py"):
                parts = _below_root(path).split("/")
                found.add(parts[0].removesuffix(".py"))
        return frozenset(found - sys.stdlib_module_names - {"setup", "conftest", "__init__"})

    def _python(self, name: str) -> bool:
        return name.startswith(".") or name.partition(".")[0] in self._roots

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(path.rpartition("/")[0] for path in self._paths if path.endswith(".go"))

    def _go(self, name: str) -> bool:
        """By the end of the import path: the module's own prefix is not known here."""
        module = name.partition(":")[0]
        return "/" in module and any(folder and module.endswith(f"/{folder}") for folder in self._folders)

    @cached_property
    def _classes(self) -> frozenset[str]:
        return frozenset(path.removesuffix(".java") for path in self._paths if path.endswith(".java"))

    def _java(self, name: str) -> bool:
        parts = name.split(".")
        stems = ["/".join(parts[:end]) for end in range(len(parts), 1, -1)]
        return any(each == stem or each.endswith(f"/{stem}") for each in self._classes for stem in stems)

    def _header(self, name: str) -> bool:
        return any(path == name or path.endswith(f"/{name}") for path in self._paths)

    def _required(self, name: str) -> bool:
        return name.startswith(".") or self._header(f"{name}.rb")

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        return frozenset(path.rpartition("/")[0].replace("/", ".") for path in self._paths if path.endswith(".cs"))

    def _namespace(self, name: str) -> bool:
        """A folder of the project is a namespace; the language's own are never the project's."""
        parts = name.split(".")
        tails = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        return parts[0] != "System" and any(
            folder == tail or folder.endswith(f".{tail}") for folder in self._namespaces for tail in tails
        )

    def _autoloaded(self, name: str) -> bool:
        """A namespace is a folder below a root with a name of its own: `Vendor.Part.Name` is `src/Part/Name.php`."""
        parts = name.split(".")
        pairs = ["/".join(parts[end - 2 : end]) for end in range(len(parts), 2, -1)]
        top = f"src/{parts[1]}" if len(parts) > 1 else ""
        return any(self._header(f"{tail}.php") for tail in (*pairs, top) if tail)

    def hides(self, path: str, name: str) -> bool:
        return path.endswith(".py") and name in sys.stdlib_module_names and "/" not in _below_root(path)

    def in_package(self, path: str, folder: str) -> bool:
        """Some languages compile a folder as one; a new file there is reached like its neighbours."""
        if not path.endswith(_COMPILED_TOGETHER):
            return False
        suffix = path[path.rindex(".") :]
        return any(
            other != path and other.endswith(suffix) and other.rpartition("/")[0] == folder for other in self._paths
        )


def _below_root(path: str) -> str:
    for root in _ROOTS:
        path = path.removeprefix(root)
    return path


def _relative(name: str) -> bool:
    return name.startswith((".", "crate", "self", "super"))
