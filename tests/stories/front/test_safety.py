"""L38: who may ask for what, made from the table of routes: a route that nobody thought of here is tried as well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import (
    PAGE_ROLES,
    PageRole,
    Visitor,
    add_user,
    csrf_of,
    digest_of,
    hash_password,
    make_key,
    remove_user,
    revoke,
)
from becket.parts.front.asked import Asked
from becket.parts.front.kept import Address
from becket.parts.front.live import MOST_PAGES
from becket.parts.front.routes import PAGES, ROUTES, Route
from becket.parts.front.safety import HEADERS, cookie_name
from becket.parts.front.tables import USERS
from front_stage import NOT_CHECKED, FrontStage, make_front
from front_wire import FORM, Answer, Headers, ask, begin

SHORT = {"session": 3600.0, "token": 3600.0, "link": 300.0}


def secret_of(kind: str, user: str = "", lasts: float = 3600.0, role: PageRole = "viewer") -> Callable[..., str]:
    return lambda tx: make_key(tx, kind, user, lasts, role, "a test")  # type: ignore[arg-type]


@dataclass
class Keys:
    """One of every kind of key. Sessions are made anew for each request: some requests end them."""

    stage: FrontStage
    foreign: dict[str, str]

    @property
    def tables(self) -> TableStore:
        return self.stage.world.app.port(TableStore)

    async def made(self, kind: str, of: str) -> str:
        """The secret of a session of a user `the-ROLE`, a token of that role, or one that is worth nothing."""
        if of in PAGE_ROLES:
            return await self.tables.write(secret_of(kind, f"the-{of}" if kind == "session" else "", role=of))
        if of == "foreign":
            return self.foreign[kind]
        if of == "unknown":
            return "bkt_" + "A" * 43
        if of == "expired":
            return await self.tables.write(secret_of(kind, "the-owner", lasts=0.0, role="owner"))
        if of == "removed":
            return await self.tables.write(secret_of(kind, "nobody-any-more", role="owner"))
        assert of == "revoked"
        secret = await self.tables.write(secret_of(kind, "the-owner", role="owner"))
        await self.tables.write(revoke, digest_of(secret))
        return secret


WORTHLESS = ("unknown", "foreign", "expired", "revoked", "removed")


async def keys_of(folder: Path) -> Keys:
    stage, other = make_front(folder / "here"), make_front(folder / "there")
    tables, others = (one.world.app.port(TableStore) for one in (stage, other))
    for role in PAGE_ROLES:
        await tables.write(add_user, f"the-{role}", role, NOT_CHECKED)
        await others.write(add_user, f"the-{role}", role, NOT_CHECKED)
    foreign = {kind: await others.write(secret_of(kind, "the-owner", role="owner")) for kind in SHORT}
    return Keys(stage, foreign)


def filled(route: Route, **known: str) -> str:
    """Its path, with something for every parameter."""
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: known.get(found[1], "nope"), route.path)
    return f"{path}?path=/" if route.kind == "stream" else path


def carried(stage: FrontStage, secret: str, by: str, csrf: str | None = None) -> list[tuple[str, str]]:
    """A cookie with its form's token, or a bearer's header."""
    if by == "bearer":
        return [("authorization", f"Bearer {secret}")]
    own = csrf_of(secret) if csrf is None else csrf
    return [("cookie", f"{cookie_name(stage.front.address)}={secret}"), ("x-csrf", own)]


async def sent(stage: FrontStage, route: Route, headers: Headers = (), body: bytes = b"") -> Answer:
    more = (FORM,) if route.method != "GET" and not any(name == "content-type" for name, _ in headers) else ()
    return await ask(stage.front, route.method, filled(route), (*headers, *more), [body])


def refused(route: Route, answer: Answer, *statuses: int) -> None:
    led = route.kind == "page" and answer.status == 303 and answer.header("location").startswith("/login?next=/")
    assert (led and 401 in statuses) or answer.status in statuses, (route.method, route.path, answer.status)


def let_in(route: Route, answer: Answer) -> None:
    assert answer.status < 500, (route.method, route.path, answer.status)
    assert answer.status not in (401, 403), (route.method, route.path, answer.text)


def story(tmp_path: Path, told: Callable[[Keys], Awaitable[None]]) -> None:
    async def run() -> None:
        keys = await keys_of(tmp_path)
        await told(keys)
        await keys.stage.close()

    asyncio.run(run())


GUARDED = [route for route in ROUTES if route.needs is not None]


def test_a_key_that_is_worth_nothing_opens_nothing(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        for route in GUARDED:
            refused(route, await sent(keys.stage, route), 401)
            for of in WORTHLESS:
                for kind, by in (("session", "cookie"), ("token", "bearer")):
                    secret = await keys.made(kind, of)
                    refused(route, await sent(keys.stage, route, carried(keys.stage, secret, by)), 401)

    story(tmp_path, told)


def test_a_key_opens_nothing_where_another_kind_belongs(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        wrong = [("token", "cookie"), ("link", "cookie"), ("session", "bearer"), ("link", "bearer")]
        for route in GUARDED:
            for kind, by in (*wrong, *([] if route.kind == "api" else [("token", "bearer")])):
                secret = await keys.made(kind, "owner")
                refused(route, await sent(keys.stage, route, carried(keys.stage, secret, by)), 401)

    story(tmp_path, told)


def test_each_role_is_let_in_where_the_table_says_and_nowhere_else(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        for route in GUARDED:
            for role in PAGE_ROLES:
                for kind, by in (("session", "cookie"), *([("token", "bearer")] if route.kind == "api" else [])):
                    answer = await sent(keys.stage, route, carried(keys.stage, await keys.made(kind, role), by))
                    if PAGE_ROLES.index(role) < PAGE_ROLES.index(route.needs or "owner"):
                        refused(route, answer, 403)
                    else:
                        let_in(route, answer)

    story(tmp_path, told)


def test_what_asks_for_no_login_gives_nothing_away(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        for route in ROUTES:
            if route.needs is None:
                assert route.kind in ("public", "hook")
                answer = await sent(keys.stage, route, peer_of(route), b"{}")
                assert answer.status < 500
                if route.kind == "hook":
                    refused(route, answer, 401, 403, 404, 415, 422)
                assert "the-owner" not in answer.text

    def peer_of(route: Route) -> Headers:
        return (("content-type", "application/json"),) if route.kind == "hook" else ()

    story(tmp_path, told)


def test_a_change_needs_the_token_of_its_own_login_and_its_own_site(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        stage = keys.stage
        for route in GUARDED:
            if route.method == "GET":
                continue
            other = await keys.made("session", "owner")
            for csrf in ("", csrf_of(other), "é" * 64):
                secret = await keys.made("session", "owner")
                refused(route, await sent(stage, route, carried(stage, secret, "cookie", csrf)), 403)
            mine = carried(stage, secret, "cookie")
            if route.kind != "api":  # no other site can send the header that the API asks for
                for site in ("cross-site", "same-site", "nonsense"):
                    refused(route, await sent(stage, route, [*mine, ("sec-fetch-site", site)]), 403)
        login = [("sec-fetch-site", "cross-site"), FORM]
        assert (await ask(stage.front, "POST", "/login", login, [b"name=a&password=b"])).status == 403

    story(tmp_path, told)


def test_bodies_that_are_too_large_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        stage = keys.stage
        for route in ROUTES:
            if route.method != "POST":
                continue
            mine = carried(stage, await keys.made("session", "owner"), "cookie")
            told, huge = (
                [*mine, FORM, ("content-length", str(route.body + 1))],
                [b"x" * 60_000] * (route.body // 60_000 + 2),
            )
            status = (413, 401, 403, 404) if route.kind == "hook" else (413,)
            refused(route, await ask(stage.front, "POST", filled(route), told), *status)
            refused(route, await ask(stage.front, "POST", filled(route), [*mine, FORM], huge), *status)
            if route.kind not in ("form", "public"):
                continue
            for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain", ""):
                refused(route, await sent(stage, route, [*mine, ("content-type", kind)], b"{}"), 415)
            for body in (b"\xff\xfe", b"a=%FF", b"a=%ED%A0%80", b"a=%00", b"&".join([b"a=1"] * 300)):
                refused(route, await sent(stage, route, mine, body), 422)

    story(tmp_path, told)


@pytest.mark.parametrize(
    "words", ["%00", "%ED%A0%80", "%FF", "%", "%zz", "%3Fa", "%23", "%2e%2e%2f%2e%2e", "%0d%0aX:1"]
)
def test_broken_addresses_are_a_clear_answer(tmp_path: Path, words: str) -> None:
    async def told(keys: Keys) -> None:
        stage = keys.stage
        mine = carried(stage, await keys.made("session", "owner"), "cookie")
        for route in ROUTES:
            if route.method == "GET" and route.path != "/logout":
                path = re.sub(r"\{\w+(?::\w+)?\}", words, route.path)
                for query in (f"?path=/{words}&a={words}", f"?{'a=1&' * 3000}path=//[&cursor={words}"):
                    answer = await ask(stage.front, "GET", path + query, mine)
                    assert answer.status < 500, (path, query[:80], answer.text)
                    assert not answer.header("x")

    story(tmp_path, told)


def test_only_names_of_ours_are_answered(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        front = keys.stage.front
        port = front.address.port
        ours = (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}")
        for host in ours:
            assert (await ask(front, "GET", "/login", [("host", host)])).status == 200
        for host in (
            "evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"user@127.0.0.1:{port}",
            f"127.0.0.1:{port}@evil.example", f"127.0.0.1.evil.example:{port}", f"localhost.:{port}", "",
            f"evil.example, 127.0.0.1:{port}", f"127.0.0.1:{port} ", f"0:{port}", f"2130706433:{port}",
        ):  # fmt: skip
            answer = await ask(front, "GET", "/login", [("host", host)])
            assert answer.status == 421, host
            assert "form" not in answer.text
        two = [("host", "evil.example"), ("host", ours[0])]
        assert (await ask(front, "GET", "/login", two)).status == 421
        assert (await ask(front, "GET", "http://evil.example/login")).status == 404  # as uvicorn hands on such a target

    story(tmp_path, told)


def numbers(port: int) -> tuple[str, ...]:
    return (f"127.0.0.1:{port}", f"LOCALHOST:{port}", f"[::1]:{port}")


def test_by_a_number_a_session_is_nobodys_and_none_begins(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        stage, front = keys.stage, keys.stage.front
        await keys.tables.write(add_user, "ada", "owner", hash_password("a long enough one"))
        mine = carried(stage, await keys.made("session", "owner"), "cookie")
        link = await keys.tables.write(secret_of("link"))
        for host in [("host", number) for number in numbers(front.address.port)]:
            for route in GUARDED:
                refused(route, await sent(stage, route, [host, *mine]), 401)
            token = [host, *carried(stage, await keys.made("token", "owner"), "bearer")]
            assert (await ask(front, "GET", "/api/v1/status", token)).status == 200
            asked = await ask(front, "GET", "/login", [host])
            typed = await ask(front, "POST", "/login", [host, FORM], [b"name=ada&password=a+long+enough+one"])
            entered = await ask(front, "GET", f"/enter/{link}", [host])
            assert [one.status for one in (asked, typed, entered)] == [200, 403, 403]
            for answer in (asked, typed, entered):
                assert "<code>becket open</code>" in answer.text
                assert "password" not in answer.text
                assert not answer.header("set-cookie")
        assert (await ask(front, "GET", "/", mine)).status == 200
        assert (await ask(front, "GET", f"/enter/{link}")).status == 303

    story(tmp_path, told)


def test_nobody_is_told_the_name_of_the_page_who_is_not_logged_in(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        stage, front = keys.stage, keys.stage.front
        names = (*numbers(front.address.port), f"evil.localhost:{front.address.port}", "evil.example")
        mine = carried(stage, await keys.made("session", "owner"), "cookie")
        answers = []
        for host in [("host", name) for name in names]:
            for headers in ([host], [host, *mine]):
                answers += [await sent(stage, route, headers) for route in ROUTES]
                answers += [await ask(front, "GET", path, headers) for path in ("/static/live.js", "/nothing", "//x")]
        for answer in answers:
            assert front.address.name not in f"{answer.headers} {answer.text}"
        assert re.fullmatch(r"becket-[0-9a-f]{16}\.localhost", front.address.name)

    story(tmp_path, told)


def test_a_name_of_the_configuration_keeps_sessions_too(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        keys.stage.world.write("becket.yaml", "version: 1\nweb: {names: [Becket.example.org]}\n")
        mine = carried(keys.stage, await keys.made("session", "owner"), "cookie")
        assert (await ask(keys.stage.front, "GET", "/", [("host", "becket.example.org"), *mine])).status == 200

    for host in ("192.0.2.7", "2001:db8::7"):  # where others reach it, they know its address
        assert Address(host, 8437).page == Address(host, 8437).url
    story(tmp_path, told)


def test_every_answer_carries_the_headers_and_no_cookie_is_bare(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        stage, front = keys.stage, keys.stage.front
        answers = []
        for route in ROUTES:
            answers.append(await sent(stage, route))
            answers.append(await sent(stage, route, carried(stage, await keys.made("session", "owner"), "cookie")))
        link = await keys.tables.write(secret_of("link"))
        answers.append(entered := await ask(front, "GET", f"/enter/{link}"))
        assert entered.header("set-cookie")
        for method, path in (("GET", "/nothing"), ("PUT", "/"), ("HEAD", "/"), ("OPTIONS", "/"), ("GET", "/login/")):
            answers.append(await ask(front, method, path))
            assert answers[-1].status in (404, 405)
        answers.append(await ask(front, "GET", "/static/style.css"))
        for answer in answers:
            for name in HEADERS:
                assert answer.header(name), (answer.status, name)
            assert "unsafe" not in answer.header("content-security-policy")
            assert answer.header("cache-control") == "no-store" or answer.header("content-type").startswith("text/css")
            for name, value in answer.headers:
                if name == "set-cookie" and not value.startswith("becket_lang="):
                    assert "httponly" in value.lower()
                    assert "samesite=lax" in value.lower()

    story(tmp_path, told)


@pytest.mark.parametrize(
    "where",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "x", ""],
)
def test_nobody_is_sent_on_to_another_site(tmp_path: Path, where: str) -> None:
    async def told(keys: Keys) -> None:
        stage = keys.stage
        page = await ask(stage.front, "GET", f"/login?{urlencode({'next': where})}")
        assert 'name="next" value="/"' in page.text
        mine = carried(stage, await keys.made("session", "owner"), "cookie")
        for route in ROUTES:
            if route.kind in ("form", "public") and route.method == "POST" and route.path != "/logout":
                body = urlencode({"back": where, "next": where}).encode()
                to = (await sent(stage, route, mine, body)).header("location")
                assert not to or (to.startswith("/") and "evil" not in to), (route.path, to)

    story(tmp_path, told)


def test_what_another_sites_link_says_is_not_shown_as_ours(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        front = keys.stage.front
        mine = carried(keys.stage, await keys.made("session", "owner"), "cookie")
        assert "Call this number" in (await ask(front, "GET", "/?said=Call+this+number", mine)).text
        foreign = [*mine, ("sec-fetch-site", "cross-site")]
        assert "Call this number" not in (await ask(front, "GET", "/?said=Call+this+number", foreign)).text

    story(tmp_path, told)


def test_an_open_page_ends_with_its_session_and_with_its_user(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        front, stage = keys.stage.front, keys.stage
        assert (await ask(front, "GET", "/live?path=/")).status == 401
        looking = asyncio.create_task(front.feed.keep())
        secrets = [await keys.made("session", role) for role in ("owner", "member", "viewer", "approver")]
        pages = [begin(front, "GET", "/live?path=/", carried(stage, one, "cookie")) for one in secrets]
        for page in pages:
            assert await page.event()
        await keys.tables.write(revoke, digest_of(secrets[0]))
        await keys.tables.write(remove_user, "the-member")
        await keys.tables.write(lambda tx: tx.conn.execute(demoted))
        for page in pages[:3]:
            assert await page.event() is None
        assert pages[3].parts.empty()
        await pages[3].leave()
        looking.cancel()

    demoted = sa.update(USERS).where(USERS.c.name == "the-viewer").values(role="member")
    story(tmp_path, told)


def test_one_login_cannot_take_the_places_of_all(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        front, stage = keys.stage.front, keys.stage
        mine, other = [carried(stage, await keys.made("session", "viewer"), "cookie") for _ in "ab"]
        pages = [begin(front, "GET", "/live?path=/", mine) for _ in range(MOST_PAGES + 5)]
        for page in pages:
            await page.began.wait()
            await page.next()
        assert (await ask(front, "GET", "/live?path=/", mine)).status == 429
        assert (await ask(front, "GET", "/live?path=/", other)).status == 200
        for page in pages:
            await page.leave()
        assert (await ask(front, "GET", "/live?path=/", mine)).status == 200

    story(tmp_path, told)


def test_guesses_are_counted_by_who_sends_them_and_not_by_what_they_say(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        async def guess(number: int, peer: str, *headers: tuple[str, str]) -> int:
            body = f"name=guest{number}&password=x".encode()
            return (await ask(keys.stage.front, "POST", "/login", (FORM, *headers), [body], peer)).status

        stranger = [await guess(n, "10.0.0.9", ("x-forwarded-for", f"10.1.1.{n}")) for n in range(11)]
        assert stranger == [403] * 10 + [429]
        keys.stage.world.write("becket.yaml", "version: 1\nweb: {proxies: [10.0.0.1]}\n")
        behind = [
            await guess(n, "10.0.0.1", ("x-forwarded-for", f"10.2.2.{n}"), ("x-forwarded-for", "10.3.3.3"))
            for n in range(11)
        ]
        assert behind == [403] * 10 + [429]
        assert await guess(99, "10.0.0.1", ("x-forwarded-for", "10.3.3.4")) == 403

    story(tmp_path, told)


def test_wrong_links_from_elsewhere_do_not_keep_a_right_one_out(tmp_path: Path) -> None:
    async def told(keys: Keys) -> None:
        front = keys.stage.front
        assert [(await ask(front, "GET", f"/enter/bkt_{n}")).status for n in range(11)] == [403] * 10 + [429]
        link = await keys.tables.write(secret_of("link"))
        both = await asyncio.gather(*(ask(front, "GET", f"/enter/{link}") for _ in range(2)))
        assert sorted(answer.status for answer in both) == [303, 429]

    story(tmp_path, told)


def test_a_page_that_is_not_there_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        me = await stage.person("viewer")
        assert (await me.client.get("/live", params={"path": f"/runs/{'x' * 5_000}"})).status_code == 404
        visitor = Visitor("x", "viewer", "session", "d")
        route = next(one for one in PAGES if one.path == "/runs/{run}")
        for number in range(20):
            asked = Asked(stage.front, visitor, path=f"/runs/{number}", params={"run": f"run_{number}"})
            assert not (await stage.front.mains.get(asked, route)).digest
        assert not stage.front.mains._known
        assert not stage.front.mains._busy
        await stage.close()

    asyncio.run(story())


def test_a_form_is_known_by_its_origin_where_a_browser_tells_no_more(tmp_path: Path) -> None:
    """To a name without TLS browsers send no Sec-Fetch-Site."""

    async def story() -> None:
        stage = make_front(tmp_path)
        for origin, status in (("http://evil.example", 403), (stage.front.address.page, 409), ("null", 403)):
            me = await stage.person("owner", f"o{status}{len(origin)}")
            me.client.headers["origin"] = origin
            answer = await me.post("/loops/nobody/pause")
            assert answer.status_code == status or (status == 409 and answer.status_code in (303, 404, 409)), origin
        await stage.close()

    asyncio.run(story())
