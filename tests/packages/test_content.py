"""The check of the packages' content can fail."""

from __future__ import annotations

import pytest
from content import metadata_problems, sdist_problems, wheel_problems

LISTED = "becket/parts/heal/loop.yaml"
CHEAT = "becket_lab/cheats/case.py"
PROJECT = {"name": "becket", "version": "1", "license": "Apache-2.0", "requires-python": ">=3.11"}
METADATA = """\
Metadata-Version: 2.4
Name: becket
Version: 1
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: httpx
Description-Content-Type: text/markdown

# Becket
"""


@pytest.mark.parametrize(
    ("held", "tracked", "said"),
    [
        ([LISTED], [LISTED], []),
        ([LISTED, CHEAT], [LISTED], [f"{CHEAT} is not on the list of what people install"]),
        ([LISTED, "becket/app/dump.sql"], [LISTED], ["becket/app/dump.sql is not on the list of what people install"]),
        ([LISTED, "tests/conftest.py"], [LISTED], ["tests/conftest.py is not on the list of what people install"]),
        ([LISTED, "becket/app/mine.py"], [LISTED], ["becket/app/mine.py is not tracked by git"]),
        ([], [LISTED], [f"{LISTED} is in the tree and not in the wheel"]),
    ],
)
def test_a_wheel_holds_the_tree_and_nothing_else(held: list[str], tracked: list[str], said: list[str]) -> None:
    assert list(wheel_problems(held, [f"src/{name}" for name in tracked])) == said


def test_an_sdist_holds_what_git_tracks() -> None:
    assert list(sdist_problems(["becket-1/Makefile", "becket-1/PKG-INFO"], ["Makefile"])) == []
    assert list(sdist_problems(["becket-1/.env"], ["Makefile"])) == [
        ".env is not tracked by git",
        "Makefile is not in the sdist",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Becket", "# Becket", []),
        ("# Becket", "[how](docs/howto/heal.md)", ["leads nowhere"]),
        ("httpx", "pytest>=8", ["pytest>=8 is a development tool"]),
        (">=3.11", ">=3.9", ["the metadata says '>=3.9' where '>=3.11' is meant"]),
        ("Requires-Dist", "Project-URL: home, https://example.org\nRequires-Dist", ["where None is meant"]),
    ],
)
def test_metadata_says_what_pyproject_says(old: str, new: str, said: list[str]) -> None:
    found = list(metadata_problems(METADATA.replace(old, new, 1).encode(), PROJECT))
    assert len(found) == len(said)
    assert all(part in one for one, part in zip(found, said, strict=True))
