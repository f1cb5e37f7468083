"""`becket verify`: believe nothing, recompute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.loops import counted
from becket.cli.output import emit, say
from becket.cli.plain import Paint, line
from becket.cli.shape import AsJson, RunId, end, in_app

if TYPE_CHECKING:
    from becket.app.record.verify import Checked


def verify(
    run_id: RunId,
    rerun: Annotated[bool, typer.Option("--rerun", help="Repeat its commands in a fresh checkout.")] = False,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="DIGEST", help="A chain head kept elsewhere; it must be in the chain."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every digest a run rests on; on request, repeat its commands.

    The last line is the head of the run's chain of events. Whoever can write the database can write the chain anew: a
    head that is kept elsewhere and given back with --head proves that nobody did.
    """
    from becket.app.record import verify as verify_desk

    found = in_app(lambda app: verify_desk.verified(app, run_id, rerun, head), tolerant=not rerun)
    if as_json:
        checks = [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in found.checks]
        emit({"run_id": found.run_id, "ok": found.ok, "checks": checks, "head": found.head})
    else:
        print_checks(found.checks)
        if any(item.repeated for item in found.checks):
            say(words.REPEATED)
        if found.head:
            say(words.CHAIN_HEAD.format(head=found.head))
    end(int(not found.ok))


def print_checks(checks: Sequence[Checked]) -> None:
    paint = Paint()
    width = max((len(item.what) for item in checks), default=0)
    for item in checks:
        mark = paint.green("ok  ") if item.ok else paint.red("BAD ")
        say(f"  {mark} {item.what.ljust(width)}  {line(item.detail)}")
    bad = sum(not item.ok for item in checks)
    count = counted(len(checks), "check")
    say(paint.red(words.TAMPERED.format(bad=bad, count=count)) if bad else words.VERIFIED.format(count=count))
