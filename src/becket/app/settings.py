"""becket.yaml of the working copy: as it stands now, and the last good one while it does not load."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from becket.app.config_now import CONFIG_ALERT
from becket.app.sections import config_model, load_config
from becket.app.state import StateFolder
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.store import AlertState, OperationsStore

_LAST_GOOD = "Until it is mended the last good one counts, and nothing goes further than `observe`."


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """What counts as becket.yaml. `trouble` says why that is not the file as it stands."""

    stamp: tuple[int, int] | None
    config: Config
    trouble: str = ""


class LiveSettings:
    """Read again whenever the file changed. A slip of the pen must not end what is at work: then the last good one
    counts. Raises UsageError only if there never was a good one. `changed` hears of each new one before it counts.
    """

    def __init__(self, state: StateFolder, first: LoadedConfig | None = None) -> None:
        self._state = state
        self._last = first
        self._told: str | None = None
        self.changed: Callable[[Config], None] = lambda _: None

    def now(self) -> LoadedConfig:
        last, self._last = self._last, read_settings(self._state, self._last)
        if self._last is not last:
            self.changed(self._last.config)
        return self._last

    async def watch(self, store: OperationsStore) -> None:
        """A chore: tell of a becket.yaml that does not count, and withdraw it when it does again. Called often."""
        trouble = self.now().trouble
        if trouble == self._told:
            return
        if trouble:
            await store.raise_alert(CONFIG_ALERT, f"{trouble}\n{_LAST_GOOD}", {"file": str(self._state.config)})
        elif any(alert.key == CONFIG_ALERT for alert in await store.alerts((AlertState.open, AlertState.told))):
            await store.close_alert(CONFIG_ALERT)
        self._told = trouble


def read_settings(state: StateFolder, last: LoadedConfig | None) -> LoadedConfig:
    """Read the file if it changed since `last`. Without a last good one, a file that does not load is a UsageError."""
    stamp = _stamp(state.config)
    if last is None:
        return LoadedConfig(stamp, read_config(state))
    if last.stamp == stamp:
        return last
    try:
        return LoadedConfig(stamp, _load(state))
    except FileNotFoundError:
        # Perhaps for a moment only: editors and git replace a file by removing it first.
        return LoadedConfig(None, last.config, f"{state.config} is gone; restart Becket to go on without it")
    except UsageError as error:
        return LoadedConfig(stamp, last.config, str(error))


def tolerated(state: StateFolder) -> LoadedConfig:
    """For whoever only reads or brakes. Raises the file's own error where the journal may be another than the local
    one: an empty one in its place would tell nothing but lies.
    """
    try:
        return read_settings(state, None)
    except UsageError as error:
        if not state.database.exists() or _may_name_database(state.config.read_text(errors="replace")):
            raise
        return LoadedConfig(_stamp(state.config), config_model()(version=1), str(error))


def _may_name_database(text: str) -> bool:
    """Of a file that does not load; the comments of a first becket.yaml name every key."""
    return any("database" in line.partition("#")[0] for line in text.splitlines())


def read_config(state: StateFolder) -> Config:
    """becket.yaml of the working copy, or the defaults where there is none."""
    try:
        return _load(state)
    except FileNotFoundError:
        return config_model()(version=1)


def _load(state: StateFolder) -> Config:
    try:
        text = state.config.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{state.config} cannot be read: {error}") from None
    return load_config(text, str(state.config), os.environ)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
