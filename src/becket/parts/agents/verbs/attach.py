"""`becket agent attach` and `tell`: see a run's agents at work, and say something to them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from becket.cli import words as cli_words
from becket.cli.output import note
from becket.cli.shape import Interrupted, in_app, me
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.readiness import readable
from becket.parts.agents import words
from becket.parts.agents.verbs.call import LiveCall

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.agent import AgentEvent
    from becket.kernel.contract.calls import AgentCall
    from becket.kernel.contract.run import Run
    from becket.parts.agents.desk import MessageDelivery

LOOK_EVERY = 0.2

AT_ONCE, NEXT_TURN, NEXT_BRIEF, NEXT_CALL = "at_once", "next_turn", "next_brief", "next_call"
_BY_DRIVER = {"acp": AT_ONCE, "codex": NEXT_TURN, "claude": NEXT_TURN}
_WORDS = {
    AT_ONCE: words.TELL_AT_ONCE,
    NEXT_TURN: words.TELL_NEXT,
    NEXT_BRIEF: words.TELL_BRIEF,
    NEXT_CALL: words.TELL_LATER,
}


def deliver(run_id: str, text: str) -> MessageDelivery:
    from becket.parts.agents import desk

    return in_app(lambda app: desk.say(app, me(app), run_id, _message(text)))


def _message(text: str) -> str:
    if not text.strip():
        raise UsageError(words.TELL_EMPTY)
    return text


def how(done: MessageDelivery) -> str:
    """When the agent learns of it: known by its driver."""
    return NEXT_CALL if done.agent is None else _BY_DRIVER.get(done.driver, NEXT_BRIEF)


def delivery_words(done: MessageDelivery) -> str:
    return _WORDS[how(done)].format(agent=done.agent, run_id=done.run_id)


def follow(run_id: str, text: str | None, as_json: bool) -> None:
    tell: Callable[[AgentCall, AgentEvent], None] = _print_json if as_json else LiveCall().tell
    run = in_app(lambda app: _follow(app, run_id, text, tell))
    if not as_json:
        note(words.ATTACH_ENDED.format(run_id=run.run_id, status=cli_words.STATUS[run.status.value]))


def _print_json(call: AgentCall, event: AgentEvent) -> None:
    import json

    said = {"call_id": call.call_id, "agent": call.agent, **event.model_dump(mode="json", exclude_defaults=True)}
    print(json.dumps(said, ensure_ascii=sys.stdout.isatty()), flush=True)


async def _follow(app: App, run_id: str, text: str | None, tell: Callable[[AgentCall, AgentEvent], None]) -> Run:
    from becket.app.record.agent_watch import CallListener
    from becket.kernel.contract.run import ENDED
    from becket.parts.agents.desk import say as tell_agent

    run = await app.store.get_run(run_id)
    if text is not None:
        note(delivery_words(await tell_agent(app, me(app), run.run_id, _message(text))))
    if run.status in ENDED:
        await _show_kept(app, run, tell)
        return run
    calls = await app.store.calls(run.run_id)
    listener = CallListener(app, run.run_id, tell, [call for call in calls if call.end is not None])
    if not any(call.end is None for call in calls):
        note(words.ATTACH_WAITS.format(run_id=run.run_id))
    listening = asyncio.create_task(listener.listen())
    typing = asyncio.create_task(_typed(app, run.run_id))
    try:
        while (run := await app.store.get_run(run.run_id)).status not in ENDED:
            await asyncio.sleep(LOOK_EVERY)
    except asyncio.CancelledError:
        raise Interrupted(words.ATTACH_LEFT.format(run_id=run.run_id)) from None
    finally:
        for task in (listening, typing):
            task.cancel()
        await asyncio.gather(listening, typing, return_exceptions=True)
        if run.status in ENDED:
            await listener.tell_kept()
        listener.close()
    return run


async def _show_kept(app: App, run: Run, tell: Callable[[AgentCall, AgentEvent], None]) -> None:
    from becket.app.record.agent_watch import CallListener

    told = 0

    def count(call: AgentCall, event: AgentEvent) -> None:
        nonlocal told
        told += 1
        tell(call, event)

    await CallListener(app, run.run_id, count).tell_kept()
    if not told:
        note(words.ATTACH_NOTHING.format(run_id=run.run_id))


async def _typed(app: App, run_id: str) -> None:
    """Each line that a person types becomes a message, until the end of their input."""
    from becket.parts.agents.desk import say as tell_agent

    if not sys.stdin.isatty():
        return
    note(words.ATTACH_TYPE)
    async for text in _Lines(sys.stdin.fileno()):
        if text.strip():
            try:
                note(delivery_words(await tell_agent(app, me(app), run_id, text)))
            except UsageError as error:
                note(str(error))


class _Lines:
    """The lines of a terminal, read without keeping the event loop from its work."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._rest = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                raise StopAsyncIteration
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\n")
        return text.decode(errors="replace")

    async def _chunk(self) -> bytes:
        await readable(self._file)
        return os.read(self._file, 4096)
