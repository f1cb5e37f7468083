"""What a checkout may see of the history: packs of exactly what its commit reaches, and of nothing else.

They are kept in layers below the state folder. A layer holds what one commit reaches beyond the layers below it, and
is never changed. A checkout gets hard links to the packs of its commit's layers: neither a `gc` of the repository nor
the removal of a layer takes anything from it, and a commit that is not before its own leaves no trace there.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.base import Record, digest_of
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.removal import remove
from becket.kernel.git.program import GitPlace, run

log = logging.getLogger("becket.git")

packed = CrashPoint("history.packed", "the packs of a commit are written, under a name that nobody looks for")
layered = CrashPoint("history.layered", "the layer of a commit is there, and no checkout has it yet")

RECORD = "layer.json"
NEW = ".new-"
ABANDONED = 86_400.0  # seconds after which an unfinished layer is a crash's
NEAR = (32, 1000)  # commits to look back for a layer to build on: mostly it is the parent's
MOST_STACKED = 8
MOST_USED = 16  # commits whose layers are kept when it is tidied up; what else is wanted then is packed again
MOST_UNUSED = 16
MOST_KNOWN = 4
TRIES = 3
CHUNK = 1 << 20
PACKING_LIMIT = 3600.0  # the first layer copies the whole history
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
# Deltas that exist are taken over; new ones are not worth the time.
_PACK = ("-c", "pack.packSizeLimit=0", "-c", "pack.compression=1", "pack-objects", "-q", "--revs", "--window=0",
         "--delta-base-offset", "--missing=allow-any")  # fmt: skip


class HistoryView(Record):
    """All that decides what a checkout sees. Two of the same name are the same, whenever they are asked for."""

    sha: str
    tags: tuple[str, ...]  # annotated ones: objects that no commit leads to
    shallow: str

    @property
    def name(self) -> str:
        return f"{self.sha}-{digest_of((self.tags, self.shallow))[:16]}"

    def covers(self, other: HistoryView) -> bool:
        return self.shallow == other.shallow and set(other.tags) <= set(self.tags)


class Layer(Record):
    """`files` are as they were made: size and time of each, by name."""

    sight: HistoryView
    below: tuple[str, ...]  # names, the lowest first
    files: dict[str, tuple[int, int]]

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())

    def is_whole(self, folder: Path) -> bool:
        found = _files(folder)
        names_fit = self.files.keys() == found.keys()
        return names_fit and all(_is_as_made(folder / name, made, found[name]) for name, made in self.files.items())


_Stack = tuple[Layer, ...]
_Around = tuple[Mapping[str, str], str]  # all refs, and where the history is cut


@dataclass(frozen=True, slots=True)
class History:
    """The layers of one repository. Safe for many calls at once, from many processes: a layer appears as a whole."""

    place: GitPlace
    common_dir: Path
    folder: Path
    making: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    known: dict[str, tuple[_Around, HistoryView, Mapping[str, str]]] = field(default_factory=dict)  # by commit

    async def provide(self, sha: str, refs: Mapping[str, str], objects: Path) -> Mapping[str, str]:
        """Make `objects` the object store of a checkout of `sha`; returns those of the refs that it can see."""
        sight, seen = await self._seen_from(sha, refs)
        for _ in range(TRIES):
            stack = await asyncio.to_thread(self._stack, sight.name)
            if stack is None:
                await self._made_once(sight)
            elif await asyncio.to_thread(self._linked, stack, objects):
                return seen
        raise GitFailed(f"the history of {sha} does not stay in {self.folder}; does something remove it there?")

    async def _seen_from(self, sha: str, refs: Mapping[str, str]) -> tuple[HistoryView, Mapping[str, str]]:
        """Remembered: the refs of a repository are mostly what they were."""
        around = (refs, self._shallow())
        if sha not in self.known or self.known[sha][0] != around:
            form = "--format=%(objecttype) %(objectname) %(refname)"
            listed = await run(self.place, "for-each-ref", form, f"--merged={sha}", "refs/heads", "refs/tags")
            found = [line.split(" ", 2) for line in listed.text.split("\n") if line]
            tags = sorted({name for kind, name, _ in found if kind == "tag"})
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            sight = HistoryView(sha=sha, tags=tuple(tags), shallow=around[1])
            self.known[sha] = around, sight, {ref: name for _, name, ref in found}
        _, sight, seen = self.known[sha]
        return sight, seen

    def _shallow(self) -> str:
        try:
            return digest_of((self.common_dir / "shallow").read_text(encoding="ascii"))
        except FileNotFoundError:
            return ""

    def _linked(self, stack: _Stack, objects: Path) -> bool:
        """False if a layer went away meanwhile: another process may tidy up at any time."""
        remove(objects)
        (objects / "pack").mkdir(parents=True)
        try:
            for layer in stack:
                folder = self.folder / layer.sight.name
                for name in layer.files:
                    _link(folder / name, objects / "pack" / name)
            os.utime(folder)
        except FileNotFoundError:
            return False
        return True

    def _stack(self, name: str) -> _Stack | None:
        """A layer with all below it; None if any of that is not there, or is not what was made."""
        top = self._layer(name)
        stack = top and [*(self._layer(below) for below in top.below), top]
        if not stack:
            return None
        found = tuple(layer for layer in stack if layer is not None)
        if len(found) == len(stack):
            return found
        log.warning("a part of the history that %s rests on is gone; it is made anew", self.folder / name)
        self._drop(name)
        return None

    def _layer(self, name: str) -> Layer | None:
        folder = self.folder / name
        try:
            layer = Layer.model_validate_json((folder / RECORD).read_bytes())
            if layer.is_whole(folder):
                return layer
        except FileNotFoundError:
            if not folder.exists():
                return None
        except (OSError, ValidationError):
            pass
        log.warning("the copy of the history in %s was damaged; it is removed and made anew", folder)
        self._drop(name)
        return None

    async def _made_once(self, sight: HistoryView) -> None:
        """However many checkouts wait for it; it goes on when one of them is given up."""
        task = self.making.get(sight.name)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self.making[sight.name] = asyncio.create_task(self._make(sight))
            task.add_done_callback(lambda _: self.making.pop(sight.name, None))
        await asyncio.shield(task)

    async def _make(self, sight: HistoryView) -> None:
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        below = await self._to_build_on(sight)
        new = Path(tempfile.mkdtemp(prefix=NEW, dir=self.folder))
        try:
            await self._pack(sight, below, new)
            names = tuple(layer.sight.name for layer in below)
            layer = Layer(sight=sight, below=names, files=_files(new))
            (new / RECORD).write_text(layer.model_dump_json(), encoding="utf-8")
            packed()
            _appear(new, self.folder / sight.name)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        layered()
        await asyncio.to_thread(self._tidy)

    async def _pack(self, sight: HistoryView, below: _Stack, folder: Path) -> None:
        wanted = [sight.sha, *sight.tags]
        if below:
            top = below[-1].sight
            wanted += [f"^{sha}" for sha in (top.sha, *top.tags)]
        asked = "".join(f"{sha}\n" for sha in wanted).encode()
        await run(self.place, *_PACK, str(folder / "pack"), stdin=asked, timeout=PACKING_LIMIT)
        if self._shallow() != sight.shallow:
            raise GitFailed("the history was deepened or cut while it was copied; try again")

    async def _to_build_on(self, sight: HistoryView) -> _Stack:
        """Of the nearest commit before it that has layers; few of them, and in all not much above the first."""
        nearest = await self._nearest(sight)
        if len(nearest) < MOST_STACKED:
            return nearest
        first, *others = nearest
        return (first,) if sum(layer.size for layer in others) < first.size // 2 else ()

    async def _nearest(self, sight: HistoryView) -> _Stack:
        names = self._names()
        for count in NEAR if names else ():
            before = await run(self.place, "rev-list", f"--max-count={count}", sight.sha, "--")
            nearby = [name for sha in before.text.split() for name in names if name.startswith(sha)]
            for name in nearby:
                stack = await asyncio.to_thread(self._stack, name)
                if stack and sight.covers(stack[-1].sight):
                    return stack
        return ()

    def _names(self) -> list[str]:
        """The one used last comes first."""
        found = [path.name for path in self.folder.iterdir() if not path.name.startswith(NEW)]
        return sorted(found, key=self._used_at, reverse=True)

    def _tidy(self) -> None:
        """Nothing that a checkout has goes with it: that has links of its own."""
        for path in self.folder.glob(f"{NEW}*"):
            if self._used_at(path.name) < time.time() - ABANDONED:
                shutil.rmtree(path, ignore_errors=True)
        names = self._names()
        if len(names) <= MOST_USED + MOST_UNUSED:
            return
        used = (stack for name in names[:MOST_USED] if (stack := self._stack(name)))
        kept = {layer.sight.name for stack in used for layer in stack}
        for name in names:
            if name not in kept:
                self._drop(name)

    def _drop(self, name: str) -> None:
        """At one blow: nobody else finds half of it."""
        away = self.folder / f"{NEW}{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).rename(away)
        shutil.rmtree(away, ignore_errors=True)

    def _used_at(self, name: str) -> float:
        try:
            return (self.folder / name).stat().st_mtime
        except FileNotFoundError:
            return 0.0


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    with os.scandir(folder) as entries:
        known = [(entry.name, entry.stat()) for entry in entries if entry.name != RECORD]
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in known}


def _is_as_made(file: Path, made: tuple[int, int], now: tuple[int, int]) -> bool:
    """A pack's time says little: git sets it anew whenever it is to write an object that the pack has. Then the content
    decides, and the time is put back, so that nobody has to read all of it again.
    """
    if now == made:
        return True
    if file.suffix != ".pack" or now[0] != made[0] or not _fits_its_name(file, now[0]):
        return False
    os.utime(file, ns=(made[1], made[1]))
    return True


def _fits_its_name(pack: Path, size: int) -> bool:
    """A pack ends with the hash of all before, and bears it as its name."""
    name = pack.stem.rpartition("-")[2]
    digest = hashlib.new("sha256" if len(name) == 64 else "sha1", usedforsecurity=False)
    rest = size - digest.digest_size
    with pack.open("rb") as file:
        while rest > 0 and (chunk := file.read(min(rest, CHUNK))):
            digest.update(chunk)
            rest -= len(chunk)
        return digest.hexdigest() == name and file.read() == digest.digest()


def _appear(new: Path, name: Path) -> None:
    try:
        new.rename(name)
    except OSError:
        if not name.is_dir():  # else another process was quicker, with the same
            raise


def _link(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except FileExistsError:
        pass  # two layers hold the same pack
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        shutil.copy2(file, name)
