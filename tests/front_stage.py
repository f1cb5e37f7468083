"""A front over a world's repository, asked in-process: real requests, real rows, no socket."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import PageRole, add_user, csrf_of, make_key
from becket.parts.front.kept import Address
from becket.parts.front.safety import cookie_name
from becket.parts.front.server import Front
from becket.testing.world import World

PORT = 8437
NOT_CHECKED = "$argon2id$not-checked"
CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')


@dataclass
class Person:
    """Somebody with a session of their own; as a browser would, they send the token of the page with each form."""

    client: httpx.AsyncClient
    secret: str

    async def get(self, path: str, **query: str) -> httpx.Response:
        return await self.client.get(path, params=query)

    async def post(self, path: str, form: Mapping[str, str] | None = None) -> httpx.Response:
        return await self.client.post(path, data={"csrf": csrf_of(self.secret), **(form or {})})


@dataclass
class FrontStage:
    world: World
    front: Front
    _clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, **headers: str) -> httpx.AsyncClient:
        """As a browser asks; a program with a token asks by the number."""
        base = self.front.address.url if "authorization" in headers else self.front.address.page
        transport = httpx.ASGITransport(app=self.front.asgi, raise_app_exceptions=False)
        made = httpx.AsyncClient(transport=transport, base_url=base, headers=headers)
        self._clients.append(made)
        return made

    async def person(self, role: PageRole = "owner", name: str = "") -> Person:
        """A user with this role. Passwords are for the tests of the login."""
        name = name or f"the-{role}"
        tables = self.world.app.port(TableStore)
        await tables.write(add_user, name, role, NOT_CHECKED)
        secret = await tables.write(make_key, "session", name, 3600.0)
        client = self.client()
        client.cookies.set(cookie_name(self.front.address), secret)
        return Person(client, secret)

    async def token(self, role: PageRole = "owner") -> httpx.AsyncClient:
        """A program with a token of the API."""
        secret = await self.world.app.port(TableStore).write(make_key, "token", "", 3600.0, role, "a test")
        return self.client(authorization=f"Bearer {secret}")

    async def close(self) -> None:
        for one in self._clients:
            await one.aclose()


def make_front(folder: Path, config: str = "") -> FrontStage:
    world = World(folder, store="sqlite")
    world.write("becket.yaml", f"version: 1\n{config}")
    world.commit()
    return FrontStage(world, Front(world.app, Address("127.0.0.1", PORT)))
