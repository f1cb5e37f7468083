"""Which part of the disk a child sees, as rules, before any sandbox applies them."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec, Network
from becket.kernel.process.places import Access, Disk, Rule, nearest
from becket.kernel.process.sandboxes import BubblewrapSandbox, Confinement, LandlockSandbox
from becket.kernel.process.scratch import Scratch


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("tree", "store/inner", "state/trees/one", "tools/bin", "tools/lib"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def rules(base: Path, path: str = "", **fields: object) -> tuple[Rule, ...]:
    given = {"argv": ("true",), "tree": base / "tree", "output": base / "log"} | fields
    return Disk().rules_of(ChildSpec.model_validate(given), {"PATH": path})


def test_the_rest_is_hidden(base: Path) -> None:
    made = rules(base)
    assert nearest(made, base / "tree" / "x") is Access.write
    assert nearest(made, base / "store") is Access.hide
    assert nearest(made, Path("/usr/bin/env")) is Access.read
    assert nearest(made, Path("/etc/shadow")) is Access.hide
    assert nearest(made, Path.home() / ".ssh") is Access.hide


def test_the_deepest_rule_wins(base: Path) -> None:
    state = base / "state"
    made = rules(base, tree=state / "trees" / "one", readable=(base,), hidden=(state,))
    assert nearest(made, base / "store") is Access.read
    assert nearest(made, state / "journal") is Access.hide
    assert nearest(made, state / "trees" / "one" / "x") is Access.write


def test_shallow_before_deep_and_nothing_needless(base: Path) -> None:
    """A mount under an equal mount would only cost time."""
    made = rules(base, readable=(base / "store" / "inner", base / "store"), hidden=(base / "state",))
    ours = [rule for rule in made if rule.path.is_relative_to(base)]
    assert [(rule.path.name, rule.access) for rule in ours] == [("store", Access.read), ("tree", Access.write)]


def test_tools_beside_their_libraries(base: Path) -> None:
    """A folder of PATH is readable, with the prefix it belongs to."""
    made = rules(base, path=f"{base}/tools/bin:{base}/absent")
    assert nearest(made, base / "tools" / "lib") is Access.read
    assert nearest(made, base / "absent") is Access.hide


def test_a_home_is_never_shown_for_its_bin(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ~/.local only bin is shown, and a PATH that names the home itself shows nothing of it."""
    monkeypatch.setenv("HOME", str(base / "home"))
    for name in ("bin", "lib", "share"):
        (base / "home" / ".local" / name).mkdir(parents=True)
    made = rules(base, path=f"{base}/home/.local/bin:{base}/home:{base}")
    assert nearest(made, base / "home" / ".local" / "bin") is Access.read
    assert nearest(made, base / "home" / ".local" / "share") is Access.hide
    assert nearest(made, base / "store") is Access.hide


def test_shims_bring_their_programs(base: Path) -> None:
    for name in ("shims", "versions"):
        (base / "pyenv" / name).mkdir(parents=True)
    assert nearest(rules(base, path=f"{base}/pyenv/shims"), base / "pyenv" / "versions") is Access.read


def test_landlock_gives_a_folder_piece_by_piece_around_a_hole(base: Path) -> None:
    (base / "store" / "objects").mkdir()
    made = rules(base, readable=(base / "store",), hidden=(base / "store" / "inner",))
    scratch = Scratch(base)
    allowed = dict(LandlockSandbox(7).landlock(Confinement(made, Network.none, scratch)).rules)
    assert allowed[str(base / "store" / "objects")] == "read"
    assert str(base / "store") not in allowed
    assert str(base / "store" / "inner") not in allowed


def test_landlock_refuses_a_hole_in_what_is_writable(base: Path) -> None:
    (base / "tree" / "secret").mkdir()
    made = rules(base, hidden=(base / "tree" / "secret",))
    with pytest.raises(UsageError, match="landlock cannot hide"):
        LandlockSandbox(7).landlock(Confinement(made, Network.none, Scratch(base)))


def test_bubblewrap_covers_a_hole(base: Path) -> None:
    (base / "tree" / "secret").mkdir()
    made = rules(base, hidden=(base / "tree" / "secret",))
    command = BubblewrapSandbox(Path("/bwrap")).command(["keeper"], Confinement(made, Network.none, Scratch(base)))
    hole = str(base / "tree" / "secret")
    assert command.index("--bind") < command.index("--tmpfs")
    assert command[command.index("--tmpfs") + 1] == hole
    assert command[-4:] == ["--remount-ro", "/", "--", "keeper"]


def test_bubblewrap_shows_a_tree_elsewhere_with_its_holes(base: Path) -> None:
    (base / "tree" / "secret").mkdir()
    made = rules(base, hidden=(base / "tree" / "secret",))
    confinement = Confinement(made, Network.none, Scratch(base), moved=(base / "tree", Path("/at/tree")))
    command = BubblewrapSandbox(Path("/bwrap")).command(["keeper"], confinement)
    mounted = command.index(str(base / "tree"))
    assert command[mounted - 1 : mounted + 2] == ["--bind", str(base / "tree"), "/at/tree"]
    assert command[command.index("--tmpfs") + 1] == "/at/tree/secret"
    assert str(base / "tree" / "secret") not in command


def test_bubblewrap_covers_a_hole_of_a_moved_tree_at_its_old_name_too(base: Path) -> None:
    """Where a folder around the tree may be read."""
    (base / "tree" / "secret").mkdir()
    (base / "tree" / "key").touch()
    hidden = (base / "tree" / "secret", base / "tree" / "key")
    made = rules(base, hidden=hidden, readable=(base,))
    confinement = Confinement(made, Network.none, Scratch(base), moved=(base / "tree", Path("/at/tree")))
    command = BubblewrapSandbox(Path("/bwrap")).command(["keeper"], confinement)
    for path, how in zip(hidden, ("--tmpfs", "/dev/null"), strict=True):
        for name in (str(path), f"/at/tree/{path.name}"):
            assert command[command.index(name) - 1] == how


def test_network_namespace_unless_full(base: Path) -> None:
    assert "--unshare-net" in BubblewrapSandbox.namespaces(Network.none)
    assert "--unshare-net" in BubblewrapSandbox.namespaces(Network.loopback)
    assert "--unshare-net" not in BubblewrapSandbox.namespaces(Network.full)


@pytest.mark.parametrize(
    ("abi", "files", "words"),
    [
        (1, False, "emptied"),
        (3, True, "older than 4"),
        (4, True, "older than 6"),
        (6, True, "signals to host processes, and"),
    ],
)
def test_landlock_publishes_what_its_version_holds(abi: int, files: bool, words: str) -> None:
    """An old kernel's landlock is not called more than it is."""
    holds = LandlockSandbox(abi).holds()
    assert (holds.files, holds.processes, holds.network) == (files, False, False)
    assert any(words in note for note in holds.notes)


def test_scratch_is_removed_whatever_it_holds(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    locked = scratch.home / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    (scratch.home / "link").symlink_to(outside)
    locked.chmod(0)
    assert not scratch.remove_if_empty()
    scratch.remove()
    assert not scratch.folder.exists()
    assert outside.stat().st_mode & 0o777 == 0o755
