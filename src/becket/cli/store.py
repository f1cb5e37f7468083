"""`becket store`: the journal itself, not what is in it."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.loops import counted
from becket.cli.output import emit, note, say
from becket.cli.plain import Paint, clock, line
from becket.cli.shape import AsJson, end, group

if TYPE_CHECKING:
    from becket.app.store_desk import Backup, Restored, StoreCheck, Unrecorded

store = group("Check the journal, copy it, and bring a copy back.")


@store.command("check")
def check(as_json: AsJson = False) -> None:
    """Say whether the journal is whole, and the one that was here."""
    from becket.app.state import find_state
    from becket.app.store_desk import check

    found = asyncio.run(check(find_state()))
    if as_json:
        checks = [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in found.checks]
        kept = [_document(one) for one in found.backups]
        emit({"ok": found.ok, "journal": found.where, "checks": checks, "backups": kept})
    else:
        _say_checks(found)
    end(int(not found.ok))


def _say_checks(found: StoreCheck) -> None:
    paint = Paint()
    width = max(len(item.what) for item in found.checks)
    for item in found.checks:
        mark = paint.green("ok  ") if item.ok else paint.red("BAD ")
        say(f"  {mark} {item.what.ljust(width)}  {line(item.detail, 400)}")
    for last in found.backups[:1]:
        note(words.STORE_BACKUP.format(name=last.name, when=clock(last.at)))
    if not found.backups:
        note(words.STORE_NO_BACKUP)
    bad, count = sum(not item.ok for item in found.checks), counted(len(found.checks), "check")
    if bad:
        say(paint.red(words.STORE_DAMAGED.format(where=found.where, bad=bad, count=count)))
    else:
        say(words.STORE_WHOLE.format(where=found.where, count=count))


@store.command("backup")
def backup(as_json: AsJson = False) -> None:
    """Copy the journal, whole at one moment, while it is in use."""
    from becket.app.state import find_state
    from becket.app.store_desk import backup

    made = backup(find_state())
    if as_json:
        emit(_document(made))
    else:
        say(words.BACKUP_MADE.format(path=made.path, size=made.size))


@store.command("restore")
def restore(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A backup; its beginning is enough. Without: the last good one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring back a backup; the journal that it replaces is kept aside."""
    from becket.app.state import find_state
    from becket.app.store_desk import restore

    done = asyncio.run(restore(find_state(), name))
    if as_json:
        emit({
            "backup": _document(done.backup), "aside": done.aside and str(done.aside),
            "lost_runs": list(done.lost_runs), "unrecorded": _unrecorded(done.unrecorded),
        })  # fmt: skip
    else:
        _say_restored(done)


def _say_restored(done: Restored) -> None:
    say(words.RESTORED.format(when=clock(done.backup.at), name=done.backup.name))
    if done.aside is not None:
        say(words.RESTORED_ASIDE.format(aside=done.aside))
    if done.lost_runs:
        count = counted(len(done.lost_runs), "run")
        say(words.RESTORED_LOST.format(count=count, runs=line(", ".join(done.lost_runs), 400)))
    if done.unrecorded:
        say(words.UNRECORDED.format(what=line(str(done.unrecorded), 800)))
    else:
        say(words.RESTORED_NEXT)


@store.command("accept")
def accept(as_json: AsJson = False) -> None:
    """Go on with the journal as it is; begin a new one where it is gone or damaged."""
    from becket.app.state import find_state
    from becket.app.store_desk import accept

    done = asyncio.run(accept(find_state()))
    if as_json:
        emit({
            "anew": done.anew, "aside": done.aside and str(done.aside), "unrecorded": _unrecorded(done.unrecorded),
            "tree": done.tree and str(done.tree), "in_the_way": done.in_the_way and str(done.in_the_way),
        })  # fmt: skip
        return
    say(words.ACCEPTED_ANEW if done.anew else words.ACCEPTED)
    if done.aside is not None:
        say(words.RESTORED_ASIDE.format(aside=done.aside))
    if done.unrecorded:
        say(words.ACCEPTED_UNRECORDED.format(what=line(str(done.unrecorded), 800)))
    if done.tree is not None:
        say(words.ACCEPTED_TREE.format(tree=done.tree))
    if done.in_the_way is not None:
        say(words.ACCEPTED_IN_THE_WAY.format(tree=shlex.quote(str(done.in_the_way))))


def _document(made: Backup) -> dict[str, object]:
    return {
        "name": made.name, "path": str(made.path), "at": made.at, "why": made.why, "size": made.size,
        "digest": made.digest,
    }  # fmt: skip


def _unrecorded(found: Unrecorded) -> dict[str, object]:
    promotions = [{"sha": one.sha, "key": one.key, "at": one.at} for one in found.promotions]
    return {"promotions": promotions, "refs": list(found.refs)}
