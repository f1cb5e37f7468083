"""What a run's page says, and that nothing that others wrote can act in it."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest
from heal_report_stage import SAID, Mending

from becket.kernel.contract.condition import Condition
from becket.kernel.contract.events import EventKind, NewEvent
from becket.kernel.contract.run import Run, Step, StepState
from becket.kernel.contract.spec import Phase
from becket.kernel.contract.store import ArtifactRef, Carried, Recorded
from becket.parts.front.kept import Address
from becket.parts.front.server import Front
from becket.testing.agent import Act, writes
from becket.testing.world import World
from front_stage import PORT, FrontStage, Person, make_front

NAME = "pages/a<img src=x onerror=alert(3)>.py"
CODE = """
def add(left, right):
    # </pre><script>alert(4)</script>
    return left + right


def mean(values):
    return sum(values) / len(values) if values else 0.0
"""


def _repair(tree: Path) -> None:
    writes("calc.py", CODE)(tree)
    writes(NAME, "x = '<b onclick=alert(5)>'\n")(tree)


HOSTILE = Act(_repair, said=SAID)
LOOP = """
version: 1
loop_id: long
goal: To be long.
trigger:
  - manual: {}
subject: "{branch}@{sha}"
max_iterations: 5
deadline: 1h
autonomy: propose
stop_conditions: [clean.pass]
phases:
  discover:
    objective: Go on.
    actions:
      - {id: first, uses: git.read_base}
  verify:
    objective: Be over.
    verifiers:
      - {id: clean, run: "true", in: scratch}
"""


@dataclass(frozen=True)
class Made:
    """A repository after its story."""

    folder: Path
    run: Run


def made(folder: Path, act: Act) -> Made:
    async def story() -> Run:
        stage = Mending(folder, act, store="sqlite")
        run = (await stage.mend())[1]
        await stage.world.store.close()
        return run

    return Made(folder, asyncio.run(story()))


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("mended"), HOSTILE)


def looked_at(made: Made, look: Callable[[Person, FrontStage], Awaitable[None]], name: str) -> None:
    async def story() -> None:
        world = World(made.folder, store="sqlite")
        stage = FrontStage(world, Front(world.app, Address("127.0.0.1", PORT)))
        await look(await stage.person("viewer", name), stage)
        await stage.close()
        await world.store.close()

    asyncio.run(story())


class Elements(HTMLParser):
    """What a browser would see of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]

    def check(self) -> None:
        assert self.tags.count("script") == 2  # live.js and notify.js
        assert not {name for name in self.names if name.startswith("on") or name == "style"}
        assert not {"img", "iframe", "style", "object", "base"} & set(self.tags)
        assert len(self.ids) == len(set(self.ids))
        levels = [int(tag[1]) for tag in self.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_a_run_is_told_with_its_verdict_and_its_proof_first_and_everything_is_a_click_away(mended: Made) -> None:
    async def look(me: Person, stage: FrontStage) -> None:
        here = f"/runs/{mended.run.run_id}"
        page = (await me.get(here)).text
        told = ["handed over", "red turned green", 'id="people"', 'id="proof"', "tests/test_calc.py::test_add",
                'id="check"', 'id="story"', "candidate.crossed", 'id="change"', 'id="receipts"']  # fmt: skip
        assert [page.find(one) for one in told] == sorted(page.find(one) for one in told)
        assert -1 not in [page.find(one) for one in told]
        seen = Elements(page)
        seen.check()
        own = sorted({link.partition("#")[0] for link in seen.links if link.startswith(f"{here}/")})
        assert len(own) > 10
        for link in own:
            assert (await me.client.get(link)).status_code == 200, link
        receipt = next(link for link in own if "/receipts/" in link)
        Elements((await me.get(receipt)).text).check()

    looked_at(mended, look, "ada")


def test_what_others_wrote_is_text(mended: Made) -> None:
    async def look(me: Person, stage: FrontStage) -> None:
        page = (await me.get(f"/runs/{mended.run.run_id}")).text
        for text in ("&lt;script&gt;alert(4)", "onerror=alert(3)&gt;.py", "&lt;script&gt;alert(", "10 of 10 PASS"):
            assert text in page
        assert "\u202e" not in page
        assert "\x1b" not in page

    looked_at(mended, look, "bob")


def test_what_the_guard_says_stands_at_the_line(mended: Made) -> None:
    async def look(me: Person, stage: FrontStage) -> None:
        page = (await me.get(f"/runs/{mended.run.run_id}")).text
        change = page[page.index('id="change"') :]
        at_line = r'data-line="\d+">\+.*?</span><span class="remark \w+" role="note">guard: '
        assert re.search(at_line, change) is not None
        assert 'class="h-k"' in change

    looked_at(mended, look, "carol")


def test_a_run_that_does_not_exist_is_a_page_that_says_so(mended: Made) -> None:
    async def look(me: Person, stage: FrontStage) -> None:
        for name in ("run_nobody", "run_", "%00", "..%2f..%2fetc", "x" * 200, "run_<script>"):
            for rest in ("", "/log?step=1/verify/cf", f"/receipts/{'a' * 64}"):
                answer = await me.client.get(f"/runs/{name}{rest}")
                assert answer.status_code in (404, 422), (name, rest)
                assert "<script>" not in answer.text

    looked_at(mended, look, "eve")


def test_only_what_a_run_refers_to_is_given_out(mended: Made) -> None:
    async def look(me: Person, stage: FrontStage) -> None:
        here, store = f"/runs/{mended.run.run_id}/artifacts", stage.world.store
        other, _ = stage.world.app.artifacts.put(b"of nobody")
        for digest in (other, "0" * 64, "..%2f..%2fjournal.db", "../../becket.yaml", "%2e%2e", "a" * 63 + "%00"):
            assert (await me.client.get(f"{here}/{digest}")).status_code in (404, 422), digest
        ref = (await store.artifacts(mended.run.run_id))[0]
        answer = await me.get(f"{here}/{ref.digest}")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == f'inline; filename="{ref.digest[:12]}.txt"'
        assert (await stage.client().get(f"{here}/{ref.digest}")).status_code == 401

    looked_at(mended, look, "mallory")


def test_a_run_is_verified_at_a_click_and_says_when_it_does_not_hold(mended: Made, tmp_path: Path) -> None:
    shutil.copytree(mended.folder, tmp_path / "own", symlinks=True)
    made_here = Made(tmp_path / "own", mended.run)

    async def look(me: Person, stage: FrontStage) -> None:
        here = f"/runs/{made_here.run.run_id}"
        assert (await me.post(f"{here}/verify")).headers["location"] == f"{here}#check"
        assert "checks passed" in (await me.get(here)).text
        ref = (await stage.world.store.artifacts(made_here.run.run_id))[0]
        path = stage.world.app.artifacts.path(ref.digest)
        path.chmod(0o600)
        path.write_bytes(b"something else")
        await me.post(f"{here}/verify", {"receipt": "//evil.example"})
        page = (await me.get(here)).text
        assert "does not hold" in page
        assert "its content was changed, or is gone" in page

    looked_at(made_here, look, "dan")


async def _at_work(stage: FrontStage) -> tuple[Run, int]:
    """A run that somebody works on, and the epoch of the claim."""
    world = stage.world
    world.loop(LOOP)
    world.commit()
    run = await world.start("long")
    await world._join()  # a worker, as an engine is
    claim = await world.store.claim(run.run_id, run.segment, world.app.worker_id, 3600.0)
    assert claim is not None
    return claim.run, claim.run.epoch


def test_a_log_is_seen_while_it_grows_in_colours_by_windows_and_by_words(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        me = await stage.person("viewer")
        run, epoch = await _at_work(stage)
        logs = stage.world.app.places.of_run(run.run_id) / "logs"
        logs.mkdir(parents=True)
        secret = "ghp_" + "a1B2" * 9
        growing = logs / "1-discover-first.log"
        growing.write_text(f"\x1b[1;31mred\x1b[0m <script>alert(6)</script>\ntoken {secret}\n")

        async def log(**query: str) -> str:
            told = urlencode({"step": "1/discover/first", **query})
            answer = await me.client.get(f"/runs/{run.run_id}/log?{told}")
            assert answer.status_code == 200
            Elements(answer.text).check()
            return answer.text

        page = await log()
        assert '<span id="L1" data-n="1"><span class="t-bold t-red">red</span> &lt;script&gt;' in page
        assert "data-follow" in page
        assert secret not in page
        assert "No line has it" in await log(find=secret[:12])
        assert "alert(6)" in (await me.get(f"/runs/{run.run_id}")).text or "token" in page
        for name in ("../../../becket.yaml", "/etc/passwd", "nothing.log"):
            answer = await me.get(f"/runs/{run.run_id}/log", step="1/discover/first", name=name)
            assert answer.status_code == 404
        for step in ("", "1/nowhere/x", "x/discover/first", "1/discover/"):
            assert (await me.get(f"/runs/{run.run_id}/log", step=step)).status_code == 404

        kept = "".join(f"line {number} of many, and more\n" for number in range(1, 120_001))
        digest, size = stage.world.app.artifacts.put(kept.encode())
        ref = ArtifactRef(digest=digest, name="first.log", size=size, run_id=run.run_id, iteration=1,
                          phase="discover", action_id="first")  # fmt: skip
        await stage.world.store.refer(ref, epoch)
        growing.unlink()
        page = await log(at="0")
        assert 'id="L1"' in page
        assert len(page) < 700_000
        later = re.search(r'href="([^"]*at=\d+)">Later', page)
        assert later is not None
        second = (await me.client.get(later[1].replace("&amp;", "&"))).text
        last = max(map(int, re.findall(r'id="L(\d+)"', page)))
        assert f'id="L{last + 1}" data-n="{last + 1}">line {last + 1} of' in second
        found = await log(find="LINE 99999 OF")
        assert found.count("<li><a") >= 1
        where = re.search(r'href="([^"]*)#L99999"', found)
        assert where is not None
        assert 'id="L99999"' in (await me.client.get(where[1].replace("&amp;", "&"))).text
        await stage.close()

    asyncio.run(story())


def test_a_run_of_thousands_of_steps_is_shown_within_bounds(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        me = await stage.person("viewer")
        run, epoch = await _at_work(stage)
        store, many = stage.world.store, 2_000
        steps = [
            Step(run_id=run.run_id, iteration=1, phase=Phase.discover, id=f"s{number}", state=StepState.done,
                 started_at=0.0, ended_at=0.0, conditions=(Condition(object="a", name="<i>b"),), note="n" * 50)
            for number in range(many)
        ]  # fmt: skip
        for begin in range(0, many, 1000):
            part = tuple(steps[begin : begin + 1000])
            await store.record(
                run.run_id, epoch, Recorded(steps=part, events=tuple(NewEvent(kind=EventKind.step_done) for _ in part))
            )
        answer = await me.get(f"/runs/{run.run_id}")
        assert answer.status_code == 200
        assert len(answer.text) < 500_000
        assert "1700 earlier steps are not shown here" in answer.text
        Elements(answer.text).check()
        for number in range(40):
            await store.next_iteration(run.run_id, epoch, Carried(), counts=False)
            step = steps[number].model_copy(update={"iteration": number + 2})
            await store.record(run.run_id, epoch, Recorded(steps=(step,), events=(NewEvent(kind=EventKind.step_done),)))
        page = (await me.get(f"/runs/{run.run_id}")).text
        assert "26 iterations between the first and the last ones are not shown here" in page
        assert "<b>s39</b>" in page
        assert "<b>s20</b>" not in page
        await stage.close()

    asyncio.run(story())
