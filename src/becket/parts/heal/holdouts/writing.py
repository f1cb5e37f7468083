"""Have hold-out checks written: by an agent of its own, at the last proven commit, paid once for all of a run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.agent import RETRYABLE, AgentOutcome
from becket.kernel.contract.base import Record, digest_of
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.template import fill
from becket.kernel.contract.text import fenced
from becket.parts.agents.actions import calling, outage
from becket.parts.agents.actions.calling import AgentTask, Calls, OpenedCheckout
from becket.parts.gates.judging.tree import readable
from becket.parts.gates.reports.folder import ReportFolder
from becket.parts.heal.holdouts.languages import CheckLanguage, language_of
from becket.parts.heal.holdouts.running import Check, Trial, write_whole

checks_written = CrashPoint("holdout.written", "the checks are kept; nobody has tried them yet")

FOLDER = "independent_checks"
"""Where the agent writes, in its own checkout."""

MOST_CHECKS, LARGEST_CHECK, FAILING_LIMIT = 20, 64_000, 8_000
NUMBER = 9
"""Beyond every attempt at a repair: whoever writes checks has a HOME of its own, even where the same agent repairs."""

_WRITTEN = "written.json"
WAITS = "candidate.holdout_waits"
"""What a run waits on while nobody can write them now."""


class WrittenChecks(Record):
    """The checks of one run, as they were written. `about` is what they are for."""

    about: str
    agent: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What is asked for: checks of what was right at `oracle` and these tests say is broken."""

    agent: str
    oracle: str
    failing: tuple[str, ...]
    evidence: str  # what the failing tests said
    languages: tuple[CheckLanguage, ...]

    @property
    def about(self) -> str:
        return digest_of({"oracle": self.oracle, "failing": sorted(self.failing)})


class NoChecksWritten(Exception):
    """No check was written; the text says why. With `until`, it is worth asking again then."""

    def __init__(self, why: str, until: float | None = None) -> None:
        super().__init__(why)
        self.until = until


def kept(context: ActionContext, about: str) -> WrittenChecks | None:
    """What an earlier life or an earlier iteration of this run had written for the same."""
    file = context.folder("holdout") / _WRITTEN
    if not file.exists():
        return None
    found = WrittenChecks.model_validate_json(file.read_text("utf-8"))
    return found if found.about == about else None


async def write(context: ActionContext, wanted: CheckRequest, trial: Trial) -> WrittenChecks:
    """Raises NoChecksWritten, and what a call of an agent raises."""
    await calling.settle_earlier(context)
    desk = CheckWorkspace(context, wanted)
    if not await desk.left_by_an_earlier_life():
        calls = await calling.call(context, AgentTask(wanted.agent, _brief(wanted, trial), desk, NUMBER, heeds=False))
        if not desk.found():
            await desk.close()
            raise _why_none(context, calls)
    checks = [await _kept(context, name, text) for name, text in desk.found()]
    done = WrittenChecks(about=wanted.about, agent=wanted.agent, checks=tuple(checks))
    write_whole(context.folder("holdout") / _WRITTEN, done.model_dump_json())
    checks_written()
    await desk.close()
    return done


def _why_none(context: ActionContext, calls: Calls) -> Exception:
    chosen = calls.chosen
    outcome, reason = chosen.judged.outcome, chosen.judged.reason
    if outcome is AgentOutcome.quota_wait:
        return NoChecksWritten(f"{chosen.agent} has no quota: {reason}", calls.until)
    if outcome is AgentOutcome.model_error:
        again = outage.look_again(context, WAITS, calls.now)
        return NoChecksWritten(f"the model of {chosen.agent} does not work: {reason}", again)
    if outcome in RETRYABLE and context.attempt == 1:
        return calling.failed(chosen)
    return NoChecksWritten(f"{chosen.agent} wrote none: {outcome}: {reason}")


async def _kept(context: ActionContext, name: str, text: bytes) -> Check:
    return Check(name=name, digest=await context.keep(text, f"holdout.{name}"))


@dataclass
class CheckWorkspace:
    """The checkout in which the checks are written. Its work is never made an object of the repository: whoever repairs
    could read it there.
    """

    context: ActionContext
    wanted: CheckRequest
    opened: Workspace | None = field(default=None)

    @property
    def folder(self) -> Path:
        return self.context.folder("holdout-desk")

    async def left_by_an_earlier_life(self) -> bool:
        """Its agent was paid. What it did not finish is found out by the oracle."""
        found = await self.context.port(Git).find_workspace(self.folder)
        self.opened = found if found is not None and found.sha == self.wanted.oracle else None
        return bool(self.found())

    async def open(self) -> OpenedCheckout:
        context, oracle = self.context, self.wanted.oracle
        self.opened = await context.port(Git).open_workspace(self.folder, oracle)
        return OpenedCheckout(self.opened.tree, await readable(context, oracle, self.opened), fresh=True)

    async def changed(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.found())

    async def save(self) -> None:
        """It stays where it is: the next life looks there."""

    async def close(self) -> None:
        await self.context.port(Git).close_workspace(self.folder)

    def found(self) -> list[tuple[str, bytes]]:
        """The checks by their numbers: the first ones, of languages that were asked for, of a size that is one."""
        if self.opened is None or (self.opened.tree / FOLDER).is_symlink():
            return []
        inside = ReportFolder(self.opened.tree)
        names = [path for path in inside.find(f"{FOLDER}/check_*") if language_of(path) in self.wanted.languages]
        texts = [(Path(path).name, inside.read(path)) for path in sorted(names, key=_number)]
        return [(name, text) for name, text in texts if text and len(text) <= LARGEST_CHECK][:MOST_CHECKS]


def _number(path: str) -> tuple[int, str]:
    digits = "".join(letter for letter in Path(path).stem if letter.isdigit())
    return int(digits[:9] or 0), path


def _brief(wanted: CheckRequest, trial: Trial) -> str:
    languages = wanted.languages
    known = {
        "oracle": wanted.oracle[:12],
        "failing": fenced(_evidence(wanted), secrets.token_hex(6), FAILING_LIMIT),
        "folder": FOLDER,
        "ending": languages[0].endings[0],
        "most": str(MOST_CHECKS),
        "languages": "; or ".join(f"It is {language.hint} (`{language.endings[0]}`)" for language in languages) + ".",
        "commands": ", ".join(f"`{trial.shown(language)}`".replace("FOLDER", FOLDER) for language in languages),
    }
    return fill(_prompt(), known.__getitem__)


def _prompt() -> str:
    return (files("becket.parts.heal") / "prompts" / "hold_out.md").read_text("utf-8")


def _evidence(wanted: CheckRequest) -> str:
    return "\n".join(["Failing tests:", *_listed(wanted.failing), "", wanted.evidence])


def _listed(names: Sequence[str]) -> list[str]:
    return [f"- {name}" for name in names[:50]]
