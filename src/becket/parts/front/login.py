"""Coming in and going out: by a link of the command line, or by name and password."""

from __future__ import annotations

import asyncio
from functools import cache

from starlette.responses import RedirectResponse, Response

from becket.parts.front.accounts import (
    begin_session,
    enter,
    find_key,
    find_user,
    hash_password,
    is_password,
    note,
    revoke,
)
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page
from becket.parts.front.safety import cookie_name
from becket.parts.front.server import own_path


@cache
def _nobodys() -> str:
    return hash_password("a password that nobody has")


async def _fits(asked: Asked, hashed: str | None, password: str) -> bool:
    """A name that nobody has takes as long as the others."""
    async with asked.front.checks:
        if hashed is None:
            hashed = await asyncio.to_thread(_nobodys)
        return await asyncio.to_thread(is_password, hashed, password)


def _by_number(status: int) -> Page:
    """No session begins here, and no link is spent. The name is not told: anybody may ask."""
    return Page("login.html", {"next": "/", "wrong": "number"}, status)


async def ask(asked: Asked) -> Response | Page:
    if not asked.named:
        return _by_number(200)
    if asked.visitor is not None:
        return RedirectResponse(own_path(asked.query.get("next", "/")), 303)
    return Page("login.html", {"next": own_path(asked.query.get("next", "/")), "wrong": ""})


async def log_in(asked: Asked) -> Response | Page:
    if not asked.named:
        return _by_number(403)
    name, password = asked.form.get("name", "")[:80], asked.form.get("password", "")[:500]
    asked.front.tries.check(f"from {asked.address}", f"as {name}")
    found = await asked.tables.read(find_user, name)
    right = await _fits(asked, found[1] if found else None, password)
    did, lasts = asked.tables.write, asked.front.config.session
    secret = await did(begin_session, name, found[1], lasts) if found and right else None
    if found is None or secret is None:
        known = name if found else "somebody"  # a password typed in the wrong field is kept nowhere
        await did(note, known, "", "page", asked.address, "/login", "", "wrong name or password")
        return Page("login.html", {"next": own_path(asked.form.get("next", "/")), "wrong": "wrong"}, 403)
    asked.front.tries.forgive(f"from {asked.address}", f"as {name}")
    await did(note, name, found[0].role, "page", asked.address, "/login", "", "done")
    return _in(asked, secret, own_path(asked.form.get("next", "/")))


async def enter_by_link(asked: Asked) -> Response | Page:
    """Spends it: a link opens one session, once."""
    if not asked.named:
        return _by_number(403)
    link = asked.params["link"][:200]
    known = await asked.tables.read(find_key, link, "link")  # a flood of wrong ones writes nothing
    secret = await asked.tables.write(enter, link, asked.front.config.session) if known else None
    if secret is None:
        asked.front.tries.check(f"link from {asked.address}")
        why = "This link was used already, or is older than five minutes. Type `becket open` for another one."
        return Page("error.html", {"title": "Log in", "why": why, "seen": ""}, 403)
    return _in(asked, secret, "/")


def _in(asked: Asked, secret: str, where: str) -> Response:
    return asked.front.cookie(RedirectResponse(where, 303), secret, asked.https)


async def log_out(asked: Asked) -> Response:
    await asked.tables.write(revoke, asked.who.digest)
    response = RedirectResponse("/login", 303)
    name = cookie_name(asked.front.address)
    response.delete_cookie(name, httponly=True, samesite="lax", secure=asked.https)
    return response
