"""A run never ends better than it went, never does twice what it cannot know, and never loses what it made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_runs import HEAD, act, loop, tell

from becket.cli.events import event_line
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.effect import EffectCall, EffectState
from becket.kernel.contract.errors import ActionFailed, StoreUnavailable
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import RunFilter
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket.testing.world import World, run_git

INPUT = "inputs: {tok: {type: string}}\nsubject: 'about {tok}'"
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_met_stop_conditions_do_not_outweigh_an_action_that_failed_after_them(world: World) -> None:
    """L11: `built` was raised, the next action failed, and nothing was verified: that is not completed."""
    phases = act('{id: build, run: "true", in: scratch, raises: {"0": built}}') + (
        '      - {id: pack, run: "exit 7", in: scratch}\n'
    )
    run, _ = tell(world, loop(phases, stop="built"))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress")


def test_a_verifier_that_fails_counts_even_if_no_stop_condition_names_it(world: World) -> None:
    phases = act('{id: build, run: "true", in: scratch, raises: {"0": built}}') + (
        '  verify:\n    objective: look\n    verifiers: [{id: look, run: "exit 1", in: scratch}]\n'
    )
    run, _ = tell(world, loop(phases, stop="built"))
    assert run.status is RunStatus.ready_for_handoff


class About(Record):
    of: str


@pytest.mark.parametrize("of", ["look", "tree"])
def test_no_action_can_say_for_a_verifier_that_it_passed_and_one_that_is_skipped_proves_nothing(
    world: World, of: str
) -> None:
    """Of an object that is only known in the run, lint cannot tell whether it is a verifier."""

    async def claim(context: ActionContext, params: About) -> Result:
        return Result(conditions=(Condition(object=params.of, name="pass"),))

    def groups(params: About) -> tuple[ConditionGroup, ...]:
        return (ConditionGroup(object=params.of, names=("pass",)),)

    world.action(ActionDef(name="test.claim", summary="claims", run=claim, params=About, raises=groups))
    phases = act(f'{{id: name, run: "echo {of}", in: scratch, outputs: {{text: stdout}}, raises: {{"0": done}}}}') + (
        '      - {id: c, uses: test.claim, with: {of: "{name.text}"}}\n'
        '  verify:\n    objective: look\n    verifiers: [{id: look, run: "exit 1", when: dry_run}]\n'
    )
    run, steps = tell(world, loop(phases, stop="look.pass" if of == "look" else "done"))
    assert run.status is RunStatus.ready_for_handoff
    assert steps["c"].error_kind == ("undeclared" if of == "look" else "")
    assert of == "look" or run.detail["unproven"] == ["no verifier passed in this iteration"]


def test_a_step_that_times_out_with_an_effect_under_way_is_not_followed_by_the_same_effect_again(world: World) -> None:
    """Blind effects are never repeated by themselves, not by the next iteration either."""
    under_way: list[EffectCall] = []

    class Slow(RecordedEffect):
        async def perform(self, call, permit):  # type: ignore[no-untyped-def]
            under_way.append(call)
            raise TimeoutError

    async def post(context: ActionContext, params: Record) -> Result:
        await context.perform(EffectCall(name="http.post", target="https://example.invalid/"))
        return Result()

    world.outside(Slow("http.post", class_=EffectClass.blind))
    world.action(ActionDef(name="test.post", summary="posts", run=post, effects=("http.post",)))

    async def no_wait(seconds: float) -> None:
        raise ActionFailed("the step's time is up", kind="timeout")

    world.app.door._sleep = no_wait
    run, _ = tell(world, loop(act("{id: p, uses: test.post}")))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "effect_unknown")
    assert len(under_way) == 1


@pytest.mark.parametrize(
    ("class_", "more", "state"),
    [
        ("blind", "", EffectState.unknown),
        ("queryable", ', look_up: "exit 1"', EffectState.failed),
    ],
)
def test_a_declared_effect_whose_command_fails_is_not_recorded_as_done(
    world: World, class_: str, more: str, state: EffectState
) -> None:
    async def no_wait(seconds: float) -> None:
        world.clock.advance(seconds)

    world.app.door._sleep = no_wait
    text = f'{{id: ship, run: "exit 3", in: scratch, effects: {{name: shop.ship, class: {class_}{more}}}}}'
    run, _ = tell(world, loop(act(text)))
    states = {effect.state for effect in asyncio.run(world.store.effects(run.run_id))}
    assert states == {state}
    assert run.status is RunStatus.ready_for_handoff


def test_a_pipe_in_place_of_a_report_neither_hangs_nor_kills_the_engine(world: World) -> None:
    text = (
        '{id: t, run: "test -p r.xml || mkfifo r.xml", in: scratch, parse: "junit:r.xml", outputs: {n: "json:tests"}}'
    )
    _, steps = tell(world, loop(act(text)))
    assert steps["t"].error_kind == "bad_output"


def test_a_receipt_names_a_tree_only_while_the_checkout_is_that_tree(world: World) -> None:
    phases = (
        act('{id: first, run: "true"}')
        + '      - {id: edit, run: "echo x > new.txt"}\n      - {id: last, run: "true"}\n'
    )
    run, _ = tell(world, loop(phases))
    trees = {item.action_id: item.receipt.tree for item in asyncio.run(world.store.receipts(run.run_id))}
    assert trees["first"] == run_git(world.root, ["rev-parse", "main"])
    assert trees["last"] is None


def test_a_run_without_a_checkout_has_nothing_that_could_be_clean(world: World) -> None:
    """L4: a verifier that made its own fresh checkout would always pass."""
    phases = "\n  verify:\n    objective: look\n    verifiers: [tree_clean]\n"
    run, steps = tell(world, loop(phases, stop="tree_clean.pass"))
    assert steps["tree_clean"].outputs == {"says": "undecided"}
    assert run.status is RunStatus.ready_for_handoff


def test_a_moved_ref_is_named(world: World) -> None:
    async def move(context: ActionContext, params: Record) -> Result:
        run_git(world.root, ["branch", "surprise"])
        return Result()

    world.action(ActionDef(name="test.move", summary="moves", run=move))
    phases = act("{id: base, uses: git.read_base}") + (
        "      - {id: m, uses: test.move}\n  verify:\n    objective: look\n    verifiers: [refs_untouched]\n"
    )
    run, _ = tell(world, loop(phases, "refs_untouched.pass", "handoff_conditions: [refs_untouched.fail]"))
    assert run.detail["moved"] == ["refs/heads/surprise"]


def test_no_secret_reaches_the_journal_or_the_logs(world: World) -> None:
    """L25: outputs, evidence, errors, events, receipts, handoffs and kept logs are redacted."""
    phases = act(f'{{id: say, run: "echo {TOKEN}", in: scratch, outputs: {{text: stdout}}, env: {{KEY: {TOKEN}}}}}') + (
        f'  verify:\n    objective: look\n    verifiers: [{{id: look, run: "echo {TOKEN}; exit 1", in: scratch}}]\n'
    )
    run, _ = tell(world, loop(phases))

    async def everything() -> str:
        store = world.store
        parts = [
            run,
            *await store.events(run.run_id),
            *await store.steps(run.run_id),
            *await store.receipts(run.run_id),
        ]
        parts += [*await store.handoffs(run_id=run.run_id), *await store.conditions(run.run_id)]
        return "\n".join(part.model_dump_json() for part in parts)

    assert TOKEN not in asyncio.run(everything())
    for digest in world.app.artifacts.digests():
        assert TOKEN.encode() not in world.app.artifacts.read(digest)


@pytest.mark.parametrize("broken", [False, True])
def test_a_secret_that_a_machine_hands_to_a_run_is_taken_out_before_it_is_kept(tmp_path: Path, broken: bool) -> None:
    """L25: an event's data and a child's inputs; also where the start has to wait."""
    world = World(tmp_path, store="sqlite")
    child = HEAD.replace("story", "child").replace("manual: {}", "event: {name: x.y}}, {manual: {}")
    child = loop(act('{id: say, run: "echo {tok}", in: scratch}'), "look.pass", INPUT, child)
    token = f"ghp_{{tok}}{TOKEN[8:]}"  # in two parts: the spec itself is kept as it is
    parent = f'{{id: go, uses: run.start, with: {{loop: child, subject: "{token}", inputs: {{tok: "a {token}"}}}}}}'
    world.loop(loop(act(parent), more=INPUT))
    world.loop("loop_id: child\n" if broken else child)

    async def everything() -> list[str]:
        await world.app.triggers.post("x.y", {"tok": TOKEN, "more": {"token": "hunter22"}}, "evt_1")
        if broken:
            return [cursor.value for cursor in await world.store.cursors("")]
        await world.settle()
        await world.run("story", inputs={"tok": TOKEN[4:8]})
        runs = await world.store.list_runs(RunFilter(loop_id="child"))
        assert len(runs) == 2
        lines = [event_line((await world.store.events(run.run_id))[0]) for run in runs]
        assert all("a secret was taken out of" in line for line in lines)
        return lines

    kept = asyncio.run(everything())
    assert "[redacted:github]" in "".join(kept)
    asyncio.run(world.store.close())
    stored = b"".join(file.read_bytes() for file in world.app.state.folder.glob("becket.db*"))
    assert b"[redacted:github]" in stored
    assert b"hunter22" not in stored
    assert TOKEN.encode() not in stored


ASKING = """
  plan:
    objective: ask
    actions: [{id: ask, uses: approval.ask, with: {question: "go?", about: "this"}}]
  act:
    objective: go
    actions: [{id: go, run: "echo x >> went; exit 1", in: scratch, when: approval.approved}]
"""


def test_an_approval_serves_once_and_the_next_iteration_must_ask_again(world: World) -> None:
    """L41: an approval cannot be replayed."""
    more = "wait_conditions: {approval.asked: {wake: approval, for: 1d}}\nsubject: s"
    world.loop(loop(ASKING, more=more))

    async def story() -> None:
        run = await world.run("story")
        (first,) = await world.store.approvals(run.run_id, open_only=True)
        await world.store.decide_approval(first.approval_id, True, person("o"), first.bound_to, "")
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert run.status is RunStatus.waiting
        (second,) = await world.store.approvals(run.run_id, open_only=True)
        assert second.approval_id != first.approval_id
        went = world.app.places.of_run(run.run_id) / "scratch" / "went"
        assert went.read_text() == "x\n"

    asyncio.run(story())


def test_a_second_wait_on_the_same_condition_has_its_own_time(world: World) -> None:
    phases = """
  act:
    objective: ask the outside
    actions:
      - id: look_out
        run: "test -e busy && exit 3 || exit 0"
        in: scratch
        raises: {"0": outside.free, "3": outside.busy}
      - {id: count, run: "echo x >> n; wc -l < n | tr -d ' '", in: scratch, outputs: {n: stdout}, when: outside.free}
"""
    more = "wait_conditions: {outside.busy: {wake: bell, for: 10m}}\nsubject: s"
    world.loop(
        loop(phases, stop="never.pass", more=more).replace(
            "verifiers: [{id: look,", "verifiers: [{id: never, run: 'false', in: scratch}, {id: look,"
        )
    )

    async def story() -> None:
        run = await world.start("story")
        busy = world.app.places.of_run(run.run_id) / "scratch" / "busy"
        busy.parent.mkdir(parents=True)
        busy.touch()
        await world.settle()
        world.clock.advance(500)
        busy.unlink()
        await world.store.signal(run.run_id, "bell", {}, "one")
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert run.status is not RunStatus.waiting
        assert run.waits_since == {}

    asyncio.run(story())


def test_a_time_that_has_passed_is_no_reason_to_run_in_circles(world: World) -> None:
    async def quota(context: ActionContext, params: Record) -> Result:
        until = Condition(object="quota", name="used_up", evidence={"until": 1.0})
        return Result(conditions=(until,))

    group = (ConditionGroup(object="quota", names=("used_up",)),)
    world.action(ActionDef(name="test.quota", summary="waits", run=quota, raises=group))
    world.loop(loop(act("{id: q, uses: test.quota}"), more="wait_conditions: {quota.used_up: {wake: clock, for: 1h}}"))

    async def story() -> Run:
        run = await world.run("story")
        for _ in range(100):
            await world.pass_time(1)
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert run.status is RunStatus.waiting
    assert run.iteration < 12


def test_a_store_that_is_away_for_a_moment_costs_no_run(world: World) -> None:
    world.loop(loop(act('{id: say, run: "true", in: scratch}')))
    record = world.store.record
    trouble = [StoreUnavailable("the disk does not answer")]

    async def shaky(*args: object) -> None:
        if trouble:
            raise trouble.pop()
        await record(*args)  # type: ignore[arg-type]

    world.store.record = shaky  # type: ignore[method-assign,assignment]
    run = asyncio.run(world.run("story"))
    assert run.status is RunStatus.completed


def test_what_a_run_leaves_behind_is_saved_before_its_checkout_goes(world: World) -> None:
    """L7: work is never lost at an exit."""
    phases = act('{id: edit, run: "echo changed > README.md; echo new > new.txt"}') + (
        '  verify:\n    objective: look\n    verifiers: [{id: look, run: "exit 1", in: scratch}]\n'
    )
    run, _ = tell(world, loop(phases))
    assert run.status is RunStatus.ready_for_handoff
    assert not world.app.places.of_run(run.run_id).exists()
    ref = f"refs/becket/rescue/{run.run_id}"
    assert run_git(world.root, ["show", f"{ref}:new.txt"]) == "new"
    assert run_git(world.root, ["rev-parse", f"{ref}^"]) == run_git(world.root, ["rev-parse", "main"])


def test_a_run_cancelled_while_it_waits_leaves_no_folder_for_ever(world: World) -> None:
    world.loop(loop(act('{id: say, run: "true", in: scratch}')))

    async def story() -> None:
        run = await world.start("story")
        folder = world.app.places.of_run(run.run_id)
        folder.mkdir(parents=True)
        await world.store.ask_cancel(run.run_id, person("me"), "no")
        await world.restart()
        assert not folder.exists()

    asyncio.run(story())


def test_exit_codes_replace_each_other_also_without_an_object(world: World) -> None:
    """A later red must not leave the earlier green standing."""
    text = '{id: t, run: "test -e seen && exit 1; touch seen", in: scratch, keep: run, raises: {"0": green, "1": red}}'
    run, _ = tell(world, loop(act(text), stop="red"))
    names = {item.ref for item in asyncio.run(world.store.conditions(run.run_id))}
    assert "red" in names
    assert "green" not in names


def test_every_attempt_leaves_its_receipt(world: World) -> None:
    run, steps = tell(world, loop(act('{id: f, run: "echo x >> n; test $(wc -l < n) -ge 2", in: scratch, retry: 1}')))
    receipts = [item for item in asyncio.run(world.store.receipts(run.run_id)) if item.action_id == "f"]
    assert sorted(item.receipt.exit_code or 0 for item in receipts) == [0, 1]
    assert len(steps["f"].receipts) == 2


def test_the_error_shows_what_was_said_last_on_either_stream(world: World) -> None:
    _, steps = tell(world, loop(act('{id: f, run: "echo building; echo no such file >&2; exit 1", in: scratch}')))
    assert "no such file" in steps["f"].error


def test_a_dry_run_goes_on_past_what_its_skipped_effects_would_have_made(world: World) -> None:
    phases = act('{id: ship, run: "echo 1", in: scratch, outputs: {n: stdout}, effects: {name: shop.ship}}') + (
        '      - {id: use, run: "echo {ship.n}", in: scratch}\n'
    )
    run, steps = tell(world, loop(phases), dry_run=True)
    assert run.status is RunStatus.completed_dry_run
    assert steps["use"].note.startswith("dry run")


def test_a_shutdown_is_not_mistaken_for_a_persons_cancel(world: World) -> None:
    world.loop(loop(act('{id: long, run: "sleep 60", in: scratch}'), head=HEAD))

    async def story() -> None:
        run = await world.start("story")
        task = asyncio.create_task(world.settle())
        while not await world.store.live_children():
            await asyncio.sleep(0.01)
        await world.store.ask_cancel(run.run_id, person("me"), "enough")
        world.app.engine.interrupt(run.run_id)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await world.store.get_run(run.run_id)).status is RunStatus.running
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.cancelled

    asyncio.run(story())
