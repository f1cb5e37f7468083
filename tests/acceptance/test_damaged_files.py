"""Every kind of file below the state folder, damaged in every way: named with exit code 2, or harmless.

Whatever a verb says, it is never an internal error, and a heal after it promotes nothing that no journal records.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage_world import Shop, put_back

SEED = 7
Deed = Callable[[Path], object]


def flip(path: Path) -> None:
    content, chance = bytearray(path.read_bytes()), random.Random(path.name)
    for _ in range(max(len(content) // 200, 1) if content else 0):
        content[chance.randrange(len(content))] ^= 0x5A
    rewrite(path, bytes(content))


def rewrite(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(content)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DEEDS: dict[str, Deed] = {
    "flipped": flip,
    "emptied": lambda path: rewrite(path, b""),
    "halved": lambda path: rewrite(path, path.read_bytes()[: path.stat().st_size // 2]),
    "removed": lambda path: path.unlink(),
    "a folder": to_folder,
    "closed": lambda path: path.chmod(0),
    "appended": lambda path: rewrite(path, path.read_bytes() + b"\x00garbage\xff" * 50),
}

KINDS = (
    r"becket\.db", r"watchdog\.db", r"services\.db", r"daemon\.lock", r"engine\.lock", r"watchdog\.lock",
    r"artifacts/../[0-9a-f]+", r"backups/.*\.db", r"verdicts/[0-9a-f]+",
    r"setups/[^/]*/setup\.json", r"setups/[^/]*\.lock",
    r"setups/[^/]*/tree/\.tools/made", r"history/.*/layer\.json", r"history/.*\.pack", r"history/.*\.idx",
    r"reports/latest\.json", r"reports/run_.*\.html", r"logs/daemon\.log", r"promotion/promote\.lock",
    r"worktrees/test/workspace\.json", r"worktrees/test/git/HEAD", r"worktrees/test/git/index",
    r"worktrees/test/git/config", r"worktrees/test/objects/.*\.pack", r"\.\./becket-journal\.json",
)  # fmt: skip

CASES = [(kind, deed) for kind in KINDS for deed in DEEDS]
VERBS = (["status"], ["runs", "list"], ["verify", "run_"], ["store", "check"], ["handoffs", "list"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """One repair promoted, one backup, one life of daemon and watchdog."""
    shop = Shop(tmp_path_factory.mktemp("damage"))
    for verb in (["run", "heal"], ["store", "backup"], ["up", "--detach"]):
        shop.becket(*verb)
    shop.becket("down")
    shop.break_it(2)
    shop.becket("run", "heal")
    shop.break_it(3)
    assert len(shop.promoted()) == 1
    shutil.copytree(shop.root, shop.folder / "kept", symlinks=True)
    return shop


def file_of(shop: Shop, kind: str) -> Path:
    """The first of its kind, and one that holds something if there is one."""
    if kind.startswith(r"\.\./"):
        return shop.paths.journal_mark
    found = sorted(path for path in shop.state.rglob("*") if path.is_file() and not path.is_symlink())
    fitting = [path for path in found if re.fullmatch(kind, str(path.relative_to(shop.state)))]
    assert fitting, f"nothing there is a {kind}; there are {[str(one.relative_to(shop.state)) for one in found]}"
    return max(fitting, key=lambda path: path.stat().st_size)


def play(shop: Shop, kind: str, deed: str, heal: bool) -> None:
    put_back(shop.folder / "kept", shop.root)
    DEEDS[deed](file_of(shop, kind))
    journal = shop.paths.database
    damaged = journal.read_bytes() if kind == r"becket\.db" and journal.is_file() and deed != "closed" else None
    answers = {" ".join(verb): shop.here(*verb) for verb in VERBS}
    if heal:
        answers |= {"doctor": shop.here("doctor"), "run heal": shop.here("run", "heal")}
    for verb, answer in answers.items():
        assert "internal error" not in answer.err, (verb, answer.err)
        assert "Traceback" not in answer.err, (verb, answer.err)
        assert answer.code in (0, 1, 2), (verb, answer)
        assert answer.code != 2 or answer.err.startswith("becket: "), (verb, answer.err)
    if damaged is not None and answers["runs list"].code == 2:
        assert journal.read_bytes() == damaged, "it was written over"
    new = shop.promoted()[1:]
    assert not new or set(new) <= shop.recorded(), "a promotion that no journal records"


SAMPLE = random.Random(SEED).sample(CASES, 4)


@pytest.mark.parametrize(("kind", "deed"), SAMPLE)
def test_a_damaged_file_is_named_or_harmless(shop: Shop, kind: str, deed: str) -> None:
    play(shop, kind, deed, heal=False)


@pytest.mark.parametrize("deed", ["flipped", "emptied"])
def test_no_heal_promotes_over_a_damaged_journal(shop: Shop, deed: str) -> None:
    play(shop, r"becket\.db", deed, heal=True)
    assert len(shop.promoted()) == 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_damaged_in_every_way(shop: Shop, kind: str) -> None:
    for number, deed in enumerate(DEEDS):
        play(shop, kind, deed, heal=number % 3 == len(kind) % 3)
