"""`becket open`, `user`, `token`, and the process that serves the page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import columns, emit, note, say
from becket.cli.shape import AsJson, end, group, in_app, me
from becket.kernel.contract.base import Duration
from becket.kernel.contract.errors import UsageError
from becket.parts.front.accounts import PAGE_ROLES, USER_NAME, PageRole

if TYPE_CHECKING:
    from becket.app.compose import App

Role = Annotated[str, typer.Option("--role", help="viewer, member, approver or owner.")]
Expires = Annotated[str, typer.Option("--expires", help="After how long it ends: 12h, 30d.")]

NOT_UP = "the page is not served: say `web: {enabled: true}` in becket.yaml, then `becket up --detach`"
DOWN = "the page is served while Becket is up: `becket up --detach`"
STARTING = "the page is not up yet, or was given up; `becket status` and front.log in Becket's state folder say more"


def open_page(
    just_print: Annotated[bool, typer.Option("--print", help="Print the address instead of opening it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open the page, logged in."""
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front.accounts import LINK_LASTS, make_key
    from becket.parts.front.kept import living_address
    from becket.parts.front.section import WebConfig

    async def link(app: App) -> str:
        address = living_address(app.state)
        if address is None:
            if not app.config.section(WebConfig).enabled:
                raise UsageError(NOT_UP)
            raise UsageError(STARTING if app.state.wanted.exists() else DOWN)
        secret = await app.port(TableStore).write(make_key, "link", "", LINK_LASTS)
        return f"{address.page}/enter/{secret}"

    url = in_app(link)
    if as_json:
        emit({"url": url, "lasts": LINK_LASTS})
    elif just_print or not _opened(url):
        say(url)
        note("It opens one session, once, within five minutes.")


def _opened(url: str) -> bool:
    """In the browser of whoever sits here."""
    import webbrowser

    if not sys.stdout.isatty():
        return False
    try:
        return webbrowser.get().open(url)
    except webbrowser.Error:
        return False


def front(as_json: AsJson = False) -> None:
    """Be the process that serves the page."""
    from becket.app.state import find_state
    from becket.parts.front.process import run_front

    end(run_front(find_state()))


def mcp(as_json: AsJson = False) -> None:
    """Serve the Model Context Protocol on standard input and output, for an editor or an agent."""
    from becket.app.state import find_state
    from becket.parts.front.mcp import serve

    end(serve(find_state()))


user = group("Add, list and remove who may log in.", bare="list")


@user.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits, dots and dashes.")],
    role: Role = "member",
    as_json: AsJson = False,
) -> None:
    """Add somebody. The password is asked for, or read from standard input."""
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    if not USER_NAME.fullmatch(name):
        raise UsageError(f"{name[:60]!r} is no name of a user; write it like ada or ada.l")
    password = _password()
    hashed = accounts.hash_password(password)

    async def add(app: App) -> None:
        wanted, own = _role(role), me(app).role
        if PAGE_ROLES.index(wanted) > PAGE_ROLES.index(own):
            raise UsageError(f"you are {own}, and nobody whom you add can be more than that")
        await app.port(TableStore).write(accounts.add_user, name, wanted, hashed)

    in_app(add)
    if as_json:
        emit({"name": name, "role": role})
    else:
        say(f"{name} may log in, as {role}.")


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))


def _must_own(app: App) -> None:
    if (own := me(app).role) != "owner":
        raise UsageError(f"you are {own}; an owner takes keys and accounts away")


def _role(text: str) -> PageRole:
    found = next((role for role in PAGE_ROLES if role == text), None)
    if found is None:
        raise UsageError(f"{text[:40]!r} is no role; there are {', '.join(PAGE_ROLES)}")
    return found


@user.command("list")
def list_users(as_json: AsJson = False) -> None:
    """Show who may log in."""
    from becket.cli.plain import clock
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    found = in_app(lambda app: app.port(TableStore).read(accounts.users))
    if as_json:
        emit([{"name": one.name, "role": one.role, "created_at": one.created_at} for one in found])
    elif not found:
        say("Nobody has an account; `becket open` needs none on this machine.")
    else:
        columns(("NAME", "ROLE", "SINCE"), [[one.name, one.role, clock(one.created_at)] for one in found])


@user.command("remove")
def remove_user(name: Annotated[str, typer.Argument()], as_json: AsJson = False) -> None:
    """Remove somebody, with every session and token of theirs."""
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    async def remove(app: App) -> None:
        _must_own(app)
        await app.port(TableStore).write(accounts.remove_user, name)

    in_app(remove)
    if as_json:
        emit({"removed": name})
    else:
        say(f"{name} is out, with every session and token.")


token = group("Make, list and revoke tokens for the API.", bare="list")


@token.command("new")
def new_token(
    label: Annotated[str, typer.Argument(help="What it is for.")],
    role: Role = "viewer",
    expires: Expires = "30d",
    as_json: AsJson = False,
) -> None:
    """Make a token, which is shown once."""
    from pydantic import TypeAdapter, ValidationError

    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    try:
        lasts = TypeAdapter[float](Duration).validate_python(expires)
    except ValidationError:
        raise UsageError(f"{expires[:40]!r} is no time; write it like 12h or 30d") from None

    async def make(app: App) -> str:
        wanted, own = _role(role), me(app).role
        if PAGE_ROLES.index(wanted) > PAGE_ROLES.index(own):
            raise UsageError(f"you are {own}, and no token of yours can be more than that")
        return await app.port(TableStore).write(accounts.make_key, "token", "", lasts, wanted, label[:80])

    secret = in_app(make)
    if as_json:
        emit({"token": secret, "role": role, "label": label, "lasts": lasts})
    else:
        say(secret)
        note("It is shown this once. Send it as `Authorization: Bearer TOKEN`.")


@token.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """Show the tokens, without their secrets."""
    from becket.cli.plain import clock
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    found = in_app(lambda app: app.port(TableStore).read(accounts.keys, "token"))
    if as_json:
        emit(
            [{"id": one.digest[:12], "label": one.label, "role": one.role, "created_at": one.created_at,
              "expires_at": one.expires_at, "revoked_at": one.revoked_at} for one in found]
        )  # fmt: skip
        return
    rows = [
        [one.digest[:12], one.label, one.role, clock(one.created_at), clock(one.expires_at),
         "revoked" if one.revoked_at else ""] for one in found
    ]  # fmt: skip
    columns(("ID", "LABEL", "ROLE", "MADE", "ENDS", ""), rows)


@token.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `becket token list` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token at once."""
    from becket.kernel.contract.tables import TableStore
    from becket.parts.front import accounts

    async def revoke(app: App) -> None:
        _must_own(app)
        await app.port(TableStore).write(accounts.revoke, token_id)

    in_app(revoke)
    if as_json:
        emit({"revoked": token_id})
    else:
        say("It is revoked.")
