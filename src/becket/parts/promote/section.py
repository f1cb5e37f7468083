"""Its key of becket.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from becket.kernel.contract.base import Duration, Record
from becket.kernel.contract.config import Section
from becket.kernel.contract.naming import RemoteName


class RemoteConfig(Record):
    name: RemoteName = "origin"
    fetch: Annotated[Duration, Field(ge=1)] = 30.0
    push: Literal["after_promote", "never"] = "never"


REMOTE: Section[RemoteConfig | None] = Section(RemoteConfig | None, lambda: None)
