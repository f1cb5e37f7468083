"""Who is let in to the page, and what everybody gets."""

from __future__ import annotations

import asyncio
from pathlib import Path

from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import add_user, hash_password, make_key
from front_stage import make_front


def test_a_link_opens_one_session_once(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        link = await stage.world.app.port(TableStore).write(make_key, "link", "", 300.0)
        me, other = stage.client(), stage.client()
        answer = await me.get(f"/enter/{link}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        page = await me.get("/")
        assert page.status_code == 200
        assert "What is asked of me" in page.text
        assert (await other.get(f"/enter/{link}")).status_code == 403
        assert (await other.get("/")).headers["location"] == "/login?next=/"
        await stage.close()

    asyncio.run(story())


def test_a_password_opens_a_session_and_too_many_tries_wait(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        await stage.world.app.port(TableStore).write(add_user, "ada", "member", hash_password("a long enough one"))
        right, wrong = {"name": "ada", "password": "a long enough one"}, {"name": "ada", "password": "another one"}
        me = stage.client()
        assert (await me.post("/login", data=wrong)).status_code == 403
        assert (await me.post("/login", data=right)).status_code == 303
        assert "ada" in (await me.get("/")).text
        guesser = stage.client()
        codes = [(await guesser.post("/login", data=wrong)).status_code for _ in range(11)]
        assert codes == [403] * 10 + [429]
        await stage.close()

    asyncio.run(story())


def test_a_page_of_another_name_is_not_ours(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        answer = await stage.client(host="becket.example:8437").get("/login")
        assert answer.status_code == 421
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        await stage.close()

    asyncio.run(story())
