"""L24, L25: what strangers wrote is text on every page, and what is secret is on none."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from becket.kernel.contract.tables import TableStore, Transaction
from becket.parts.front.accounts import add_user, csrf_of, hash_password, make_key
from becket.parts.front.routes import PAGES, ROUTES
from becket.parts.front.safety import cookie_name
from becket.parts.front.tables import AUDIT
from front_stage import make_front
from front_wire import FORM, ask

HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>'
LOOP = """
version: 1
loop_id: hostile
goal: Names that somebody else chose.
trigger: [{manual: {}}]
subject: "guest/{who}"
inputs: {who: {type: string}}
max_iterations: 1
deadline: 10m
stop_conditions: [seen.pass]
phases:
  verify:
    objective: See it.
    verifiers: [{id: seen, run: "cat said.txt; exit 1", in: tree}]
"""
LIVE = re.compile(
    r"<script(?![^>]* src=\"/static/)|<[^>]+\son\w+=|<[^>]+\sstyle=|<style|javascript:|<base|<iframe|<object",
    re.IGNORECASE,
)
OUTSIDE = re.compile(r"""(?:src|href|action)=["']?(?:https?:)?//""", re.IGNORECASE)


def test_what_strangers_wrote_is_text_on_every_page(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        stage.world.loop(LOOP)
        stage.world.commit({"said.txt": HOSTILE}, HOSTILE)
        run = await stage.world.run("hostile", inputs={"who": HOSTILE})
        me = await stage.person("owner")
        seen = 0
        for route in ROUTES:
            if route.method != "GET" or route.kind in ("stream", "hook") or route.path.startswith("/enter"):
                continue
            known = {"run": run.run_id, "loop": "hostile", "name": "hostile", "link": "x"}
            path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: known.get(found[1], "1"), route.path)  # noqa: B023
            answer = await me.get(path, said=HOSTILE, back=HOSTILE, next=HOSTILE, q=HOSTILE)
            seen += HOSTILE[:9].replace('"', "&#34;").replace("<", "&lt;").replace(">", "&gt;") in answer.text
            if route.kind == "raw":  # shown by no browser, or as text
                saved = answer.headers.get("content-disposition", "").startswith("attachment")
                assert saved or not answer.headers["content-type"].startswith(("text/html", "image/svg")), route.path
            elif answer.headers.get("content-type", "text/html").startswith("text/html"):
                assert HOSTILE not in answer.text, route.path
                assert not (found := LIVE.search(answer.text)), (route.path, found)
                assert not (found := OUTSIDE.search(answer.text)), (route.path, found)
            else:
                assert answer.headers["x-content-type-options"] == "nosniff"
        assert seen >= len(PAGES)
        await stage.close()

    asyncio.run(story())


def test_nothing_secret_is_on_a_page_or_in_the_log_or_in_the_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        front, tables = stage.front, stage.world.app.port(TableStore)
        hashed = hash_password("a long enough one")
        await tables.write(add_user, "ada", "owner", hashed)
        shown = []
        for name, password in (("ada", "wrong-Secret-1"), ("wrong-Secret-1", ""), ("ada", "a long enough one")):
            shown.append(await ask(front, "POST", "/login", [FORM], [f"name={name}&password={password}".encode()]))
        links = [await tables.write(make_key, "link", "", 300.0) for _ in "ab"]
        secret = await tables.write(make_key, "session", "ada", 300.0)
        shown += [await ask(front, "GET", f"/enter/{link}") for link in (links[0], links[0], secret)]
        cookie = ("cookie", f"{cookie_name(front.address)}={secret}")
        mine = [cookie, FORM]
        for route in ROUTES:
            path = re.sub(r"\{[^}]+\}", secret, route.path)
            if route.path == "/logout":
                continue
            body = f"csrf={csrf_of(secret)}&back=/x&note={secret}".encode()
            shown.append(await ask(front, route.method, f"{path}?path=/{secret}&q={secret}", mine, [body]))
        said = [answer.text for answer in shown]
        said += [value for one in shown for name, value in one.headers if name != "set-cookie"]
        said += [caplog.text, await tables.read(audit)]
        for text in said:
            for word in (secret, *links, hashed, "$argon2", "wrong-Secret-1", "a long enough one"):
                assert word not in text, text[:2000]
        await stage.close()

    def audit(tx: Transaction) -> str:
        return "\n".join(str(tuple(row)) for row in tx.conn.execute(sa.select(AUDIT)))

    asyncio.run(story())


def test_a_name_that_nobody_has_takes_as_long_as_a_wrong_password(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        await stage.world.app.port(TableStore).write(add_user, "ada", "owner", hash_password("a long enough one"))
        took: dict[str, list[float]] = {"ada": [], "nobody": []}
        for number in range(5):
            for name, times in took.items():
                begin = time.perf_counter()
                peer = f"10.0.{len(name)}.{number}"
                assert (
                    await ask(stage.front, "POST", "/login", [FORM], [b"name=%s" % name.encode()], peer)
                ).status == 403
                times.append(time.perf_counter() - begin)
        known, unknown = (statistics.median(times) for times in took.values())
        assert 1 / 3 < known / unknown < 3  # without the care it is twenty times
        await stage.close()

    asyncio.run(story())
