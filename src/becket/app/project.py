"""becket.yaml as committed and as it stands, for the actions that judge by it."""

from __future__ import annotations

import os
from collections.abc import Callable

from becket.app.sections import load_config
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import ActionFailed, UsageError
from becket.kernel.contract.git import Git

FILE = "becket.yaml"
MOST_REMEMBERED = 32


class CommittedProjects:
    """A commit never changes, so neither does what it says; `current` is asked anew each time. `told` hears of each
    committed one before anybody acts by it.
    """

    def __init__(
        self, git: Git, current: Callable[[], Config], told: Callable[[Config], None] = lambda _: None
    ) -> None:
        self._git = git
        self._current = current
        self._told = told
        self._known: dict[str, Config] = {}

    def current(self) -> Config:
        return self._current()

    async def committed(self, sha: str) -> Config:
        if sha not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[sha] = await self._read(sha)
            self._told(self._known[sha])
        return self._known[sha]

    async def _read(self, sha: str) -> Config:
        text = await self._git.read_bytes(sha, FILE)
        if text is None:
            raise ActionFailed(
                f"{FILE} is not committed in {sha[:12]}: gates, guard and services count as committed; "
                f"`git add {FILE}` and commit it (`becket init` writes one where there is none)",
                kind="not_configured",
            )
        try:
            return load_config(text, f"{FILE} of {sha[:12]}", os.environ)  # gates are never expanded
        except UsageError as error:
            raise ActionFailed(str(error), kind="not_configured") from error
