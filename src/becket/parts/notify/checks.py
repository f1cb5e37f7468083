"""What the doctor looks at: is the command there?"""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.checks.programs import missing_program
from becket.parts.notify.section import NOTIFY

NONE = "no command is told of alarms, handoffs and questions"
THERE = "the command that is told of alarms, handoffs and questions is there"


def notify(exam: Exam) -> Iterator[Diagnosis]:
    if exam.config is None:
        return
    found = exam.config.section(NOTIFY)
    missing = tuple(missing_program(exam, exam.config, "notify", found.command)) if found else ()
    yield from (diagnosis.model_copy(update={"name": "notify"}) for diagnosis in missing)
    if not missing:
        yield Diagnosis(name="notify", level=Level.ok, what=THERE if found else NONE)
