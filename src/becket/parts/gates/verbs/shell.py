"""`becket shell`: look around where a gate's step runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import emit, note
from becket.cli.plain import short
from becket.cli.shape import AsJson, end, in_app
from becket.kernel.contract.errors import BecketError, UsageError
from becket.parts.gates import words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.process import ChildControl

LOOK_EVERY = 0.02
CHUNK = 1 << 16
INTERACTIVE = (
    "stty rows {rows} cols {columns} 2>/dev/null; command -v bash >/dev/null && exec bash --norc -i; exec sh -i"
)


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Run this alone, and end with its exit code.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="SHA", help="The commit; else HEAD.")] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="STEP", help="Whose variables and network; else the first step's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open a shell on a clean tree of a commit, as a gate's step would see it."""
    import shlex

    words_given = command or []
    if as_json and not words_given:
        raise UsageError(words.SHELL_JSON)
    text = words_given[0] if len(words_given) == 1 else shlex.join(words_given)
    interactive = not words_given and sys.stdin.isatty() and sys.stdout.isatty()

    async def whole(app: App) -> int:
        from becket.parts.gates import shell as desk
        from becket.parts.gates.trial import commit_of

        sha, chosen = await commit_of(app, at), desk.chosen_step(app, step)
        async with desk.opened(app, sha, chosen) as proof:
            if interactive:
                note(words.SHELL_AT.format(sha=short(sha), step=chosen.name, network=chosen.network.value))
            argv = ("sh", "-euc", text) if words_given else _shell(interactive)
            with _raw() if interactive else contextlib.nullcontext():
                said = proof.root.parent / "said"
                async with _relayed(said, stdin=not words_given, quiet=as_json) as control:
                    done = await desk.execute(app, proof, chosen, argv, said, control=control, terminal=interactive)
            if as_json:
                output = said.read_text("utf-8", "replace") if said.exists() else ""
                emit({"sha": sha, "step": chosen.name, **done.model_dump(mode="json"), "output": output})
        if done.exit_code is None:
            raise BecketError(done.message)
        return done.exit_code if done.exit_code >= 0 else 128 - done.exit_code

    end(in_app(whole))


def _shell(interactive: bool) -> tuple[str, ...]:
    if not interactive:
        return ("sh",)
    size = shutil.get_terminal_size()
    return ("sh", "-c", INTERACTIVE.format(rows=size.lines, columns=size.columns))


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Every key goes to the terminal inside, Ctrl-C too."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextlib.asynccontextmanager
async def _relayed(said: Path, *, stdin: bool, quiet: bool) -> AsyncIterator[ChildControl | None]:
    """What we read goes in, what is printed inside comes out, until the block ends."""
    from becket.kernel.contract.process import ChildControl

    control = ChildControl() if stdin else None
    telling = asyncio.create_task(asyncio.sleep(0) if quiet else _tell(said))
    loop = asyncio.get_running_loop()
    if control is not None:
        _hear(loop, control)
    try:
        yield control
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        if control is not None:
            with contextlib.suppress(ValueError, OSError):
                loop.remove_reader(sys.stdin.fileno())


def _hear(loop: asyncio.AbstractEventLoop, control: ChildControl) -> None:
    descriptor = sys.stdin.fileno()

    def heard() -> None:
        data = os.read(descriptor, CHUNK)
        if data:
            control.say(data)
        else:
            loop.remove_reader(descriptor)
            control.close()

    try:
        loop.add_reader(descriptor, heard)
    except PermissionError:  # a file is always ready, and cannot be waited for
        control.say(sys.stdin.buffer.read())
        control.close()


async def _tell(said: Path) -> None:
    """Until cancelled; what was printed until then is told."""
    place = 0
    try:
        while True:
            place = _pass_on(said, place)
            await asyncio.sleep(LOOK_EVERY)
    finally:
        _pass_on(said, place)


def _pass_on(said: Path, place: int) -> int:
    with contextlib.suppress(FileNotFoundError), said.open("rb") as file:
        file.seek(place)
        while data := file.read(CHUNK):
            sys.stdout.buffer.write(data)
            place += len(data)
        sys.stdout.buffer.flush()
    return place
