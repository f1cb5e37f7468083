"""Secrets in added lines: only shapes that are hardly ever anything else, so that honest code passes (L25)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from becket.kernel.contract.lines import added_lines

_HINTS = re.compile(
    rb"PRIVATE KEY|gh[pousr]_|github_pat_|gl(?:pat|ptt|rt|dt)-|xox[abeoprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|GOCSPX-"
    rb"|[srk]k_live_|sk-|npm_|pypi-|hf_|bk_|hooks\.slack\.com|SG\.|dop_v1_|://[^/\s:@]{1,64}:[^/\s@]{3,}@|aws_secret"
)
_EXAMPLE = re.compile(
    r"(?i)example|sample|dummy|fake|placeholder|changeme|redacted|x{6,}|0{8,}|1234567|abcdef|your[-_]|test[-_]?(?:token|key)"
)
_LONGEST_LINE = 20_000


@dataclass(frozen=True, slots=True)
class _Pattern:
    kind: str
    shape: re.Pattern[str]
    entropy: float = 3.0


_PATTERNS = (
    _Pattern("a GitHub token", re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}(?![A-Za-z0-9])")),
    _Pattern("a GitHub token", re.compile(r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{50,255}")),
    _Pattern("a GitLab token", re.compile(r"(?<![A-Za-z0-9])gl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{20,64}")),
    _Pattern("a Slack token", re.compile(r"(?<![A-Za-z0-9])(?:xox[abeoprs]-[0-9A-Za-z-]{20,}|xapp-[0-9A-Za-z-]{30,})")),
    _Pattern("a Slack webhook", re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}")),
    _Pattern("an AWS key", re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])")),
    _Pattern(
        "an AWS secret",
        re.compile(r"(?i)aws_secret_access_key[\"']?\s{0,4}[=:]\s{0,4}[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"),
        4.0,
    ),
    _Pattern("a Google key", re.compile(r"(?<![A-Za-z0-9])(?:AIza[\w-]{35}|GOCSPX-[\w-]{28})(?![\w-])")),
    _Pattern("a payment key", re.compile(r"(?<![A-Za-z0-9])[srk]k_live_[A-Za-z0-9]{20,}")),
    _Pattern("an API key", re.compile(r"(?<![A-Za-z0-9])sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,}"), 4.0),
    _Pattern(
        "a registry token",
        re.compile(r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])|pypi-AgE[A-Za-z0-9_-]{50,})"),
    ),
    _Pattern("a model hub token", re.compile(r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])")),
    _Pattern("a mail service key", re.compile(r"(?<![A-Za-z0-9])SG\.[\w-]{22}\.[\w-]{43}")),
    _Pattern("a cloud token", re.compile(r"(?<![A-Za-z0-9])dop_v1_[0-9a-f]{64}")),
    _Pattern("a Becket token", re.compile(r"(?<![A-Za-z0-9])bk_[A-Za-z0-9_-]{32,}"), 4.0),
)
_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{40,}")
_URL = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://(?P<user>[^/\s:@\"'<>]{1,64}):(?P<password>[^/\s@\"'<>]{6,128})@(?P<host>[\w.-]+)"
)
_HARMLESS_HOST = re.compile(
    r"^(?:localhost|127\.|0\.0\.0\.0|10\.|192\.168\.|\[?::1|[\w-]+$)|(?:^|\.)(?:example\.(?:com|org|net)|test|local|invalid|internal)$"
)


def secrets_in(old: bytes, new: bytes) -> Iterator[tuple[int, str]]:
    """Line and kind of each secret that the change adds. The secret itself is never told."""
    if not _HINTS.search(new):
        return
    key_begins = 0
    for number, line in added_lines(old, new):
        kind = _kind_in(line[:_LONGEST_LINE], old)
        if kind is None and _KEY_BEGINS.search(line):
            key_begins = number
            kind = "a private key" if _KEY_BODY.search(_KEY_BEGINS.sub("", line)) else None
        elif key_begins and number <= key_begins + 5 and _KEY_BODY.search(line):
            kind, key_begins = "a private key", 0
        if kind is not None:
            yield number, kind


def secret_in_name(name: str) -> str | None:
    """The kind of secret that a file is called by."""
    return _kind_in(name[:_LONGEST_LINE], b"")


def without_secrets(name: str) -> str:
    for pattern in _PATTERNS:
        name = pattern.shape.sub("***", name)
    return name


def _kind_in(line: str, old: bytes) -> str | None:
    """A secret that base has too, in a line that only looks different now, is not an added one."""
    for pattern in _PATTERNS:
        for found in pattern.shape.finditer(line):
            new = not _EXAMPLE.search(found[0]) and found[0].encode() not in old
            if new and _entropy(found[0]) >= pattern.entropy:
                return pattern.kind
    for found in _URL.finditer(line):
        if found[0].encode() in old:
            continue
        if _worth(found["password"]) and not _HARMLESS_HOST.search(found["host"]):
            return "a password in an address"
    return None


def _worth(password: str) -> bool:
    """Not a placeholder, a variable or a plain word."""
    if _EXAMPLE.search(password) or re.search(r"[${}%*\[\]]|^(?i:pass|secret|password|token|user)", password):
        return False
    return _entropy(password) >= 2.5 and bool(re.search(r"[0-9]", password))


def _entropy(text: str) -> float:
    """Bits per character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values())
