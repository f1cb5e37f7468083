"""What a person who looks finds on each page."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import unquote

from becket.app.record.state_word import StateWord, word_of
from becket.kernel.contract.caller import Caller, Via
from becket.parts.front.accounts import Visitor
from becket.parts.front.asked import Asked
from becket.parts.front.pages.runs import cursor_of
from becket.parts.front.routes import PAGES
from front_stage import FrontStage, make_front

ASKS = """
    version: 1
    loop_id: nightly
    goal: A person says <b>yes</b>.
    trigger: [{manual: }, {schedule: {cron: "0 3 * * *"}}]
    max_iterations: 2
    deadline: 2d
    stop_conditions: [word.approved]
    handoff_conditions: [word.denied]
    wait_conditions:
      word.asked: {wake: approval, for: 1d}
    phases:
      act:
        objective: Ask somebody.
        actions:
          - {id: ask, uses: approval.ask, with: {question: "May <script>run</script>?", about: x, of: word, keep: run}}
      verify:
        objective: Nothing is wrong.
        verifiers: [{id: fine, run: "true"}]
"""
PLAIN = """
    version: 1
    loop_id: plain
    goal: It ends.
    trigger: [{manual: }]
    subject: "plain/{which}"
    inputs: {which: {}}
    max_iterations: 1
    deadline: 1h
    stop_conditions: [fine.pass]
    phases:
      verify:
        objective: Nothing is wrong.
        verifiers: [{id: fine, run: "true"}]
"""


def made(folder: Path) -> FrontStage:
    stage = make_front(folder, "budgets: {day: {usd: 5}}\n")
    stage.world.loop(ASKS)
    stage.world.loop(PLAIN)
    return stage


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html.partition("<main")[2]))


def test_the_first_page_says_who_is_asked_what_goes_on_and_what_would_move_it(tmp_path: Path) -> None:
    async def story() -> None:
        stage = made(tmp_path)
        run = await stage.world.run("nightly")
        await stage.world.start("plain", inputs={"which": "a"})
        await stage.world.store.set_control("loop:plain", True, Caller(name="ada", role="owner", via=Via.page), "away")
        await stage.world.store.raise_alert("loop_failing:plain", "The loop plain fails <i>always</i>.", {})
        me = await stage.person("viewer")
        page = (await me.get("/")).text
        assert "<script>run" not in page
        assert "<i>always" not in page
        (approval,) = await stage.world.store.approvals()
        assert f'href="/asks/approvals/{approval.approval_id}"' in page
        said = text_of(page)
        first, second, third = (
            said.index(name) for name in ("What is asked of others", "What is going on", "How are we")
        )
        assert first < said.index("The loop plain fails") < said.index("needs approver") < second
        assert second < said.index("plain is paused by ada (away)") < said.index("waits for you") < third
        assert "A person moves it." in said
        assert "nothing starts while it is paused" in said
        assert "becket pause plain --off" in said
        assert third < said.index("USD: $0.00 of $5.00")
        assert f"/runs/{run.run_id}" in page
        route = next(one for one in PAGES if one.path == "/")
        live = await stage.front.mains.get(Asked(stage.front, Visitor("x", "viewer", "session", "d"), path="/"), route)
        told = json.loads(live.event.decode().partition("data: ")[2])
        assert told["html"].strip() in page, "an open page shows the same"
        await stage.close()

    asyncio.run(story())


def test_the_list_of_runs_is_filtered_and_leads_from_page_to_page(tmp_path: Path) -> None:
    async def story() -> None:
        stage = made(tmp_path)
        asks = (await stage.world.run("nightly")).run_id
        ids = [(await stage.world.start("plain", inputs={"which": f"{at:02}"})).run_id for at in range(60)]
        me = await stage.person("viewer")
        first = (await me.get("/runs")).text
        assert asks not in first
        assert [one in first for one in (ids[-1], ids[10], ids[9])] == [True, True, False]
        older = re.search(r'href="(/runs\?after=[^"]+)"', first)
        assert older is not None
        second = (await me.client.get(older[1])).text
        assert [one in second for one in (ids[10], ids[9], ids[0], asks)] == [False, True, True, True]
        assert 'rel="next"' not in second
        mine = (await me.get("/runs", state="waits for you")).text
        assert [one in mine for one in (asks, ids[0])] == [True, False]
        found = (await me.get("/runs", loop="plain", text="PLAIN/07", since="2000-01-01")).text
        assert [one in found for one in (ids[7], ids[8])] == [True, False]
        assert "No run matches that." in (await me.get("/runs", text="nothing of this")).text
        await stage.close()

    asyncio.run(story())


def test_a_place_in_the_list_that_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    async def story() -> None:
        stage = made(tmp_path)
        me = await stage.person("viewer")
        wrong = ("x", "é", "....", cursor_of("run_of_nobody"), cursor_of("../.."), cursor_of("a") + "=", "A" * 5000)
        assert {(await me.get("/runs", after=one)).status_code for one in wrong} == {422}
        assert (await me.get("/runs", state="green")).status_code == 422
        assert (await me.get("/runs", since="yesterday")).status_code == 422
        asked = Asked(stage.front, Visitor("x", "viewer", "session", "d"), path="/runs", query={"after": "x"})
        route = next(one for one in PAGES if one.path == "/runs")
        assert "begin at the top" in str(await stage.front.mains.get(asked, route)), "an open page says why"
        await stage.close()

    asyncio.run(story())


def test_a_loop_is_shown_as_its_seven_phases_with_what_lint_says(tmp_path: Path) -> None:
    async def story() -> None:
        stage = made(tmp_path)
        stage.world.write(".becket/loops/bad.yaml", "version: 1\nloop_id: bad\n")
        await stage.world.run("plain", inputs={"which": "a"})
        me = await stage.person("viewer")
        listed = text_of((await me.get("/loops")).text)
        assert "bad does not load" in listed
        page = (await me.get("/loops/plain")).text
        names = re.findall("<h3>([a-z]+)</h3>", page)
        assert names == ["discover", "plan", "act", "verify", "persist", "decide", "notify"]
        assert "verifier fine true" in text_of(page)
        assert "Nothing to complain about." in page
        assert "<b>yes" not in (await me.get("/loops/nightly")).text
        assert "missing" in text_of((await me.get("/loops/bad")).text)
        assert (await me.get("/loops/none")).status_code == 404
        await stage.close()

    asyncio.run(story())


def test_a_service_is_looked_at_by_all_and_told_what_to_do_by_approvers(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path, "services: {kettle: {start: 'exec true', port: 18734}}\n")
        viewer, approver = await stage.person("viewer"), await stage.person("approver")
        assert "kettle" in (await viewer.get("/services")).text
        assert "Start</button>" not in (await viewer.get("/services/kettle")).text
        assert "Start</button>" in (await approver.get("/services/kettle")).text
        assert (await viewer.post("/services/kettle/start")).status_code == 403
        assert (await approver.post("/services/kettle/break")).status_code == 404
        back = {"sha": "ab" * 20, "back": "/services/kettle"}
        refused = await approver.post("/services/kettle/back", back)
        assert "never kept in service" in unquote(refused.headers["location"])
        assert (await approver.get("/services/pot")).status_code == 404
        await stage.close()

    asyncio.run(story())


def test_spend_and_trends_are_shown_from_the_first_day(tmp_path: Path) -> None:
    async def story() -> None:
        stage = made(tmp_path)
        await stage.world.run("plain", inputs={"which": "a"})
        me = await stage.person("viewer")
        assert "No call of an agent ended" in (await me.get("/spend", days="7")).text
        for by in ("day", "week", "year"):
            page = (await me.get("/trends", by=by)).text
            assert page.count("<figure") == 5
        await stage.close()

    asyncio.run(story())


def test_the_word_for_a_run_never_says_more_than_is_so() -> None:
    assert word_of("running") is StateWord.working
    assert word_of("running", alone=True) is StateWord.waits_for_machine
    assert word_of("waiting", ("word.asked",)) is StateWord.waits_for_you
    assert word_of("waiting", ("agent.quota_wait",)) is StateWord.waits_for_machine
    assert word_of("queued", held=True) is StateWord.waits_for_you
    assert word_of("completed") is StateWord.done
    assert word_of("completed", proven=True) is StateWord.proven
    assert word_of("completed_dry_run", proven=True) is StateWord.done
    assert word_of("ready_for_handoff") is StateWord.handed_over
    assert word_of("ready_for_handoff", settled=True) is StateWord.done
