"""`becket notify`: see whether what Becket says reaches a person."""

from __future__ import annotations

from typing import Annotated

import typer

from becket.cli.output import emit, say
from becket.cli.plain import line
from becket.cli.shape import AsJson, group, in_app

SENT = "Sent by `{command}`. If nothing reached you, look at what it said: {output}"
SILENT = "nothing"

notify = group("Try the `notify` command of becket.yaml.")


@notify.callback()
def _group() -> None:
    """Try the `notify` command of becket.yaml."""


@notify.command("test")
def try_it(
    text: Annotated[str, typer.Option("--text", help="What to say.")] = "This is a test. All is well.",
    as_json: AsJson = False,
) -> None:
    """Send a test message, as an alarm would be sent."""
    from becket.parts.notify import telling

    command, result = in_app(lambda app: telling.send_test(app, text))
    if as_json:
        emit({"command": command, "result": result})
    else:
        say(SENT.format(command=line(command, 200), output=line(result.get("output") or SILENT, 400)))
