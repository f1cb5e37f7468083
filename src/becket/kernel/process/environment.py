"""The environment of a child: an allow-list, a private home, and a git that sees no configuration but the tree's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec
from becket.kernel.contract.toolchains import find

MARK = "BECKET_CHILD"
"""Names the child in the environment of everything it starts, so that a sweep can find what escaped its keeper."""

_KEPT = ("PATH", "LANG", "TZ")
_KEPT_PREFIX = "LC_"
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_GIT_ALLOWED = ("GIT_AUTHOR_", "GIT_COMMITTER_")


def build(
    spec: ChildSpec,
    ours: Mapping[str, str],
    *,
    tree: Path,
    home: str,
    temporary: str,
    proxy: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All that the child's environment holds, but for the mark; `tree`, `home` and `temporary` by their names inside.

    `proxy` is how it finds the ways out of its network.
    """
    _refuse_reserved(spec.env)
    env = {name: value for name, value in ours.items() if name in _KEPT or name.startswith(_KEPT_PREFIX)}
    env["PATH"] = os.pathsep.join(_absolute(env.get("PATH", ""))) or _DEFAULT_PATH
    env |= find(ours).variables
    env |= {"HOME": home, "TMPDIR": temporary, "TERM": "dumb"}
    env |= spec.env
    env |= {
        "GIT_CEILING_DIRECTORIES": str(tree.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    env |= proxy or {}
    return env


def search_path(env: Mapping[str, str]) -> list[str]:
    """The absolute folders of PATH, each once."""
    return list(dict.fromkeys(_absolute(env.get("PATH", ""))))


def _absolute(path: str) -> list[str]:
    # An empty or relative entry means the tree: an agent could plant a program called `git` there.
    return [entry for entry in path.split(os.pathsep) if entry.startswith("/")]


def _refuse_reserved(env: Mapping[str, str]) -> None:
    refused = sorted(
        name for name in env if name == MARK or (name.startswith("GIT_") and not name.startswith(_GIT_ALLOWED))
    )
    if refused:
        raise UsageError(
            f"A child may not be given {', '.join(refused)}: such variables point git at another repository, or are "
            "Becket's own. Remove them; of GIT_*, only GIT_AUTHOR_* and GIT_COMMITTER_* may be set."
        )
