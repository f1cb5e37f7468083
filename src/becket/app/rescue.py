"""Work that was saved when something ended: look at it, bring it back, let it go."""

from __future__ import annotations

from pathlib import Path

from becket.app.compose import App
from becket.kernel.contract.base import Record
from becket.kernel.contract.candidate import Rescued
from becket.kernel.contract.errors import BecketError, NotFound, UsageError
from becket.kernel.git.apply import DoesNotFit, apply_patch
from becket.kernel.git.repository import discover


class CannotApply(BecketError):
    """The saved work does not fit where it was to go; nothing was changed."""


class Saved(Record):
    """A rescue and what it changes against the commit it stands on."""

    rescue: Rescued
    paths: tuple[str, ...]
    size: int  # bytes on the disk
    expires_at: float

    @property
    def kept_for(self) -> float:
        return self.expires_at - self.rescue.at


async def saved(app: App) -> tuple[Saved, ...]:
    """Newest first."""
    return tuple([await _with_paths(app, item) for item in await app.git.candidates().rescued()])


async def find(app: App, name: str) -> Saved:
    """By its name, or by a beginning that only one has."""
    everything = await app.git.candidates().rescued()
    exact = [item for item in everything if item.name == name]
    meant = exact or [item for item in everything if item.name.startswith(name)]
    if not meant:
        raise NotFound(f"there is no rescue {name!r}; `becket rescue list` shows them")
    if len(meant) > 1:
        names = ", ".join(item.name for item in meant[:5])
        raise UsageError(f"{name!r} is the beginning of {len(meant)} rescues: {names}; write more of it")
    return await _with_paths(app, meant[0])


async def _with_paths(app: App, item: Rescued) -> Saved:
    paths = await app.git.candidates().paths(item.parent, item.sha) if item.parent else ()
    size = await app.git.candidates().size(item)
    return Saved(rescue=item, paths=paths, size=size, expires_at=item.at + app.config.retention.rescues)


async def patch(app: App, found: Saved) -> bytes:
    """The whole of it: a patch that was cut would not apply."""
    return await app.git.candidates().patch(found.rescue.parent, found.rescue.sha, limit=1 << 40)


async def apply(app: App, name: str, to: Path | None = None) -> tuple[Saved, Path]:
    """Put it into the person's work tree, staged and not committed; whole or not at all."""
    found = await find(app, name)
    target = app.git if to is None else discover(to)
    if target.common_dir != app.git.common_dir:
        raise UsageError(f"--to {to} is not a work tree of this repository; `git worktree list` shows them")
    try:
        await apply_patch(target.place, await patch(app, found))
    except DoesNotFit as error:
        raise CannotApply(
            f"{found.rescue.name} was not applied: {error}. Commit or stash what you have there, or apply it where it "
            f"fits: `git switch --detach {found.rescue.parent[:12]}`"
        ) from error
    return found, target.root


async def drop(app: App, name: str) -> Saved:
    found = await find(app, name)
    await app.git.candidates().forget(f"rescue/{found.rescue.name}")
    return found
