"""Draws docs/assets/story.svg from the real output of the demo: `python docs/_picture.py`."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parent / "assets" / "story.svg"
WIDTH = 100
LEFT_OUT = "gates|effects|outputs"
"""The picture ends where the tables of details begin."""


def on_a_terminal(arguments: list[str], env: dict[str, str]) -> str:
    """What a person sees: the program believes that it writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
    child = subprocess.Popen(arguments, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=env)
    os.close(theirs)
    said = b""
    while chunk := _read(ours):
        said += chunk
    os.close(ours)
    if child.wait() != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}: {said.decode(errors='replace')}")
    return said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed: that is how a terminal ends
        return b""


def story() -> str:
    becket = [sys.executable, "-m", "becket.cli"]
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    env |= {"TERM": "xterm-256color", "LOGNAME": "ada", "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        kept = f"{folder}/kettle"
        told = subprocess.run(
            [*becket, "demo", "--json", "--keep", kept], env=env, capture_output=True, text=True, check=True
        )
        run_id = json.loads(told.stdout)["run"]["run_id"]
        said = on_a_terminal([*becket, "-C", kept, "runs", "show", run_id, "--all"], env)
    return said.replace("\r\n", "\n")


def draw(said: str) -> str:
    shown = Text.from_ansi(said)
    end = re.search(rf"^(?:{LEFT_OUT})\b", shown.plain, re.MULTILINE)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(shown[: end.start()] if end else shown, end="")
    # Nothing from outside: no font to fetch, no address at all.
    plain = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    plain = plain.replace("font-family: Fira Code, monospace", "font-family: ui-monospace, monospace")
    return console.export_svg(title="becket runs show --all", code_format=plain, unique_id="story")


if __name__ == "__main__":
    TARGET.write_text(draw(story()), encoding="utf-8")
