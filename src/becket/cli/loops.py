"""`becket loops`: the contracts of this repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import columns, emit, note, say
from becket.cli.plain import line, safe
from becket.cli.shape import AsJson, end, group, in_app

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.errors import Finding
    from becket.kernel.contract.loop import LoadedLoop

    Findings = Mapping[str, Sequence[Finding]]

loops = group("List, show and check the loops of this repository.")


@loops.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the loops that load, and name the files that do not."""

    async def read(app: App) -> tuple[tuple[LoadedLoop, ...], Findings]:
        return app.loops.all(), app.loops.findings()

    found, findings = in_app(read, tolerant=True)
    broken = {file: items for file, items in findings.items() if items}
    if as_json:
        from becket.app.record.shown import loop_shown

        emit({"loops": [loop_shown(loop).model_dump(mode="json") for loop in found], "broken": sorted(broken)})
        return
    if not found and not broken:
        note(words.NO_LOOPS)
        return
    columns(("loop", "triggers", "autonomy", "goal"), [_listed(loop) for loop in found])
    for file, items in broken.items():
        note(words.BROKEN.format(file=file, count=counted(len(items), "finding")))


def _listed(loop: LoadedLoop) -> tuple[str, ...]:
    triggers = ", ".join(trigger.kind for trigger in loop.spec.trigger)
    return loop.spec.loop_id, triggers, loop.spec.autonomy.value, line(loop.spec.goal)


@loops.command("show")
def show(loop: Annotated[str, typer.Argument(metavar="LOOP")], as_json: AsJson = False) -> None:
    """Print a loop's contract."""

    async def read(app: App) -> LoadedLoop:
        return app.loops.get(loop)

    found = in_app(read, tolerant=True)
    if as_json:
        from becket.app.record.shown import whole_loop

        emit(whole_loop(found).model_dump(mode="json"))
        return
    note(f"# {found.source}")
    say(safe(found.text).rstrip("\n"))


@loops.command("lint")
def lint(
    loop: Annotated[str | None, typer.Argument(metavar="[LOOP]", help="Only this one.")] = None, as_json: AsJson = False
) -> None:
    """Prove the loops before they run; findings carry file, line, column and the fix."""
    from becket.app.record.shown import lint_findings, linted

    async def read(app: App) -> Findings:
        return lint_findings(app, loop)

    findings = in_app(read)
    bad = [item for items in findings.values() for item in items]
    if as_json:
        emit(linted(findings).model_dump(mode="json"))
    elif not findings:
        note(words.LINT_NONE)
    else:
        _say_findings(bad, findings)
    end(2 if bad else 0)


def _say_findings(bad: Sequence[Finding], findings: Findings) -> None:
    for item in bad:
        say(safe(item))
    files = sum(bool(items) for items in findings.values())
    if bad:
        note(words.LINT_BAD.format(count=counted(len(bad), "finding"), files=counted(files, "file")))
    else:
        say(words.LINT_CLEAN.format(count=counted(len(findings), "loop")))


@loops.command("schema")
def schema(
    config: Annotated[bool, typer.Option("--config", help="The schema of becket.yaml instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of loops, for editors."""
    from becket.app.sections import config_model
    from becket.kernel.spec.schema import config_schema, spec_schema

    emit(config_schema(config_model()) if config else spec_schema())


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
