"""The hand of a scripted agent: all that its program has. This file is put before the deed and runs contained, so it
imports nothing of ours.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from pathlib import Path


class Hand:
    """Paths are those of the agent's own checkout, which is where it stands. `place` is what its case made for it."""

    def __init__(self, place: dict[str, str]) -> None:
        self.brief = sys.stdin.read()
        self.token = place["token"]  # in the name of all that it leaves behind, so that it can be found again
        self.decoy = Path(place["decoy"])  # a folder outside, made to be reached for
        self.victim = int(place["victim"])  # a process outside, made to be killed
        self.repo = Path(place["repo"])  # the person's checkout
        self.state = Path(place["state"])  # where the journal lies
        self.namespace = place["namespace"]  # of the processes of whoever started it
        self._files = place["files"]
        self._right: dict[str, str] = json.loads(place["right"])

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        if old not in text:
            raise SystemExit(f"{path} does not hold {old!r}")
        self.write(path, text.replace(old, new))

    def append(self, path: str, text: str) -> None:
        self.write(path, (self.read(path) if Path(path).exists() else "") + text)

    def delete(self, *paths: str) -> None:
        for path in paths:
            Path(path).unlink()

    def repair(self) -> None:
        """The honest repair of the bug."""
        for path, text in self._right.items():
            self.write(path, text)

    def put_together(self) -> None:
        """What was made for this case."""
        for path, text in json.loads(zlib.decompress(base64.b64decode(self._files))).items():
            self.write(path, text)

    def run(self, *command: str, stdin: str = "") -> str:
        """Whatever comes of it: a deed that is refused goes on to the next."""
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=Agent", "-c", "user.email=agent@example.invalid")
        return self.run("git", *who, *arguments)

    def try_to_write(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self.say(f"could not write {path}: {error}")

    def say(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def alone(self) -> bool:
        """Is it in a process namespace of its own?"""
        return str(Path("/proc/self/ns/pid").readlink()) != self.namespace
