"""One request, as endpoints see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from becket.app.compose import App
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import Visitor

if TYPE_CHECKING:
    from becket.parts.front.server import Front

RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True)
class Asked:
    """`params` are of the path, `query` and `form` what was sent. `address` is whose.
    `named`: by a name of the page, under which alone sessions count.
    """

    front: Front
    visitor: Visitor | None
    path: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    address: str = ""
    https: bool = False
    named: bool = False
    lang: str = "en"

    @property
    def app(self) -> App:
        return self.front.app

    @property
    def tables(self) -> TableStore:
        return self.app.port(TableStore)

    @property
    def who(self) -> Visitor:
        """Whoever is let in; the table of routes says where somebody is."""
        assert self.visitor is not None
        return self.visitor

    def caller(self) -> Caller:
        return self.who.caller()

    async def run_id(self) -> str:
        """Of the path, whole. Raises NotFound."""
        if not RUN_ID.fullmatch(self.params["run"]):
            raise NotFound("there is no such run")
        return (await self.app.store.get_run(self.params["run"])).run_id

    def number(self, name: str, most: int) -> int | None:
        """Of the query; None where it is no number that makes sense."""
        text = self.query.get(name, "")
        return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 10 else None
