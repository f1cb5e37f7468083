"""Every text of the page has its Chinese one."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

from becket.parts.front.words import LANGUAGES, WORDS, speaker
from front_stage import make_front

TEXTS = re.compile(r'_\(\s*"((?:[^"\\]|\\.)*)"')
TEMPLATES = sorted(
    (one for one in (files("becket.parts.front") / "templates").iterdir() if one.name.endswith(".html")),
    key=lambda one: one.name,
)


@pytest.mark.parametrize("lang", sorted(set(LANGUAGES) - {"en"}))
def test_every_text_of_a_page_is_there_in_every_language(lang: str) -> None:
    texts = {text for one in TEMPLATES for text in TEXTS.findall(one.read_text("utf-8"))}
    assert len(texts) > 200
    assert sorted(texts - set(WORDS[lang])) == []


@pytest.mark.parametrize("lang", sorted(WORDS))
def test_a_text_is_given_the_same_values_in_every_language(lang: str) -> None:
    def fields(text: str) -> set[str | None]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    assert [text for text, said in WORDS[lang].items() if fields(text) != fields(said)] == []


def test_one_of_something_is_said_as_one() -> None:
    assert speaker("en")("{count} failing tests", count=1) == "1 failing test"
    assert speaker("en")("{count} failing tests", count=2) == "2 failing tests"
    assert speaker("zh")("{count} failing tests", count=1) == "1 个失败的测试"


def test_a_browser_gets_the_language_that_it_asks_for(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        me = await stage.person("member")
        page = await me.client.get("/", headers={"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
        assert 'lang="zh-Hans"' in page.text
        assert "需要我做什么" in page.text
        assert "What is asked of me" in (await me.client.get("/", headers={"accept-language": "de,zh;q=0.1"})).text
        await stage.close()

    asyncio.run(story())
