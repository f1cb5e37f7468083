"""Calls of programs that print their events: real children, small programs that play codex or claude."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from headless_stage import Stage

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallFiles, PriceSource, Usage, judge
from becket.kernel.contract.errors import UsageError
from becket.parts.agents.adapters import inbox
from becket.parts.agents.adapters.call_environment import DriverContext
from becket.parts.agents.adapters.claude import ClaudeAgent
from becket.parts.agents.adapters.codex import CodexAgent
from becket.parts.agents.adapters.command import CommandAgent
from becket.parts.agents.adapters.dialect import Dialect


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


FINE = """
say(type="thread.started", thread_id="t-1")
Path("new.txt").write_text("x")
item("agent_message", text="done")
turn(100, 10)
"""


def test_a_call_works_and_tells_what_it_did(stage: Stage) -> None:
    report = stage.run(stage.agent(FINE))
    assert (report.ended, report.error, report.said, report.session) == (True, "", "done", "t-1")
    assert (stage.tree / "new.txt").exists()
    assert report.usage.model_copy(update={"seconds": 0.0}) == Usage(
        turns=1, input_tokens=100, output_tokens=10, usd=100.0, priced=PriceSource.table
    )
    assert [event.kind for event in stage.heard] == [AgentEventKind.message, AgentEventKind.usage, AgentEventKind.end]
    written = [
        AgentEvent.model_validate_json(line) for line in stage.files.events.read_text().splitlines() if "kind" in line
    ]
    assert written == stage.heard
    assert judge(report, ("new.txt",)).outcome is AgentOutcome.changed


def test_an_exit_code_alone_is_no_success(stage: Stage) -> None:
    """L20: exit code 0 without a terminal event is a crash, and so is one with it."""
    for code in (0, 1):
        report = stage.run(stage.agent(f"Path('a').write_text('x'); print('oops', file=sys.stderr); sys.exit({code})"))
        assert not report.ended
        assert judge(report, ("a",)).outcome is AgentOutcome.crashed
    assert "oops" in report.error


def test_a_terminal_event_counts_whatever_the_exit_code_is(stage: Stage) -> None:
    report = stage.run(stage.agent(f"{FINE}\nsys.exit(1)"))
    assert report.ended
    assert report.error == ""


def test_a_program_that_lives_on_after_its_end_is_ended(stage: Stage) -> None:
    agent = stage.agent(f"{FINE}\ntime.sleep(60)")
    agent.lingers = 0.2
    report = stage.run(agent)
    assert report.ended
    assert report.error == ""
    assert report.usage.seconds < 55, "it would live for 60"


QUOTA = """
say(type="thread.started", thread_id="t-1")
say(type="error", message="Reconnecting... 1/2 (exceeded retry limit, last status: 429 Too Many Requests)")
time.sleep(60)
"""


class Impatient(CodexAgent):
    def dialect(self, tree: Path, before: Usage) -> Dialect:
        dialect = super().dialect(tree, before)
        heed = dialect.take

        def take(line: str) -> list[AgentEvent]:
            events = heed(line)
            dialect.heard.patience = min(dialect.heard.patience, 0.2)
            return events

        dialect.take = take  # type: ignore[method-assign]
        return dialect


def test_a_program_that_waits_for_its_quota_is_not_waited_for(stage: Stage) -> None:
    """L23: the run waits, not the call, whose time is paid for."""
    report = stage.run(stage.agent(QUOTA, Impatient))
    assert report.outcome_hint is AgentOutcome.quota_wait
    assert report.until is None, "codex does not pass on what it was told"
    assert not report.ended
    assert report.usage.seconds < 55, "it would wait for 60"


def test_a_program_that_only_tries_its_model_again_has_a_model_that_fails(stage: Stage) -> None:
    """Not a limit that it passed: so its fallback has a turn. Either way: before its time is over, or when it is."""
    down = QUOTA.replace("exceeded retry limit, last status: 429 Too Many Requests", "experiencing high demand")
    for agent, seconds in ((stage.agent(down, Impatient), 120.0), (stage.agent(down), 5.0)):
        report = stage.run(agent, seconds=seconds)
        assert (report.outcome_hint, report.ended) == (AgentOutcome.model_error, False), report
        assert report.usage.seconds < 55, "it would try for 60"


def test_lines_that_nobody_knows_are_counted_and_kept(stage: Stage) -> None:
    report = stage.run(stage.agent("print('banner'); say(type='brand.new'); print(b'\\xff'.hex())\n" + FINE))
    assert report.ended
    assert report.unknown_events == 3
    assert "brand.new" in stage.files.raw.read_text()


LOOP = """
say(type="thread.started", thread_id="t-1")
for number in range(10_000):
    item("command_execution", number, command="true", exit_code=0, status="completed")
    time.sleep(0.01)
"""


def test_an_endless_loop_ends_at_its_turns(stage: Stage) -> None:
    """L23: enforced by us; the overshoot is in the usage."""
    report = stage.run(stage.agent(LOOP), turns=4)
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert report.usage.turns >= 5
    assert f"turns: {report.usage.turns} of 4" in report.error
    assert stage.last_event().kind is AgentEventKind.end


RECORD = """
say(type="thread.started", thread_id="t-1")
folder = Path.home() / ".codex/sessions/2026/11/16"
folder.mkdir(parents=True)
with open(folder / "rollout-x-t-1.jsonl", "a", buffering=1) as record:
    record.write(json.dumps(dict(type="turn_context", payload=dict(model="gpt-5.4"))) + "\\n")
    for number in range(1, 1000):
        told = dict(input_tokens=1000 * number, output_tokens=0)
        line = dict(type="event_msg", payload=dict(type="token_count", info=dict(total_token_usage=told)))
        record.write(json.dumps(line) + "\\n")
        time.sleep(0.05)
"""


def test_tokens_within_a_silent_turn_of_codex_are_seen_in_its_own_record(stage: Stage) -> None:
    """And which model it is, which it never prints: what was stopped has a price then."""
    report = stage.run(stage.agent(RECORD, model=None), tokens=5_000)
    assert (report.model, report.usage.usd) == ("gpt-5.4", pytest.approx(report.usage.input_tokens * 2.5e-6))
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert report.usage.input_tokens > 5_000
    assert report.usage.turns == report.usage.input_tokens // 1000


LIES = """
def told(tokens):
    info = dict(total_token_usage=dict(input_tokens=tokens))
    return dict(type="event_msg", payload=dict(type="token_count", info=info))
record.write(json.dumps(told(7000)) + "\\n" + json.dumps(told(10)) + "\\n")
record.close()
turn(0, 0)
"""


def test_an_end_at_no_cost_and_a_smaller_record_hide_nothing(stage: Stage) -> None:
    """L20: a command that the agent runs can write to its standard output, and to its record."""
    begin, _, _ = RECORD.partition("with open")
    opened = 'record = open(folder / "rollout-x-t-1.jsonl", "a")'
    report = stage.run(stage.agent(begin + opened + LIES))
    assert (report.ended, report.usage.input_tokens) == (True, 7000)
    again = stage.run(stage.agent(FINE.replace("turn(100, 10)", "turn(7500, 0)")), "t-1")
    assert again.usage.input_tokens == 500


def test_a_call_that_hangs_ends_at_its_time(stage: Stage) -> None:
    """L19."""
    for seconds in (0.7, 3.0, 12.0):  # as long as it takes to begin
        report = stage.run(stage.agent("say(type='thread.started', thread_id='t-1'); time.sleep(60)"), seconds=seconds)
        if report.session:
            break
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert not report.ended
    assert report.session == "t-1"


def test_the_agents_own_limits_hold_too(stage: Stage) -> None:
    report = stage.run(stage.agent("time.sleep(60)", limits={"time": 0.5}))
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert report.usage.seconds < 55, "it would sleep for 60"


def test_a_session_is_resumed_and_only_this_call_is_charged(stage: Stage) -> None:
    """Codex counts the thread: what it had counted before is kept beside HOME, out of the agent's reach."""
    stage.run(stage.agent(FINE))
    report = stage.run(stage.agent(FINE.replace("turn(100, 10)", "turn(1100, 110)")), "t-1")
    assert (report.usage.input_tokens, report.usage.output_tokens) == (1000, 100)
    assert stage.asked()[1][0][-3:] == ["resume", "t-1", "-"]
    assert (stage.home.parent / "fixer-1.sessions.json").exists()
    assert stage.agent("").used(stage.files) == report.usage.model_copy(update={"seconds": stage.last_event().at})


GONE = """
if "resume" in arguments:
    print("Error: no rollout found for thread id", file=sys.stderr)
    sys.exit(1)
"""


def test_a_session_that_is_gone_begins_anew(stage: Stage) -> None:
    report = stage.run(stage.agent(GONE + FINE), "t-0")
    assert report.ended
    assert report.session == "t-1"
    assert [prompt for _, prompt in stage.asked()] == ["Fix it.", "Fix it."]


def test_what_nobody_told_is_not_taken_for_nothing(stage: Stage) -> None:
    """After a crash of ours the booking stands, unless the files tell what was used."""
    assert stage.agent("").used(CallFiles(stage.folder / "never")) is None
    stage.run(stage.agent("say(type='thread.started', thread_id='t-1')"))
    assert stage.agent("").used(stage.files) is None


def test_a_program_that_never_ran_used_nothing(stage: Stage) -> None:
    """Killed while its outfit was made ready: its output would be there otherwise."""
    stage.files.inbox.mkdir(parents=True)
    assert stage.agent("").used(stage.files) == Usage()


def test_of_a_command_its_time_is_all_that_can_be_told(stage: Stage) -> None:
    """L23: a daemon that was killed does not leave all the run's money booked for an agent that never tells any."""
    command = stage.agent("echo hello", CommandAgent)
    assert command.used(CallFiles(stage.folder / "never")) is None
    report = stage.run(command)
    assert command.used(stage.files) == Usage(seconds=stage.last_event().at)
    assert 0 < stage.last_event().at == report.usage.seconds
    with stage.files.events.open("a") as events:
        events.write('{"at":1234.5}\n')
    assert command.used(stage.files) == Usage(seconds=1234.5)


def test_a_persons_message_is_delivered_when_the_turn_ends(stage: Stage) -> None:
    def speak(event: AgentEvent) -> None:
        if event.kind is AgentEventKind.message and not event.by and not (stage.folder / "spoken").exists():
            (stage.folder / "spoken").touch()
            inbox.put(stage.files.inbox, "Rather use a set.", by="ada")

    stage.on_event = speak
    report = stage.run(
        stage.agent(FINE.replace("turn(100, 10)", "turn(100 if 'resume' not in arguments else 300, 10)"))
    )
    assert stage.asked()[1][0][-3:] == ["resume", "t-1", "-"]
    assert stage.asked()[1][1] == "Rather use a set."
    assert [(event.text, event.by) for event in stage.heard if event.by] == [("Rather use a set.", "ada")]
    assert report.usage.input_tokens == 300
    assert report.usage.turns == 2
    assert report.unheard == ()
    used = stage.agent("").used(stage.files)
    assert used is not None
    assert used.input_tokens == 300


def test_a_message_that_cannot_be_delivered_is_unheard(stage: Stage) -> None:
    inbox.put(CallFiles(stage.folder / "call-1").inbox, "Stop that.", by="ada")
    report = stage.run(stage.agent("say(type='turn.failed', error=dict(message='bad thing'))"))
    assert report.unheard == ("Stop that.",)
    inbox.put(CallFiles(stage.folder / "call-2").inbox, "And that.", by="ada")
    report = stage.run(stage.agent("true", CommandAgent))
    assert report.unheard == ("And that.",)


def test_cancelled_means_that_nothing_is_left(stage: Stage) -> None:
    """L19: orphans do not go on editing after a stop."""
    body = RECORD.replace("time.sleep(0.05)", "item('agent_message', text=str(os.getpid())); time.sleep(60)")

    async def scene() -> int:
        begun = asyncio.Event()
        stage.on_event = lambda event: begun.set() if event.kind is AgentEventKind.message else None
        call = asyncio.ensure_future(stage.call(stage.agent(body)))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return int(next(event.text for event in stage.heard if event.kind is AgentEventKind.message))

    pid = asyncio.run(scene())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    end = stage.last_event()
    assert (end.kind, end.text) == (AgentEventKind.end, "cancelled")
    assert end.usage is not None
    assert end.usage.input_tokens == 1000


def test_a_listener_that_fails_leaves_no_child(stage: Stage) -> None:
    def fail(event: AgentEvent) -> None:
        raise RuntimeError("the terminal is gone")

    stage.on_event = fail
    with pytest.raises(RuntimeError):
        stage.run(stage.agent(LOOP.replace("say(type=", "item('agent_message', text=str(os.getpid())); say(type=")))
    with pytest.raises(ProcessLookupError):
        os.kill(int(stage.heard[0].text), 0)


def test_a_missing_variable_is_a_missing_login_and_ends_well(stage: Stage) -> None:
    report = stage.run(stage.agent(FINE, env=["GONE"]))
    assert report.outcome_hint is AgentOutcome.auth_missing
    assert stage.last_event().kind is AgentEventKind.end


def test_a_money_limit_without_a_price_is_refused_before_the_call(stage: Stage) -> None:
    with pytest.raises(UsageError, match="prices"):
        stage.run(stage.agent(FINE, model="unheard-of", limits={"usd": 1.0}))


def test_codex_is_started_as_its_traps_demand(stage: Stage) -> None:
    stage.run(stage.agent(FINE, endpoint="http://127.0.0.1:9/v1", key="KEY", args=["-c", "x=1"]))
    ((arguments, prompt),) = stage.asked()
    assert prompt == "Fix it."
    provider = (
        'model_providers.becket={name="becket",base_url="http://127.0.0.1:9/v1",wire_api="responses",'
        'request_max_retries=0,stream_max_retries=2,supports_websockets=false,env_key="KEY"}'
    )
    assert arguments == [
        "exec", "--json", "-s", "workspace-write",
        "-c", "sandbox_workspace_write.exclude_slash_tmp=true",
        "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true",
        "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps", "-c", "analytics.enabled=false",
        "-m", "m", "-c", 'model_provider="becket"', "-c", provider,
        "-c", 'shell_environment_policy.exclude=["KEY"]', "-c", "x=1", "-",
    ]  # fmt: skip


CLAUDE = """
say(type="system", subtype="init", session_id="s-1", model="m", claude_code_version="2.1.325")
say(type="assistant", message=dict(id="m", content=[dict(type="text", text=os.environ.get("ANTHROPIC_API_KEY", "-"))]))
say(type="result", subtype="success", is_error=False, session_id="s-1", result="done", total_cost_usd=0.25,
    modelUsage=dict(m=dict(inputTokens=10, outputTokens=5, costUSD=0.25)))
"""


def test_claude_is_started_as_its_traps_demand(stage: Stage) -> None:
    """Without a sandbox that holds files, it may edit and look, and nothing of the project's settings counts."""
    report = stage.run(stage.agent(CLAUDE, ClaudeAgent, key="KEY", args=["--effort", "low"]), "s-0", turns=9, usd=2)
    ((arguments, prompt),) = stage.asked()
    assert prompt == "Fix it."
    tools = "Edit,NotebookEdit,Read,Skill,Write,Bash(git diff:*),Bash(git log:*),Bash(git status:*)"
    assert arguments == [
        "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config", "--model", "m", "--resume", "s-0",
        "--max-turns", "9", "--max-budget-usd", "2.000000", "--effort", "low",
        "--setting-sources", "user", "--tools", "Bash,Edit,NotebookEdit,Read,Skill,Task,Write",
        "--permission-mode", "acceptEdits", "--allowedTools", tools,
    ]  # fmt: skip
    assert stage.heard[0].text == "sesame"
    assert (report.usage.usd, report.usage.priced, report.version) == (0.25, PriceSource.vendor, "2.1.325")


def test_any_program_is_an_agent_by_its_exit_code(stage: Stage) -> None:
    report = stage.run(stage.agent("cat > brief.txt; echo one; echo two >&2; echo three", CommandAgent))
    assert (report.ended, report.said) == (True, "one\nthree\n")
    assert (stage.tree / "brief.txt").read_text() == "Fix it."
    assert [event.text for event in stage.heard if event.kind is AgentEventKind.message] == ["one", "three"]
    report = stage.run(stage.agent("echo no; exit 3", CommandAgent))
    assert (report.ended, report.outcome_hint) == (False, AgentOutcome.crashed)
    assert "exit code 3" in report.error


def test_any_program_finds_its_skills_by_a_variable(stage: Stage) -> None:
    skill = stage.folder / "skills" / "tdd"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("first the test")
    plain = stage.agent('cat "$BECKET_SKILLS/tdd/SKILL.md"', CommandAgent)
    driver_context = DriverContext(
        plain.driver_context.processes,
        (),
        {"tdd": skill},
        plain.driver_context.prices,
        plain.driver_context.environ,
        stage.folder,
    )
    assert stage.run(CommandAgent("fixer", plain.config, driver_context)).said == "first the test\n"
