"""Its key of becket.yaml."""

from __future__ import annotations

from becket.kernel.contract.base import PositiveDuration, Record
from becket.kernel.contract.config import Section
from becket.kernel.contract.spec import Text


class NotifyConfig(Record):
    """A command of yours that is told of alarms, handoffs and questions: by variables and on standard input."""

    command: Text
    timeout: PositiveDuration = 20.0


NOTIFY: Section[NotifyConfig | None] = Section(NotifyConfig | None, lambda: None, literal=("command",))
