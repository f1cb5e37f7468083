"""Which part of the disk a child sees: rules of path and access, where the deepest rule wins and the rest is hidden."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec
from becket.kernel.contract.toolchains import MANAGERS, find
from becket.kernel.process import words
from becket.kernel.process.environment import search_path

SYSTEM = tuple(Path(path) for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"))
STORES = tuple(Path(path) for path in ("/nix/store", "/gnu/store"))
_ETC_NAMES = """
    alternatives crypto-policies debian_version fonts group host.conf hosts java java-11-openjdk java-17-openjdk
    java-21-openjdk ld.so.cache localtime lsb-release maven/logging maven/m2.conf mime.types nsswitch.conf os-release
    passwd perl pki protocols resolv.conf services ssl terminfo timezone
"""
ETC = tuple(Path("/etc", name) for name in _ETC_NAMES.split())

_BESIDE_SHIMS = sorted({name for manager in MANAGERS if "shims" in manager.shown for name in manager.shown})


class Access(StrEnum):
    read = "read"
    write = "write"
    hide = "hide"


@dataclass(frozen=True, slots=True)
class Rule:
    """One place. `path` is real; `alias` is the name it was asked by, where symbolic links made that another one."""

    path: Path
    access: Access
    alias: Path | None = None


class Disk:
    """Makes the rules of each child. What all children share is looked up once for each PATH."""

    def __init__(self, *keeper: Path) -> None:
        self._keeper = keeper
        self._shared: dict[tuple[str, ...], dict[Path, Rule]] = {}

    def rules_of(self, spec: ChildSpec, env: Mapping[str, str], readable: Iterable[Path] = ()) -> tuple[Rule, ...]:
        """The rules of one child, shallow before deep, without those that change nothing. All may read `readable`, and
        toolchains: looked up each time, because a login may have come into a file of settings.
        """
        _refuse_contradictions(spec)
        _refuse_planted_links(spec)
        _refuse_absent(spec)
        _refuse_unfit_home(spec)
        asked = dict(self._shared_by(tuple(search_path(env))))
        for path in spec.hidden:
            _put(asked, path, Access.hide)
        for path in (*find(os.environ).places, *readable, *spec.readable):
            _put(asked, path, Access.read)
        for path in (*spec.writable, spec.tree):
            _put(asked, path, Access.write)
        return _without_needless(sorted(asked.values(), key=_depth))

    def _shared_by(self, search: tuple[str, ...]) -> dict[Path, Rule]:
        if search not in self._shared:
            asked: dict[Path, Rule] = {}
            for place in (*(path.resolve() for path in SYSTEM), *STORES, *_tools(search), *self._keeper):
                _put(asked, place, Access.read)
            needed = _without_needless(sorted(asked.values(), key=_depth))
            self._shared[search] = {rule.path: rule for rule in needed}
        return self._shared[search]


def unseen(program: Path, search: str, readable: Iterable[Path] = ()) -> Path | None:
    """What of a program no contained command can read: its file, or the interpreter that its first line names."""
    nowhere = Path("/nonexistent")
    spec = ChildSpec(argv=("true",), tree=nowhere, output=nowhere, hidden=(Path.home(),))
    rules = Disk().rules_of(spec, {"PATH": search}, readable)
    return next((place for place in _parts(program.resolve()) if nearest(rules, place) is Access.hide), None)


def _parts(program: Path) -> Iterable[Path]:
    yield program
    with suppress(OSError), program.open("rb") as file:
        first, *_ = file.read(512).split(b"\n")
        if first.startswith(b"#!/"):
            yield Path(os.fsdecode(first[2:].split()[0])).resolve()


def _depth(rule: Rule) -> int:
    return len(rule.path.parts)


def nearest(rules: Iterable[Rule], path: Path) -> Access:
    """What the rules say about `path`: the deepest one at or above it decides."""
    return _deepest({rule.path: rule for rule in rules}, path)


def _deepest(rules: Mapping[Path, Rule], path: Path) -> Access:
    found = next((rules[place] for place in (path, *path.parents) if place in rules), None)
    return Access.hide if found is None else found.access


def _put(asked: dict[Path, Rule], path: Path, access: Access) -> None:
    if access is not Access.hide and not _readable(path):
        return  # absent, or not ours to read: nothing to show
    real = Path(os.path.realpath(path))
    if os.access(real, os.F_OK):
        has_alias = path != real and not any(path.is_relative_to(system) for system in SYSTEM)
        asked[real] = Rule(real, access, path if has_alias else None)


def _readable(path: Path) -> bool:
    return os.access(path, os.R_OK) and (path.is_file() or os.access(path, os.X_OK))


def _without_needless(rules: list[Rule]) -> tuple[Rule, ...]:
    kept: dict[Path, Rule] = {}
    for rule in rules:
        shown_by_alias = rule.alias is not None and rule.access is not Access.hide
        if shown_by_alias or _deepest(kept, rule.path) is not rule.access:
            kept[rule.path] = rule
    return tuple(kept.values())


def _tools(search: Iterable[str]) -> Iterable[Path]:
    """Where the programs of PATH live, and the Python that runs Becket; never a whole home."""
    home = Path.home()
    for entry in map(Path, search):
        yield from (place for place in _tool_places(entry, home) if not home.is_relative_to(place))
    for prefix in {Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix)}:
        if not home.is_relative_to(prefix):
            yield prefix


def _tool_places(entry: Path, home: Path) -> Iterable[Path]:
    yield entry
    if entry.name == "shims":  # pyenv, asdf, mise: a shim runs a program of the folder above, and a login may lie there
        yield from (entry.parent / name for name in _BESIDE_SHIMS)
    # /opt/node/bin needs /opt/node/lib; but ~/.local and ~/.cargo also hold secrets, so only the bin is shown.
    if entry.name in ("bin", "sbin") and os.access(entry.parent / "lib", os.X_OK) and entry.parent.parent != home:
        yield entry.parent


def _written(spec: ChildSpec) -> tuple[Path, ...]:
    """What the child may change beside its tree."""
    return spec.writable if spec.home is None else (*spec.writable, spec.home)


def _refuse_unfit_home(spec: ChildSpec) -> None:
    """A home is shown whole, under a name of its own in some sandboxes, so it must be what it seems to be."""
    if spec.home is None:
        return
    if spec.home.is_symlink():
        raise UsageError(words.HOME_IS_LINK.format(home=spec.home))
    for path in spec.hidden:
        if path.resolve().is_relative_to(spec.home.resolve()):
            raise UsageError(words.HOME_HOLDS_HIDDEN.format(hidden=path, home=spec.home))


def _refuse_contradictions(spec: ChildSpec) -> None:
    shown = {path.resolve() for path in (spec.tree, *spec.readable, *_written(spec))}
    both = sorted(str(path) for path in spec.hidden if path.resolve() in shown)
    if both:
        raise UsageError(f"{', '.join(both)} cannot be hidden from a child and given to it. Take it out of one list.")


def _refuse_absent(spec: ChildSpec) -> None:
    absent = sorted(str(path) for path in _written(spec) if not os.access(path, os.W_OK))
    if absent:
        raise UsageError(f"A child cannot be let write {', '.join(absent)}: make it first, and writable for this user.")


def _refuse_planted_links(spec: ChildSpec) -> None:
    """Refuse a place inside a writable one that leads out of it: the child before this one may have made the link."""
    writable = (spec.tree, *_written(spec))
    for path in (*spec.readable, *_written(spec)):
        for root in writable:
            if path != root and path.is_relative_to(root) and not path.resolve().is_relative_to(root.resolve()):
                raise UsageError(
                    f"{path} leads out of {root} by a symbolic link ({path.resolve()}). Name the real folder, if the "
                    "child may have it, or remove the link."
                )
