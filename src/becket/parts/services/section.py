"""Its key of becket.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.config import Names, Section, unshared
from becket.kernel.contract.naming import PlaceBelow, UrlPath
from becket.kernel.contract.spec import Name, Text
from becket.kernel.contract.variables import Variables, WithEnvFile

ServiceName = Annotated[str, Names("services", "unknown-service")]


class HealthConfig(Record):
    url: UrlPath = "/health"
    samples: int = Field(default=5, ge=1, le=1000)
    soak: Duration = 10.0


class BuildConfig(Variables):
    """How a service is built; a text is the command alone."""

    run: Text

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Json) -> Json:
        return {"run": value} if isinstance(value, str) else value


class ServiceConfig(WithEnvFile):
    start: Text
    build: BuildConfig | None = None
    stop: Text | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    health: HealthConfig = HealthConfig()
    shared: tuple[PlaceBelow, ...] = ()
    migrates: bool = False


def _with_ports_of_their_own(services: dict[str, ServiceConfig]) -> dict[str, ServiceConfig]:
    unshared(services, "services", "port")
    return services


SERVICES: Section[dict[str, ServiceConfig]] = Section(
    Annotated[dict[Name, ServiceConfig], AfterValidator(_with_ports_of_their_own)], dict, committed=True
)
