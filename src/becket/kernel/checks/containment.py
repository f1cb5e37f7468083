"""Check of the sandbox: which one will really be used, what it holds, and what that allows."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.configuration import FILE
from becket.kernel.checks.facts import Diagnosis, Exam, Level, SandboxFact
from becket.kernel.contract.config import Config
from becket.kernel.contract.process import SandboxKind
from becket.kernel.contract.spec import Autonomy

_PARTS = ("files", "processes", "network")


def sandbox(exam: Exam) -> Iterator[Diagnosis]:
    config = exam.config or Config(version=1)
    users: dict[str, str] = {config.sandbox.use: "sandbox"}
    for name, agent in config.agents.items():
        users.setdefault(config.sandbox_of(agent), f"agents.{name}.sandbox")
    for choice, user in users.items():
        used = used_for(exam, choice)
        if used is None:
            yield _unavailable(exam, user, choice)
        else:
            yield _verdict(config, user, used)


def cap(config: Config, used: SandboxFact) -> Autonomy:
    """How far loops may go: above `propose` only with all three parts held, or given up in so many words."""
    open_parts = set(used.holds.missing) - set(config.sandbox.without)
    return Autonomy.propose if open_parts else Autonomy.release


def used_for(exam: Exam, choice: str) -> SandboxFact | None:
    """`auto` takes the best there is; `none` always is."""
    usable = [fact for fact in exam.facts.sandboxes if fact.available]
    if choice == "auto":
        return next(iter(usable), None)
    return next((fact for fact in usable if fact.holds.kind == choice), None)


def _unavailable(exam: Exam, user: str, choice: str) -> Diagnosis:
    reasons = [fact.reason for fact in exam.facts.sandboxes if choice in ("auto", fact.holds.kind) and fact.reason]
    what = words.SANDBOX_NONE.format(user=user, choice=choice, why="; ".join(reasons) or words.SANDBOX_UNKNOWN)
    mend = words.install("bwrap") if choice in ("auto", SandboxKind.bwrap) else words.SANDBOX_AUTO_MEND
    return Diagnosis(name="sandbox", level=Level.error, what=what, mend=mend, where=FILE)


def _verdict(config: Config, user: str, used: SandboxFact) -> Diagnosis:
    holds, most = used.holds, cap(config, used)
    held = ", ".join(part for part in _PARTS if part not in holds.missing) or words.NOTHING
    open_parts = [part for part in holds.missing if part not in config.sandbox.without]
    what = words.SANDBOX_USED.format(user=user, kind=holds.kind, held=held, most=most)
    if accepted := [part for part in holds.missing if part in config.sandbox.without]:
        what += words.SANDBOX_ACCEPTED.format(parts=", ".join(accepted))
    if not most.allows(config.autonomy):
        what += words.SANDBOX_CAPS.format(asked=config.autonomy, most=most, parts=", ".join(open_parts))
        mend = _mend(holds.kind, [*config.sandbox.without, *open_parts])
        return Diagnosis(name="sandbox", level=Level.error, what=what, mend=mend, where=FILE)
    if open_parts:
        what += words.SANDBOX_OPEN.format(parts=", ".join(open_parts))
        mend = _mend(holds.kind, [*config.sandbox.without, *open_parts])
        return Diagnosis(name="sandbox", level=Level.warn, what=what, mend=mend, where=FILE)
    return Diagnosis(name="sandbox", level=Level.ok, what=what)


def _mend(kind: SandboxKind, parts: list[str]) -> str:
    wanted = ", ".join(dict.fromkeys(parts))
    return words.SANDBOX_MEND.format(install=words.install("bwrap"), kind=kind, parts=wanted)
