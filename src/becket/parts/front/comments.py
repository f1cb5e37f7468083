"""What people have written about lines of a ready repair, and not sent yet or sent with a wish for changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.tables import Transaction
from becket.parts.front.tables import COMMENTS

MOST_SHOWN = 200
MOST_OPEN = 50


@dataclass(frozen=True, slots=True)
class KnownComment:
    number: int
    path: str
    line: int
    text: str
    who: str
    at: float
    sent_to: str


def comments(tx: Transaction, run_id: str) -> tuple[KnownComment, ...]:
    columns = [COMMENTS.c[name] for name in KnownComment.__dataclass_fields__]
    asked = sa.select(*columns).where(COMMENTS.c.run_id == run_id).order_by(COMMENTS.c.number).limit(MOST_SHOWN)
    return tuple(KnownComment(**row) for row in tx.conn.execute(asked).mappings())


def unsent(tx: Transaction, run_id: str, who: str) -> tuple[KnownComment, ...]:
    """Somebody's own."""
    return tuple(one for one in comments(tx, run_id) if not one.sent_to and one.who == who)


def add_comment(tx: Transaction, run_id: str, sha: str, path: str, line: int, text: str, who: str) -> None:
    if len(comments(tx, run_id)) >= MOST_SHOWN or len(unsent(tx, run_id, who)) >= MOST_OPEN:
        raise UsageError("these are more comments than a brief holds; send them, or remove some")
    row = {"run_id": run_id, "sha": sha, "path": path, "line": line, "text": text, "who": who, "at": tx.now,
           "sent_to": ""}  # fmt: skip
    tx.conn.execute(sa.insert(COMMENTS), row)


def drop_comment(tx: Transaction, number: int, run_id: str, who: str) -> None:
    """One's own, before it is sent."""
    mine = (COMMENTS.c.number == number, COMMENTS.c.run_id == run_id, COMMENTS.c.who == who, COMMENTS.c.sent_to == "")
    if not tx.conn.execute(sa.delete(COMMENTS).where(*mine)).rowcount:
        raise NotFound("there is no such comment of yours that is not sent")


def mark_sent(tx: Transaction, numbers: Collection[int], sent_to: str) -> None:
    tx.conn.execute(sa.update(COMMENTS).where(COMMENTS.c.number.in_(numbers)).values(sent_to=sent_to))
