"""A part that Becket knows nothing of is installed, used and removed without touching a line of it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_worlds import postgres_of

pytestmark = pytest.mark.slow

TIDE = Path(__file__).parents[1] / "strangers" / "tide"
CONFIG = "version: 1\ntide: {height: 7, buoy: redbuoy4711x}\n"


class House:
    """A repository, and a `becket` that finds the part, or does not."""

    def __init__(self, root: Path, installed: Path) -> None:
        self.root = root
        self.installed = installed
        root.mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run([*git, "init", "--quiet", "-b", "main", "."], cwd=root, check=True)
        self.config = CONFIG
        self.write(CONFIG)
        subprocess.run([*git, "add", "-A"], cwd=root, check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "begin"], cwd=root, check=True)

    def write(self, config: str) -> None:
        (self.root / "becket.yaml").write_text(config)

    def becket(self, *arguments: str, with_part: bool = True) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if with_part:
            env["PYTHONPATH"] = str(self.installed)
        command = [sys.executable, "-m", "becket.cli", *arguments]
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, check=False, timeout=120)

    def asked(self, *arguments: str) -> Any:
        done = self.becket(*arguments, "--json")
        return json.loads(done.stdout or done.stderr)

    def run(self, *arguments: str) -> Any:
        return self.asked("run", *arguments)["run"]

    @property
    def outbox(self) -> Path:
        return self.root / ".git" / "becket" / "outbox"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(place), str(TIDE)], check=True)
    return place


@pytest.fixture
def house(tmp_path: Path, installed: Path) -> House:
    return House(tmp_path / "repo", installed)


def test_it_is_listed_with_where_it_comes_from(house: House) -> None:
    found = house.asked("parts", "list")
    tide = next(part for part in found if part["part"] == "tide")
    assert (tide["from"], tide["needs"]) == ("becket-tide 1.0", ["notify"])
    assert (tide["sections"], tide["loops"]) == (["tide"], ["tide"])


def test_its_verb_reads_its_section_by_its_port(house: House) -> None:
    done = house.becket("tide")
    assert (done.stdout, done.returncode) == ("the water stands at 7\n", 0), done.stderr
    assert "tide       Say how high the tide is." in house.becket("--help").stdout


def test_its_section_is_read_as_strictly_as_every_other(house: House) -> None:
    (house.root / "becket.yaml").write_text("version: 1\ntide: {height: 21}\n")
    done = house.becket("tide")
    assert done.returncode == 2
    assert "becket.yaml:2:16" in done.stderr
    (house.root / "becket.yaml").write_text("version: 1\ntide: {hight: 2}\n")
    assert "`height`" in house.becket("tide").stderr


def test_its_loop_runs_its_effect_passes_the_door_and_its_verifier_decides(house: House) -> None:
    run = house.run("tide")
    assert run["status"] == "completed", run
    assert (house.outbox / "mark").read_text() == "7"
    effects = house.asked("runs", "show", run["run_id"])
    assert [effect["call"]["name"] for effect in effects["effects"]] == ["tide.mark"]
    (house.root / "becket.yaml").write_text("version: 1\ntide: {height: 2}\n")
    low = house.run("tide", "--subject", "low water")
    assert (low["status"], low["reason"]) == ("ready_for_handoff", "tide.low")


def test_its_secret_is_never_shown(house: House) -> None:
    (house.root / ".becket/loops").mkdir(parents=True)
    loop = (
        "version: 1\nloop_id: tell\ngoal: g\ntrigger: [{manual: {}}]\nmax_iterations: 1\ndeadline: 1m\n"
        "stop_conditions: [said.pass]\nphases: {verify: {objective: o, verifiers: "
        "[{id: said, run: 'echo redbuoy4711x'}]}}\n"
    )
    (house.root / ".becket/loops/tell.yaml").write_text(loop)
    run = house.run("tell")
    shown = house.becket("runs", "show", run["run_id"], "--log", "said")
    assert "redbuoy4711x" not in shown.stdout
    assert "redacted" in shown.stdout


def test_it_finds_its_table_again_after_it_was_removed(house: House) -> None:
    _keeps_its_table(house)


def test_its_table_is_kept_on_postgres_too(house: House, request: pytest.FixtureRequest) -> None:
    house.config += f"database: {postgres_of(request.config).fresh_database()}\n"
    _keeps_its_table(house)


def _keeps_its_table(house: House) -> None:
    house.write(house.config)
    assert house.asked("tide") == {"height": 7, "before": []}
    assert house.run("tide")["status"] == "completed"
    assert house.asked("tide") == {"height": 7, "before": [7]}
    house.write(house.config.replace("tide:", "# tide:"))
    done = house.becket("runs", "list", with_part=False)
    assert (done.returncode, "tide" in done.stdout) == (0, True), done.stderr
    assert house.becket("store", "check", with_part=False).returncode == 0
    house.write(house.config)
    assert house.asked("tide") == {"height": 7, "before": [7]}


def test_tables_of_a_newer_part_are_refused_with_what_to_do(house: House) -> None:
    house.run("tide")
    with closing(sqlite3.connect(house.root / ".git/becket/becket.db")) as journal, journal:
        journal.execute("UPDATE part_versions SET version = 2")
    done = house.becket("tide")
    assert done.returncode != 0
    assert "upgrade that part, or remove it: its tables stay" in done.stderr


def test_its_evidence_stands_in_every_report(house: House) -> None:
    run_id = house.run("tide")["run_id"]
    page = house.root.parent / "page.html"
    house.becket("runs", "report", run_id, "--html", str(page))
    forms = (("show", run_id, "--all"), ("report", run_id), ("report", run_id, "--json"))
    for told in (page.read_text(), *(house.becket("runs", *form).stdout for form in forms)):
        assert "the water stood at 7" in told
        assert "redbuoy4711x" not in told


def test_the_doctor_asks_its_check(house: House) -> None:
    assert "the water stands at 7" in house.becket("doctor").stdout


def test_its_resident_and_its_chore_live_with_the_daemon(house: House) -> None:
    assert house.becket("up", "--detach").returncode == 0
    try:
        end = time.monotonic() + 60
        while not ((house.outbox / "watched").exists() and (house.outbox / "written").exists()):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        assert house.becket("down").returncode == 0


def test_once_it_is_removed_nothing_of_it_is_known(house: House) -> None:
    done = house.becket("tide", with_part=False)
    assert (done.returncode, "tide" in done.stderr) == (2, True)
    done = house.becket("run", "tide", with_part=False)
    assert done.returncode == 2
    assert "becket.yaml:2:1" in done.stderr, "its section is an unknown key again"


def test_a_part_that_does_not_load_is_named_with_what_to_do(house: House, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    info = broken / "becket_broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: becket-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[becket.parts]\nbroken = nowhere_at_all:PART\n")
    house.installed = broken
    done = house.becket("parts", "list")
    assert done.returncode == 2
    assert "the part broken of becket-broken 1.0 (nowhere_at_all:PART) does not load" in done.stderr
    assert "mend it, or remove becket-broken 1.0" in done.stderr
