"""`becket doctor`: what is wrong, and the command that mends it; on request, one trivial call of each agent."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import emit, note, say, say_wrapped
from becket.cli.plain import Paint, line, safe
from becket.cli.shape import AsJson, end, in_app, me
from becket.kernel.contract.errors import UsageError
from becket.parts.agents.verbs.call import call_words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.parts.agents.desk import CallResult
    from becket.parts.doctor.doctor import Diagnosis


def doctor(
    probe: Annotated[
        bool, typer.Option("--probe", help="Call each agent of becket.yaml once, for a word. This costs money.")
    ] = False,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="With --probe: only this agent.")] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Remove refs of Becket's own that name lost objects; no other is touched.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check machine, repository and configuration; say how to mend them."""
    from becket.kernel.checks.doctor import exit_code, to_json
    from becket.parts.doctor.doctor import examine, mend

    if agent is not None and not probe:
        raise UsageError(words.DOCTOR_AGENT_ALONE)
    mended = mend(Path.cwd()) if fix else ()
    for ref in mended if not as_json else ():
        say(words.DOCTOR_REMOVED.format(ref=ref.ref, sha=ref.sha, missing=line(ref.missing, 200)))
    found = examine(Path.cwd())
    if not as_json:
        for item in found:
            show(item)
    probed, unfit = _probe(agent, as_json) if probe else ({}, {})
    if as_json:
        document = to_json(found)
        more: dict[str, object] = {"probes": _documents(probed, unfit)} if probe else {}
        more |= {"removed": [ref.model_dump(mode="json") for ref in mended]} if fix else {}
        emit({**document, **more} if isinstance(document, dict) else document)
    end(exit_code(found) or int(bool(unfit) or not all(_works(called, name) for name, called in probed.items())))


def show(item: Diagnosis) -> None:
    paint = Paint()
    mark = {"ok": paint.green("ok   "), "warn": paint.yellow("warn "), "error": paint.red("ERROR")}[item.level.value]
    where = f"  {paint.dim(line(item.where, 200))}" if item.where and item.level.value != "ok" else ""
    say_wrapped(f"{mark} {item.name.ljust(10)} {line(item.what, 400)}{where}")
    if item.mend:
        say_wrapped(f"{' ' * 17}{paint.bold(safe(item.mend))}")


def _probe(only: str | None, quiet: bool) -> tuple[dict[str, CallResult], dict[str, str]]:
    """One after another: each may be refused by the budget that the one before used up. Those that cannot be called
    as they are configured come with the reason.
    """
    found: dict[str, CallResult] = {}
    unfit: dict[str, str] = {}

    async def each(app: App) -> None:
        from becket.parts.agents.desk import AgentMisconfigured
        from becket.parts.doctor.doctor import probe

        names = [only] if only is not None else list(app.config.agents)
        if not names:
            note(words.AGENT_NONE)
        for name in names:
            try:
                found[name] = await probe(app, me(app), name)
            except AgentMisconfigured as error:
                unfit[name] = str(error)
            if not quiet:
                _say_probe(found.get(name), name, unfit.get(name, ""))

    in_app(each, io.StringIO())
    return found, unfit


def _works(called: CallResult, name: str) -> bool:
    from becket.parts.doctor.doctor import works

    return works(called, name)


def _say_probe(called: CallResult | None, name: str, unfit: str) -> None:
    paint, good = Paint(), called is not None and _works(called, name)
    mark = paint.green("ok   ") if good else paint.red("ERROR")
    mine = [call for call in called.calls if call.agent == name] if called is not None else []
    told = call_words(mine[-1]) if mine else words.PROBE_NOT_MADE.format(agent=line(name, 60))
    say(f"{mark} {'probe'.ljust(10)} {told}")
    if not good:
        say(f"{' ' * 17}{paint.bold(line(_why(called, name) if called is not None else unfit, 400))}")


def _why(called: CallResult, name: str) -> str:
    ends = [call.end.reason for call in called.calls if call.agent == name and call.end is not None]
    return f"{ends[-1] if ends else called.reason} (becket runs show {called.run.run_id})"


def _documents(probed: dict[str, CallResult], unfit: dict[str, str]) -> list[dict[str, object]]:
    never: list[dict[str, object]] = [
        {"agent": name, "works": False, "run_id": None, "reason": why, "calls": []} for name, why in unfit.items()
    ]
    return never + [
        {
            "agent": name,
            "works": _works(called, name),
            "run_id": called.run.run_id,
            "reason": called.reason,
            "calls": [call.model_dump(mode="json") for call in called.calls],
        }
        for name, called in probed.items()
    ]
