"""Refs, read from their files where they have any: a spawn costs more than everything else about a ref."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from becket.adapters.git.program import Place, run
from becket.contract.errors import GitFailed

OWN = "refs/becket/"
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SYMBOLIC = "ref: "
_DEPTH = 5


def ref_problem(ref: str) -> str | None:
    """What git's check-ref-format would say against a full ref name, or None."""
    if not ref.startswith("refs/"):
        return f"{ref!r} is not a full ref name; write it like refs/heads/main"
    if _FORBIDDEN.search(ref):
        return f"{ref!r} holds a blank, a control character, or one of .. // @{{ ~ ^ : ? * [ \\"
    if ref.endswith((".", "/")):
        return f"{ref!r} ends with a dot or a slash"
    if any(part.startswith(".") or part.endswith(".lock") for part in ref.split("/")):
        return f"{ref!r} has a part that begins with a dot or ends with .lock"
    return None


class Refs:
    """The refs of one repository, as seen from one of its work trees."""

    def __init__(self, place: Place, common_dir: Path) -> None:
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
        """All refs below these patterns, in git's order."""
        output = await run(self.place, "for-each-ref", "--format=%(objectname) %(refname)", *patterns)
        pairs = (line.split(" ", 1) for line in output.text.splitlines())
        return {ref: sha for sha, ref in pairs}

    async def head(self) -> str:
        """HEAD of this work tree: a hash, or `ref: refs/heads/...`."""
        if not self.reftable:
            return read_text(self.place.git_dir / "HEAD") or ""
        symbolic = await run(self.place, "symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
        if symbolic.code == 0:
            return _SYMBOLIC + symbolic.text
        return (await run(self.place, "rev-parse", "HEAD")).text

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
