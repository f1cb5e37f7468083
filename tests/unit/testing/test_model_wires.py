"""The scripted model speaks each wire as its vendor describes it, streamed and whole, and refuses what they refuse."""

from __future__ import annotations

import http.client
import time
from typing import Any

import pytest
from wire_clients import CLIENTS, Client, ask, send, talk

from becket.testing.model import Cut, Refuse, Say, ScriptedModel, Shell, Status, Think, Together, Tokens, Truncate
from becket.testing.model.scripted import SIDE_ANSWER

each_wire = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@each_wire
@both_ways
def test_text_thoughts_and_usage_arrive(client: Client, stream: bool) -> None:
    usage = Tokens(input=120, cached=20, output=7, reasoning=2)
    with ScriptedModel([Think("so that"), Say("A reply of several parts.", usage)]) as model:
        seen = talk(client, model, client.begin("hello"), stream)
        model.check(finished=True)
    assert seen.text == "A reply of several parts."
    assert seen.used == (120, 20, 7)
    if stream or client.name != "chat":  # a whole chat completion has no field for reasoning
        assert seen.thoughts == "so that"


@each_wire
@both_ways
def test_a_shell_step_becomes_a_call_of_the_clients_own_tool(client: Client, stream: bool) -> None:
    with ScriptedModel([Shell("make test"), Say("done")]) as model:
        body = client.begin("fix it")
        first = talk(client, model, body, stream)
        second = talk(client, model, client.go_on(body, first, "3 passed"), stream)
        model.check(finished=True)
        assert model.saw("fix it")
        assert model.saw("3 passed")
        assert not model.saw("4 passed")
    assert [(name, given) for _, name, given in first.calls] == [(first.calls[0][1], {"command": "make test"})]
    assert second.text == "done"


@each_wire
def test_several_calls_come_in_one_reply(client: Client) -> None:
    with ScriptedModel([Together((Say("both"), Shell("one"), Shell("two"))), Say("done")]) as model:
        body = client.begin("go")
        seen = talk(client, model, body)
        assert (seen.text, [given["command"] for _, _, given in seen.calls]) == ("both", ["one", "two"])
        assert talk(client, model, client.go_on(body, seen, "ok")).text == "done"
        model.check(finished=True)


@each_wire
@both_ways
def test_a_call_without_its_result_is_refused_and_told(client: Client, stream: bool) -> None:
    """A fake that accepts anything proves nothing."""
    with ScriptedModel([Shell("true"), Say("never said")]) as model:
        body = client.begin("go")
        careless = client.go_on(body, talk(client, model, body, stream), None)
        assert ask(client, model, careless, stream).status == 400
        with pytest.raises(AssertionError, match=r"function|tool"):
            model.check()
        assert model.left == {"default": (Say("never said"),)}  # a refused request uses up no step


@each_wire
def test_a_result_without_its_call_is_refused(client: Client) -> None:
    with ScriptedModel([Shell("true")]) as model:
        body = client.begin("go")
        whole = client.go_on(body, talk(client, model, body), "ok")
        name = next(name for name in ("input", "messages", "contents") if name in whole)
        orphan = {**whole, name: [whole[name][0], whole[name][-1]]}
        assert ask(client, model, orphan).status == 400
        assert len(model.violations) == 1


@each_wire
def test_a_request_without_a_key_is_refused_as_the_vendor_does(client: Client) -> None:
    with ScriptedModel([Say("hi")]) as model:
        headers = {name: value for name, value in client.headers("k").items() if "version" in name}
        answer = send(model, client.path(True), headers, client.begin("go"))
        assert answer.status == (403 if client.name == "gemini" else 401)
        assert not model.requests[0].key_given
        with pytest.raises(AssertionError, match="no API key"):
            model.check()


@each_wire
def test_a_key_in_another_vendors_header_does_not_count(client: Client) -> None:
    with ScriptedModel([Say("hi")]) as model:
        headers = {"anthropic-version": "1", "api-key": "k", "authorization": "Basic k"}
        assert send(model, client.path(True), headers, client.begin("go")).status in {401, 403}


@each_wire
def test_only_the_keys_that_were_given_are_let_in(client: Client) -> None:
    """L25: the key itself is never kept."""
    with ScriptedModel([Say("hi")], keys=["right"]) as model:
        refused = ask(client, model, client.begin("go"), key="wrong-one").status
        assert refused == (400 if client.name == "gemini" else 401)
        assert talk(client, model, client.begin("go"), key="right").text == "hi"
        model.check()  # a wrong key is the test's business, not a broken contract
        assert "wrong-one" not in repr(model.requests)
        assert [request.key_given for request in model.requests] == [True, True]


@each_wire
def test_required_fields_are_required(client: Client) -> None:
    with ScriptedModel([Say("hi")]) as model:
        full = client.begin("go")
        for name in set(full) & {"model", "input", "messages", "contents", "max_tokens"}:
            assert ask(client, model, {key: value for key, value in full.items() if key != name}).status == 400
        assert send(model, client.path(True), client.headers("k"), b"{not json").status == 400
        assert len(model.violations) >= 2


@each_wire
def test_a_request_without_tools_uses_up_no_step(client: Client) -> None:
    """Titles and summaries are asked for beside the work."""
    with ScriptedModel([Say("the work")]) as model:
        assert talk(client, model, client.begin("a title please", tools=False)).text == SIDE_ANSWER
        assert talk(client, model, client.begin("work")).text == "the work"


@each_wire
def test_a_client_without_tools_can_be_played_to(client: Client) -> None:
    with ScriptedModel([Say("the work")], sides=False) as model:
        assert talk(client, model, client.begin("go", tools=False)).text == "the work"


@each_wire
@both_ways
def test_truncation_and_refusal_have_the_vendors_marks(client: Client, stream: bool) -> None:
    with ScriptedModel([Truncate("I will"), Refuse("No.")]) as model:
        short = talk(client, model, client.begin("go"), stream)
        refused = talk(client, model, client.begin("go"), stream)
    assert (short.text, short.stop) == ("I will", client.stops["length"])
    assert (refused.text, refused.stop) == ("No.", client.stops["refusal"])


@each_wire
@both_ways
def test_a_cut_reply_is_unfinished_for_any_client(client: Client, stream: bool) -> None:
    with ScriptedModel([Cut(), Cut(at_once=True)]) as model:
        for _ in range(2):
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(client, model, client.begin("go"), stream)
        assert len(model.requests) == 2


@each_wire
@pytest.mark.parametrize("text", ["x", "a text of more than a few words"])
def test_a_cut_stream_has_some_text_and_no_end(client: Client, text: str) -> None:
    with ScriptedModel([Cut(text)]) as model, pytest.raises(http.client.IncompleteRead) as cut:
        ask(client, model, client.begin("go"))
    sent = cut.value.partial.decode()
    assert text[0] in sent
    ends = ("response.completed", '"stop"', "message_delta", "finishReason", "[DONE]")
    assert [end for end in ends if end in sent] == []


@each_wire
@pytest.mark.parametrize("code", [400, 401, 403, 429, 500, 503, 529])
def test_errors_have_the_vendors_shape(client: Client, code: int) -> None:
    with ScriptedModel([Status(code, message="because")]) as model:
        answer = ask(client, model, client.begin("go"))
        model.check()
    assert answer.status == code
    error = answer.json["error"]
    assert error["message"] == "because"
    if client.name == "messages":
        assert (answer.json["type"], error["type"].endswith(("_error",))) == ("error", True)
    elif client.name == "gemini":
        assert (error["code"], error["status"].isupper()) == (code, True)
    else:
        assert error.keys() >= {"message", "type", "param", "code"}


def retry_hint(client: Client, answer: Any) -> str:
    if client.name == "gemini":
        return next(str(one["retryDelay"]) for one in answer.json["error"]["details"] if "retryDelay" in one)
    return str(answer.headers["retry-after"])


@each_wire
def test_a_rate_limit_says_when_to_come_back(client: Client) -> None:
    """L23: quota-aware pauses need the time of the reset."""
    with ScriptedModel([Status(429, retry_after=17), Status(429, resets_at=time.time() + 3600)]) as model:
        assert retry_hint(client, ask(client, model, client.begin("go"))).rstrip("s") == "17"
        later = int(retry_hint(client, ask(client, model, client.begin("go"))).rstrip("s"))
    assert 3500 < later <= 3600


def test_usage_limits_of_subscriptions_have_their_own_fields() -> None:
    resets = float(int(time.time()) + 7200)
    steps = [Status(429, kind="usage_limit", resets_at=resets)] * 2
    with ScriptedModel(steps) as model:
        openai, _, anthropic, _ = CLIENTS
        error = ask(openai, model, openai.begin("go")).json["error"]
        assert (error["type"], error["resets_at"]) == ("usage_limit_reached", int(resets))
        headers = ask(anthropic, model, anthropic.begin("go")).headers
        assert headers["anthropic-ratelimit-unified-reset"] == str(int(resets))
        assert headers["anthropic-ratelimit-unified-status"] == "rejected"


@each_wire
def test_an_error_in_the_middle_of_a_stream(client: Client) -> None:
    with ScriptedModel([Status(500, midstream=True, message="oh")]) as model:
        answer = ask(client, model, client.begin("go"))
    assert answer.status == 200
    assert "oh" in str(answer.frames[-1])
    assert "error" in str(answer.frames[-1])


def test_headers_and_body_of_an_error_can_be_given() -> None:
    client = CLIENTS[0]
    with ScriptedModel([Status(418, headers={"x-tea": "pot"}, body="short and stout")]) as model:
        answer = ask(client, model, client.begin("go"))
    assert (answer.status, answer.headers["x-tea"], answer.text) == (418, "pot", "short and stout")


def test_models_counts_and_greetings() -> None:
    with ScriptedModel(models=("one", "two")) as model:
        openai = send(model, "/v1/models", {"Authorization": "Bearer k"}, b"", "GET").json
        anthropic = send(model, "/v1/models", {"x-api-key": "k"}, b"", "GET").json
        gemini = send(model, "/v1beta/models", {"x-goog-api-key": "k"}, b"", "GET").json
        assert [one["id"] for one in openai["data"]] == [one["id"] for one in anthropic["data"]] == ["one", "two"]
        assert gemini["models"][0]["name"] == "models/one"
        counted = send(model, "/v1/messages/count_tokens", {"x-api-key": "k"}, {"messages": []}).json
        assert counted["input_tokens"] > 0
        assert send(model, "/v1beta/models/one:countTokens", {}, {"contents": []}).json["totalTokens"] > 0
        assert send(model, "/", {}, b"", "HEAD").status == 200
        assert send(model, "/v1/embeddings", {}, {}).status == 404
        assert model.requests == ()
