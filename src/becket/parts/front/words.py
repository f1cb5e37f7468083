"""The page's texts in other languages, by the English one. What is missing is shown in English."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request

LANGUAGES = {"en": "English", "zh": "中文"}
CHOSEN = "becket_lang"


def language(request: Request) -> str:
    """What the visitor chose, else what the browser asks for."""
    chosen = request.cookies.get(CHOSEN, "")
    if chosen in LANGUAGES:
        return chosen
    asked = request.headers.get("accept-language", "")[:200].lower()
    first = asked.partition(",")[0].partition(";")[0].strip().partition("-")[0]
    return first if first in LANGUAGES else "en"


def speaker(lang: str) -> Callable[..., str]:
    known = WORDS.get(lang, {})

    def say(text: str, **values: object) -> str:
        said = known.get(text, text)
        return said.format(**values) if values else said

    return say


WORDS: Mapping[str, Mapping[str, str]] = {
    "zh": {
        "Log in": "登录",
        "Log out": "退出",
        "Name": "用户名",
        "Password": "密码",
        "Now": "现在",
        "Runs": "运行",
        "Loops": "循环",
        "Services": "服务",
        "Spend": "花费",
    }
}
