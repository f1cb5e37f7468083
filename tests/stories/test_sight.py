"""What agents and gates see of a repository: its files and their history, and nobody's unmerged work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.process import SandboxKind
from becket.kernel.contract.run import RunStatus
from becket.kernel.process import available
from becket.testing.world import World, run_git

LANDLOCK_WORKS = any(offer.kind is SandboxKind.landlock and offer.holds for offer in available())
KINDS = [
    "none",
    *(["landlock"] if LANDLOCK_WORKS else []),
    pytest.param("bwrap", marks=pytest.mark.slow),
]
CONFIG = """
version: 1
autonomy: merge
gates:
  fast:
    - {name: sight, run: "sh sight.sh SECRETS", timeout: 60s}
    - {name: value, run: "grep -q 1 value.py", timeout: 60s}
  slow: [{name: again, run: "sh sight.sh SECRETS", timeout: 60s}]
sandbox: {use: KIND, without: [files, processes, network]}
agents: {fixer: {driver: command, run: "sh sight.sh SECRETS && sed -i s/0/1/ value.py", network: none}}
"""
GOOD = "def value():\n    return 1\n"
SIGHT = """\
set -eu
git log --format=%s | grep -q 'the first word'
git show HEAD~1:value.py
git blame value.py
for secret in "$@"; do
    if git cat-file -p $secret; then exit 1; fi
done
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_heal_sees_history_but_nothing_unmerged(tmp_path: Path, kind: str) -> None:
    world = World(tmp_path)
    world.commit({"value.py": GOOD, "sight.sh": SIGHT}, "the first word")
    secrets = " ".join(hide_work(world))
    config = CONFIG.replace("SECRETS", secrets).replace("KIND", kind)
    world.commit({"becket.yaml": config}, "gates")
    first = asyncio.run(world.run("heal"))
    assert (first.status, first.reason) == (RunStatus.completed, "stop_conditions_met"), first.detail
    red = world.commit({"value.py": GOOD.replace("1", "0")}, "a bug")
    healed = asyncio.run(world.run("heal"))
    assert healed.status is RunStatus.completed, (healed.reason, healed.detail)
    assert run_git(world.root, ["rev-parse", "main^"]) == red
    assert run_git(world.root, ["show", "main:value.py"]) == GOOD.strip()


def hide_work(world: World) -> list[str]:
    """A colleague's commit and the file in it, and a stash."""
    git = lambda *command: run_git(world.root, command)  # noqa: E731
    git("checkout", "--quiet", "-b", "colleague")
    commit = world.commit({"value.py": "# a colleague's repair\n"}, "unmerged")
    blob = git("rev-parse", "HEAD:value.py")
    git("checkout", "--quiet", "main")
    (world.root / "value.py").write_text("# stashed\n")
    git("stash", "push", "--quiet")
    return [commit, blob, git("rev-parse", "stash")]
