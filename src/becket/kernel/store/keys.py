"""A text of any length as an index key. Standard library only: quick readers look things up by it."""

from __future__ import annotations

import hashlib

_LONGEST = 200


def index_key(clean: str) -> str:
    """Postgres refuses keys of more than a third of a page. `clean` is text as the databases hold it."""
    return clean if len(clean) <= _LONGEST else f"{clean[:100]}~{hashlib.sha256(clean.encode()).hexdigest()}"
