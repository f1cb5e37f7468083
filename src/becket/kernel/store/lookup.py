"""Finding a row by the beginning of its id, as people type it."""

from __future__ import annotations

import sqlalchemy as sa

from becket.kernel.contract.errors import NotFound
from becket.kernel.store.tx import Row, Tx


def by_prefix(tx: Tx, column: sa.Column[str], prefix: str, what: str, lister: str) -> Row:
    """The one row whose id begins like this, or NotFound with the way to list them."""
    table = column.table
    found = (
        tx.all(sa.select(table).where(sa.func.substr(column, 1, len(prefix)) == prefix).order_by(column).limit(3))
        if prefix
        else ()
    )
    if not found:
        raise NotFound(f"there is no {what} {prefix!r}; `{lister}` shows what there is")
    if len(found) > 1:
        ids = ", ".join(str(row._mapping[column]) for row in found[:2])
        raise NotFound(f"several {what}s begin with {prefix!r}, such as {ids}; give more of the id")
    return found[0]
