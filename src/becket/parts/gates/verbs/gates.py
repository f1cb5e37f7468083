"""`becket gates`: the steps that decide whether a commit is good, and a try of them by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from becket.cli.output import columns, emit, note, say
from becket.cli.plain import line
from becket.cli.shape import AsJson, end, group
from becket.parts.gates import words
from becket.parts.gates.section import GATES, SET_UP

gates = group("List the gates' steps, and try them once.")

At = Annotated[str | None, typer.Option("--at", metavar="SHA", help="The commit whose files are used; else HEAD.")]


@gates.command("list")
def list_steps(as_json: AsJson = False) -> None:
    """List the steps of becket.yaml as it stands."""
    from becket.app.settings import read_config
    from becket.app.state import find_state

    config = read_config(find_state())
    steps = [(gate, step) for gate, listed in config.section(GATES).items() for step in listed]
    if as_json:
        setup = config.section(SET_UP)
        told = None if setup is None else setup.model_dump(mode="json")
        emit({"setup": told, "steps": [{"gate": gate, **step.model_dump(mode="json")} for gate, step in steps]})
    elif steps:
        columns(("step", "command"), [(f"{gate}/{step.name}", line(step.run, 300)) for gate, step in steps])
    else:
        note(words.GATES_NONE)


@gates.command("try")
def try_steps(
    steps: Annotated[list[str] | None, typer.Argument(metavar="[STEP]...", help="Such as unit or fast/unit.")] = None,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Run the set-up and each step once on a clean tree, by becket.yaml as it stands. No agent, no promotion."""
    from becket.parts.gates.verbs.trying import attempt, document, green_line, show_red

    tried = attempt(tuple(steps or ()), at, as_json)
    if as_json:
        emit(document(tried))
    elif tried.green:
        say(green_line(tried))
    else:
        show_red(tried)
        say()
        say(words.TRIAL_NEXT_RED.format(steps=" ".join(one.step.name for one in tried.red if one.step.gate)).rstrip())
    end(int(not tried.green))
