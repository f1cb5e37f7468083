"""A part that is wrong is named, with where it comes from and what to do; nothing is taken from anybody in silence."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from becket.app import errands, store_desk
from becket.app.compose import App
from becket.app.errands import PartChore, PartResident, do_once
from becket.app.parts import brought_tables, built_in_loops, installed
from becket.app.registry import load_registry
from becket.app.secrets import secrets_of
from becket.app.sections import config_model
from becket.app.watchdog import watched_in
from becket.cli.front import overview, run
from becket.cli.verbs import all_verbs
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import BecketError, PartFailed, StoreDamaged, UnfitTables, UsageError
from becket.kernel.contract.part import Part
from becket.parts.doctor import doctor
from becket.testing.world import World

Bring = Callable[..., None]

HEAD = "from becket.kernel.contract.part import *\n"


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """`bring("tide", "Part(name='tide')", more="...")`: one that is installed for this test."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    made: list[str] = []

    def one(name: str, part: str, more: str = "", called: str = "") -> None:
        module = f"stranger_{called or name}"
        (place / f"{module}.py").write_text(f"{HEAD}{more}\nPART = {part}\n")
        info = place / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[becket.parts]\n{name} = {module}:PART\n")
        made.append(module)
        forget()

    yield one
    for module in made:
        sys.modules.pop(module, None)
    monkeypatch.undo()
    forget()


def forget() -> None:
    installed.cache_clear()
    config_model.cache_clear()


ACTION = """
from becket.kernel.contract.action import ActionDef, Conclusion, Result, Verdict, VerifierDef
from becket.kernel.contract.base import Record
class None_(Record): pass
async def go(context, params): return Result()
async def look(context, params): return Verdict(Conclusion.passed, {})
ACTIONS = (ActionDef(name="NAME", summary="x", run=go, params=None_),)
VERIFIERS = (VerifierDef("NAME", "x", look, None_),)
"""
EFFECT = """
from becket.kernel.contract.effect import EffectClass
from becket.kernel.contract.process import Processes
from becket.kernel.contract.spec import Autonomy
class Post:
    name, class_, needs, timeout = "http.post", EffectClass.repeatable, Autonomy.observe, 1.0
def effects(app): return (Post(),)
def ports(app): return {Processes: lambda: None}
"""


@pytest.mark.parametrize(
    ("part", "more", "told"),
    [
        ("1", "raise OSError('boom')", r"the part odd of stranger_odd 1.0 .*OSError: boom; mend it, or remove"),
        ("1", "raise SystemExit('away')", "the part odd of stranger_odd 1.0 .*SystemExit: away"),
        ("1", "", "is 1, not the Part of that name; mend it, or remove stranger_odd 1.0"),
        ("Part(name='other')", "", "not the Part of that name"),
        ("Part(name='odd', needs=('gates'))", "", "`needs` of a Part must be a tuple of str, such as"),
        ("Part(name='odd', verbs=(Verb('a', 'b:c', 'd')))", "", "`verbs` of a Part must be a tuple of Verb"),
        ("Part(name='odd', sections=('a',))", "", "`sections` of a Part must be a mapping"),
        ("Part(name='odd', tables=None)", "", "`tables` of a Part must be a text"),
        ("Part(name='odd', needs=('gone',))", "", "needs the part gone, .*; install what brings gone, or remove"),
        ("Part(name='odd', needs=('odd',))", "", "odd -> odd need each other"),
    ],
)
def test_one_that_does_not_load_is_named_with_its_distribution(bring: Bring, part: str, more: str, told: str) -> None:
    bring("odd", part, more)
    with pytest.raises(UsageError, match=told):
        installed()


def test_a_part_named_as_another_replaces_nobody(bring: Bring) -> None:
    bring("gates", "Part(name='gates')")
    with pytest.raises(UsageError, match=r"two distributions bring a part named gates: becket .* and stranger_gates 1"):
        installed()


@pytest.mark.parametrize(
    ("field", "kind", "name"), [("actions", "action", "gate.run"), ("verifiers", "verifier", "tree_clean")]
)
def test_no_action_and_no_verifier_of_becket_is_replaced(bring: Bring, field: str, kind: str, name: str) -> None:
    bring("aaa", f"Part(name='aaa', {field}=('stranger_aaa:{field.upper()}',))", ACTION.replace("NAME", name))
    with pytest.raises(UsageError, match=f"the part aaa brings the {kind} {name}, which Becket has itself"):
        load_registry(())


def test_two_strangers_with_one_action_are_both_named(bring: Bring) -> None:
    for name in ("one", "two"):
        bring(name, f"Part(name='{name}', actions=('stranger_{name}:ACTIONS',))", ACTION.replace("NAME", "same.act"))
    told = r"the parts (one and two|two and one) both bring the action same\.act; .* stranger_one 1\.0"
    with pytest.raises(UsageError, match=told):
        load_registry(())


def test_no_effect_and_no_port_of_becket_is_replaced(bring: Bring, tmp_path: Path) -> None:
    app = App.open(World(tmp_path / "house").state)
    bring("out", "Part(name='out', effects='stranger_out:effects', ports='stranger_out:ports')", EFFECT)
    with pytest.raises(UsageError, match=r"the part out brings the effect http\.post, which Becket has itself"):
        _ = app.effects
    with pytest.raises(UsageError, match="the part out brings the port Processes, which Becket has itself"):
        app.port(int)
    asyncio.run(app.store.close())


@pytest.mark.parametrize("name", ["run", "doctor"])
def test_no_verb_of_becket_is_replaced(bring: Bring, name: str) -> None:
    bring("loud", f"Part(name='loud', verbs=(Verb('{name}', 'stranger_loud:go', 'Go.', OPERATIONS, 1),))")
    with pytest.raises(UsageError, match=f"the part loud brings the verb {name}, which Becket has itself"):
        all_verbs()


def test_no_check_of_the_doctor_is_replaced(bring: Bring) -> None:
    bring("calm", "Part(name='calm', checks={'sandbox': 'stranger_calm:look'})")
    with pytest.raises(UsageError, match="the part calm brings the check sandbox, which Becket has itself"):
        doctor.of_parts()


def test_no_loop_of_becket_is_replaced_and_one_that_is_not_there_is_named(bring: Bring) -> None:
    bring("lost", "Part(name='lost', loops={'lost': 'stranger_nowhere'})")
    with pytest.raises(UsageError, match=r"the part lost has no loop\.yaml that can be read in stranger_nowhere"):
        built_in_loops()
    bring("heals", "Part(name='heals', loops={'heal': 'becket.parts.heal'})")
    with pytest.raises(UsageError, match=r"the part (lost|heals) "):
        built_in_loops()


@pytest.mark.parametrize("table", ["runs", "agent_calls", "part_versions"])
def test_no_table_of_the_journal_is_a_part_s(bring: Bring, table: str) -> None:
    name = table.split("_", maxsplit=1)[0]
    more = f"""
import sqlalchemy as sa
from becket.kernel.contract.tables import Tables
METADATA = sa.MetaData()
sa.Table("{table}", METADATA, sa.Column("x", sa.Integer))
TABLES = Tables(METADATA)
"""
    bring(name, f"Part(name='{name}', tables='stranger_{name}:TABLES')", more)
    with pytest.raises(UsageError, match=f"the part {name} brings the table {table}, .*remove stranger_{name} 1.0"):
        brought_tables()


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("autonomy", "wants `autonomy` of becket.yaml, which is taken by Becket itself"),
        ("odd", "has no default for its section `odd` of becket.yaml: height: Field required; give every key one"),
    ],
)
def test_a_section_that_cannot_be_is_told(bring: Bring, section: str, told: str) -> None:
    more = "from becket.kernel.contract.base import Record\nclass Tide(Record): height: int"
    bring("odd", f"Part(name='odd', sections={{'{section}': 'stranger_odd:Tide'}})", more)
    with pytest.raises(UsageError, match=told):
        config_model()


def test_what_a_part_s_function_fails_with_is_its_own_fault(bring: Bring, tmp_path: Path) -> None:
    bring("vault", "Part(name='vault', secrets='stranger_vault:s')", "def s(*given): raise LookupError('no key')")
    told = r"the part vault failed \(stranger_vault:s\): LookupError: no key; mend it, or remove stranger_vault 1\.0"
    with pytest.raises(PartFailed, match=told):
        secrets_of(Config(version=1), tmp_path)


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("def go() -> None: raise KeyError('x')", 1, "the verb go (stranger_loud:go) failed: KeyError: 'x'"),
        ("", 2, "the verb go (stranger_loud:go) failed: AttributeError"),
    ],
)
def test_a_verb_that_fails_is_no_fault_of_becket(
    bring: Bring, capsys: pytest.CaptureFixture[str], more: str, code: int, said: str
) -> None:
    bring("loud", "Part(name='loud', verbs=(Verb('go', 'stranger_loud:go', 'Go.', OPERATIONS),))", more)
    assert run(["go"]) == code
    told = capsys.readouterr().err
    assert said in told
    assert "internal error" not in told


def test_a_verb_without_a_rank_moves_no_section_of_the_help(bring: Bring) -> None:
    before = [line for line in overview().splitlines() if line.endswith(":")]
    bring("loud", "Part(name='loud', verbs=(Verb('go', 'stranger_loud:go', 'Go.', OPERATIONS),))")
    assert [line for line in overview().splitlines() if line.endswith(":")] == before


LOOKS = """
import time
def falls(exam): raise LookupError("no gauge")
def hangs(exam): time.sleep(60)
def talks(exam): return ["fine"]
def ends(exam): raise SystemExit(3)
"""


def test_a_check_that_fails_or_hangs_is_told_in_its_place(
    bring: Bring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "PATIENCE", 0.2)
    names = ("falls", "hangs", "talks", "ends", "gone")
    bring("odd", f"Part(name='odd', checks={{n: 'stranger_odd:' + n for n in {names!r}}})", LOOKS)
    found = {one.name: one.what for one in doctor.doctor.examine(doctor.facts(tmp_path), names, doctor.of_parts())}
    assert "the part odd failed (stranger_odd:falls): LookupError: no gauge; mend it, or remove" in found["falls"]
    assert "the check of the part odd (stranger_odd:hangs) did not answer within 0.2 s" in found["hangs"]
    assert "'fine', which is no Diagnosis" in found["talks"]
    assert "SystemExit: 3" in found["ends"]
    assert "the part odd does not load (stranger_odd:gone)" in found["gone"]


ERRANDS = """
import asyncio
from becket.kernel.contract.errors import StoreDamaged
done = []
async def hangs(app):
    done.append("begun")
    await asyncio.Event().wait()
async def falls(app): raise LookupError("no gauge")
async def works(app): done.append("works")
async def damaged(app): raise StoreDamaged("gone")
"""


def test_a_chore_that_hangs_holds_nobody_up_and_is_not_begun_twice(bring: Bring) -> None:
    bring("odd", "Part(name='odd')", ERRANDS)
    (part,) = (one for one in installed() if one.name == "odd")

    async def story() -> None:
        chore = PartChore(None, part, "stranger_odd:hangs")  # type: ignore[arg-type]  # it looks at no app
        for _ in range(3):
            await asyncio.wait_for(chore(), 5)
            await asyncio.sleep(0)
        await asyncio.wait_for(chore.close(), 5)

    asyncio.run(story())
    assert sys.modules["stranger_odd"].done == ["begun"]


def test_what_fails_in_the_daemon_is_told_by_its_name(bring: Bring, caplog: pytest.LogCaptureFixture) -> None:
    bring("odd", "Part(name='odd')", ERRANDS)
    (part,) = (one for one in installed() if one.name == "odd")
    failures: list[BecketError] = []

    async def story() -> None:
        for name in ("falls", "damaged"):
            chore = PartChore(None, part, f"stranger_odd:{name}")  # type: ignore[arg-type]  # as above
            chore.fail = failures.append
            await chore()
            await asyncio.sleep(0)
            await chore.close()

    asyncio.run(story())
    assert "the chore stranger_odd:falls of the part odd: " in caplog.text
    assert [type(one) for one in failures] == [StoreDamaged], "what concerns the journal ends the engine"
    resident = PartResident(None, part, "stranger_odd:falls")  # type: ignore[arg-type]  # as above
    assert str(resident) == "the resident stranger_odd:falls of the part odd"


def test_at_the_end_of_a_command_a_chore_that_fails_or_hangs_costs_nothing(
    bring: Bring, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("hangs", "falls", "works")
    bring("odd", f"Part(name='odd', chores=tuple(Chore('stranger_odd:' + n, 1.0) for n in {names!r}))", ERRANDS)
    (part,) = (one for one in installed() if one.name == "odd")
    monkeypatch.setattr(errands, "DRIVER_PATIENCE", 0.1)
    monkeypatch.setattr(errands, "chores", lambda: ((part, chore) for chore in part.chores))
    with caplog.at_level(logging.ERROR):
        asyncio.run(do_once(None))  # type: ignore[arg-type]  # as above
    assert sys.modules["stranger_odd"].done == ["begun", "works"]
    assert "did not end within 0.1 s" in caplog.text
    assert "LookupError: no gauge" in caplog.text


def test_a_part_is_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="`chores` of a Part must be a tuple of Chore"):
        Part(name="odd", chores=(("a:b", 1.0),))  # type: ignore[arg-type]  # that is the fault


def test_work_of_a_part_in_the_watchdog_that_fails_takes_no_other_with_it(
    bring: Bring, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = World(tmp_path / "house").state
    before = [type(one) for one in watched_in(state)]
    bring("aaa", "Part(name='aaa', watched='stranger_aaa:begin')", "def begin(state): raise LookupError('no gauge')")
    assert [type(one) for one in watched_in(state)] == before
    assert "the part aaa failed (stranger_aaa:begin): LookupError: no gauge" in caplog.text


TABLES = """
import sqlalchemy as sa
from becket.kernel.contract.tables import Tables
METADATA = sa.MetaData()
sa.Table("tide_marks", METADATA, sa.Column("x", sa.Integer))
def falls(conn): raise LookupError("no gauge")
TABLES, LATER = Tables(METADATA), Tables(METADATA, (falls,))
"""


def test_a_part_whose_tables_do_not_fit_makes_no_journal_untrustworthy(bring: Bring, tmp_path: Path) -> None:
    bring("tide", "Part(name='tide', tables='stranger_tide:TABLES')", TABLES)
    state = World(tmp_path / "house", store="sqlite").state
    assert asyncio.run(store_desk.check(state)).ok
    forget()
    sys.modules["stranger_tide"].PART = Part(name="tide", tables="stranger_tide:LATER")
    with pytest.raises(UnfitTables, match=r"from version 1 to 2 .*LookupError: no gauge\. Nothing was changed"):
        asyncio.run(store_desk.check(state))
