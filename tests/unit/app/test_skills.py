"""Skills that agents are given: the built-in ones, the user's own, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.parts.agents.skill_files import LARGEST, built_in, check, load_skills

GOOD = "---\nname: our-own\ndescription: Use it for our own code.\n---\n\nDo it our way.\n"


def skill(root: Path, text: str = GOOD, name: str = "our-own") -> Path:
    folder = root / ".becket" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def test_the_built_in_skills_are_what_we_ask_of_users() -> None:
    found = built_in()
    assert set(found) == {"test-driven-development", "verify-before-complete"}
    for folder in found.values():
        check(folder)


def test_a_users_skill_is_added_and_wins_over_a_built_in_one(tmp_path: Path) -> None:
    own = skill(tmp_path)
    same = skill(tmp_path, GOOD.replace("our-own", "verify-before-complete"), "verify-before-complete")
    found = load_skills(tmp_path)
    assert found["our-own"] == own
    assert found["verify-before-complete"] == same
    assert "test-driven-development" in found


def test_a_repository_without_skills_has_the_built_in_ones(tmp_path: Path) -> None:
    assert load_skills(tmp_path) == load_skills() == built_in()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Do it our way.\n", "begins with `---`"),
        ("---\nname: our-own\n", "begins with `---`"),
        ("---\n- a list\n---\nDo it.\n", "write `name:` and `description:`"),
        ("---\nname: [\n---\nDo it.\n", "no YAML"),
        (GOOD.replace("our-own", "another"), "must be the folder's name"),
        ("---\nname: our-own\n---\nDo it.\n", "add `description:`"),
        ("---\nname: our-own\ndescription: ''\n---\nDo it.\n", "add `description:`"),
        (GOOD.replace("Use it", "Use it" * 300), "shorten it"),
        ("---\nname: our-own\ndescription: Nothing follows.\n---\n\n", "nothing after the second"),
        (GOOD + "x" * LARGEST, "make the skill shorter"),
    ],
)
def test_a_skill_that_is_not_as_it_must_be_is_named_with_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    """L37: configuration errors are loud."""
    skill(tmp_path, text)
    with pytest.raises(UsageError, match=r"our-own") as found:
        load_skills(tmp_path)
    assert says in str(found.value)


@pytest.mark.parametrize("name", ["Our-Own", "our_own", "-own", "a" * 65, "our own"])
def test_a_name_that_agents_would_not_take(tmp_path: Path, name: str) -> None:
    skill(tmp_path, GOOD.replace("our-own", name), name)
    with pytest.raises(UsageError, match="rename the folder"):
        load_skills(tmp_path)


def _link_of_a_file(folder: Path, outside: Path) -> None:
    (folder / "more.md").symlink_to(outside)


def _link_of_a_folder(folder: Path, outside: Path) -> None:
    (folder / "scripts").symlink_to(outside.parent)


def _link_as_skill(folder: Path, outside: Path) -> None:
    (folder.parent / "linked").symlink_to(folder)


def _link_as_file(folder: Path, outside: Path) -> None:
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(outside)


@pytest.mark.parametrize("plant", [_link_of_a_file, _link_of_a_folder, _link_as_skill, _link_as_file])
def test_nothing_is_reached_by_a_link(tmp_path: Path, plant: Callable[[Path, Path], None]) -> None:
    """L25: what is copied into an agent's HOME lies in the repository itself."""
    outside = tmp_path / "outside" / "secret.md"
    outside.parent.mkdir()
    outside.write_text(GOOD)
    plant(skill(tmp_path), outside)
    with pytest.raises(UsageError, match="is a link"):
        load_skills(tmp_path)


def test_a_folder_without_its_file(tmp_path: Path) -> None:
    (skill(tmp_path) / "SKILL.md").unlink()
    with pytest.raises(UsageError, match="has no SKILL"):
        load_skills(tmp_path)
