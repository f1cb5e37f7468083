"""`becket agent`: one call of an agent, what agents do now, a word to them, and what they used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words as cli_words
from becket.cli.output import columns, emit, note, say
from becket.cli.plain import line
from becket.cli.shape import AsJson, RunId, end, group, in_app
from becket.kernel.contract.errors import UsageError
from becket.parts.agents import words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.config import Config
    from becket.parts.agents.doctor import AgentFact

agent = group("Call an agent, watch it, talk to it, and see what agents used.")


@agent.command("run")
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An agent of becket.yaml; see `becket agent list`.")],
    brief: Annotated[str, typer.Argument(metavar="BRIEF", help="What it shall do; `-` reads it from standard input.")],
    folder: Annotated[
        Path | None, typer.Option("--in", metavar="DIR", help="The repository around DIR; else the one around here.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Put its change into the work tree, if that is clean.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Call an agent once, contained, on a clone of HEAD; show what it does, its diff and how it ended.

    Exit codes: 0 it changed something, 1 any other outcome, 2 usage, 130 stopped by Ctrl-C.
    """
    from becket.parts.agents.verbs.call import call

    if folder is not None and not folder.is_dir():
        raise UsageError(words.NO_SUCH_FOLDER.format(path=folder))
    text = sys.stdin.read() if brief == "-" else brief
    if not text.strip():
        raise UsageError(words.AGENT_NO_BRIEF)
    end(call(name, text, folder, apply, as_json))


@agent.command("attach")
def attach(
    run_id: RunId,
    say_: Annotated[str | None, typer.Option("--say", metavar="TEXT", help="Tell the agent this first.")] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a run's agents at work; what is typed meanwhile is told to them. Of an ended run: what was kept.

    With --json: one JSON document per event and line, until the run ends.
    """
    from becket.parts.agents.verbs.attach import follow

    follow(run_id, say_, as_json)


@agent.command("tell")
def tell(
    run_id: RunId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="`-` reads it from standard input.")],
    as_json: AsJson = False,
) -> None:
    """Say something to the agent of a run: at once where its driver can, else with its next turn or brief."""
    from becket.parts.agents.verbs.attach import deliver, delivery_words, how

    done = deliver(run_id, sys.stdin.read() if text == "-" else text)
    if as_json:
        emit({**done.model_dump(mode="json"), "delivered": how(done)})
    else:
        say(delivery_words(done))


@agent.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the agents of becket.yaml: their programs, sandboxes, limits and fallbacks."""

    async def read(app: App) -> tuple[Config, tuple[AgentFact, ...], dict[str, str]]:
        from becket.parts.agents.doctor import look, sandbox_of

        return (
            app.config,
            look(app.config, app.state.root),
            {name: sandbox_of(app, each) for name, each in app.config.agents.items()},
        )

    config, facts, sandboxes = in_app(read)
    if as_json:
        emit([_document(config, fact, sandboxes[fact.name]) for fact in facts])
    elif not facts:
        note(cli_words.AGENT_NONE)
    else:
        head = ("agent", "driver", "model", "sandbox", "limits", "falls back to", "version", "program", "reaches")
        columns(head, [_listed(config, fact, sandboxes[fact.name]) for fact in facts])


def _listed(config: Config, fact: AgentFact, sandbox: str) -> tuple[str, ...]:
    known = config.agents[fact.name]
    program = line(known.run, 60) if known.run else str(fact.path or fact.program)
    program += " (not found)" if fact.program and fact.path is None else " (not seen)" if fact.unseen else ""
    return (
        fact.name, known.driver, known.model or "-", sandbox, _limits(config, fact.name),
        ", ".join(known.fallback) or "-", fact.version or "-", program,
        ", ".join(fact.ways) or f"network {fact.network}",
    )  # fmt: skip


def _limits(config: Config, name: str) -> str:
    from becket.kernel.contract.base import show_duration

    limits = config.agents[name].limits
    parts = [show_duration(limits.time)]
    parts += [f"{limits.turns} turns"] if limits.turns is not None else []
    parts += [f"{limits.tokens:,} tokens"] if limits.tokens is not None else []
    parts += [f"${limits.usd:g}"] if limits.usd is not None else []
    return ", ".join(parts)


def _document(config: Config, fact: AgentFact, sandbox: str) -> dict[str, object]:
    known = config.agents[fact.name]
    return {
        "name": fact.name,
        "driver": known.driver,
        "program": fact.program,
        "path": str(fact.path) if fact.path is not None else None,
        "unseen": fact.unseen,
        "version": fact.version,
        "untested": fact.untested,
        "model": known.model,
        "sandbox": sandbox,
        "network": fact.network,
        "hosts": list(fact.ways),
        "limits": known.limits.model_dump(mode="json"),
        "fallback": list(known.fallback),
    }


@agent.command("spend")
def spend(
    days: Annotated[int, typer.Option("--days", min=1, max=3660, help="So many days, today included.")] = 30,
    by: Annotated[str, typer.Option("--by", help="Add up by run, day, agent or loop.")] = "day",
    as_json: AsJson = False,
) -> None:
    """Show what agents used: calls, time, turns, tokens, money, outcomes; and what the budgets leave."""
    from becket.app.record.agent_spend import SpendGrouping, spending

    if by not in list(SpendGrouping):
        raise typer.BadParameter(f"{by!r} is not one of {', '.join(SpendGrouping)}", param_hint="--by")

    found = in_app(lambda app: spending(app, days, SpendGrouping(by)))
    if as_json:
        emit(found.model_dump(mode="json"))
    else:
        from becket.parts.agents.verbs.money import show

        show(found)
