"""Refs, read from their files where they have any: a spawn costs more than everything else about a ref."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.git.program import GitPlace, run, shown

OWN = "refs/becket/"
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SYMBOLIC = "ref: "
_DEPTH = 5
_MOST_LOOSE = 500
_LARGEST_PACKED = 1 << 18


class _AskGit(Exception):
    """Something is there that the files alone do not settle, or too much of it."""


class Refs:
    """The refs of one repository, as seen from one of its work trees."""

    def __init__(self, place: GitPlace, common_dir: Path) -> None:
        self.place = place
        self.common_dir = common_dir

    @property
    def reftable(self) -> bool:
        """Such a repository keeps no ref in a file of its own; git has to be asked."""
        return (self.common_dir / "reftable" / "tables.list").exists()

    async def value(self, ref: str) -> str | None:
        return (await self.values((ref,)))[ref]

    async def values(self, refs: Sequence[str]) -> Mapping[str, str | None]:
        """Values of full ref names; None for one that does not exist."""
        if self.reftable:
            listed = await self.listed(*refs)
            return {ref: listed.get(ref) for ref in refs}
        return {ref: self._from_files(ref) for ref in refs}

    async def listed(self, *patterns: str) -> dict[str, str]:
        """All refs below these patterns, in git's order. No pattern has a wildcard; without any, all refs."""
        if not self.reftable and self.place.git_dir == self.common_dir:  # another work tree has refs of its own
            try:
                return self._listed_from_files([pattern.rstrip("/") for pattern in patterns] or ["refs"])
            except (_AskGit, UnicodeEncodeError):  # a name that is not UTF-8 is told as git's words are
                pass
        output = await run(self.place, "for-each-ref", "--format=%(objectname) %(refname)", *patterns)
        pairs = (line.split(" ", 1) for line in output.text.split("\n") if line)
        return {ref: sha for sha, ref in pairs}

    async def head(self) -> str:
        """HEAD of this work tree: a hash, or `ref: refs/heads/...`."""
        if not self.reftable:
            return read_text(self.place.git_dir / "HEAD") or ""
        symbolic = await run(self.place, "symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
        if symbolic.code == 0:
            return _SYMBOLIC + symbolic.text
        return (await run(self.place, "rev-parse", "HEAD")).text

    def leads_to(self, ref: str) -> str | None:
        """The ref that this one is only another name of."""
        text = None if self.reftable else read_text(self.common_dir / ref)
        return text.removeprefix(_SYMBOLIC).strip() if text and text.startswith(_SYMBOLIC) else None

    def folders(self, refs: Iterable[str]) -> list[Path]:
        """The existing folders in which something happens when one of these refs moves."""
        if self.reftable:
            return [self.common_dir / "reftable"]
        wanted = {self.common_dir}
        for ref in refs:
            wanted.update(self.common_dir / parent for parent in PurePosixPath(ref).parents)
        return sorted(folder for folder in wanted if folder.is_dir())

    def _from_files(self, ref: str) -> str | None:
        for _ in range(_DEPTH):
            text = read_text(self.common_dir / ref)
            if text is None:
                return self._packed(ref)
            if not text.startswith(_SYMBOLIC):
                return _checked(ref, text)
            ref = text.removeprefix(_SYMBOLIC).strip()
        raise GitFailed(f"{ref} in {self.common_dir} is a symbolic ref that leads nowhere; run `git fsck`")

    def _listed_from_files(self, prefixes: Sequence[str]) -> dict[str, str]:
        """The loose ones first: a ref that is packed meanwhile is then seen twice, never missed, and none returns."""
        found = {ref: sha for ref in _loose(self.common_dir, prefixes) if (sha := self._loose_value(ref))}
        packed = {ref: sha for ref, sha in _packed_refs(self.common_dir) if _is_below(ref, prefixes)}
        every = packed | found
        return {ref: every[ref] for ref in sorted(every, key=str.encode)}

    def _loose_value(self, ref: str) -> str | None:
        """None for one that is gone by now: the packed refs tell whether it still exists."""
        if ref_problem(ref):
            raise _AskGit
        try:
            text = read_text(self.common_dir / ref)
            if text is not None and text.startswith(_SYMBOLIC):
                text = self._from_files(text.removeprefix(_SYMBOLIC).strip()) or "it dangles"
        except GitFailed:
            raise _AskGit from None
        if text is not None and (not SHA.fullmatch(text) or not text.strip("0")):
            raise _AskGit
        return text

    def _packed(self, ref: str) -> str | None:
        try:
            data = (self.common_dir / "packed-refs").read_bytes()
        except FileNotFoundError:
            if not self.common_dir.is_dir():
                raise GitFailed(f"the repository at {self.common_dir} is gone") from None
            return None
        needle = b" " + ref.encode() + b"\n"
        end = data.find(needle)
        if end < 0:
            return None
        return _checked(ref, data[data.rfind(b"\n", 0, end) + 1 : end].decode())


def _loose(common_dir: Path, prefixes: Sequence[str]) -> set[str]:
    """Full names of the files at or below the prefixes; locks and hidden files are not refs."""
    found: set[str] = set()
    waiting = list(prefixes)
    while waiting:
        ref = waiting.pop()
        try:
            with os.scandir(common_dir / ref) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name.endswith(".lock"):
                        continue
                    if entry.is_symlink() or len(found) >= _MOST_LOOSE:
                        raise _AskGit
                    add = waiting.append if entry.is_dir() else found.add
                    add(f"{ref}/{entry.name}")
        except NotADirectoryError:
            found.add(ref)
        except FileNotFoundError:
            continue
        except OSError:
            raise _AskGit from None
    return found


def _packed_refs(common_dir: Path) -> Iterator[tuple[str, str]]:
    try:
        with (common_dir / "packed-refs").open("rb") as file:
            data = file.read(_LARGEST_PACKED)
    except FileNotFoundError:
        if not (common_dir / "refs").is_dir():
            raise _AskGit from None
        return
    except OSError:
        raise _AskGit from None
    if len(data) == _LARGEST_PACKED:
        raise _AskGit
    for line in shown(data).split("\n"):
        if not line or line.startswith(("#", "^")):
            continue
        sha, _, ref = line.partition(" ")
        if not SHA.fullmatch(sha) or ref_problem(ref):
            raise _AskGit
        yield ref, sha


def _is_below(ref: str, prefixes: Sequence[str]) -> bool:
    return any(ref == prefix or ref.startswith(f"{prefix}/") for prefix in prefixes)


def read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise GitFailed(f"{path} cannot be read: {error}") from error


def _checked(ref: str, value: str) -> str:
    if not SHA.fullmatch(value):
        raise GitFailed(f"{ref} is broken: it holds {value[:80]!r} instead of a hash; run `git fsck`")
    return value
