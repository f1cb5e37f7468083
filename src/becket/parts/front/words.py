"""The page's texts in other languages, by the English one. What is missing is shown in English."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request

from becket.parts.front import chinese

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


WORDS: Mapping[str, Mapping[str, str]] = {"zh": chinese.WORDS}
