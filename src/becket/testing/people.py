"""Somebody who asks."""

from __future__ import annotations

from becket.kernel.contract.caller import Caller, Role, Via


def person(name: str, role: Role = "owner", via: Via = Via.command_line) -> Caller:
    return Caller(name=name, role=role, via=via)
