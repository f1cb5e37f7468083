"""`becket rescue`: work in progress that was saved when something ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import columns, emit, note, say, show_patch
from becket.cli.plain import clock, line, short
from becket.cli.shape import AsJson, group, in_app
from becket.kernel.contract.base import show_duration, show_size

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.rescue import Saved
    from becket.kernel.contract.base import Json

Name = Annotated[str, typer.Argument(metavar="NAME", help="See `becket rescue list`; its beginning is enough.")]

rescue = group("See, bring back or drop work that was saved when a run ended.")


@rescue.command("list")
def list_(as_json: AsJson = False) -> None:
    """List what was saved, newest first, with the paths it changes."""
    from becket.app.rescue import saved

    found = in_app(saved, tolerant=True)
    if as_json:
        emit([_document(item) for item in found])
    elif not found:
        note(words.NO_RESCUES)
    else:
        columns(
            ("rescue", "saved", "dropped", "on", "size", "left out", "subject", "paths"),
            [_listed(item) for item in found],
        )
        note(_total(found))


def _document(item: Saved) -> dict[str, Json]:
    told = {"paths": list(item.paths), "size": item.size, "expires_at": item.expires_at}
    return {**item.rescue.model_dump(mode="json"), **told}


def _listed(item: Saved) -> tuple[str, ...]:
    kept = item.rescue
    left_out = str(len(kept.left_out) or "")
    until, size = clock(item.expires_at), show_size(item.size)
    return (
        kept.name, clock(kept.at), until, short(kept.parent), size, left_out, kept.subject, ", ".join(item.paths),
    )  # fmt: skip


def _total(found: tuple[Saved, ...]) -> str:
    count = f"{len(found)} rescue{'' if len(found) == 1 else 's'}"
    size = show_size(sum(item.size for item in found))
    return words.RESCUES_TOTAL.format(count=count, size=size, days=show_duration(found[0].kept_for))


@rescue.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Print the patch, as `git apply` takes it."""

    async def read(app: App) -> tuple[Saved, bytes]:
        from becket.app.rescue import find, patch

        found = await find(app, name)
        return found, await patch(app, found)

    found, text = in_app(read, tolerant=True)
    if as_json:
        emit(_document(found) | {"patch": text.decode("utf-8", "replace")})
        return
    for item in found.rescue.left_out:
        note(words.RESCUE_LEFT_OUT.format(path=line(item.path), size=show_size(item.size), why=line(item.why)))
    show_patch(text)


@rescue.command("apply")
def apply(
    name: Name,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Another work tree of this repository.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put it into your work tree, whole or not at all; nothing is committed."""
    from becket.app import rescue as rescue_desk

    found, root = in_app(lambda app: rescue_desk.apply(app, name, to))
    if as_json:
        emit(_document(found) | {"applied_to": str(root)})
        return
    count = f"{len(found.paths)} path{'' if len(found.paths) == 1 else 's'}"
    say(words.RESCUE_APPLIED.format(name=found.rescue.name, root=root, count=count))


@rescue.command("drop")
def drop(name: Name, as_json: AsJson = False) -> None:
    """Let it go."""
    from becket.app import rescue as rescue_desk

    found = in_app(lambda app: rescue_desk.drop(app, name))
    if as_json:
        emit(_document(found))
    else:
        say(words.RESCUE_DROPPED.format(name=found.rescue.name, sha=found.rescue.sha))
