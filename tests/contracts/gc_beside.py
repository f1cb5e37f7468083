"""A person's `git gc` beside Becket, at the worst moments: between every two git commands, and around each of them.

A program named `git` comes first on the PATH. After each command of ours it lets the real git tidy the repository up;
what tidies is chosen by a seed. A slow one is begun before a command and ends after it: it has looked at the refs, and
removes what they did not reach, when the command has done its work.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import fcntl, json, os, random, subprocess, sys
from pathlib import Path

GIT, HOME, STATE, KINDS, SEED = {git!r}, {home!r}, Path({state!r}), {kinds!r}, {seed!r}
OBJECTS = Path(HOME) / ".git/objects"
clean = {{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}}


def git(*command, stdin=None):
    ended = subprocess.run([GIT, "-C", HOME, *command], env=clean, capture_output=True, input=stdin, check=False)
    if ended.returncode and b"cannot lock ref" not in ended.stderr:  # which a promotion may hold for a moment
        with (STATE / "failed").open("ab") as file:
            file.write(b"git " + " ".join(command).encode() + b": " + ended.stderr)
    return ended.stdout.decode()


def packs():
    found = (OBJECTS / "pack").glob("*.pack")
    return [str(pack) for pack in found if not pack.with_suffix(".keep").exists()]


def begin_prune():
    reached = git("rev-list", "--objects", "--no-object-names", "--all", "--reflog", "--indexed-objects")
    return {{"kind": "prune", "reached": reached.split()}}


def end_prune(begun):
    reached = set(begun["reached"])
    for loose in OBJECTS.glob("[0-9a-f][0-9a-f]/*"):
        if loose.parent.name + loose.name not in reached:
            loose.unlink()


def begin_repack():
    old = packs()
    new = git("pack-objects", "-q", "--all", "--reflog", "--indexed-objects", "--non-empty", str(STATE / "new"),
              stdin=b"").strip()
    return {{"kind": "repack", "old": old, "new": new}}


def end_repack(begun):
    if not begun["new"]:
        return
    for kind in ("pack", "idx"):
        source = STATE / f"new-{{begun['new']}}.{{kind}}"
        source.replace(OBJECTS / "pack" / f"pack-{{begun['new']}}.{{kind}}")
    for pack in map(Path, begun["old"]):
        if pack.stem != f"pack-{{begun['new']}}":
            pack.unlink(missing_ok=True)
            pack.with_suffix(".idx").unlink(missing_ok=True)
    git("prune-packed", "-q")


if "update-ref" in sys.argv and "--stdin" in sys.argv:  # it is talked with, and others run meanwhile
    os.execv(GIT, [GIT, *sys.argv[1:]])
with (STATE / "lock").open("w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    counted = STATE / "count"
    count = int(counted.read_text()) if counted.exists() else 0
    counted.write_text(str(count + 1))
    kind = random.Random(SEED * 1000 + count).choice(KINDS)
    begun = {{"slow prune": begin_prune, "slow repack": begin_repack}}.get(kind, lambda: None)()
    ended = subprocess.run([GIT, *sys.argv[1:]], check=False, close_fds=False)
    if begun is not None:
        {{"prune": end_prune, "repack": end_repack}}[begun["kind"]](begun)
    elif kind == "gc":
        git("gc", "--quiet", "--prune=now")
    elif kind == "prune":
        git("prune", "--expire=now")
    elif kind == "repack":
        git("repack", "-a", "-d", "-q")
sys.exit(ended.returncode if ended.returncode >= 0 else 128)
"""

KINDS = ("gc", "prune", "repack", "slow prune", "slow repack")


class GcBeside:
    """Tidies the repository at `home` up at every git command that follows."""

    def __init__(self, home: Path, folder: Path, patch: pytest.MonkeyPatch, seed: int = 0) -> None:
        self.state = folder / "gc"
        programs = folder / "programs"
        self.state.mkdir()
        programs.mkdir()
        real = shutil.which("git")
        program = programs / "git"
        text = _PROGRAM.format(git=real, home=str(home), state=str(self.state), kinds=KINDS, seed=seed)
        program.write_text(f"#!{sys.executable} -SE\n{text}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    @property
    def rounds(self) -> int:
        return int((self.state / "count").read_text())

    @property
    def failures(self) -> str:
        """What the person's own git could not do."""
        failed = self.state / "failed"
        return failed.read_text() if failed.exists() else ""
