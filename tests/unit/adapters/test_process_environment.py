"""The environment of a child, without a child."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec
from becket.kernel.process.environment import build, search_path


def made(ours: dict[str, str], given: dict[str, str] | None = None) -> dict[str, str]:
    spec = ChildSpec(argv=("true",), tree=Path("/trees/one"), output=Path("/log"), env=given or {})
    return build(spec, ours, tree=spec.tree, home="/private/home", temporary="/private/tmp")


def test_only_the_allow_list_is_kept() -> None:
    """L12: PATH, LANG, LC_* and TZ pass; nothing else of ours does."""
    env = made(
        {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "HOME": "/home/me", "TOKEN": "x", "GIT_DIR": "y"}
    )
    assert {name: env[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "TERM")} == {
        "PATH": "/bin",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
        "HOME": "/private/home",
        "TMPDIR": "/private/tmp",
        "TERM": "dumb",
    }
    assert "TOKEN" not in env
    assert "GIT_DIR" not in env


def test_git_stops_at_the_tree() -> None:
    """L1: git looks for no repository above the tree, and reads no configuration but the tree's."""
    env = made({})
    assert env["GIT_CEILING_DIRECTORIES"] == "/trees"
    assert (env["GIT_CONFIG_GLOBAL"], env["GIT_CONFIG_NOSYSTEM"], env["GIT_TERMINAL_PROMPT"]) == ("/dev/null", "1", "0")


def test_what_is_given_wins() -> None:
    env = made(
        {"PATH": "/bin", "LANG": "C"}, {"LANG": "de_DE", "PATH": "/tools", "HOME": "/other", "GIT_AUTHOR_NAME": "x"}
    )
    assert (env["LANG"], env["PATH"], env["HOME"], env["GIT_AUTHOR_NAME"]) == ("de_DE", "/tools", "/other", "x")


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "BECKET_CHILD"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        made({}, {name: "x"})


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/bin::/usr/bin:.:tools", "/bin:/usr/bin"),  # an empty or relative entry is the tree
        ("", "/usr/local/bin:/usr/bin:/bin"),
        (".", "/usr/local/bin:/usr/bin:/bin"),
    ],
)
def test_path_names_no_folder_of_the_tree(path: str, kept: str) -> None:
    assert made({"PATH": path})["PATH"] == kept


def test_search_path_is_each_folder_once() -> None:
    assert search_path({"PATH": "/a:/b:/a:"}) == ["/a", "/b"]
