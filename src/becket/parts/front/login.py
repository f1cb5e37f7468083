"""Coming in and going out: by a link of the command line, or by name and password."""

from __future__ import annotations

import asyncio
from functools import cache

from starlette.responses import RedirectResponse, Response

from becket.parts.front.accounts import enter, find_user, hash_password, is_password, make_key, note, revoke
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page
from becket.parts.front.safety import cookie_name
from becket.parts.front.server import own_path


@cache
def _nobodys() -> str:
    """Checked for names that nobody has, so that they take as long as the others."""
    return hash_password("a password that nobody has")


async def ask(asked: Asked) -> Page:
    return Page("login.html", {"next": own_path(asked.query.get("next", "/")), "wrong": ""})


async def log_in(asked: Asked) -> Response | Page:
    name, password = asked.form.get("name", "")[:80], asked.form.get("password", "")[:500]
    asked.front.tries.check(f"from {asked.address}", f"as {name}")
    found = await asked.tables.read(find_user, name)
    right = await asyncio.to_thread(is_password, found[1] if found else _nobodys(), password)
    did = asked.tables.write
    if found is None or not right:
        await did(note, name, "", "page", asked.address, "/login", "", "wrong name or password")
        return Page("login.html", {"next": own_path(asked.form.get("next", "/")), "wrong": "wrong"}, 403)
    asked.front.tries.forgive(f"from {asked.address}", f"as {name}")
    await did(note, name, found[0].role, "page", asked.address, "/login", "", "done")
    secret = await did(make_key, "session", name, asked.front.config.session)
    return _in(asked, secret, own_path(asked.form.get("next", "/")))


async def enter_by_link(asked: Asked) -> Response | Page:
    """Spends it: a link opens one session, once."""
    asked.front.tries.check(f"link from {asked.address}")
    secret = await asked.tables.write(enter, asked.params["link"][:200], asked.front.config.session)
    if secret is None:
        why = "This link was used already, or is older than five minutes. Type `becket open` for another one."
        return Page("error.html", {"title": "Log in", "why": why, "seen": ""}, 403)
    asked.front.tries.forgive(f"link from {asked.address}")
    return _in(asked, secret, "/")


def _in(asked: Asked, secret: str, where: str) -> Response:
    return asked.front.cookie(RedirectResponse(where, 303), secret, asked.https)


async def log_out(asked: Asked) -> Response:
    await asked.tables.write(revoke, asked.who.digest)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(cookie_name(asked.front.address))
    return response
