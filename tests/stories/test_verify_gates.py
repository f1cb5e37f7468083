"""`becket verify` of runs with gates: the proof hangs together, is repeated, and no change to it goes unseen."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from heal_report_stage import Mending
from verify_stage import Copy, bad

from becket.app.record.verify import verify_run
from becket.kernel.contract.base import canonical
from becket.kernel.contract.receipt import Receipt
from becket.testing.world import World

GREEN_GATE = """
version: 1
gates: {fast: [{name: unit, run: "true"}]}
sandbox: {use: none, without: [files, processes, network]}
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    stage = Mending(tmp_path_factory.mktemp("mended"), store="sqlite")

    async def story() -> str:
        _, run = await stage.mend()
        await stage.world.store.close()
        return run.run_id

    return Copy(stage.world.root, asyncio.run(story()))


@pytest.fixture
def copy(original: Copy, tmp_path: Path) -> Copy:
    shutil.copytree(original.root, tmp_path / "repo", symlinks=True)
    return Copy(tmp_path / "repo", original.run_id)


def test_an_untouched_proof_holds_and_its_gate_steps_repeat(copy: Copy) -> None:
    found = copy.verify(rerun=True)
    assert bad(found) == []
    seen = [item.what.split()[0] for item in found.checks]
    assert {"verdict", "crossing", "proof"} <= set(seen)
    again = [item.detail for item in found.checks if item.what.startswith("again ")]
    assert again == [
        "discover.bf: exit code 1 then, 1 now",
        "verify.cross: exit code 0 then, 0 now",
        "verify.clean: exit code 0 then, 0 now",
    ]
    assert not list((copy.root / ".git/becket").glob("verify-*"))


def forge(copy: Copy, kind: str, **body: object) -> None:
    """A receipt of this kind says something else, under the name that goes with it."""
    for row in copy.all("SELECT * FROM receipts"):
        receipt = Receipt.model_validate_json(row["receipt"])
        if receipt.kind == kind:
            forged = receipt.model_copy(update={"body": receipt.body | body})
            copy.sql(
                "UPDATE receipts SET digest = :digest, receipt = :receipt WHERE number = :number",
                digest=forged.digest, receipt=canonical(forged.model_dump(mode="json")), number=row["number"],
            )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body", "what"),
    [
        ("gate", {"color": "green"}, "verdict"),
        ("gate", {"color": "red"}, "crossing"),
        ("verdict", {"color": "red"}, "proof"),
        ("verdict", {"steps": {}}, "verdict"),
        ("crossing", {"crossings": []}, "crossing"),
        ("proof", {"parts": {"guard": "0" * 64}}, "proof"),
    ],
)
def test_a_forged_part_breaks_the_proof_and_not_only_its_seal(
    kind: str, body: dict[str, object], what: str, copy: Copy
) -> None:
    """L22: a forger who made every seal fit would still have to make the whole proof anew."""
    forge(copy, kind, **body)
    names = {name.split()[0] for name in bad(copy.verify())}
    assert {"receipt", what} <= names, names


def test_a_receipt_that_is_gone_is_missed_by_what_names_it(copy: Copy) -> None:
    copy.sql('DELETE FROM receipts WHERE receipt LIKE \'%"kind":"gate"%\'')
    assert {"receipt", "verdict", "crossing"} <= {name.split()[0] for name in bad(copy.verify())}


def test_nothing_of_a_proof_that_does_not_hold_is_repeated(copy: Copy) -> None:
    """L24: what the tables say is not a command until the records agree."""
    forge(copy, "proof", says="proven", against=["an objection"])
    found = copy.verify(rerun=True)
    assert "nothing was repeated" in next(item.detail for item in found.checks if item.what == "again")


FLAG = """
version: 1
gates:
  fast:
    - {{name: flag, run: "test -e {flag}"}}
sandbox: {{use: none, without: [files, processes, network]}}
"""
LOOP = """
version: 1
loop_id: look
goal: Look.
trigger: [{manual: {}}]
subject: "{branch}@{sha}"
max_iterations: 1
deadline: 1h
stop_conditions: [base.fast_green]
phases:
  discover:
    objective: Look.
    actions:
      - {id: base, uses: git.read_base}
      - {id: bf, uses: gate.run, with: {of: base, gate: fast, at: "{base.sha}", by: "{base.sha}"}}
  verify:
    objective: Nothing to doubt.
    verifiers: [{id: fine, run: "true", in: scratch}]
"""


def test_a_gate_step_that_ends_otherwise_now_is_told(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    world = World(tmp_path)
    world.loop(LOOP)
    world.commit({"becket.yaml": FLAG.format(flag=flag)}, "a gate that looks outside")

    async def story() -> list[str]:
        run = await world.run("look")
        assert not [item for item in await verify_run(world.app, run.run_id, True) if not item.ok]
        flag.unlink()
        return [item.detail for item in await verify_run(world.app, run.run_id, True) if not item.ok]

    assert asyncio.run(story()) == ["discover.bf: exit code 0 then, 1 now"]


def test_a_green_of_another_run_counts_as_far_as_that_runs_own_record_holds(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", store="sqlite")
    world.commit({"becket.yaml": GREEN_GATE}, "a gate")

    async def story() -> tuple[str, str]:
        first, second = await world.run("heal"), await world.run("heal")
        await world.store.close()
        return first.run_id, second.run_id

    first, second = asyncio.run(story())
    copy = Copy(world.root, second)
    assert bad(copy.verify()) == []
    for row in copy.all("SELECT * FROM receipts"):
        receipt = Receipt.model_validate_json(row["receipt"])
        if receipt.kind == "gate":
            changed = receipt.model_copy(update={"tree": "0" * 40})
            copy.sql(
                "UPDATE receipts SET receipt = :receipt WHERE number = :number",
                receipt=canonical(changed.model_dump(mode="json")), number=row["number"],
            )  # fmt: skip
    checks = [item for item in copy.verify().checks if not item.ok]
    assert [item.what.split()[0] for item in checks] == ["verdict"]
    assert f"{first} has no receipt" in checks[0].detail
