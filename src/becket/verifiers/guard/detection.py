"""Source that finds out whether it is being tested: by the runner's marks, or by who called it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

_NEAR = 3  # lines between asking who is there and the name that is looked for
_MARKS = {
    "python": re.compile(
        r"PYTEST_CURRENT_TEST|PYTEST_VERSION|[\"'](?:_?pytest|unittest|nose|doctest)[\"']\s+(?:not\s+)?in\s+sys\.modules"
        r"|sys\.modules(?:\.get\(|\[)\s*[\"'](?:_?pytest|unittest)[\"']"
        r"|(?:pytest|unittest)[\"']?\s+in\s+(?:sys\.argv|inspect)"
    ),
    "javascript": re.compile(
        r"JEST_WORKER_ID|process\.env\.VITEST\b|VITEST_WORKER_ID|typeof\s+(?:jest|describe|it|expect|beforeEach)\s*[!=]=+"
        r"|\b(?:global|globalThis|window)\.(?:jest|describe|it|expect|beforeEach|mocha)\b(?!\s*=[^=])"
        r"|[\"'](?:jest|describe|it|expect)[\"']\s+in\s+(?:global|globalThis|window)\b"
    ),
    "go": re.compile(r"testing\.Testing\(\)|flag\.Lookup\(\"test\.|HasSuffix\(os\.Args\[0\],\s*\"\.test\"\)"),
    "rust": re.compile(r"cfg!\(\s*test\s*\)|#\[cfg\(\s*not\(\s*test\s*\)\s*\)\]"),
    "java": re.compile(r"Class\.forName\(\"org\.(?:junit|testng)|\"surefire\.|\"org\.gradle\.test"),
}
_ASKS_AND_NAMES: dict[str, tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]] = {
    "python": (
        (
            re.compile(r"sys\.(?:modules|argv|orig_argv)\b"),
            re.compile(r"[\"'][^\"']{0,200}(?:pytest|py\.test|unittest|conftest)[^\"']{0,200}[\"']"),
        ),
        (
            re.compile(r"inspect\.(?:stack|currentframe|getouterframes)|_getframe\(|extract_stack|walk_stack"),
            re.compile(
                r"[\"'](?:[^\"']{0,200}(?:pytest|unittest|conftest)[^\"']{0,200}|/?tests?[_/]?|_test(?:\.py)?)[\"']"
            ),
        ),
    ),
    "javascript": (
        (
            re.compile(r"\.stack\b|process\.argv|module\.parent|require\.main|captureStackTrace"),
            re.compile(r"[\"'`/][^\"'`]{0,200}(?:jest|mocha|vitest|\.test\b|\.spec\b|__tests__)"),
        ),
    ),
    "go": (
        (
            re.compile(r"os\.(?:Args\[0\]|Executable\(\))|runtime\.Callers?\("),
            re.compile(r"\"[^\"]{0,200}(?:\.test|_test|testing\.)[^\"]{0,200}\""),
        ),
    ),
    "rust": (
        (
            re.compile(r"thread::current\(\)\s*\.name\(\)|current_exe\(\)"),
            re.compile(r"\"[^\"]{0,200}(?:tests?::|deps/|::tests?)[^\"]{0,200}\""),
        ),
    ),
    "java": (
        (
            re.compile(r"getStackTrace\(\)|StackWalker|getClassName\(\)"),
            re.compile(r"\"[^\"]{0,200}(?:junit|testng|surefire|Test)[^\"]{0,200}\""),
        ),
    ),
}

HINTS = (
    r"PYTEST_|sys\.modules|sys\.(?:orig_)?argv|inspect\.|_getframe|extract_stack|walk_stack|JEST_WORKER_ID|VITEST"
    r"|\bglobal(?:This)?\b|\bwindow\b|\.stack\b|process\.argv|module\.parent|require\.main|captureStackTrace|test\.v"
    r"|testing\.|os\.Args|os\.Executable|runtime\.Caller|cfg!\(test\)|not\(test\)|thread::current|current_exe"
    r"|org\.junit|surefire|getStackTrace|StackWalker|getClassName"
)
"""A line without any of these finds out nothing."""


def lines_that_detect(language: str, added: Mapping[int, str], code: Collection[int]) -> Iterator[int]:
    """`added`: lines that the change brings; `code`: numbers of lines that hold more than comments."""
    family = "javascript" if language in {"typescript", "tsx"} else language
    marks = _MARKS.get(family)
    lines = {number: line for number, line in added.items() if number in code}
    found = {number for number, line in lines.items() if marks is not None and marks.search(line)}
    for asks, names in _ASKS_AND_NAMES.get(family, ()):
        asking = [number for number, line in lines.items() if asks.search(line)]
        naming = [number for number, line in lines.items() if names.search(line)] if asking else []
        found.update(number for number in asking if any(abs(number - other) <= _NEAR for other in naming))
    yield from sorted(found)
