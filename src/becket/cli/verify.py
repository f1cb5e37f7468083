"""`becket verify`: believe nothing, recompute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.loops import counted
from becket.cli.paper import emit, say
from becket.cli.plain import Paint, line
from becket.cli.shape import AsJson, RunId, end, in_app

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.verify import Checked


def verify(
    run_id: RunId,
    rerun: Annotated[bool, typer.Option("--rerun", help="Repeat its commands in a fresh checkout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check every digest a run rests on; on request, repeat its commands."""

    async def check(app: App) -> tuple[str, tuple[Checked, ...]]:
        from becket.app.verify import verify_run

        run = await app.store.get_run(run_id)
        return run.run_id, await verify_run(app, run.run_id, rerun)

    run, checks = in_app(check)
    if as_json:
        found = [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in checks]
        emit({"run_id": run, "ok": all(item.ok for item in checks), "checks": found})
    else:
        print_checks(checks)
        if rerun:
            say(words.REPEATED)
    end(int(not all(item.ok for item in checks)))


def print_checks(checks: Sequence[Checked]) -> None:
    paint = Paint()
    width = max((len(item.what) for item in checks), default=0)
    for item in checks:
        mark = paint.green("ok  ") if item.ok else paint.red("BAD ")
        say(f"  {mark} {item.what.ljust(width)}  {line(item.detail)}")
    bad = sum(not item.ok for item in checks)
    count = counted(len(checks), "check")
    say(paint.red(words.TAMPERED.format(bad=bad, count=count)) if bad else words.VERIFIED.format(count=count))
