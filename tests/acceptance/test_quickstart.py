"""The quickstart, followed to its end by the real program: its commands work, and what it shows is what comes."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cli_stage import environment

PAGE = Path(__file__).parents[2] / "docs/quickstart.md"
BLOCK = re.compile(r"(?:Save (?:this one|it) as\s+`(?P<file>[^`]+)`:\s+)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
IDS = re.compile(r"\b(?:run|hnd|apr)_\w+")
VARYING = re.compile(r"\b(?:run|hnd|apr)_\w+|\b(?:[\d-]{10} )?\d\d:\d\d(?::\d\d)?\b|\b[0-9a-f]{8}\b|\b\d+(?:\.\d+)?s\b")
HANDED_OVER = 'git commit --quiet -m "Merge by hand"'
"""From there on `becket run markers` ends with 1, as the page says."""


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that the page shows below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def alike(line: str) -> list[str]:
    """Its words, without what is another in every run."""
    return ["ada" if word == getpass.getuser() else word for word in VARYING.sub("*", line).split()]


class Reader:
    """Does what the page says; the page's ids stand for those that came."""

    def __init__(self, root: Path, becket: Path) -> None:
        self._root = root
        self._env = environment() | {"PATH": f"{becket}:{os.environ['PATH']}"}
        self._ids: dict[str, str] = {}
        self._handed_over = False

    def run(self, command: str) -> str:
        meant = IDS.sub(lambda found: self._ids[found[0]], command)
        done = subprocess.run(
            ["sh", "-c", meant], cwd=self._root, env=self._env, capture_output=True, text=True, check=False
        )
        expected = int(self._handed_over and command == "becket run markers")
        assert done.returncode == expected, f"{meant}: {done.returncode}\n{done.stdout}{done.stderr}"
        self._handed_over |= HANDED_OVER in command
        return done.stdout

    def compare(self, shown: list[str], came: str) -> None:
        told = came.splitlines()
        assert [alike(line) for line in shown] == [alike(line) for line in told]
        self._ids.update(zip(IDS.findall("\n".join(shown)), IDS.findall(came), strict=True))


def test_the_quickstart_can_be_followed_to_its_end(tmp_path: Path) -> None:
    program, shop = tmp_path / "bin/becket", tmp_path / "shop"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m becket.cli "$@"\n')
    program.chmod(0o755)
    shop.mkdir()
    reader = Reader(shop, program.parent)
    for command in (
        "git init --quiet --initial-branch=main && git config user.name ada && git config user.email ada@localhost",
        "printf 'test:\\n\\ttest -f Makefile\\n' > Makefile && git add --all && git commit --quiet -m 'Begin the shop'",
    ):
        reader.run(command)
    page = PAGE.read_text(encoding="utf-8").partition("## Set up a repository")[2]  # before it: tests/packages
    try:
        for block in BLOCK.finditer(page):
            if block["file"]:
                (shop / block["file"]).write_text(block["text"])
                continue
            assert block["kind"] == "console"
            for command, shown in commands(block["text"]):
                came = reader.run(command)
                if shown:
                    reader.compare(shown, came)
    except BaseException:
        reader.run("becket down")
        raise
