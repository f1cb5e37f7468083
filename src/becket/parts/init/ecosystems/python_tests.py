"""Which files of a Python project are its tests, by pytest's own settings."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from typing import Any

from becket.parts.init.ecosystem import Folder

_FILES = ("test_*.py", "*_test.py")
_SETTINGS = ("pytest.ini", ".pytest.ini", "tox.ini")

_TEST = re.compile(r"^\s*(?:async\s+)?def test|^\s*class Test|\bTestCase\b", re.MULTILINE)

Options = dict[str, Any] | None


def patterns(options: Options) -> tuple[str, ...]:
    """`python_files`, which may hold paths; pytest's own choice where it is not set."""
    return _listed(options, "python_files") or _FILES


def is_test(path: str, wanted: tuple[str, ...]) -> bool:
    return any(fnmatch(path if "/" in pattern else posixpath.basename(path), pattern) for pattern in wanted)


def has_tests(folder: Folder, options: Options) -> bool:
    return any(is_test(name, patterns(options)) for name in folder.files())


def has_own_tests(folder: Folder, names: Iterable[str]) -> bool:
    """Would pytest collect something from one of these files? A script may be called `parse_test.py` too; an empty
    file is a test that is still to be written.
    """
    return any(not text.strip() or _TEST.search(text) for text in map(folder.text, names))


def test_side(folder: Folder, options: Options) -> tuple[str, ...]:
    folders = [name for name in ("tests", "test") if folder.has_folder(name)]
    folders += [name for name in _testpaths(folder, options) if _is_test_folder(folder, name)]
    files = [name for name in ("conftest.py", *patterns(options)) if name != "*.py"]  # which would be all sources
    settings = [name for name in _SETTINGS if folder.has(name)]
    found = (*(f"{name}/**" for name in folders), *(at for name in files for at in (name, f"**/{name}")), *settings)
    return tuple(folder.glob(pattern) for pattern in dict.fromkeys(found))


def _testpaths(folder: Folder, options: Options) -> list[str]:
    paths = [posixpath.normpath(name) for name in _listed(options, "testpaths")]
    return [name for name in paths if name != "." and not name.startswith(("..", "/")) and folder.has_folder(name)]


def _is_test_folder(folder: Folder, name: str) -> bool:
    """Not a folder of sources that have tests in them: a repair may change those."""
    if "test" in posixpath.basename(name).lower():
        return True
    return name != "src" and not folder.has(f"{name}/__init__.py")


def _listed(options: Options, key: str) -> tuple[str, ...]:
    """A list in TOML, words in an ini file."""
    value = (options or {}).get(key)
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(word for word in words if isinstance(word, str))
