"""What may be saved of what a run left: not too much, and no secret in clear (L25)."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath

from becket.contract.candidate import RescueRules
from becket.contract.config import Retention
from becket.engine.redact import Redactor
from becket.verifiers.guard.secrets import secrets_in

_NAMES = re.compile(
    r"\.env(?:\.(?!example$|sample$|template$|dist$).+)?|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:netrc|npmrc|pypirc|pgpass|git-credentials)"
)
"""Files that people keep secrets in; a new one is not looked into."""


def rules(retention: Retention, redactor: Redactor) -> RescueRules:
    return RescueRules(largest=retention.rescue_file, together=retention.rescue_size, secret=partial(_secret, redactor))


def _secret(redactor: Redactor, path: str, old: bytes, new: bytes) -> str | None:
    """Only what is surely one: a repair that is left out is a repair that is lost."""
    if not old and _NAMES.fullmatch(PurePosixPath(path).name):
        return "files of this name hold secrets"
    if (found := next(secrets_in(old, new), None)) is not None:
        return f"line {found[0]} holds {found[1]}"
    known = redactor.leaks(new.decode("utf-8", "replace"))
    return f"it holds the value of {known[0]}" if known else None
