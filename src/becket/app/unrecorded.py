"""Promotions that git knows and the journal does not: after a restore, or after a new journal was begun.

Git's reflog names every promotion by its key, and `refs/becket/` every run that left a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

from becket.app.compose import App
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.store import AlertState, Cursor

ALERT = "journal:unrecorded"
CURSOR = "journal:restored"
PROMOTE = "becket: promote "
_ACCEPTED, _RESTORED = "accepted", "restored"


@dataclass(frozen=True, slots=True)
class Promotion:
    """As the branch's reflog tells it."""

    key: str
    sha: str
    at: float


@dataclass(frozen=True, slots=True)
class Unrecorded:
    promotions: tuple[Promotion, ...] = ()
    refs: tuple[str, ...] = ()  # below refs/becket/, of runs that the journal does not know

    def __bool__(self) -> bool:
        return bool(self.promotions or self.refs)

    def __str__(self) -> str:
        parts = []
        if self.promotions:
            shown = ", ".join(one.sha[:12] for one in self.promotions[:5])
            parts.append(f"promotions that git tells of ({shown})")
        if self.refs:
            parts.append(f"runs that left {', '.join(f'refs/becket/{name}' for name in self.refs[:5])}")
        return " and ".join(parts)


async def unrecorded(app: App) -> Unrecorded:
    """Nothing that a person accepted, and nothing so old that the journal may have forgotten it by itself."""
    last = await _last(app)
    since = await app.store.now() - app.config.retention.runs
    if last is not None and last.value == _ACCEPTED:
        since = max(since, last.updated_at)
    found = [one for one in promotions(app) if one.at >= since and await app.store.get_effect(one.key) is None]
    refs = [] if last is None or last.value == _ACCEPTED else await _unknown_refs(app)
    return Unrecorded(tuple(found), tuple(refs))


def promotions(app: App) -> tuple[Promotion, ...]:
    """Those of the branch, oldest first."""
    path = app.git.common_dir / "logs" / "refs" / "heads" / app.config.branch
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(one for line in lines if (one := _promotion(line)) is not None)


def _promotion(line: str) -> Promotion | None:
    fields, _, said = line.partition("\t")
    if not said.startswith(PROMOTE):
        return None
    try:
        return Promotion(said.removeprefix(PROMOTE).strip(), fields.split(" ", 2)[1], float(fields.split()[-2]))
    except (IndexError, ValueError):
        return None


async def _unknown_refs(app: App) -> list[str]:
    found = []
    for name in await app.git.candidates().kept():
        try:
            await app.store.get_run(name.split("/")[1])
        except NotFound:
            found.append(name)
    return found


async def _last(app: App) -> Cursor | None:
    return next((one for one in await app.store.cursors(CURSOR) if one.name == CURSOR), None)


async def restored_lately(app: App) -> bool:
    """While this is so, what unknown runs kept is kept."""
    last = await _last(app)
    return last is not None and await app.store.now() - last.updated_at < app.config.retention.runs


async def note_restored(app: App, accepted: bool) -> None:
    value = _ACCEPTED if accepted else _RESTORED
    last = await _last(app)
    if last is not None:
        await app.store.drop_cursors([CURSOR])
    await app.store.fire(None, Cursor(name=CURSOR, value=value), ())


async def tell_unrecorded(app: App) -> None:
    """When a daemon starts: raise an alarm, or withdraw it."""
    found = await unrecorded(app)
    if found:
        text = f"The journal knows nothing of {found}. Look at them; `becket store accept` says that you have."
        await app.store.raise_alert(ALERT, text, {"promotions": [one.sha for one in found.promotions]})
    elif any(one.key == ALERT for one in await app.store.alerts((AlertState.open, AlertState.told))):
        await app.store.close_alert(ALERT)
