"""Contract of the agents' drivers: sessions that go on, what they use and cost, what a person says to them (L23)."""

from __future__ import annotations

import asyncio

import pytest
from agent_stage import CLAUDE, CODEX, GEMINI, AgentStage, Kind, kinds, model, repairs, stage

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, Limits, PriceSource, Usage
from becket.kernel.contract.process import SandboxKind
from becket.testing.model import Delay, Edit, Hang, Say, Shell, Tokens

__all__ = ["model", "stage"]

ALL = kinds(CODEX, CLAUDE, GEMINI)
FIRST = Tokens(input=1_000, output=100)
SECOND = Tokens(input=2_000, output=50)


def cost(kind: Kind, usage: Usage) -> float:
    """By the suite's own prices; claude's are the vendor's for the model it is told to be."""
    given, made = (3.0, 15.0) if kind.program == "claude" else (2.0, 20.0)
    return (usage.input_tokens * given + usage.output_tokens * made) / 1_000_000


def money_is_right(stage: AgentStage, usage: Usage) -> None:
    assert usage.usd == pytest.approx(cost(stage.kind, usage), rel=1e-6)
    assert usage.priced is (PriceSource.vendor if stage.kind.program == "claude" else PriceSource.table)


@pytest.mark.parametrize("kind", ALL)
def test_usage_and_money_are_each_calls_own_also_after_a_resume(stage: AgentStage) -> None:
    """Codex counts a thread, and claude its money, from the beginning of the session."""
    edit = Edit("value.txt", "bad\n", "good\n", usage=FIRST)
    first = stage.call(edit, Say("Done.", usage=FIRST))
    assert (first.report.usage.input_tokens, first.report.usage.output_tokens) == (2_000, 200), first.report
    assert first.report.usage.turns == 2
    money_is_right(stage, first.report.usage)
    assert first.report.session
    second = stage.call(Say("Nothing more to do.", usage=SECOND), session=first.report.session, brief="Go on.")
    assert (second.report.usage.input_tokens, second.report.usage.output_tokens) == (2_000, 50), second.report
    assert second.report.usage.turns == 1
    money_is_right(stage, second.report.usage)
    assert second.events[-1].kind is AgentEventKind.end
    assert second.events[-1].usage is not None
    assert second.events[-1].usage.tokens == second.report.usage.tokens


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_a_resumed_session_knows_what_was_said(stage: AgentStage) -> None:
    first = stage.call(*repairs(), brief="The word is heron. Make value.txt say good.")
    before = len(stage.model.requests)
    second = stage.call(Say("It was heron."), session=first.report.session, brief="Which word was it?")
    assert second.report.session == first.report.session
    asked = stage.model.requests[before]
    assert asked.says("The word is heron.")
    assert asked.says("Which word was it?")


@pytest.mark.parametrize("kind", kinds(GEMINI, fakes=()))
def test_a_session_that_the_program_cannot_take_up_again_does_not_cost_the_call(stage: AgentStage) -> None:
    """Gemini 0.61 sends a resumed history that its service refuses: the work is then done in a new session."""
    first = stage.call(*repairs())
    second = stage.call(Shell("echo more > more.txt"), Say("Done."), session=first.report.session, brief="Go on.")
    assert second.judged.outcome is AgentOutcome.changed, second.report
    assert (stage.tree / "more.txt").exists()


@pytest.mark.parametrize("kind", ALL)
def test_a_session_that_is_gone_begins_anew(stage: AgentStage) -> None:
    """The port's promise: the call is not lost."""
    done = stage.call(*repairs(), session="01a1e250-0000-7000-8000-000000000000")
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert done.report.session != "01a1e250-0000-7000-8000-000000000000"


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_what_the_agent_does_to_its_records_does_not_make_the_next_call_cheaper(stage: AgentStage) -> None:
    """L21: the figure before is kept where the agent cannot write."""
    first = stage.call(Shell("echo good > value.txt", usage=FIRST), Say("Done.", usage=FIRST))
    kept = [path for path in stage.agent_home.rglob("*") if "becket" in path.name]
    assert kept == []
    second = stage.call(Say("Done.", usage=SECOND), session=first.report.session, brief="Go on.")
    assert second.report.usage.tokens == 2_050


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, fakes=("codex", "claude")))
def test_a_persons_message_goes_on_in_the_session_after_the_turn(stage: AgentStage) -> None:
    """A headless program cannot be interrupted: the message comes with the next resume, within the same call."""
    stage.model.script(Shell("echo one > value.txt", usage=FIRST), Delay(0.3), Say("Done."))
    stage.model.script(Edit("value.txt", "one\n", "two\n", usage=SECOND), Say("Two it is."))
    spoke: list[AgentEvent] = []

    def speak(event: AgentEvent) -> None:
        if event.kind is AgentEventKind.tool_call and not spoke:
            spoke.append(event)
            stage.say("Make it two, please.")

    stage.on_event = speak
    done = asyncio.run(stage.work())
    assert (stage.tree / "value.txt").read_text() == "two\n", done.report
    assert stage.model.saw("Make it two, please.")
    assert done.report.unheard == ()
    assert [(event.text, event.by) for event in done.events if event.by == "ada"] == [("Make it two, please.", "ada")]
    assert done.report.usage.input_tokens == 1_000 + 100 + 2_000 + 100
    assert done.report.usage.turns == 4
    money_is_right(stage, done.report.usage)


@pytest.mark.parametrize("kind", kinds(GEMINI, fakes=("gemini",)))
def test_a_persons_message_reaches_an_acp_agent_at_once(stage: AgentStage) -> None:
    """Its prompt is cancelled and the message said, while the model still hangs."""
    stage.model.script(Hang())

    async def story() -> None:
        call = asyncio.create_task(stage.work())
        assert await asyncio.to_thread(stage.model.wait_for, 1, 40.0)
        stage.model.script(Edit("value.txt", "bad\n", "two\n"), Say("Two it is."))
        stage.say("Make it two, please.")
        done = await asyncio.wait_for(call, 40)
        assert done.judged.outcome is AgentOutcome.changed, done.report
        assert (stage.tree / "value.txt").read_text() == "two\n"
        assert stage.model.saw("Make it two, please.")
        assert done.report.unheard == ()

    asyncio.run(story())


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, fakes=("codex", "claude", "gemini")))
def test_a_message_that_cannot_be_delivered_is_not_lost(stage: AgentStage) -> None:
    """It goes back to whoever called: the next brief has it."""
    stage.model.script(Hang())

    async def story() -> None:
        call = asyncio.create_task(stage.work(limits=Limits(seconds=5)))
        assert await asyncio.to_thread(stage.model.wait_for, 1, 40.0)
        if stage.kind.program == "gemini":
            stage.model.script(Hang())  # delivered at once, and not answered either
        stage.say("Make it two, please.")
        done = await call
        assert done.judged.outcome is AgentOutcome.limit_reached, done.report
        delivered = [event for event in done.events if event.by == "ada"]
        assert len(delivered) + len(done.report.unheard) == 1

    asyncio.run(story())


@pytest.mark.parametrize("kind", [Kind("command", sandbox=SandboxKind.none)], ids=["command"])
def test_a_command_agent_hears_its_brief_and_hands_back_what_people_said(stage: AgentStage) -> None:
    def speak(event: AgentEvent) -> None:
        if event.text == "begun":
            stage.say("Make it two, please.")

    stage.on_event = speak
    given = {"run": "echo begun; cat > value.txt; read never < /dev/null || true", "network": "none"}
    done = asyncio.run(stage.work("Write this down.", **given))
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert (stage.tree / "value.txt").read_text() == "Write this down."
    assert done.report.unheard == ("Make it two, please.",)
    assert done.report.session is None
    assert done.report.usage.priced is PriceSource.unknown
