"""L41: what is decided on the page is decided as everywhere else: bound, by somebody with a name and a role, once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, HealStage

from becket.app.proposals import all_open
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import ApprovalState, HandoffState
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.parts.front.accounts import PageRole, Visitor, csrf_of
from becket.parts.front.asked import Asked
from becket.parts.front.kept import Address
from becket.parts.front.pages.asks import approval as approval_page
from becket.parts.front.routes import Page
from becket.parts.front.server import Front
from becket.testing.agent import Act, ScriptedAgent, writes
from front_stage import PORT, FrontStage, Person, make_front

ASKS = """
version: 1
loop_id: ask
goal: Somebody said yes.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 2d
subject: "{start}"
wait_conditions: {word.asked: {wake: approval, for: 1d, then: handoff}}
handoff_conditions: [word.denied, word.expired, word.revoked]
stop_conditions: [word.approved, fine.pass]
phases:
  decide:
    objective: Ask.
    actions:
      - {id: word, uses: approval.ask, with: {question: "May it? <b>", about: "exactly this", of: word}}
  verify:
    objective: Nothing to doubt.
    verifiers:
      - {id: fine, run: "true", in: scratch}
"""
SECRET = "ghp_" + "a1B2" * 9
FIRST = GOOD.replace("left + right", "sum((left, right))")
HIDDEN = re.compile(r'name="(sha|head|bound_to)" value="([^"]*)"')


async def asking(folder: Path) -> tuple[FrontStage, Run, str]:
    """A run that waits for a yes, and its approval."""
    stage = make_front(folder)
    stage.world.loop(ASKS)
    run = await stage.world.run("ask")
    (item,) = await stage.world.store.approvals(run.run_id)
    return stage, run, item.approval_id


async def offering(folder: Path, *more: Act, moved: bool = False) -> tuple[FrontStage, HealStage, Run]:
    """A ready repair; `moved`: somebody else's commit came after it."""
    heal = HealStage(folder, ScriptedAgent([Act(writes("calc.py", FIRST)), *more]), config=CONFIG, autonomy="propose")
    await heal.heal()
    heal.break_it()
    run = await heal.heal()
    if moved:
        heal.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")
    return FrontStage(heal.world, Front(heal.world.app, Address("127.0.0.1", PORT))), heal, run


async def shown(person: Person, path: str) -> dict[str, str]:
    """What the forms of a page carry."""
    page = await person.get(path)
    assert page.status_code == 200, page.text
    return dict(HIDDEN.findall(page.text))


async def told(stage: FrontStage, run_id: str, kind: EventKind) -> list[tuple[object, ...]]:
    events = [one.data for one in await stage.world.store.events(run_id) if one.kind is kind]
    return [(one["by"], one["role"], one["via"], one["state"]) for one in events]


def test_a_yes_on_the_page_names_who_with_which_role_and_that_it_was_the_page(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, approval = await asking(tmp_path)
        ada, page = await stage.person("approver", "ada"), f"/asks/approvals/{approval}"
        form = await shown(ada, page)
        assert "May it? &lt;b&gt;" in (await ada.get(page)).text
        answer = await ada.post(f"{page}/approve", {**form, "note": f"fine, by {SECRET}"})
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, page)
        assert await told(stage, run.run_id, EventKind.approval_decided) == [("ada", "approver", "page", "approved")]
        note = (await stage.world.store.get_approval(approval)).note
        assert note.startswith("fine, by ")
        assert SECRET not in note
        after = (await ada.get(page)).text
        assert SECRET not in after
        assert "<strong>approved</strong> by ada (approver), page" in after
        assert "Approve</button>" not in after
        await stage.world.settle()
        assert (await stage.world.store.get_run(run.run_id)).status is RunStatus.completed
        await stage.close()

    asyncio.run(story())


def test_a_question_shows_the_text_that_a_yes_is_bound_to(tmp_path: Path) -> None:
    async def story() -> None:
        stage, _, approval = await asking(tmp_path)
        member = await stage.person("member")
        assert "exactly this</pre>" in (await member.get(f"/asks/approvals/{approval}")).text
        assert (await (await stage.token("viewer")).get(f"/api/v1/approvals/{approval}")).json()[
            "text"
        ] == "exactly this"
        await stage.close()

    asyncio.run(story())


def test_a_stale_page_and_the_second_of_two_get_words_and_change_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, approval = await asking(tmp_path)
        ada, bob = await stage.person("approver", "ada"), await stage.person("owner", "bob")
        page = f"/asks/approvals/{approval}"
        form = await shown(bob, page)
        for stale in ({**form, "bound_to": "0" * 64}, {}):
            answer = await bob.post(f"{page}/approve", {**stale, "seen": page})
            assert answer.status_code == 409
            assert "look at the question again" in answer.text
            assert f'href="{page}"' in answer.text
        assert (await stage.world.store.get_approval(approval)).state is ApprovalState.asked
        both = await asyncio.gather(ada.post(f"{page}/approve", form), bob.post(f"{page}/deny", form))
        assert sorted(one.status_code for one in both) == [303, 409]
        refused = next(one for one in both if one.status_code == 409)
        assert "already; nothing was changed" in refused.text
        assert len(await told(stage, run.run_id, EventKind.approval_decided)) == 1
        await stage.close()

    asyncio.run(story())


def test_who_only_looks_or_sends_no_token_of_the_page_decides_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, approval = await asking(tmp_path)
        page = f"/asks/approvals/{approval}"
        viewer, member, ada = [await stage.person(role) for role in ("viewer", "member", "approver")]
        form = await shown(ada, page)
        assert not await shown(viewer, page)
        for path in (f"{page}/approve", f"/runs/{run.run_id}/cancel", "/pause", "/loops/ask/start"):
            assert (await viewer.post(path, form)).status_code == 403
        assert (await member.post(f"{page}/approve", form)).status_code == 409
        assert (await ada.client.post(f"{page}/approve", data=form)).status_code == 403
        assert (await stage.world.store.get_approval(approval)).state is ApprovalState.asked
        assert not await stage.world.store.controls()
        assert (await stage.world.store.get_run(run.run_id)).status is RunStatus.waiting
        await stage.close()

    asyncio.run(story())


def test_a_run_s_page_offers_what_this_visitor_can_do_now(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, approval = await asking(tmp_path)
        store, renderer = stage.world.store, stage.front.renderer

        async def offered(role: PageRole) -> str:
            visitor = Visitor("ada", role, "session", "")
            now = await store.get_run(run.run_id)
            handed = await store.handoffs((), run.run_id)
            data = {"run": now, "approvals": await store.approvals(run.run_id), "handoffs": handed}
            return await renderer.whole(Asked(stage.front, visitor), Page("run_actions.html", data))

        asked = await offered("member")
        assert f'href="/asks/approvals/{approval}"' in asked
        assert "May it? &lt;b&gt;" in asked
        assert all(f'action="/runs/{run.run_id}/{verb}"' in asked for verb in ("cancel", "hold"))
        assert "<form" not in await offered("viewer")
        ada = await stage.person("approver", "ada")
        await ada.post(f"/asks/approvals/{approval}/deny", await shown(ada, f"/asks/approvals/{approval}"))
        await stage.world.settle()
        over = await offered("member")
        assert f'action="/runs/{run.run_id}/retry"' in over
        assert f'action="/runs/{run.run_id}/cancel"' not in over
        assert "Take over, or settle it" in over
        await stage.close()

    asyncio.run(story())


def test_an_open_page_of_a_question_shows_its_forms_with_the_token_of_its_session(tmp_path: Path) -> None:
    async def story() -> None:
        stage, _, approval = await asking(tmp_path)
        ada = await stage.person("approver", "ada")
        visitor = Visitor("ada", "approver", "session", "", csrf="a token")
        asked = Asked(stage.front, visitor, params={"approval": approval})
        main = stage.front.renderer.main(asked, await approval_page(asked))
        assert main.title == "A question · Becket"
        assert 'name="csrf" value="a token"' in main.html
        assert main.html.strip() in (await ada.get(f"/asks/approvals/{approval}")).text.replace(
            csrf_of(ada.secret), "a token"
        )
        await stage.close()

    asyncio.run(story())


def test_runs_and_brakes_obey_the_page_in_the_name_of_who_asked(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, _ = await asking(tmp_path)
        eve, store = await stage.person("member", "eve"), stage.world.store
        await eve.post("/loops/ask/pause", {"note": "lunch"})
        await eve.post("/pause", {"back": "https://elsewhere.example/"})
        assert [(one.scope, one.by, one.via) for one in await store.controls()] == [
            ("all", "eve", "page"), ("loop:ask", "eve", "page")
        ]  # fmt: skip
        await eve.post("/loops/ask/resume")
        assert (await eve.post("/resume", {"back": "//elsewhere.example"})).headers["location"].startswith("/?")
        assert not await store.controls()
        await eve.post(f"/runs/{run.run_id}/hold")
        assert (await store.get_run(run.run_id)).held
        await eve.post(f"/runs/{run.run_id}/release")
        answer = await eve.post(f"/runs/{run.run_id}/cancel", {"note": "no more"})
        assert answer.headers["location"] == f"/runs/{run.run_id}?said=It%20is%20stopped."
        again = await eve.post(f"/runs/{run.run_id}/retry")
        started = await eve.post("/loops/ask/start")
        runs = [answer.headers["location"].partition("?")[0].rpartition("/")[2] for answer in (again, started)]
        assert [(await store.get_run(one)).by for one in runs] == ["eve", "eve"]
        assert (await eve.post("/loops/ask/start", {"sha": "HEAD"})).status_code == 409
        assert (await eve.post("/loops/none/start")).status_code == 404
        await stage.close()

    asyncio.run(story())


def test_what_was_handed_over_is_taken_with_the_commands_that_enter_its_tree(tmp_path: Path) -> None:
    async def story() -> None:
        stage, run, approval = await asking(tmp_path)
        ada, store = await stage.person("approver", "ada"), stage.world.store
        await ada.post(f"/asks/approvals/{approval}/deny", await shown(ada, f"/asks/approvals/{approval}"))
        await stage.world.settle()
        (item,) = await store.handoffs((), run.run_id)
        page = f"/asks/handoffs/{item.handoff_id}"
        assert f"cd {stage.world.root}" in (await ada.get(page)).text
        await ada.post(f"{page}/take", {"note": "mine"})
        assert "Take over</button>" not in (await ada.get(page)).text
        assert (await ada.post(f"{page}/take")).status_code == 409
        await ada.post(f"{page}/settle")
        assert await told(stage, run.run_id, EventKind.handoff_changed) == [
            ("ada", "approver", "page", "taken"), ("ada", "approver", "page", "done")
        ]  # fmt: skip
        await stage.close()

    asyncio.run(story())


@pytest.mark.parametrize("moved", [False, True], ids=["as it was", "moved"])
def test_accept_promotes_the_proven_commit_or_proves_again_where_main_moved(tmp_path: Path, moved: bool) -> None:
    async def story() -> None:
        stage, heal, run = await offering(tmp_path, moved=moved)
        ada, bob, eve = [await stage.person(role) for role in ("approver", "owner", "member")]
        page, proven = f"/proposals/{run.run_id}", str(run.detail["candidate"])
        text = (await ada.get(page)).text
        assert "proves it again" in text if moved else "exactly the proven commit" in text
        assert "sum((left, right))" in text
        assert "Accept</button>" not in (await eve.get(page)).text
        form = await shown(ada, page)
        assert (await ada.post(f"{page}/accept", {**form, "head": "0" * 40})).status_code == 409
        assert (await eve.post(f"{page}/accept", form)).status_code == 409
        both = await asyncio.gather(ada.post(f"{page}/accept", form), bob.post(f"{page}/accept", form))
        assert {one.status_code for one in both} <= {303, 409}
        taking = [
            one for one in await stage.world.store.list_runs(RunFilter(loop_id="heal")) if one.inputs.get("accept")
        ]
        assert len(taking) == 1
        await stage.world.settle()
        end = await stage.world.store.get_run(taking[0].run_id)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert (heal.main() == proven) is not moved
        assert heal.git("show", "main:calc.py") == FIRST.strip()
        gates = [one for one in await stage.world.store.receipts(end.run_id) if one.receipt.kind == "gate"]
        assert bool(gates) is moved
        late = await bob.post(f"{page}/decline", {"note": "too late"})
        assert late.status_code == 409
        assert "is settled by" in late.text
        await stage.close()

    asyncio.run(story())


def test_comments_on_lines_become_part_of_the_next_brief(tmp_path: Path) -> None:
    async def story() -> None:
        stage, heal, run = await offering(tmp_path, Act(writes("calc.py", GOOD)))
        agent, page = heal.agent, f"/proposals/{run.run_id}"
        assert isinstance(agent, ScriptedAgent)
        ada, bob = await stage.person("approver", "ada"), await stage.person("owner", "bob")
        assert 'name="at" value="calc.py:3"' in (await ada.get(page, comment="calc.py:3")).text
        await ada.post(f"{page}/comment", {"at": "calc.py:3", "text": f"no sum <script> {SECRET}"})
        await ada.post(f"{page}/comment", {"at": "calc.py:-2", "text": "a slip"})
        text = (await ada.get(page)).text
        assert "no sum &lt;script&gt;" in text
        assert SECRET not in text
        assert "a slip" in text
        slip = re.findall(r'name="number" value="(\d+)"', text)[0]
        assert (await bob.post(f"{page}/uncomment", {"number": slip})).status_code == 404
        await ada.post(f"{page}/uncomment", {"number": slip})
        assert "a slip" not in (await ada.get(page)).text
        assert (await ada.post(f"{page}/comment", {"at": "calc.py:99", "text": "nowhere"})).status_code == 409
        assert (await bob.post(f"{page}/changes")).status_code == 409
        kept = await ada.post(f"{page}/comment", {"at": "calc.py:3", "text": "one more", "note": "half a note"})
        assert "half a note</textarea>" in (await ada.client.get(kept.headers["location"])).text
        asked = await ada.post(f"{page}/changes", {"note": "shorter, please", "at": "calc.py:3", "text": "still open"})
        assert asked.status_code == 303
        assert (await bob.post(f"{page}/changes", {"note": "me too"})).status_code == 409
        assert "Accept</button>" not in (await bob.get(page)).text
        (changed,) = await told(stage, run.run_id, EventKind.handoff_changed)
        assert changed == ("ada", "approver", "page", HandoffState.changing)
        await stage.world.settle()
        assert "shorter, please" in agent.briefs[-1]
        assert "no sum <script>" in agent.briefs[-1]
        assert "still open" in agent.briefs[-1]
        assert SECRET not in agent.briefs[-1]
        (second,) = await all_open(stage.world.app)
        assert second.run.inputs["changes"] == run.run_id
        assert "The repair is settled" in (await ada.get(page)).text
        late = await ada.post(f"{page}/accept", {"sha": second.sha, "head": second.head})
        assert (late.status_code, "is settled by ada" in late.text) == (409, True)
        await stage.close()

    asyncio.run(story())
