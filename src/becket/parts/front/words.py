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
        said = known.get(text) or (ONE.get(text, text) if values.get("count") == 1 else text)
        return said.format(**values) if values else said

    return say


WORDS: Mapping[str, Mapping[str, str]] = {"zh": chinese.WORDS}

ONE: Mapping[str, str] = {
    "{count} calls": "1 call",
    "{count} commits ago": "1 commit ago",
    "{count} days": "1 day",
    "{count} deaths since it was healthy": "1 death since it was healthy",
    "{count} earlier steps are not shown here.": "1 earlier step is not shown here.",
    "{count} failing tests": "1 failing test",
    "{count} iterations": "1 iteration",
    "{count} receipts": "1 receipt",
    "{count} times": "once",
}
"""The English texts about one."""
