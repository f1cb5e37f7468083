"""A patch into a person's work tree: whole or not at all, and never committed."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from becket.kernel.contract.errors import GitFailed
from becket.kernel.git.program import GitOutput, GitPlace, run


class DoesNotFit(GitFailed):
    """The patch cannot be applied as it is; nothing was changed."""


async def apply_patch(place: GitPlace, patch: bytes) -> None:
    """Apply and stage it. Tried on a copy of the index first: git itself would leave conflict markers in the files.

    Files that differ from the index, or lie untracked in the way, make git refuse before it writes anything.
    """
    if place.work_tree is None:
        raise DoesNotFit(f"{place.git_dir} is a bare repository: it has no work tree to apply anything to")
    # A file that was only touched would pass for changed.
    await run(place, "update-index", "-q", "--refresh", ok=(0, 1))
    with tempfile.TemporaryDirectory(prefix="becket-apply-") as folder:
        index, empty = Path(folder) / "index", Path(folder) / "tree"
        empty.mkdir()
        if (place.git_dir / "index").exists():
            shutil.copy2(place.git_dir / "index", index)
        trial = replace(place, work_tree=empty, index=index)
        _fits(await run(trial, *_command("--cached"), stdin=patch, ok=(0, 1, 128)))
    _fits(await run(place, *_command("--index"), stdin=patch, ok=(0, 1, 128)))


def _command(where: str) -> tuple[str, ...]:
    return ("apply", where, "--3way", "--whitespace=nowarn", "--no-ignore-whitespace", "-")


def _fits(output: GitOutput) -> None:
    if output.code:
        signs = ("error: ", "fatal: ", "U ")
        noise = ("error: repository lacks the necessary blob",)  # said of every new file, and means nothing
        lines = [line for line in output.stderr.splitlines() if line.startswith(signs) and not line.startswith(noise)]
        said = "; ".join(line.removeprefix("error: ") for line in lines) or output.stderr.strip()
        raise DoesNotFit(f"it does not fit this work tree: {said}; nothing was changed")
