"""Reports are made of records; what an agent said is in them, marked as a claim, and steers nothing (L22, L24)."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from heal_report_stage import CHEAT, SAID, Mending

from becket.app.record.report.collect import read_report
from becket.app.record.report.html import html_of
from becket.app.record.report.markdown import markdown_of
from becket.app.record.report.model import Report
from becket.app.record.report.write import Reports, folder_of, written
from becket.kernel.contract.run import Run


class Told:
    """A repository after its story, with the report of the run that mended, or tried to."""

    def __init__(self, folder: Path, **mending: object) -> None:
        self.stage = Mending(folder, store="sqlite", **mending)  # type: ignore[arg-type]
        self.before, self.run, self.report = asyncio.run(self._story())

    async def _story(self) -> tuple[Run, Run, Report]:
        before, run = await self.stage.mend()
        report = await read_report(self.stage.world.app, run.run_id)
        await self.stage.world.store.close()
        return before, run, report

    def becket(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "becket.cli", "-C", str(self.stage.world.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("mended"))


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("cheated"), act=CHEAT)


def test_the_report_names_the_proof_with_its_receipts(mended: Told) -> None:
    report, stage = mended.report, mended.stage
    known = {item.digest for item in report.receipts}
    base, candidate = report.gates
    assert (base.of, base.color, base.commit) == ("base", "red", stage.bad)
    assert [(step.step, step.color, step.tests_run, step.failing) for step in base.steps] == [
        ("unit", "red", 3, ("tests/test_calc.py::test_add",))
    ]
    assert "assert -1 == 5" in base.summary
    assert (candidate.of, candidate.color) == ("candidate", "green")
    (crossing,) = report.crossings
    (test,) = crossing.tests
    assert (crossing.says, test.test) == ("crossed", "tests/test_calc.py::test_add")
    assert {test.parent, test.child, *(step.receipt for gate in report.gates for step in gate.steps)} <= known
    (proof,) = report.proofs
    assert (proof.says, proof.candidate) == ("proven", candidate.commit)


def test_the_report_names_change_culprit_handoff_and_spend(mended: Told) -> None:
    report = mended.report
    (change,) = report.changes
    assert [(file.path, file.removed) for file in change.files] == [("calc.py", 1)]
    assert "-    return left - right" in change.diff
    (culprit,) = report.culprits
    assert (culprit.commit, culprit.subject) == (mended.stage.bad, "make add faster")
    (handoff,) = report.handoffs
    assert handoff.reason == "repair_ready"
    assert any(command.startswith("git merge --ff-only becket/") for command in handoff.commands)
    assert report.spend["tokens"] == 100
    assert [effect.state for effect in report.effects] == ["done"]
    assert report.lost == ()


def test_what_the_agent_said_is_a_claim_beside_the_judgement(mended: Told) -> None:
    (claim,) = mended.report.claims
    assert claim.judged.startswith("changed: ")
    assert "10 of 10 PASS" in claim.said
    elsewhere = mended.report.model_copy(update={"claims": ()})
    for text in (markdown_of(elsewhere), html_of(elsewhere), elsewhere.model_dump_json()):
        assert "10 of 10 PASS" not in text


def test_a_refusal_of_the_guard_is_told_with_rule_path_and_line(cheated: Told) -> None:
    (guard,) = cheated.report.guards
    assert guard.refusals
    assert {(one.path, bool(one.line)) for one in guard.refusals} == {("tests/test_calc.py", True)}
    assert cheated.report.proofs == ()
    text = markdown_of(cheated.report)
    assert "tests/test_calc.py:" in text
    assert guard.refusals[0].rule in text
    assert guard.refusals[0].rule in html_of(cheated.report)


class Page(HTMLParser):
    """Collects what a browser would load or run, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [
            f"{name}={value}"
            for name, value in attrs
            if name in ("src", "style") or name[:2] == "on" or (name == "href" and not str(value).startswith("#"))
        ]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_and_runs_nothing(mended: Told, cheated: Told) -> None:
    for told in (mended, cheated):
        text = html_of(told.report)
        page = Page(text)
        assert page.loads == []
        assert not page.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
        assert page.open == []
        assert "url(" not in text
        assert "@import" not in text
        assert "prefers-color-scheme: dark" in text
        assert "width=device-width" in text
        assert "&lt;script&gt;alert" in text
        assert not re.search("[\x1b\u202e]", text)


def test_untrusted_words_are_no_markdown(mended: Told) -> None:
    text = markdown_of(mended.report)
    assert not re.search("[\x1b\u202e]", text)
    hostile = mended.report.run.model_copy(update={"goal": "# big <b>x</b> [l](http://x) | `a` *b* _c_", "by": SAID})
    shown = markdown_of(mended.report.model_copy(update={"run": hostile}))
    assert r"\# big \<b\>x\</b\> \[l\](http://x) \| \`a\` \*b\* \_c\_" in shown
    assert "<script>" not in shown.split("## What the agent said")[0]


def test_a_fence_cannot_be_ended_by_what_it_holds(mended: Told) -> None:
    claim = mended.report.claims[0].model_copy(update={"said": "```\n# proven\n````\n"})
    text = markdown_of(mended.report.model_copy(update={"claims": (claim,)}))
    assert "`````text\n```\n# proven\n````\n`````" in text


def test_nothing_is_told_from_evidence_that_was_changed(mended: Told) -> None:
    app = mended.stage.world.app
    patch = app.artifacts.path(mended.report.changes[0].patch)
    before = patch.read_bytes()
    patch.chmod(0o600)
    patch.write_bytes(before.replace(b"left + right", b"harmless"))
    try:
        report = json.loads(mended.becket("runs", "report", mended.run.run_id, "--json"))
    finally:
        patch.write_bytes(before)
    assert report["changes"][0]["diff"] == ""
    assert [line for line in report["lost"] if "is gone, or was changed" in line]


def test_the_keys_of_the_json_are_those_of_the_model(mended: Told) -> None:
    """Programs read these keys: a change here is a change of `format`."""
    found = json.loads(mended.becket("runs", "report", mended.run.run_id, "--json"))
    assert sorted(found) == [
        "approvals", "calls", "changes", "claims", "conditions", "crossings", "culprits", "effects", "end", "format",
        "gates", "guards", "handoffs", "holdouts", "lost", "made_at", "parts", "phases", "proofs", "receipts", "run",
        "spend", "trust",
    ]  # fmt: skip
    assert found["format"] == 1
    assert Report.model_validate(found).gates == mended.report.gates


def test_runs_report_writes_files_and_prints_markdown_otherwise(mended: Told, tmp_path: Path) -> None:
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    assert mended.becket("runs", "report", mended.run.run_id, "--html", str(page), "--md", str(text)) == ""
    assert page.read_text().startswith("<!doctype html>")
    assert "## Crossing proof" in text.read_text()
    assert "## Crossing proof" in mended.becket("runs", "report", mended.run.run_id[:20])


def test_runs_show_tells_gates_summary_crossing_culprit_and_diff(mended: Told) -> None:
    text = mended.becket("runs", "show", mended.run.run_id, "--all")
    for said in (
        "base fast red", "3 tests, 1 failing", "FAIL tests/test_calc.py::test_add", "crossing  crossed",
        "failed on parent", "passed on child", "make add faster", "+    return left + right", "receipts",
    ):  # fmt: skip
        assert said in text, text
    assert "\x1b" not in text


def test_runs_show_tells_why_the_guard_refused(cheated: Told) -> None:
    text = cheated.becket("runs", "show", cheated.run.run_id, "--all")
    assert "guard  candidate." in text
    assert "tests/test_calc.py:" in text


def test_runs_show_and_the_proposal_tell_the_class(mended: Told) -> None:
    text = mended.becket("runs", "show", mended.run.run_id, "--all")
    assert "guard  candidate.guard_ok, candidate.plain" in text
    assert "plain: nothing but logic" in text
    assert mended.run.detail["class"] == "plain"


def test_an_ended_run_that_judged_a_commit_leaves_its_report(tmp_path: Path) -> None:
    stage = Mending(tmp_path)

    async def story() -> Run:
        app = stage.world.app
        run = await stage.world.start("mend")
        await stage.world._join()
        for run_id, segment in await stage.world.store.startable():
            await app.engine.advance(run_id, segment)
        reports = Reports(app)
        await reports.look()
        first = [path.stat().st_mtime_ns for path in written(app.state, run.run_id)]
        await reports.look()  # nothing follows it yet, so it is seen again, and left alone
        assert [path.stat().st_mtime_ns for path in written(app.state, run.run_id)] == first
        await app.triggers.follow()
        return run

    run = asyncio.run(story())
    folder = folder_of(stage.world.state)
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{ending}" for name in (run.run_id, "latest") for ending in ("html", "md", "json")
    }
    assert json.loads((folder / "latest.json").read_text())["run"]["status"] == "completed"
    assert {path.stat().st_mode & 0o77 for path in folder.iterdir()} == {0}
