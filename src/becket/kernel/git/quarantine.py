"""New objects, out of reach of the person's `git gc` until a ref names them.

`git prune` first looks at what the refs reach and then removes every loose object beyond that, however new it is; a
ref that is set between the two does not help. So objects are made in a folder of ours and come over as one pack with a
`.keep` beside it: prune looks at loose objects only, and repack leaves such a pack alone. Once a ref names them the
`.keep` goes. Whoever lists the packs after that looks at the refs later still.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import GitFailed
from becket.kernel.git.program import GitCommandFailed, GitPlace, run
from becket.kernel.git.refs import OWN
from becket.kernel.git.workspace import Source

T = TypeVar("T")

packed = CrashPoint(
    "objects.packed", "new objects lie packed in a folder of ours; the repository knows nothing of them"
)
brought = CrashPoint("objects.brought", "the repository has the new objects in a kept pack, and no ref names them")
named = CrashPoint("objects.named", "a ref names the new objects, and their pack is still kept")

OURS = "pack-becbecbecbec"  # how the names of our packs begin; git only asks for hexadecimal digits
NEW = "new-"
TRIES = 3
MOST_PACKS = 32  # beyond this they are made one: a person's git begins to tidy up by itself at 50
ABANDONED = 3600.0  # seconds after which what lies around is a crash's
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_PACK = ("-c", "pack.packSizeLimit=0", "-c", "pack.compression=1", "pack-objects", "-q", "--non-empty", "--window=0",
         "--delta-base-offset")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A store of objects that reads through to the repository's."""

    source: Source
    objects: Path

    def at(self, place: GitPlace) -> GitPlace:
        """The same place; what is made there comes here. The disk is not waited for: the pack's turn comes."""
        unhurried = (("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.fsync"))
        value = ("GIT_CONFIG_VALUE_0", "-loose-object")
        return replace(place, objects=self.objects, variables=(*place.variables, *unhurried, value))

    async def made(self, make: Callable[[], Awaitable[T]]) -> T:
        """Again when a gc took an object away that lay unused in the repository: the next time it is made here."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(GitCommandFailed):
                return await make()
        return await make()

    async def pack(self, sha: str, parent: str) -> Path | None:
        """Everything that a commit reaches and no ref of the person's does; None if that is nothing."""
        listed = (await self.source.refs.listed()).items()
        reached = {value for ref, value in listed if not ref.startswith(OWN)}
        try:
            return await self._pack(sha, reached)
        except GitCommandFailed:  # one of their refs is broken, which is theirs to mend
            return await self._pack(sha, {parent})

    async def _pack(self, sha: str, reached: set[str]) -> Path | None:
        asked = "".join(f"{line}\n" for line in (sha, *(f"^{value}" for value in reached)))
        output = await run(
            self.at(self._place), *_PACK, "--revs", str(self.objects / "pack" / "made"), stdin=asked.encode()
        )
        return self.objects / "pack" / f"made-{output.text}.pack" if output.text else None

    async def name(self, ref: str, sha: str, pack: Path | None) -> None:
        """Set one of our refs to a commit whose objects are in the pack."""
        packed()
        with _kept(self.source.objects / "pack", pack):
            brought()
            await run(self._place, "update-ref", "--no-deref", "-m", "becket", ref, sha)
            named()
            await self._check(ref, sha)

    async def _check(self, ref: str, sha: str) -> None:
        """Against a person who removed, at this very moment, what the commit stands on."""
        try:
            await run(self._place, "rev-list", "--objects", "--quiet", sha, "--not", f"{sha}^@")
        except GitCommandFailed as failed:
            await run(self._place, "update-ref", "--no-deref", "-d", ref, sha)
            raise GitFailed(f"what {sha[:12]} stands on was removed from the repository; {ref} is not set") from failed

    @property
    def _place(self) -> GitPlace:
        return GitPlace(self.source.refs.common_dir, private=True)


@asynccontextmanager
async def quarantine(source: Source, also: Path | None = None) -> AsyncIterator[Quarantine]:
    """With `also` it reads through to another store too: whatever is named and lies only there comes over as well."""
    parent = _folder(source)
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        objects = Path(tempfile.mkdtemp(prefix=NEW, dir=parent))
        for name in ("info", "pack"):
            (objects / name).mkdir()
        read = [source.objects, *([also] if also is not None and also.is_dir() else [])]
        lines = "".join(f"{json.dumps(os.fspath(path), ensure_ascii=False)}\n" for path in read)
        (objects / "info" / "alternates").write_text(lines, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise GitFailed(f"nothing can be written in {parent}: {error}") from error
    try:
        yield Quarantine(source, objects)
    finally:
        await asyncio.to_thread(shutil.rmtree, objects, ignore_errors=True)


def _folder(source: Source) -> Path:
    return source.refs.common_dir / "becket" / "objects"


@contextlib.contextmanager
def _kept(folder: Path, pack: Path | None) -> Iterator[None]:
    """The pack is in the folder, and nothing removes it meanwhile."""
    if pack is None:
        yield
        return
    digits = len(pack.stem.rpartition("-")[2])
    target = folder / f"{OURS}{secrets.token_hex(digits // 2)}"[: len("pack-") + digits]
    keep = target.with_suffix(".keep")
    try:
        folder.mkdir(exist_ok=True)
        keep.write_text("becket: until a ref names these objects\n", encoding="ascii")
        for kind in (".pack", ".idx"):  # git knows of a pack by its index
            _link(pack.with_suffix(kind), target.with_suffix(kind))
        yield
    except OSError as error:
        raise GitFailed(f"new objects cannot be put into {folder}: {error}") from error
    finally:
        with contextlib.suppress(OSError):  # what stays is swept later
            keep.unlink(missing_ok=True)


def _link(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        away = name.with_name(f"tmp_{name.name}")
        shutil.copy2(file, away)
        away.replace(name)


async def tidy(source: Source) -> None:
    """Remove what a kill left, and make many packs of ours one. Called now and then."""
    folder = source.objects / "pack"
    await asyncio.to_thread(_sweep, folder, _folder(source))
    ours = await asyncio.to_thread(lambda: [path for path in folder.glob(f"{OURS}*.pack") if _is_done(path)])
    if len(ours) <= MOST_PACKS:
        return
    async with quarantine(source) as new:
        asked = "".join(f"{path.name}\n" for path in ours)
        base = str(new.objects / "pack" / "made")
        with contextlib.suppress(GitCommandFailed):  # a gc was quicker
            place = GitPlace(source.refs.common_dir, private=True)
            output = await run(place, *_PACK, "--stdin-packs", base, stdin=asked.encode())
            with _kept(folder, Path(f"{base}-{output.text}.pack") if output.text else None):
                await asyncio.to_thread(_remove_packs, ours)


def _is_done(pack: Path) -> bool:
    return pack.with_suffix(".idx").exists() and not pack.with_suffix(".keep").exists()


def _remove_packs(packs: list[Path]) -> None:
    for pack in packs:
        for kind in (".idx", ".pack", ".rev"):
            pack.with_suffix(kind).unlink(missing_ok=True)


def _sweep(packs: Path, folder: Path) -> None:
    for left in packs.glob(f"{OURS}*"):
        unfinished = left.suffix == ".keep" or (left.suffix == ".pack" and not left.with_suffix(".idx").exists())
        if unfinished and _is_old(left):
            left.unlink(missing_ok=True)
    for left in folder.glob(f"{NEW}*"):
        if _is_old(left):
            shutil.rmtree(left, ignore_errors=True)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > ABANDONED
    except FileNotFoundError:
        return False
