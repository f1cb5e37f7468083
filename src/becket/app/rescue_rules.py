"""What may be saved of what a run left: not too much, and no secret in clear (L25)."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath

from becket.kernel.contract.candidate import RescueRules
from becket.kernel.contract.config import Retention
from becket.kernel.contract.lines import added_lines, as_text
from becket.kernel.engine.redact import Redactor
from becket.kernel.engine.secret_lines import secrets_in

_NAMES = re.compile(
    r"\.env(?:\.(?!example$|sample$|template$|dist$).+)?|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:netrc|npmrc|pypirc|pgpass|git-credentials)"
)
"""Files that people keep secrets in; a new one is not looked into."""


_MARK = re.compile(r"\[redacted:([^\]]*)\]")
_READ_UNSEEN = 32
"""Bytes of a file that is no text and may be saved all the same: they can hardly hold a secret."""


def rules(retention: Retention, redactor: Redactor) -> RescueRules:
    return RescueRules(
        largest=retention.rescue_file, together=retention.rescue_size, secret=partial(_secret, redactor),
        shown=partial(_shown, redactor),
    )  # fmt: skip


def _secret(redactor: Redactor, path: str, old: bytes, new: bytes) -> str | None:
    """The guard's shapes, the values that are known, and whatever would be hidden in a log: a repair that is left out
    can be made again, a secret that was saved cannot be taken back.
    """
    if not old and _NAMES.fullmatch(PurePosixPath(path).name):
        return "files of this name hold secrets"
    if _shown(redactor, path) != path:
        return "its name holds a secret"
    text = as_text(new)
    if text is None:
        return "it is no text, so nobody can see whether it holds a secret" if len(new) > _READ_UNSEEN else None
    before = as_text(old) or b""
    if (found := next(secrets_in(before, text), None)) is not None:
        return f"line {found[0]} holds {found[1]}"
    known = redactor.leaks(text.decode("utf-8", "replace"))
    return f"it holds the value of {known[0]}" if known else _by_shape(redactor, before, text)


def _by_shape(redactor: Redactor, old: bytes, new: bytes) -> str | None:
    """Of lines that are new: what was there is in the history already."""
    added = list(added_lines(old, new))
    hidden = redactor.text("\n".join(line for _, line in added)).split("\n")
    for (number, line), left in zip(added, hidden, strict=False):
        if line != left:
            kind = _MARK.search(left)
            return f"line {number} holds what looks like a secret ({kind[1] if kind else 'part of one'})"
    return None


def _shown(redactor: Redactor, name: str) -> str:
    safe = redactor.text(name)
    return "a name that holds a secret" if redactor.leaks(safe) else safe
