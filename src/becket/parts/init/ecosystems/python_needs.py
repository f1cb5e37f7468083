"""What a Python project says it needs, wherever it says so: to run, to be tested, and to be built."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from becket.parts.init.ecosystem import Folder
from becket.parts.init.ecosystems.python_setup import told_to_setup

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_TESTS = re.compile(r"test", re.IGNORECASE)
_MADE_VERSION = re.compile(
    r"hatch-vcs|setuptools[-_]scm|versioningit|versioneer|pdm-vcs|dunamai|flit[-_]scm|uv-dynamic"
)
_METADATA = re.compile(r"importlib\.metadata|importlib_metadata|importlib import metadata|pkg_resources|entry_points\(")
_COMPILED = re.compile(r"cython|maturin|scikit-build|meson-python|pybind11|mypyc|setuptools-rust|cffi", re.IGNORECASE)
_MADE_BY_SETUP = re.compile(r"\b(ext_modules|cffi_modules|rust_extensions|use_scm_version|versioneer)\b")
MOST_READ = 400


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirement strings as pip reads them, and the files they were read from."""

    runtime: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    build: tuple[str, ...] = ()  # empty: the tree can be tested as it is
    files: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.runtime, *self.tests, *self.build)))


def needs_of(folder: Folder, pyproject: dict[str, Any], inis: dict[str, configparser.ConfigParser]) -> Needs:
    project = _table(pyproject, "project")
    config, told = inis["setup.cfg"], told_to_setup(folder.text("setup.py"))
    runtime = (
        *_strings(project.get("dependencies")),
        *_listed(config, "options", "install_requires"),
        *_written(told.get("install_requires")),
    )
    tests = _of_tests(pyproject, config, told) or _of_tox(inis["tox.ini"])
    build = _of_build(folder, pyproject, told)
    written = {
        "pyproject.toml": pyproject,
        "setup.cfg": config.sections(),
        "tox.ini": inis["tox.ini"].sections(),
        "setup.py": folder.has("setup.py"),
    }
    return Needs(runtime, tests, build, tuple(name for name, content in written.items() if content))


def holding_pytest(groups: Any) -> list[str]:
    """The names of the groups that bring pytest, by themselves or through another: the tests' own first, then dev."""
    names = [name for name in groups if re.fullmatch(r"[\w.-]+", name)] if isinstance(groups, dict) else []
    found = [name for name in names if named(flat(groups, name), "pytest")]
    return sorted(found, key=lambda name: (not _TESTS.search(name), name != "dev"))


def flat(groups: dict[str, Any], name: str, above: tuple[str, ...] = ()) -> list[str]:
    """A dependency group with those that it includes."""
    found: list[str] = []
    for item in groups.get(name) or ():
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict) and (other := item.get("include-group")) not in (None, name, *above):
            found += flat(groups, str(other), (*above, name))
    return found


def named(requirements: Iterable[str], package: str) -> bool:
    """Is the package itself among them, and not only one whose name begins like it?"""
    return any((found := _NAME.match(text.strip())) and found[0].lower() == package for text in requirements)


def arguments(requirements: Iterable[str]) -> str:
    return "".join(f" {shlex.quote(text)}" for text in requirements)


def _of_tests(pyproject: dict[str, Any], config: configparser.ConfigParser, told: dict[str, Any]) -> tuple[str, ...]:
    groups = _table(pyproject, "dependency-groups")
    extras = _table(_table(pyproject, "project"), "optional-dependencies")
    if chosen := holding_pytest(groups):
        return tuple(flat(groups, chosen[0]))
    if chosen := holding_pytest(extras):
        return tuple(text for text in _strings(extras[chosen[0]]) if "[" not in text or not _itself(pyproject, text))
    listed = {name: _lines(config["options.extras_require"][name]) for name in _keys(config, "options.extras_require")}
    listed |= {name: _written(value) for name, value in _table(told, "extras_require").items()}
    chosen = holding_pytest(listed)
    both = (*_listed(config, "options", "tests_require"), *_written(told.get("tests_require")))
    return tuple(listed[chosen[0]]) if chosen else both


def _of_tox(tox: configparser.ConfigParser) -> tuple[str, ...]:
    """The plain lines of tox's `deps`: what has conditions or names files is left to a person."""
    lines = _listed(tox, "testenv", "deps")
    return tuple(line for line in lines if _NAME.match(line) and "{" not in line and not re.match(r"[\w,!-]+:", line))


def _of_build(folder: Folder, pyproject: dict[str, Any], told: dict[str, Any]) -> tuple[str, ...]:
    """Where tests want what only a build makes: a version file, the package's metadata, compiled modules."""
    asked = _table(pyproject, "build-system").get("requires")
    requires = _strings(asked) if asked is not None else ["setuptools"]  # as pip does where nothing is said
    if not requires or not (folder.has("setup.py") or "project" in pyproject or (asked and "tool" in pyproject)):
        return ()
    requires += _written(told.get("setup_requires"))
    text = " ".join(requires)
    made = _MADE_VERSION.search(text) or _COMPILED.search(text) or _MADE_BY_SETUP.search(folder.text("setup.py"))
    if made or _reads_metadata(folder):
        return (*requires, *(("wheel",) if "setuptools" in text and "wheel" not in text else ()))
    return ()


def _reads_metadata(folder: Folder) -> bool:
    python = [name for name in folder.files() if name.endswith(".py") and not name.startswith("docs/")]
    return any(_METADATA.search(folder.text(name)) for name in python[:MOST_READ])


def _itself(pyproject: dict[str, Any], text: str) -> bool:
    """An extra that names the project's own other extras, such as `x[cli]`."""
    own = str(_table(pyproject, "project").get("name", "")).lower().replace("_", "-")
    found = _NAME.match(text)
    return found is not None and found[0].lower().replace("_", "-") == own


def _listed(ini: configparser.ConfigParser, section: str, key: str) -> list[str]:
    return _lines(ini[section][key]) if ini.has_option(section, key) else []


def _written(value: Any) -> list[str]:
    """As setuptools takes it: a list, or a text with a line for each."""
    return _lines(value) if isinstance(value, str) else _strings(value)


def _lines(text: str) -> list[str]:
    return [line for line in (line.partition("#")[0].strip() for line in text.splitlines()) if line]


def _keys(ini: configparser.ConfigParser, section: str) -> list[str]:
    return list(ini[section]) if ini.has_section(section) else []


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
