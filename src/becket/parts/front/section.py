"""Its key of becket.yaml."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, model_validator

from becket.kernel.contract.base import Duration, KeyProblem, Record
from becket.kernel.contract.config import Config, unshared
from becket.kernel.contract.spec import EventName, Name, Text

SHORTEST_SECRET = 16


class HookConfig(Record):
    """A place where signed events come in: `POST /hooks/NAME` becomes the event `event`."""

    secret: str = Field(description="What signs the requests: `${NAME}` of the environment.")
    event: EventName = Field(description="The event that loops hear.")

    @model_validator(mode="after")
    def _cannot_be_guessed(self) -> HookConfig:
        if len(self.secret) < SHORTEST_SECRET:
            fix = "write `${NAME}` and set NAME to 16 random characters or more"
            raise KeyProblem("the secret of a hook is too short to be one", "secret", fix=fix)
        return self


class WebConfig(Record):
    """The page that people look at."""

    enabled: bool = Field(default=False, description="Whether `becket up` serves it.")
    host: Text = Field(default="127.0.0.1", description="The address to listen at. Others than loopback need users.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Without it a free one, the same every time.")
    names: tuple[Text, ...] = Field(default=(), description="Host names by which it is reached besides, with a port.")
    proxies: tuple[Text, ...] = Field(default=(), description="Addresses of reverse proxies whose headers count.")
    session: Duration = Field(default=14 * 86400.0, description="How long a login lasts.")
    hooks: dict[Name, HookConfig] = Field(default_factory=dict, description="Where signed events come in.")

    @model_validator(mode="after")
    def _is_an_address(self) -> WebConfig:
        for key, written in (("host", (self.host,)), ("proxies", self.proxies)):
            for one in written:
                try:
                    ipaddress.ip_address(one)
                except ValueError:
                    fix = "write it like 127.0.0.1 or ::1"
                    raise KeyProblem(f"`{key}` has {one[:60]!r}, which is no address", key, fix=fix) from None
        return self

    @model_validator(mode="after")
    def _sign_for_one_hook(self) -> WebConfig:
        unshared(self.hooks, "hooks", "secret")
        return self

    @property
    def is_local(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback


def secrets(config: Config, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    return {f"web.hooks.{name}.secret": hook.secret for name, hook in config.section(WebConfig).hooks.items()}
