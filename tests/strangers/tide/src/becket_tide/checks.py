"""What the doctor looks at."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket_tide.section import TideConfig


def tide(exam: Exam) -> Iterator[Diagnosis]:
    if exam.config is not None:
        height = exam.config.section(TideConfig).height
        yield Diagnosis(name="tide", level=Level.ok if height > 5 else Level.warn, what=f"the water stands at {height}")
