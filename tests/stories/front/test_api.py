"""The API: what the command line does, over HTTP, by one table. Services and ready repairs: `test_api_of_stages`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from api_stage import ApiStage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import PAGE_ROLES, make_key
from becket.parts.front.api.describe import document
from becket.parts.front.api.operations import BELOW, BY_NAME, OPERATIONS
from becket.parts.front.api.serve import redacted
from becket.parts.front.routes import API

OF_SERVICES = {"show_service", "start_service", "stop_service", "restart_service"}
OF_PROPOSALS = {"show_proposal", "accept_proposal", "decline_proposal"}


def test_every_operation_does_what_the_command_line_does(tmp_path: Path) -> None:
    """All but those about a service and a ready repair."""

    async def story() -> None:
        stage = ApiStage(tmp_path)
        await stage.begin()
        await _look(stage)
        await _move(stage)
        await _decide(stage)
        await _rest(stage)
        audit = (await stage.ask("list_audit", given={"limit": "200"})).json()
        assert {"/api/v1/runs/{run}/cancel", "/api/v1/approvals/{approval}/approve"} <= {
            one["did"].split(" ")[1] for one in audit
        }
        assert {one["via"] for one in audit} == {"token"}
        assert set(BY_NAME) - stage.answered == OF_SERVICES | OF_PROPOSALS
        await stage.close()

    asyncio.run(story())


async def _look(stage: ApiStage) -> None:
    run = await stage.run("look")
    started = (await stage.ask("start_run", "member", {"loop_id": "ask", "inputs": {"colour": "blue"}})).json()
    assert started["created"]
    await stage.world.settle()
    runs = (await stage.ask("list_runs", "viewer")).json()
    assert [one["loop_id"] for one in runs["runs"]] == ["ask", "look"]
    assert runs["next"] is None
    first = (await stage.ask("list_runs", "viewer", {"limit": "1"})).json()
    second = (await stage.ask("list_runs", "viewer", {"limit": "1", "cursor": first["next"]})).json()
    assert [one["run_id"] for one in second["runs"]] == [run.run_id]
    assert second["next"] is None
    assert len((await stage.ask("list_runs", "viewer", {"status": "waiting,queued"})).json()["runs"]) == 1
    for name in ("show_run", "report_run", "list_events", "list_steps", "list_receipts", "verify_run"):
        assert (await stage.ask(name, "viewer", run=run.run_id)).status_code == 200, name
    assert (await stage.ask("verify_run", "viewer", run=run.run_id)).json()["ok"]
    log = (await stage.ask("read_log", "viewer", {"bytes": "3"}, run=run.run_id, step="fine")).json()
    assert (log["text"], log["cut"], log["size"]) == ("lo\n", True, 6)


async def _move(stage: ApiStage) -> None:
    (run,) = [one for one in (await stage.ask("list_runs")).json()["runs"] if one["loop_id"] == "ask"]
    mine = {"run": run["run_id"]}
    assert (await stage.ask("hold_run", "member", **mine)).json()["held"]
    assert not (await stage.ask("release_run", "member", **mine)).json()["held"]
    stage.world.loop((stage.world.root / ".becket/loops/ask.yaml").read_text().replace("Publish?", "Now?"))
    assert (await stage.ask("migrate_run", "member", **mine)).status_code == 200
    again = await stage.ask("migrate_run", "member", **mine)
    assert (again.status_code, again.json()["title"]) == (409, "This cannot be done now")
    told = (await stage.ask("tell_agent", "member", {"text": "wait for me"}, **mine)).json()
    assert told["agent"] is None
    dropped = (await stage.ask("drop_run", "member", **mine)).json()
    assert dropped["status"] == "cancelled"
    other = (await stage.ask("retry_run", "member", **mine)).json()["run"]["run_id"]
    assert (await stage.ask("cancel_run", "member", {"reason": "enough"}, run=other)).json()["status"] == "cancelled"
    assert (await stage.ask("cancel_run", "member", run=other)).status_code == 409


async def _decide(stage: ApiStage) -> None:
    for name in ("approve", "deny", "revoke_approval"):
        await stage.run("ask")
        (asked,) = (await stage.ask("list_approvals", "viewer")).json()
        mine = {"approval": asked["approval_id"]}
        shown = (await stage.ask("show_approval", "viewer", **mine)).json()
        assert (shown["bound_to"], shown["diff"]) == (asked["bound_to"], "")
        stale = await stage.ask("approve", "approver", {"about": "0" * 64}, **mine)
        low = await stage.ask("approve", "member", {"about": asked["bound_to"]}, **mine)
        assert (stale.status_code, low.status_code) == (409, 409)
        if name != "deny":
            said = await stage.ask("approve", "approver", {"about": asked["bound_to"][:8]}, **mine)
            assert said.json()["decided_role"] == "approver"
        if name != "approve":
            assert (await stage.ask(name, "owner", {"note": "no"}, **mine)).json()["note"] == "no"
        await stage.world.settle()
    handoffs = (await stage.ask("list_handoffs", "viewer")).json()
    mine = {"handoff": handoffs[0]["handoff_id"]}
    assert (await stage.ask("show_handoff", "viewer", **mine)).json() == handoffs[0]
    assert (await stage.ask("take_handoff", "member", {"note": "me"}, **mine)).json()["state"] == "taken"
    assert (await stage.ask("settle_handoff", "member", **mine)).json()["state"] == "done"
    of_run = (await stage.ask("list_handoffs", "viewer", {"run": handoffs[0]["run_id"]})).json()
    assert [one["state"] for one in of_run] == ["done"]
    assert (await stage.ask("list_proposals", "viewer")).json() == []


async def _rest(stage: ApiStage) -> None:
    assert (await stage.ask("status", "viewer")).json()["root"] == str(stage.world.root)
    loops = (await stage.ask("list_loops", "viewer")).json()
    assert {"ask", "look"} <= {one["loop_id"] for one in loops["loops"]}
    assert "Publish?" not in (await stage.ask("show_loop", "viewer", loop="ask")).json()["text"]
    assert (await stage.ask("lint", "viewer", {"loop": "ask"})).json()["ok"]
    assert (await stage.ask("pause_loop", "member", {"note": "tea"}, loop="ask")).json()[0]["scope"] == "loop:ask"
    assert (await stage.ask("resume_loop", "member", loop="ask")).json() == []
    assert (await stage.ask("pause_all", "member")).json()[0]["via"] == "api"
    assert len((await stage.ask("list_controls", "viewer")).json()) == 1
    assert (await stage.ask("resume_all", "member")).json() == []
    event = {"name": "ci.failed", "data": {"job": 7}, "event_id": "e1"}
    posted = (await stage.ask("post_event", "member", event)).json()
    assert (posted["event_id"], len(posted["runs"])) == ("e1", 1)
    assert (await stage.ask("post_event", "member", event)).json()["starts"] == [{"created": False, "dropped": ""}]
    assert (await stage.ask("spend", "viewer", {"by": "agent"})).json()["total"]["input_tokens"] == 0
    for name in ("list_services", "list_alerts"):
        assert (await stage.ask(name, "viewer")).json() == []
    secret = await stage.world.app.port(TableStore).write(make_key, "token", "", 60.0, "viewer", "to go")
    found = {one["label"]: one["id"] for one in (await stage.ask("list_tokens")).json()}
    assert secret not in str(found)
    assert (await stage.ask("revoke_token", token=found["to go"])).status_code == 200
    gone = stage.front.client(authorization=f"Bearer {secret}")
    assert (await gone.get(f"{BELOW}/status")).status_code == 401


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> ApiStage:
    made = ApiStage(tmp_path_factory.mktemp("api"))
    asyncio.run(made.begin())
    asyncio.run(made.run("ask"))
    return made


@pytest.mark.parametrize("name", BY_NAME)
def test_wrong_input_of_every_operation_is_told_as_a_problem(stage: ApiStage, name: str) -> None:
    operation = BY_NAME[name]

    async def story() -> None:
        strange: Any = {"no_such_field": "1"}
        wrong = await stage.send(operation, "owner", strange)
        assert wrong.headers["content-type"] == "application/problem+json"
        problem = wrong.json()
        assert (wrong.status_code, problem["status"]) == (422, 422)
        assert "no_such_field" in {one["field"] for one in problem["errors"]}
        stranger = stage.front.client()
        path = BELOW + operation.path.format(**dict.fromkeys(operation.params, "nothing"))
        refused = await stranger.request(operation.method, path)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for role in PAGE_ROLES[: PAGE_ROLES.index(operation.needs)]:
            assert (await stage.send(operation, role)).status_code == 403
        bad = await stage.send(operation, "owner", None, dict.fromkeys(operation.params, "no/such"))
        assert bad.status_code == 404 or not operation.params
        if operation.method != "GET":
            await _wrong_bodies(stage, path, operation.method, operation.body)

    asyncio.run(story())


async def _wrong_bodies(stage: ApiStage, path: str, method: str, most: int) -> None:
    client, kind = stage.clients["owner"], {"content-type": "application/json"}
    for body, status in (
        (b"{", 422), (b"[]", 422), (b'{"a": NaN}', 422), (b'{"a": 1e999}', 422), (b'"\xff"', 422),
        (b'{"a": "\\u0000"}', 422), (b'{"a": "\\ud800"}', 422), (b"[" * 9_000, 422), (b" " * (most + 1), 413),
    ):  # fmt: skip
        assert (await client.request(method, path, content=body, headers=kind)).status_code == status, body[:20]
    form = await client.request(method, path, content=b"a=1", headers={"content-type": "text/plain"})
    assert form.status_code == 415


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("list_runs", {"cursor": "../../etc"}, "cursor"), ("list_runs", {"limit": "0"}, "limit"),
        ("list_runs", {"status": "asleep"}, "status"), ("list_events", {"after": "-1"}, "after"),
        ("start_run", {"loop_id": 7}, "loop_id"), ("start_run", {"loop_id": "ask", "dry_run": "yes"}, "dry_run"),
        ("start_run", {}, "loop_id"), ("post_event", {"name": "Not A Name"}, "name"), ("approve", {}, "about"),
        ("spend", {"days": "4000"}, "days"), ("list_audit", {"before": "x"}, "before"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_used_is_named(stage: ApiStage, name: str, given: Any, field: str) -> None:
    run = asyncio.run(stage.ask("list_runs")).json()["runs"][0]["run_id"]
    answer = asyncio.run(stage.ask(name, "owner", given, run=run)) if "{run}" in BY_NAME[name].path else None
    answer = answer or asyncio.run(stage.ask(name, "owner", given))
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({name for one in OPERATIONS for name in one.asks.model_fields})
BODIES = JSON | st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["ask", "look", "ci.failed"]))
CHANGES = sorted(name for name, one in BY_NAME.items() if one.method != "GET" and name not in OF_SERVICES)


def test_a_number_of_hundreds_of_digits_is_refused(stage: ApiStage) -> None:
    async def story() -> None:
        body = b'{"name": "ci.failed", "data": {"x": 1' + b"0" * 400 + b"}}"
        kind = {"content-type": "application/json"}
        answer = await stage.clients["owner"].post(f"{BELOW}/events", content=body, headers=kind)
        assert answer.status_code == 422

    asyncio.run(story())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(CHANGES), body=BODIES | st.binary(max_size=60))
def test_no_body_is_a_fault(stage: ApiStage, name: str, body: Any) -> None:
    import json

    async def story() -> None:
        operation, run = BY_NAME[name], (await stage.ask("list_runs")).json()["runs"][0]["run_id"]
        values = {one: run if one == "run" else "ask" for one in operation.params}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        path, kind = BELOW + operation.path.format(**values), {"content-type": "application/json"}
        answer = await stage.clients["owner"].request(operation.method, path, content=content, headers=kind)
        assert answer.status_code < 500, (name, body, answer.text)

    asyncio.run(story())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(set(BY_NAME) - set(CHANGES) - OF_SERVICES)), value=st.text(max_size=30))
def test_no_query_and_no_name_in_a_path_is_a_fault(stage: ApiStage, name: str, value: str) -> None:
    async def story() -> None:
        from urllib.parse import quote

        operation = BY_NAME[name]
        values = {one: quote(value.encode("utf-8", "replace"), safe="") or "x" for one in operation.params}
        query = {field: value.encode("utf-8", "replace").decode() for field in operation.asks.model_fields}
        answer = await stage.clients["owner"].get(BELOW + operation.path.format(**values), params=query)
        assert answer.status_code < 500, (name, value, answer.text)

    asyncio.run(story())


def test_the_openapi_document_names_every_route_of_the_table_and_no_other(stage: ApiStage) -> None:
    found = asyncio.run(stage.clients["viewer"].get(f"{BELOW}/openapi.json")).json()
    assert found["openapi"].startswith("3.1.")
    named = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert named | {("GET", f"{BELOW}/openapi.json")} == {(route.method, route.path) for route in API}
    ids = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
    assert sorted(ids) == sorted(BY_NAME)
    refs = set(_refs(found))
    assert refs
    for ref in refs:
        at: Any = found
        for key in ref.removeprefix("#/").split("/"):
            at = at[key]
    for path, methods in found["paths"].items():
        for one in methods.values():
            stated = {item["name"] for item in one["parameters"] if item["in"] == "path"}
            assert stated == {part[1:-1] for part in path.split("/") if part.startswith("{")}
            assert {"200", "401", "403", "404", "422"} <= set(one["responses"])
    assert document() == found


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for inner in value.values() for ref in _refs(inner)]
    return [ref for inner in value for ref in _refs(inner)] if isinstance(value, list) else []


def test_answers_are_without_secrets_and_keep_their_numbers() -> None:
    hidden = redacted(
        {"input_tokens": 1234567890, "text": ["a word of theirs"]}, lambda text: text.replace("word", "*")
    )
    assert hidden == {"input_tokens": 1234567890, "text": ["a * of theirs"]}


def test_a_way_that_is_not_served_is_said_with_those_that_are(stage: ApiStage) -> None:
    answer = asyncio.run(stage.clients["owner"].put(f"{BELOW}/status", json={}))
    assert (answer.status_code, answer.json()["status"]) == (405, 405)
    assert "GET" in answer.headers["allow"]
    both = asyncio.run(stage.clients["owner"].put(f"{BELOW}/runs", json={})).headers["allow"]
    assert {"GET", "POST"} <= set(both.split(", "))
    assert asyncio.run(stage.clients["owner"].head(f"{BELOW}/status")).status_code == 405
