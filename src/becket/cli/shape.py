"""What all verbs share: their Typer settings, common options, and how a verb talks to the app."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from becket.cli import words
from becket.kernel.contract.errors import BecketError, UsageError

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.caller import Caller

T = TypeVar("T")

PLAIN: dict[str, Any] = {
    "rich_markup_mode": None,  # importing rich for help texts would cost more than the verb
    "pretty_exceptions_enable": False,
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Note = Annotated[str, typer.Option("--note", help="A remark that is kept with the decision.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait for the run to go on.")]
With = Annotated[list[str] | None, typer.Option("--with", metavar="NAME=VALUE", help="May be repeated.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id; its beginning is enough.")]


class Interrupted(BecketError):
    """Ctrl-C. Nothing is lost: the journal has everything up to the last finished step."""

    exit_code = 130


def group(help: str, bare: str = "") -> typer.Typer:  # noqa: A002  # Typer's own word
    """`bare` is the verb that is meant where none is given."""
    made = typer.Typer(help=help, no_args_is_help=not bare, invoke_without_command=bool(bare), **PLAIN)
    if bare:

        @made.callback()
        def _meant(context: typer.Context, as_json: AsJson = False) -> None:
            if context.invoked_subcommand is None:
                group_of: Any = context.command
                context.invoke(group_of.commands[bare].callback, as_json=as_json)
            elif as_json:
                raise UsageError(words.JSON_BEFORE.format(verb=context.invoked_subcommand))

    return made


def end(code: int) -> None:
    """Leave with an exit code other than 0."""
    if code:
        raise typer.Exit(code)


def in_app(
    work: Callable[[App], Awaitable[T]],
    console: TextIO | None = None,
    folder: Path | None = None,
    *,
    tolerant: bool = False,
) -> T:
    """Open the repository's app around this folder, or another, do the work, close it.

    `tolerant`: brakes and reading need no configuration, and a slip in becket.yaml must not take them away.
    """
    from becket.app.compose import App
    from becket.app.state import find_state

    state = find_state(folder)

    async def whole() -> T:
        app = App.open(state, console or sys.stdout, tolerant=tolerant)
        if tolerant and app.trouble:
            print(words.WITHOUT_CONFIG.format(why=app.trouble), file=sys.stderr)
        try:
            return await work(app)
        finally:
            await app.store.close()

    try:
        return asyncio.run(whole())
    except KeyboardInterrupt:
        raise Interrupted(words.LEFT_ALL) from None


def me(app: App) -> Caller:
    """Whoever typed the command."""
    from becket.app.keyboard import at_keyboard

    return at_keyboard(app.config)


def pairs(given: Sequence[str] | None) -> dict[str, str]:
    """`--with name=value`, each name once."""
    found: dict[str, str] = {}
    for item in given or ():
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UsageError(words.not_a_pair(item))
        if name in found:
            raise UsageError(words.given_twice(name))
        found[name] = value
    return found
