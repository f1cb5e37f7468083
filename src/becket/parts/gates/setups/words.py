"""What this room says to people."""

from __future__ import annotations

MOST_NAMES = 5

NO_KEY_FILE = (
    "`setup.key` names {pattern}, but commit {sha} has no such file. Bring the file back, or correct `setup.key` in "
    "becket.yaml"
)
KEY_IS_NO_FILE = (
    "`setup.key` names {path}, which is {what} in commit {sha}: its content cannot be a key. Name the files that it "
    "stands for"
)
NO_CONTENT = "{path} of commit {sha} cannot be read, so the set-up cannot be made; run `git fsck`"
NO_ROOM = "the set-up cannot be kept in {folder}: {reason}. See whether the disk is full, and who may write there"

NOT_STARTED = "the set-up `{command}` could not be started: {message}"
TIMED_OUT = "the set-up `{command}` took longer than {timeout} and was ended. See its log, or raise `setup.timeout`"
KILLED = "the set-up `{command}` was killed from outside: {message}"
NO_TOOL = "the set-up `{command}` ended with exit code {code}: a program was not found, or may not be run. See its log"
FAILED = "the set-up `{command}` ended with exit code {code}; see its log. It saw only its key files ({files})"
INSTALLS_ITSELF = (
    "The project itself is never installed by a set-up, or a proof would run another tree's code: install its "
    "dependencies only, and let the gate's step find the project (`PYTHONPATH=src pytest`, for example)"
)
EDITABLE = "the set-up `{command}` installed {path} as editable, but only its key files were there. " + INSTALLS_ITSELF
NOTHING_MADE = (
    "the set-up `{command}` made nothing in its folder, and everything outside of that is lost. Let it install into "
    "the tree (`python3 -m venv .venv && .venv/bin/pip install -r requirements.txt`, for example). If there is nothing "
    "to install any more, remove `setup` from becket.yaml"
)
IN_THE_WAY = (
    "the set-up makes {path}, but commit {sha} has that too. Remove it from the repository, or let the set-up install "
    "to another place"
)
CLASH = "{path} is in the way of what the set-up made; it was not replaced. Check the tree out anew first"


def named(files: tuple[str, ...]) -> str:
    """A few names, and how many more there are."""
    more = len(files) - MOST_NAMES
    return ", ".join(files[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 120 else line[:117] + "..."
