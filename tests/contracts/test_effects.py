"""The EffectAdapter port: what every effect keeps, and what each of the first ones does with the world."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from becket.kernel.contract import crash
from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.effect import (
    EffectAdapter,
    EffectCall,
    EffectState,
    LookUpResult,
    Origin,
    Permit,
    door_mint,
)
from becket.kernel.contract.errors import EffectFailed, EffectRefused
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.engine.door import Door
from becket.kernel.engine.redact import Redactor
from becket.kernel.http import Endpoint, HttpPost
from becket.kernel.notices.console import ConsoleNotice
from becket.kernel.notices.file import FileNotice
from becket.kernel.store import open_memory
from becket.parts.notify.command import CommandNotice
from becket.testing.clock import ManualClock
from becket.testing.receiver import Answer, Receiver

SECRET = "whk-3f9Zt7Qp1x"
ORIGIN = Origin(run_id="run_1", iteration=1, phase="notify", action_id="tell")


@dataclass(frozen=True)
class Case:
    """One implementation of the port, a good call for it, and a way to count what the world has seen."""

    adapter: EffectAdapter
    call: EffectCall
    seen: Callable[[], int]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(secret=SECRET) as receiver:
        yield receiver


def post_to(receiver: Receiver, **more: float) -> HttpPost:
    endpoints = {"ops": Endpoint(url=receiver.url, secret=SECRET)}
    return HttpPost(endpoints, redact=Redactor({}).text, **more)


@pytest.fixture(params=["notify.console", "notify.file", "notify.command", "http.post"])
def case(request: pytest.FixtureRequest, tmp_path: Path, receiver: Receiver) -> Case:
    payload = {"text": "main is green"}
    if request.param == "notify.console":
        stream = io.StringIO()
        call = EffectCall(name="notify.console", target="console", payload=payload)
        return Case(ConsoleNotice(stream), call, lambda: stream.getvalue().count("main is green"))
    if request.param == "notify.file":
        file = tmp_path / "notices.jsonl"
        call = EffectCall(name="notify.file", target=str(file), payload=payload)
        return Case(FileNotice([tmp_path]), call, lambda: len(lines(file)))
    if request.param == "notify.command":
        told = tmp_path / "told"
        notice = CommandNotice(f"cat >> {told}", tmp_path, Redactor({}).text)
        return Case(notice, EffectCall(name=notice.name, target="notify", payload=payload), lambda: len(lines(told)))
    call = EffectCall(name="http.post", target="ops", payload=payload)
    return Case(post_to(receiver), call, lambda: len(receiver.deliveries))


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def perform(adapter: EffectAdapter, call: EffectCall, key: str = "k" * 32) -> object:
    return asyncio.run(adapter.perform(call, door_mint()(key, call)))


def through_the_door(adapter: EffectAdapter, call: EffectCall, clock: ManualClock | None = None) -> EffectReport:
    clock = clock or ManualClock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    door = Door(open_memory(clock), {adapter.name: adapter}, Redactor({}), {}, sleep)
    return asyncio.run(door.perform(call, ORIGIN, None, Autonomy.release, False))


class TestEveryEffect:
    def test_it_says_what_it_is(self, case: Case) -> None:
        assert case.adapter.name == case.call.name
        assert isinstance(case.adapter.class_, EffectClass)
        assert isinstance(case.adapter.needs, Autonomy)
        assert 0 < case.adapter.timeout <= 60
        assert case.adapter.check(case.call) is None

    def test_it_leaves_by_the_door(self, case: Case) -> None:
        report = through_the_door(case.adapter, case.call)
        assert report.happened
        assert case.seen() == 1
        json.dumps(report.result)

    def test_it_refuses_to_act_without_a_permit(self, case: Case) -> None:
        with pytest.raises(EffectRefused, match="permit"):
            asyncio.run(case.adapter.perform(case.call, cast("Permit", None)))
        assert case.seen() == 0

    def test_it_refuses_a_permit_for_another_call(self, case: Case) -> None:
        other = case.call.model_copy(update={"payload": {"text": "main is red"}})
        with pytest.raises(EffectRefused, match="permit"):
            asyncio.run(case.adapter.perform(case.call, door_mint()("key", other)))
        assert case.seen() == 0

    def test_a_look_up_tells_the_truth_or_that_it_cannot_tell(self, case: Case) -> None:
        def look_up() -> LookUpResult:
            return asyncio.run(case.adapter.look_up(case.call, "k" * 32))

        queryable = case.adapter.class_ is EffectClass.queryable
        assert look_up() is (LookUpResult.no if queryable else LookUpResult.cannot_tell)
        perform(case.adapter, case.call)
        assert look_up() is (LookUpResult.yes if queryable else LookUpResult.cannot_tell)

    def test_a_payload_that_is_no_use_is_said_before_anything_is_written(self, case: Case) -> None:
        wrong = case.adapter.check(case.call.model_copy(update={"payload": {"nan": float("nan")}}))
        assert wrong


class TestConsole:
    def shown(self, text: str) -> str:
        stream = io.StringIO()
        perform(ConsoleNotice(stream), EffectCall(name="notify.console", target="console", payload={"text": text}))
        return stream.getvalue()

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain", "plain\n"),
            ("\x1b[31mred\x1b[0m \x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "red textlink\n"),
            ("bell\x07 null\x00 back\x08 c1\x9b31m", "bell null back c131m\n"),
            ("one\rtwo\r\nthree", "one\n    two\n    three\n"),
            ("a\u202eb\u2066c\u200bd", "abcd\n"),
            ("\x1b", "\n"),
        ],
    )
    def test_untrusted_text_cannot_steer_the_terminal(self, text: str, shown: str) -> None:
        """L24: no colours, titles, cursor moves or hidden direction marks; no line that poses as another notice."""
        assert self.shown(text) == shown

    def test_a_flood_is_cut(self) -> None:
        assert len(self.shown("x" * 100_000)) < 8_100

    def test_a_closed_stream_is_a_failure_not_a_crash(self) -> None:
        stream = io.StringIO()
        stream.close()
        with pytest.raises(EffectFailed, match="cannot be written"):
            perform(ConsoleNotice(stream), EffectCall(name="notify.console", target="x", payload={"text": "t"}))


class TestFile:
    def call(self, target: str | Path, **payload: object) -> EffectCall:
        return EffectCall(name="notify.file", target=str(target), payload=payload or {"text": "t"})

    def test_a_notice_is_one_line_of_json(self, tmp_path: Path) -> None:
        adapter = FileNotice([tmp_path], now=lambda: 1_800_000_000.0)
        perform(adapter, self.call("a.jsonl", text="line\nbreak \u2028"))
        perform(adapter, self.call("a.jsonl"), key="other")
        first, second = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().split("\n")[:-1]]
        expected = {"key": "k" * 32, "at": "2027-01-15T08:00:00.000+00:00", "payload": {"text": "line\nbreak \u2028"}}
        assert first == expected
        assert second["key"] == "other"

    @pytest.mark.parametrize("target", ["../x", "a/../../x", "/etc/passwd", "", ".", "x/", "a\0b"])
    def test_no_path_outside_the_folder(self, tmp_path: Path, target: str) -> None:
        """L24: untrusted text never chooses a target."""
        assert "not inside an allowed folder" in (FileNotice([tmp_path / "in"]).check(self.call(target)) or "")

    @pytest.mark.parametrize("name", ["link.jsonl", "folder/x.jsonl", "dangling"])
    def test_no_symlink_leads_outside(self, tmp_path: Path, name: str) -> None:
        inside, outside = tmp_path / "in", tmp_path / "out"
        inside.mkdir()
        outside.mkdir()
        (outside / "x.jsonl").write_text("precious\n")
        (inside / "link.jsonl").symlink_to(outside / "x.jsonl")
        (inside / "folder").symlink_to(outside)
        (inside / "dangling").symlink_to(outside / "new")
        with pytest.raises(EffectFailed, match="cannot append"):
            perform(FileNotice([inside]), self.call(name))
        assert [file.name for file in outside.iterdir()] == ["x.jsonl"]
        assert (outside / "x.jsonl").read_text() == "precious\n"

    def test_a_pipe_in_its_place_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(EffectFailed, match="cannot append"):
            perform(FileNotice([tmp_path]), self.call("pipe"))

    def test_a_torn_line_is_neither_continued_nor_taken_for_a_notice(self, tmp_path: Path) -> None:
        """A machine that died in mid-write: the notice did not arrive, and the next one starts on its own line."""
        file = tmp_path / "a.jsonl"
        file.write_text('{"key": "' + "k" * 32 + '", "at"')
        adapter = FileNotice([tmp_path])
        assert asyncio.run(adapter.look_up(self.call(file), "k" * 32)) is LookUpResult.no
        perform(adapter, self.call(file))
        assert asyncio.run(adapter.look_up(self.call(file), "k" * 32)) is LookUpResult.yes
        assert len(lines(file)) == 2

    def test_a_key_that_is_only_mentioned_is_not_found(self, tmp_path: Path) -> None:
        adapter = FileNotice([tmp_path])
        perform(adapter, self.call("a.jsonl", text="k" * 32), key="other")
        assert asyncio.run(adapter.look_up(self.call("a.jsonl"), "k" * 32)) is LookUpResult.no

    def test_a_crash_after_the_write_does_not_write_twice(self, tmp_path: Path) -> None:
        clock, adapter = ManualClock(), FileNotice([tmp_path])
        store = open_memory(clock)

        async def sleep(seconds: float) -> None:
            clock.advance(seconds)

        def ask() -> EffectReport:
            door = Door(store, {adapter.name: adapter}, Redactor({}), {}, sleep)
            return asyncio.run(door.perform(self.call("a.jsonl"), ORIGIN, None, Autonomy.observe, False))

        with crashing_at("door.after_perform"), pytest.raises(Killed):
            ask()
        assert ask().result == {"observed": True}
        assert len(lines(tmp_path / "a.jsonl")) == 1

    def test_a_missing_folder_is_a_final_failure_and_too_long_a_notice_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(EffectFailed) as failure:
            perform(FileNotice([tmp_path / "gone"]), self.call("a.jsonl"))
        assert not failure.value.retryable
        assert "longer than" in (FileNotice([tmp_path]).check(self.call("a", text="x" * 70_000)) or "")


class Killed(BaseException):
    pass


class crashing_at:  # noqa: N801 - reads as a verb
    """The process is gone at the named point, once."""

    def __init__(self, name: str) -> None:
        self._name: str | None = name

    def _hit(self, name: str) -> None:
        if name == self._name:
            self._name = None
            raise Killed(name)

    def __enter__(self) -> None:
        crash.install(self._hit)

    def __exit__(self, *_: object) -> None:
        crash.install(None)


class TestHttpPost:
    CALL = EffectCall(name="http.post", target="ops", payload={"text": "grün", "n": 1})

    def test_the_request_is_keyed_stamped_and_signed(self, receiver: Receiver) -> None:
        result = perform(post_to(receiver), self.CALL, key="abc")
        (delivery,) = receiver.deliveries
        assert (delivery.key, delivery.signed) == ("abc", True)
        assert json.loads(delivery.body) == self.CALL.payload
        assert delivery.headers["content-type"] == "application/json"
        assert result == {"status": 200, "answer": "{}"}

    def test_only_the_configured_url_gets_the_signature(self, receiver: Receiver) -> None:
        """L25: another URL never learns what our signatures look like; the configured one also by its URL."""
        with Receiver() as other:
            perform(post_to(receiver), self.CALL.model_copy(update={"target": other.url}))
            assert "x-becket-signature" not in other.deliveries[0].headers
        perform(post_to(receiver), self.CALL.model_copy(update={"target": receiver.url}))
        assert receiver.deliveries[0].signed is True

    def test_a_wrong_secret_is_turned_down_for_good(self, receiver: Receiver) -> None:
        adapter = HttpPost({"ops": Endpoint(url=receiver.url, secret="wrong")}, redact=str)
        with pytest.raises(EffectFailed, match="401"):
            through_the_door(adapter, self.CALL)
        assert (len(receiver.deliveries), receiver.effects) == (1, 0)

    @pytest.mark.parametrize(
        ("answer", "retryable", "ambiguous", "after"),
        [
            (Answer(status=429), True, False, None),
            (Answer(status=429, retry_after=7), True, False, 7.0),
            (Answer(status=503, retry_after=3), True, False, 3.0),
            (Answer(status=503, headers={"Retry-After": "Fri, 15 Jan 2027 08:00:30 GMT"}), True, False, 30.0),
            (Answer(status=503), True, True, None),
            (Answer(status=500), True, True, None),
            (Answer(status=400), False, False, None),
            (Answer(status=404, headers={"Retry-After": "soon"}), False, False, None),
            (Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), False, False, None),
            (Answer(cut="after"), True, True, None),
            (Answer(cut="before"), True, True, None),
        ],
    )
    def test_what_an_answer_means(
        self, receiver: Receiver, answer: Answer, retryable: bool, ambiguous: bool, after: float | None
    ) -> None:
        receiver.script(answer)
        adapter = HttpPost({"ops": Endpoint(url=receiver.url, secret=SECRET)}, redact=str, now=lambda: 1_800_000_000.0)
        with pytest.raises(EffectFailed) as failure:
            perform(adapter, self.CALL)
        got = failure.value
        assert (got.retryable, got.ambiguous, got.retry_after) == (retryable, ambiguous, after)
        assert len(receiver.deliveries) == 1

    def test_nobody_there_is_not_ambiguous(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            call = self.CALL.model_copy(update={"target": f"http://127.0.0.1:{unused.getsockname()[1]}/"})
            with pytest.raises(EffectFailed, match="cannot reach") as failure:
                perform(HttpPost({}, redact=str), call)
        assert (failure.value.retryable, failure.value.ambiguous) == (True, False)

    def test_a_slow_receiver_is_ambiguous(self, receiver: Receiver) -> None:
        receiver.script(Answer(hold=True))
        with pytest.raises(EffectFailed, match="no answer") as failure:
            perform(post_to(receiver, timeout=0.5), self.CALL)
        assert failure.value.ambiguous

    def test_busy_cut_and_failing_answers_end_in_one_effect(self, receiver: Receiver) -> None:
        """The receiver acted, the connection was cut, the next answers were errors: one key, one effect."""
        receiver.script(Answer(status=503, retry_after=1), Answer(cut="after"), Answer(status=500))
        assert through_the_door(post_to(receiver), self.CALL).happened
        assert (len(receiver.deliveries), receiver.effects) == (4, 1)
        assert [delivery.double for delivery in receiver.deliveries] == [False, False, True, True]
        assert len({delivery.key for delivery in receiver.deliveries}) == 1

    def test_the_answer_is_shown_short_and_redacted(self, receiver: Receiver) -> None:
        """L25, L38: redacted before it is cut, so that no half token is left at the edge."""
        token = b"ghp_" + b"a1" * 18
        receiver.script(Answer(body=b"x" * 1980 + b" " + token), Answer(status=400, body=b"y" * 1_000_000))
        result = cast("dict[str, str]", perform(post_to(receiver), self.CALL))
        assert result["answer"] == ("x" * 1980 + " [redacted:github]")[:2000]
        with pytest.raises(EffectFailed) as failure:
            perform(post_to(receiver), self.CALL)
        assert len(str(failure.value)) < 2_100

    @pytest.mark.parametrize(
        ("target", "wrong"),
        [
            ("https://example.org/hook", None),
            ("http://localhost:8080/", None),
            ("http://[::1]:8080/", None),
            ("http://127.9.9.9/", None),
            ("http://example.org/", "not allowed"),
            ("http://127.0.0.1.example.org/", "not allowed"),
            ("ftp://example.org/", "not allowed"),
            ("file:///etc/passwd", "no host"),
            ("https://user:password@example.org/", "credentials"),
            ("https://example.org:port/", "cannot be read"),
            ("https://exam ple.org/", "characters"),
            ("unknown", "neither a URL nor a configured endpoint (lan, ops)"),
            ("lan", None),
            ("http://10.0.0.7/", None),
        ],
    )
    def test_which_urls_are_allowed(self, target: str, wrong: str | None) -> None:
        """Without TLS only to this machine, or where the configuration says so by this very URL."""
        endpoints = {"ops": Endpoint(url="https://x.org"), "lan": Endpoint(url="http://10.0.0.7/", allow_http=True)}
        said = HttpPost(endpoints, redact=str).check(self.CALL.model_copy(update={"target": target}))
        assert (said is None) if wrong is None else (wrong in (said or ""))

    def test_httpx_is_loaded_only_when_something_is_posted(self) -> None:
        code = "import sys, becket.kernel.http, becket.kernel.engine.door; sys.exit('httpx' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestReceiver:
    def test_it_serves_other_processes(self, receiver: Receiver) -> None:
        code = (
            "import sys, urllib.request as u;"
            "r = u.Request(sys.argv[1], b'{}', {'Idempotency-Key': 'one'}); u.urlopen(r)"
        )
        with Receiver() as plain:
            for _ in range(2):
                subprocess.run([sys.executable, "-c", code, plain.url], check=True)
            assert (len(plain.deliveries), plain.effects) == (2, 1)
            look_up = "import sys, urllib.request as u; u.urlopen(sys.argv[1] + 'seen/' + sys.argv[2])"
            ends = [
                subprocess.run(
                    [sys.executable, "-c", look_up, plain.url, key], check=False, capture_output=True
                ).returncode
                for key in ("one", "two")
            ]
            assert ends == [0, 1]

    def test_a_held_request_acts_late_and_waiting_sees_it(self, receiver: Receiver) -> None:
        """The slow receiver of rule 4: it has the request, and acts after the client has gone."""
        receiver.script(Answer(hold=True))
        with pytest.raises(EffectFailed):
            perform(post_to(receiver, timeout=0.5), TestHttpPost.CALL, key="slow")
        assert receiver.wait_for(deliveries=1)
        assert not receiver.seen("slow")
        receiver.release()
        assert receiver.wait_for(effects=1)
        assert receiver.seen("slow")

    def test_stopping_does_not_wait_for_a_delay(self) -> None:
        with Receiver() as slow:
            slow.script(Answer(delay=60))
            adapter = HttpPost({}, redact=str, timeout=0.5)
            with pytest.raises(EffectFailed):
                perform(adapter, TestHttpPost.CALL.model_copy(update={"target": slow.url}))
        assert slow.effects == 0


def test_a_retry_that_crashes_again_and_again_is_still_one_effect(receiver: Receiver) -> None:
    """Kill at each point of the door in turn, over real HTTP: the receiver acts once."""
    clock = ManualClock()
    store = open_memory(clock)

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    def ask() -> EffectReport:
        door = Door(store, {"http.post": post_to(receiver)}, Redactor({}), {}, sleep)
        return asyncio.run(door.perform(TestHttpPost.CALL, ORIGIN, None, Autonomy.propose, False))

    for point in ("door.after_intent", "door.after_perform", "door.before_retry"):
        with crashing_at(point), pytest.raises(Killed):
            ask()
    assert ask().state == EffectState.done
    assert (len(receiver.deliveries), receiver.effects) == (2, 1)


class TestACommandOfAPerson:
    """notify.command: what is told never becomes code, and a command that fails or hangs is told as such."""

    @staticmethod
    def call(text: str) -> EffectCall:
        return EffectCall(name="notify.command", target="notify", payload={"title": "to ada", "text": text})

    def test_what_is_told_is_data_for_the_shell(self, tmp_path: Path) -> None:
        """L24: a test's name that holds shell code is printed, not run."""
        nasty = '$(touch bad); `touch bad`; "; touch bad #\nsecond line'
        notice = CommandNotice(
            'printf "%s|%s" "$BECKET_TITLE" "$BECKET_TEXT"; cat > heard', tmp_path, Redactor({}).text
        )
        assert perform(notice, self.call(nasty)) == {"exit_code": 0, "output": f"to ada|{nasty}"}
        assert (tmp_path / "heard").read_text() == f"{nasty}\n"
        assert not (tmp_path / "bad").exists()

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("echo no such user; exit 3", "exit code 3: no such user"),
            ("sleep 600 & sleep 600", "did not end within 0.3 s"),
            ("no-such-program-here", "exit code 127"),
        ],
    )
    def test_a_failure_is_told_and_may_be_tried_again(self, tmp_path: Path, command: str, said: str) -> None:
        notice = CommandNotice(command, tmp_path, Redactor({}).text, timeout=0.3 if "sleep" in command else 20.0)
        with pytest.raises(EffectFailed, match=said) as failed:
            perform(notice, self.call("x"))
        assert failed.value.retryable
