"""Who asks for something, and by which way in. Whoever decides is handed on by name; nothing looks them up again."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from becket.kernel.contract.base import Json, Record

Role = Literal["owner", "approver", "member"]
ROLES: tuple[Role, ...] = ("member", "approver", "owner")
"""Lowest first."""


class Via(StrEnum):
    command_line = "command_line"
    page = "page"
    chat = "chat"
    api = "api"
    forge = "forge"
    becket = "becket"  # nobody asked: a trigger, a clock, another run


class Caller(Record):
    """Somebody who asks, with the role that they have there."""

    name: str
    role: Role
    via: Via

    def told(self) -> dict[str, Json]:
        """For the data of an event."""
        role: dict[str, Json] = {} if self.via is Via.becket else {"role": self.role}
        return {"by": self.name, **role, "via": self.via.value}


def itself(name: str = "becket") -> Caller:
    """Becket, when nobody asked. It has the lowest role: what needs another is for people."""
    return Caller(name=name, role="member", via=Via.becket)


BECKET = itself()
