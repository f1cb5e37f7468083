"""Skills for agents: folders with a SKILL.md, built in or of the repository; drivers copy them into an agent's HOME."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path

import yaml

from becket.kernel.contract.errors import UsageError

FILE = "SKILL.md"
FOLDER = Path(".becket", "skills")
"""Of the repository. A skill there replaces the built-in one of the same name."""

LARGEST = 64_000
"""Bytes of one skill, all of its files together."""

MOST_FILES, LONGEST_DESCRIPTION = 100, 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)


def load_skills(root: Path | None = None) -> Mapping[str, Path]:
    """Every skill by name. Raises UsageError for one of the repository at `root` that is not as it must be."""
    own = {} if root is None else {folder.name: folder for folder in _folders(root / FOLDER)}
    for folder in own.values():
        check(folder)
    return built_in() | own


def built_in() -> dict[str, Path]:
    with as_file(files(__package__) / "skills") as folder:
        return {each.name: each for each in _folders(folder)}


def check(folder: Path) -> None:
    """Raises UsageError, with what to do, unless the folder is a skill that can be given to an agent."""
    if not _NAME.fullmatch(folder.name) or len(folder.name) > 64:
        raise UsageError(f"{folder}: a skill is named with small letters, digits and single hyphens; rename the folder")
    _check_files(folder)
    said = _front_matter(folder / FILE)
    if said.get("name") != folder.name:
        raise UsageError(
            f"{folder / FILE}: `name: {said.get('name')}` must be the folder's name; write {folder.name!r}"
        )
    description = said.get("description")
    if not isinstance(description, str) or not description.strip():
        raise UsageError(f"{folder / FILE}: add `description:`, when an agent shall use this skill")
    if len(description) > LONGEST_DESCRIPTION:
        raise UsageError(
            f"{folder / FILE}: the description is longer than {LONGEST_DESCRIPTION} characters; shorten it"
        )


def _folders(place: Path) -> Iterator[Path]:
    if not place.exists():
        return
    if place.is_symlink() or not place.is_dir():
        raise UsageError(f"{place} is no folder; make it one, with a folder for each skill")
    for entry in sorted(place.iterdir()):
        if entry.is_symlink():
            raise UsageError(f"{entry} is a link; a skill is a folder with a {FILE} in the repository itself")
        if entry.is_dir() and entry.name != "__pycache__":
            yield entry


def _check_files(folder: Path) -> None:
    size, count = 0, 0
    for entry in sorted(folder.rglob("*")):
        if entry.is_symlink():
            raise UsageError(f"{entry} is a link; put the file itself there")
        if entry.is_file():
            size, count = size + entry.stat().st_size, count + 1
        elif not entry.is_dir():
            raise UsageError(f"{entry} is neither file nor folder; remove it")
        if size > LARGEST or count > MOST_FILES:
            raise UsageError(f"{folder} is larger than {LARGEST:,} bytes or {MOST_FILES} files; make the skill shorter")
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder} has no {FILE}; add it, or remove the folder")


def _front_matter(path: Path) -> dict[str, object]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: it is not UTF-8; save it as UTF-8") from error
    found = _FRONT.search(text)
    if found is None:
        raise UsageError(f"{path}: it begins with `---`, then `name:` and `description:`, then `---`; add that")
    try:
        said = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise UsageError(
            f"{path}: what stands between the `---` lines is no YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(said, dict):
        raise UsageError(f"{path}: write `name:` and `description:` between the `---` lines")
    if not text[found.end() :].strip():
        raise UsageError(f"{path}: there is nothing after the second `---`; write what the agent shall do")
    return said
