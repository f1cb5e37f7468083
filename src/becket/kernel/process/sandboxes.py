"""The three ways to contain a child. Each says what it holds, and how to start a keeper inside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec, Holds, Network, SandboxKind
from becket.kernel.process import words
from becket.kernel.process.keeper import landlock, seccomp
from becket.kernel.process.keeper.job import Landlock as LandlockJob
from becket.kernel.process.places import ETC, SYSTEM, Access, Rule, nearest
from becket.kernel.process.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Confinement:
    """What one child is to see: the rules of its disk, its network, its private folders.

    `home` is a lasting one, in place of the private; `ports` are what it connects to, where it has no network of its
    own; `moved` is where its tree is and where it sees it, if that is not the same.
    """

    rules: tuple[Rule, ...]
    network: Network
    scratch: Scratch
    home: Path | None = None
    ports: tuple[int, ...] = ()
    moved: tuple[Path, Path] | None = None

    def inside(self, path: Path) -> Path:
        """The name that a place has inside."""
        if self.moved is None or not path.is_relative_to(self.moved[0]):
            return path
        return self.moved[1] / path.relative_to(self.moved[0])


class Sandbox(Protocol):
    """One way to contain a child. Stateless; the methods are called once per child, `holds` at any time."""

    def holds(self) -> Holds: ...

    @property
    def own_network(self) -> bool:
        """Whether a child without the host's network has one of its own."""
        ...

    def tree_inside(self, spec: ChildSpec) -> Path:
        """The tree, by the name that it has inside."""
        ...

    def private_folders(self, scratch: Scratch, home: Path | None) -> tuple[str, str]:
        """Home and temporary folder, by the names they have inside. `home` is a lasting one, if any."""
        ...

    def command(self, keeper: Sequence[str], confinement: Confinement) -> list[str]:
        """What to start, so that the keeper runs inside."""
        ...

    def landlock(self, confinement: Confinement) -> LandlockJob | None:
        """What the keeper has to apply to the child itself."""
        ...


class NoSandbox:
    """No containment beyond the keeper's."""

    own_network = False

    def holds(self) -> Holds:
        return Holds(kind=SandboxKind.none, files=False, processes=False, network=False, notes=words.NONE_NOTES)

    def tree_inside(self, spec: ChildSpec) -> Path:
        return spec.tree.absolute()

    def private_folders(self, scratch: Scratch, home: Path | None) -> tuple[str, str]:
        return str((home or scratch.home).absolute()), str(scratch.temporary)

    def command(self, keeper: Sequence[str], confinement: Confinement) -> list[str]:
        return list(keeper)

    def landlock(self, confinement: Confinement) -> LandlockJob | None:
        return None


class LandlockSandbox(NoSandbox):
    """Files only, by the kernel's landlock; the keeper stays outside of it."""

    _DEVICES = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom"))

    def __init__(self, abi: int) -> None:
        self._abi = abi

    def holds(self) -> Holds:
        abi = self._abi
        signals = abi >= landlock.FIRST_TO_HOLD_SIGNALS
        files = abi >= landlock.FIRST_TO_HOLD_TRUNCATE
        notes = [
            *words.LANDLOCK_NOTES,
            words.LANDLOCK_SIGNALS_HELD if signals else words.LANDLOCK_SIGNALS_OPEN.format(abi=abi),
            *_notes_on_network(abi),
            *_notes_for_root(),
        ]
        if not files:
            notes.append(words.LANDLOCK_TRUNCATE_OPEN.format(abi=abi))
        return Holds(kind=SandboxKind.landlock, files=files, processes=False, network=False, notes=tuple(notes))

    def landlock(self, confinement: Confinement) -> LandlockJob:
        rules = [(str(path), landlock.READ) for path in (*ETC, Path("/proc"))]
        rules += [(str(path), landlock.DEVICE) for path in self._DEVICES]
        rules.append((str(confinement.scratch.folder), landlock.WRITE))
        if confinement.home is not None:
            rules.append((str(confinement.home), landlock.WRITE))
        rules += _allowed(confinement.rules)
        return LandlockJob(rules, confinement.network is Network.none, self._abi, list(confinement.ports))


def _allowed(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """The rules without their holes: landlock only adds, so a folder with a hidden part is given piece by piece."""
    allowed: list[tuple[str, str]] = []
    for rule in rules:
        if rule.access is Access.hide:
            continue
        holes = [other.path for other in rules if other.access is Access.hide and other.path.is_relative_to(rule.path)]
        if holes and rule.access is Access.write:
            raise UsageError(words.LANDLOCK_CANNOT_HIDE.format(hidden=holes[0], shown=rule.path))
        allowed += [(str(path), rule.access.value) for path in _around_holes(rule.path, holes)]
    return allowed


def _around_holes(folder: Path, holes: Sequence[Path]) -> Iterable[Path]:
    if folder in holes:
        return
    inside = [hole for hole in holes if hole.is_relative_to(folder)]
    if not inside:
        yield folder
        return
    try:
        entries = list(folder.iterdir())
    except PermissionError:
        return  # what Becket cannot list, its child cannot read either
    for entry in entries:
        if not entry.is_symlink():  # what a link leads to has a rule of its own, or is not meant
            yield from _around_holes(entry, inside)


class BubblewrapSandbox:
    """Files, processes and network, by the namespaces of bwrap. The keeper is process 1 inside."""

    _HOME, _TEMPORARY = "/run/becket/home", "/tmp"  # noqa: S108 - a private one, made by bwrap
    _ALSO_TEMPORARY = "/var/tmp"  # noqa: S108 - likewise
    own_network = True

    def __init__(self, program: Path) -> None:
        self._program = program

    def holds(self) -> Holds:
        notes = (*words.BWRAP_NOTES, *_notes_for_root())
        return Holds(kind=SandboxKind.bwrap, files=True, processes=True, network=True, notes=notes)

    def tree_inside(self, spec: ChildSpec) -> Path:
        return spec.at or spec.tree.absolute()

    def private_folders(self, scratch: Scratch, home: Path | None) -> tuple[str, str]:
        return self._HOME, self._TEMPORARY

    def landlock(self, confinement: Confinement) -> LandlockJob | None:
        return None

    def command(self, keeper: Sequence[str], confinement: Confinement) -> list[str]:
        arguments = [str(self._program), *self.namespaces(confinement.network), *self._kernel_views()]
        arguments += ["--bind", str(confinement.scratch.temporary), self._TEMPORARY]
        if not any(rule.path.is_relative_to(self._ALSO_TEMPORARY) for rule in confinement.rules):
            arguments += ["--symlink", self._TEMPORARY, self._ALSO_TEMPORARY]
        arguments += ["--bind", str(confinement.home or confinement.scratch.home), self._HOME]
        arguments += _mounts(confinement)
        for path in ETC:
            if os.path.exists(path):  # noqa: PTH110 - a third of pathlib's time, for each of thirty names
                arguments += _settings(str(path))
        return [*arguments, "--remount-ro", "/", "--", *keeper]

    @staticmethod
    def namespaces(network: Network) -> list[str]:
        flags = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if network is not Network.full:
            flags.append("--unshare-net")
        return [*flags, "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]

    @staticmethod
    def _kernel_views() -> list[str]:
        arguments = ["--proc", "/proc", "--dev", "/dev"]
        if os.geteuid() == 0:
            # Root inside is root outside as the owner of a kernel setting, capabilities or not.
            for name in ("bus", "fs", "irq", "sys", "sysrq-trigger"):
                arguments += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
        return arguments


def _notes_on_network(abi: int) -> tuple[str, ...]:
    if abi < landlock.FIRST_TO_HOLD_TCP:
        return (words.LANDLOCK_TCP_OPEN.format(abi=abi),)
    return (words.LANDLOCK_NETWORK_HELD if seccomp.known() else words.LANDLOCK_TCP_HELD), words.LANDLOCK_REACH


def _notes_for_root() -> tuple[str, ...]:
    return (words.AS_ROOT,) if os.geteuid() == 0 else ()


def _settings(path: str) -> list[str]:
    """One file or folder of /etc; a link into /usr stays a link, which is cheaper than a mount."""
    real = os.path.realpath(path)
    if real.startswith("/usr/") and Path(path).is_symlink():
        return ["--symlink", real, path]
    return ["--ro-bind", real, path]


def _mounts(confinement: Confinement) -> list[str]:
    """Shallow before deep, so that a deeper mount lies on top of a shallower one."""
    arguments: list[str] = []
    sealed: list[str] = []
    in_place = [rule for rule in confinement.rules if confinement.inside(rule.path) == rule.path]
    for rule in confinement.rules:
        path, inside = str(rule.path), str(confinement.inside(rule.path))
        if rule.access is not Access.hide:
            arguments += ["--bind" if rule.access is Access.write else "--ro-bind-try", path, inside]
            continue
        # A folder around a moved tree may be shown too: then what is hidden would be there, by its old name.
        also = [path] if inside != path and nearest(in_place, rule.path) is not Access.hide else []
        for name in (inside, *also):
            if rule.path.is_dir():
                arguments += ["--tmpfs", name]
                sealed += ["--remount-ro", name]
            else:
                arguments += ["--ro-bind", os.devnull, name]
    return [*arguments, *_links(in_place), *sealed]


def _links(rules: Sequence[Rule]) -> list[str]:
    """The symbolic links that lead to what the child sees, where no visible folder holds them already."""
    arguments: list[str] = []
    for link in SYSTEM:
        if link.is_symlink():
            arguments += ["--symlink", str(link.readlink()), str(link)]
    made: list[Path] = []
    aliases = {rule.alias: rule.path for rule in rules if rule.alias is not None and rule.access is not Access.hide}
    for alias in sorted(aliases, key=lambda path: len(path.parts)):
        reachable = any(alias.is_relative_to(link) for link in made) or nearest(rules, alias) is not Access.hide
        if not reachable:
            arguments += ["--symlink", str(aliases[alias]), str(alias)]
            made.append(alias)
    return arguments
