"""What people said to an agent that was not at work: text files below a run's folder, for the next brief."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from becket.kernel.contract.template import fill
from becket.kernel.contract.text import cap_text

MAIL = "mail"
"""Below a run's folder; the files are as in a call's inbox."""

MESSAGE_LIMIT, ALL_LIMIT = 8_000, 24_000


@dataclass(frozen=True, slots=True)
class KeptMessage:
    path: Path
    text: str


def waiting(folder: Path) -> tuple[KeptMessage, ...]:
    """What nobody has read yet, oldest first. A dot file is still being written; a link is no message."""
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return ()
    letters = [path for path in found if path.name[0] != "." and path.is_file() and not path.is_symlink()]
    return tuple(KeptMessage(path, _text(path)) for path in letters)


def forward(inbox: Path, folder: Path) -> None:
    """What came too late for a call waits for the next one."""
    put_away(waiting(inbox), folder)


def put_away(letters: Iterable[KeptMessage], folder: Path) -> None:
    """They were read; a later life that does the same once more finds them in `folder`."""
    for letter in letters:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another agent read it too, or whoever wrote it saw that it came too late
            letter.path.replace(folder / letter.path.name)


def above(brief: str, letters: Iterable[KeptMessage]) -> str:
    """The brief with a person's words before it."""
    texts = [cap_text(letter.text, MESSAGE_LIMIT) for letter in letters if letter.text]
    if not texts:
        return brief
    return fill(prompt("people"), {"messages": cap_text("\n\n".join(texts), ALL_LIMIT)}.__getitem__) + brief


def prompt(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text("utf-8")


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(4 * MESSAGE_LIMIT).decode("utf-8", "replace").strip()
