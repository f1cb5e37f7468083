"""What the doctor looks at: who reaches the page, and whether it is there."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.parts.front.section import WebConfig

OPEN = "the page is at {host}, which others reach, and passwords and sessions can be read on the way"
PROXY = "put a reverse proxy with TLS in front: `web: {host: 127.0.0.1, names: [becket.example.org], proxies: [...]}`"


def web(exam: Exam) -> Iterator[Diagnosis]:
    if exam.config is None:
        return
    found = exam.config.section(WebConfig)
    if not found.enabled:
        yield Diagnosis(name="web", level=Level.ok, what="the page is off; `web: {enabled: true}` serves it")
    elif not found.is_local:
        yield Diagnosis(name="web", level=Level.warn, what=OPEN.format(host=found.host), mend=PROXY)
    else:
        yield Diagnosis(name="web", level=Level.ok, what=f"the page is served at {found.host}, for this machine alone")
