"""Examine a machine and a repository: every check by itself, none able to take the others down."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from becket.kernel.checks import (
    configuration,
    containment,
    loops,
    machine,
    refs,
    store,
    toolchains,
    trees,
    words,
)
from becket.kernel.checks.facts import Check, Diagnosis, DoctorFacts, Exam, Level
from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import BecketError

CHECKS: dict[str, Check] = {
    "python": machine.python_version,
    "git": machine.git_version,
    "repository": machine.repository,
    "config": configuration.readable,
    "committed": configuration.committed,
    "variables": configuration.variables,
    "people": configuration.handoff_to,
    "alarms": configuration.alarms,
    "toolchains": toolchains.toolchains,
    "contents": toolchains.contents,
    "sandbox": containment.sandbox,
    "state": machine.state_folder,
    "disk": machine.disk,
    "socket": machine.socket_path,
    "inotify": machine.inotify,
    "database": store.database,
    "daemons": store.daemons,
    "clock": store.clock,
    "locks": store.locks,
    "refs": refs.refs,
    "tree": trees.resident,
    "loops": loops.lint,
}

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def examine(
    facts: DoctorFacts, only: Collection[str] | None = None, of_parts: Mapping[str, Check] = MappingProxyType({})
) -> tuple[Diagnosis, ...]:
    """Every check's diagnoses, or those of some checks, in a fixed order; those of parts come last."""
    checks = {**CHECKS, **of_parts}
    exam, chosen = Exam(facts), [(name, check) for name, check in checks.items() if only is None or name in only]
    return tuple(_redacted(found) for name, check in chosen for found in _isolated(name, check, exam))


def exit_code(diagnoses: Iterable[Diagnosis]) -> int:
    """2 where there is a becket.yaml that cannot be used: so ends every other verb there."""
    wrong = [found for found in diagnoses if found.level is Level.error]
    unusable = any(found.name == "config" and found.what != words.CONFIG_NONE for found in wrong)
    return 2 if unusable else int(bool(wrong))


def to_json(diagnoses: Iterable[Diagnosis]) -> Json:
    """What `becket doctor --json` prints."""
    found = tuple(diagnoses)
    return {
        "ok": exit_code(found) == 0,
        "errors": sum(item.level is Level.error for item in found),
        "warnings": sum(item.level is Level.warn for item in found),
        "diagnoses": [item.model_dump(mode="json", exclude={"agent"}) for item in found],
        "agents": [item.agent.model_dump(mode="json") for item in found if item.agent is not None],
    }


def _isolated(name: str, check: Check, exam: Exam) -> tuple[Diagnosis, ...]:
    try:
        found = tuple(check(exam))
        if stray := [item for item in found if not isinstance(item, Diagnosis)]:
            raise TypeError(f"it says {stray[0]!r:.100}, which is no Diagnosis")
        return found
    except BecketError as error:  # the message is the advice
        return (Diagnosis(name=name, level=Level.error, what=str(error)),)
    except Exception as error:  # one broken check must not hide what the others found
        what = words.CHECK_FAILED.format(kind=type(error).__name__, why=error)
        return (Diagnosis(name=name, level=Level.error, what=what, mend=words.CHECK_FAILED_MEND),)


def _redacted(found: Diagnosis) -> Diagnosis:
    """A database URL in an error message carries a password (L25)."""
    hidden = {
        field: _CREDENTIALS.sub("***", text) for field in ("what", "mend", "where") if (text := getattr(found, field))
    }
    return found.model_copy(update=hidden)
