"""Contract of the process port: a home that lasts is the child's HOME, at one path for all children where it can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from process_stage import KINDS, Ground

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import choose


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(choose(request.param), tmp_path)


def made(ground: Ground, name: str) -> Path:
    folder = ground.base / name
    folder.mkdir(parents=True)
    return folder


def test_home_is_kept_and_given_again(ground: Ground) -> None:
    """What one child leaves in its home, the next one finds there: a session can be resumed."""
    home = made(ground, "home")
    (home / "auth.json").write_text("{}")
    assert ground.shell('cat "$HOME/auth.json"; echo session > "$HOME/session"', home=home).ok, ground.said
    assert ground.said == "{}"
    assert (home / "session").read_text() == "session\n"
    assert ground.shell('cat "$HOME/session"', home=home).ok, ground.said
    assert ground.said == "session\n"


def test_path_of_the_home(ground: Ground) -> None:
    """In bwrap the same for every child, and where none was given; elsewhere the folder itself."""
    home = made(ground, "home")
    assert ground.shell('echo "$HOME"', home=home).ok
    fixed = ground.processes.kind is SandboxKind.bwrap
    assert ground.said.strip() == ("/run/becket/home" if fixed else str(home))


def test_home_below_what_is_hidden(ground: Ground) -> None:
    """A home may lie in Becket's hidden state; the state around it stays hidden where files are held."""
    home = made(ground, "state/homes/one")
    token = ground.base / "state" / "token"
    token.write_text("secret")
    assert ground.shell('touch "$HOME/made"', home=home, hidden=(ground.base / "state",)).ok, ground.said
    assert (home / "made").exists()
    seen = ground.shell(f"cat {token}", home=home, hidden=(ground.base / "state",)).ok
    assert seen is not ground.processes.holds().files


def test_one_home_does_not_show_another(ground: Ground) -> None:
    """Two agents' credentials lie side by side, and each child sees its own."""
    mine, other = made(ground, "homes/mine"), made(ground, "homes/other")
    (other / "auth.json").write_text("secret")
    seen = ground.shell(f"cat {other}/auth.json", home=mine).ok
    assert seen is not ground.processes.holds().files


def test_planted_home_is_refused(ground: Ground) -> None:
    """A link that an earlier child left in the place of a home, or on the way to it, is not followed."""
    made(ground, "private/home")
    (ground.base / "home").symlink_to(ground.base / "private")
    with pytest.raises(UsageError, match="symbolic link"):
        ground.run("true", home=ground.base / "home")
    (ground.tree / "way").symlink_to(ground.base / "private")
    with pytest.raises(UsageError, match="symbolic link"):
        ground.run("true", home=ground.tree / "way" / "home")


def test_home_that_cannot_be_is_refused(ground: Ground) -> None:
    """An absent home, a hidden one, and one with something hidden in it are contradictions, not guesses."""
    with pytest.raises(UsageError, match="make it first"):
        ground.run("true", home=ground.base / "absent")
    home = made(ground, "home")
    with pytest.raises(UsageError, match="cannot be hidden"):
        ground.run("true", home=home, hidden=(home,))
    with pytest.raises(UsageError, match="cannot be hidden there"):
        ground.run("true", home=home, hidden=(made(ground, "home/secrets"),))


def test_links_in_the_home_lead_nowhere(ground: Ground) -> None:
    """A link in the home reads nothing outside, where files are held; the home itself is not changed by that."""
    home, private = made(ground, "home"), made(ground, "private")
    (private / "token").write_text("secret")
    (home / "config").symlink_to(private)
    seen = ground.shell('cat "$HOME/config/token"', home=home).ok
    assert seen is not ground.processes.holds().files
    assert (home / "config").is_symlink()
