"""The four ways to speak to a model over HTTP. Each reads requests strictly and writes replies and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from becket.testing.model.exchange import Frame, Json, ModelRequest, Reply, WireName
from becket.testing.model.steps import Status


class Wire(Protocol):
    """Stateless: whole conversations come with every request."""

    name: WireName

    def read(self, path: str, headers: Mapping[str, str], body: Json) -> ModelRequest:
        """Called for each request that asks for a reply. Never raises: mistakes are in `ModelRequest.wrong`."""
        ...

    def key(self, path: str, headers: Mapping[str, str]) -> str | None:
        """The API key, or None where it did not come in the vendor's way."""
        ...

    def unauthorized(self, given: bool) -> Status:
        """What a wrong key gets, or none."""
        ...

    def whole(self, reply: Reply) -> dict[str, Any]: ...

    def stream(self, reply: Reply, ask: ModelRequest) -> Iterator[Frame]: ...

    def error(self, status: Status) -> tuple[dict[str, str], dict[str, Any]]:
        """Headers and body of an error."""
        ...

    def error_frame(self, status: Status) -> Frame:
        """The same in the middle of a stream."""
        ...

    def models(self, names: tuple[str, ...]) -> dict[str, Any]: ...

    def count(self, tokens: int) -> dict[str, Any]:
        """The answer to a request that only counts tokens."""
        ...
