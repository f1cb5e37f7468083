"""A real browser before a real front. What a page asks of others and what its console says are failures."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.append(str(Path(__file__).parents[1] / "acceptance"))  # where the stage of the real program is

if importlib.util.find_spec("playwright") is None:  # `make test-web` installs it
    collect_ignore_glob = ["test_*.py"]
else:
    from playwright import sync_api as playwright

CACHE = Path(os.environ.get("BECKET_WEB", ".cache/web"))
LOST = re.compile(r"ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED|ERR_NETWORK")


@dataclass
class Visit:
    """One person's browser. `lost` says that the front is ended meanwhile, which a console may tell."""

    context: playwright.BrowserContext
    home: str
    lost: bool = False
    complaints: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def page(self, path: str = "/") -> playwright.Page:
        page = self.context.new_page()
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.add(request.url))
        page.goto(self.home + path)
        return page

    def check(self) -> None:
        outside = {url for url in self.asked if urlsplit(url).netloc != urlsplit(self.home).netloc}
        assert not {url for url in outside if not url.startswith("data:")}
        assert not [text for text in self.complaints if not (self.lost and LOST.search(text))]


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as running:
        chromium = shutil.which("chromium") or "chromium"
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = running.chromium.launch(executable_path=chromium, args=sandbox)
        yield browser
        browser.close()


Comes = Callable[..., Visit]


@pytest.fixture
def comes(browser: playwright.Browser) -> Iterator[Comes]:
    """`comes(house)`: somebody with a browser, logged in by a link of the command line."""
    visits: list[Visit] = []

    def come(house: WebHouse, **options: object) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        context.set_default_timeout(60_000)
        link = house.json("open", "--print")["url"]
        visits.append(visit := Visit(context, link.partition("/enter/")[0]))
        entering = context.new_page()
        entering.goto(link)
        entering.close()
        return visit

    yield come
    for visit in visits:
        visit.context.close()
    for visit in visits:
        visit.check()


from web_stage import WebHouse  # noqa: E402  # needs the path above


def _house(folder: Path, autonomy: str) -> Iterator[WebHouse]:
    house = WebHouse(folder, autonomy)
    try:
        house.becket("up", "--detach")
        house.served()
        yield house
    finally:
        with contextlib.suppress(AssertionError):
            house.becket("down", "--services")
        house.becket("down")


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHouse]:
    """Repairs go to main by themselves."""
    yield from _house(tmp_path_factory.mktemp("merging"), "merge")


@pytest.fixture(scope="module")
def proposing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHouse]:
    """Repairs wait for a person."""
    yield from _house(tmp_path_factory.mktemp("proposing"), "propose")


@pytest.fixture(scope="session")
def axe() -> str:
    """What it finds is asked of it by `findings`."""
    return (CACHE / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture(scope="session")
def shots() -> Path:
    folder = CACHE / "shots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
