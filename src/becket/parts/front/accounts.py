"""Who may come in: one-time links, sessions, tokens and users with passwords. A key's secret is never kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from becket.kernel.contract.caller import Caller, Role, Via
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.tables import Transaction
from becket.parts.front.tables import AUDIT, KEYS, USERS

KeyKind = Literal["link", "session", "token"]
PageRole = Literal["viewer", "member", "approver", "owner"]
"""A viewer looks and does nothing: of those who act, `member` is the lowest."""
PAGE_ROLES: tuple[PageRole, ...] = ("viewer", "member", "approver", "owner")
LINK_LASTS = 300.0
SHORTEST_PASSWORD = 10
HASH_MEMORY, HASH_ROUNDS = 19_456, 4
"""KiB, and how often they are gone through: no login makes the process much larger than it is."""
MOST_SHOWN = 200
KEY = re.compile(r"bkt_[A-Za-z0-9_-]{20,}")
USER_NAME = re.compile(r"[a-z][a-z0-9._-]{0,39}")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is let in, with the role that they have now."""

    name: str
    role: PageRole
    kind: KeyKind
    digest: str
    csrf: str = ""

    def may(self, needs: PageRole) -> bool:
        return PAGE_ROLES.index(self.role) >= PAGE_ROLES.index(needs)

    def caller(self) -> Caller:
        """For the desk's functions. Raises UsageError for somebody who may only look."""
        role = acting(self.role)
        return Caller(name=self.name, role=role, via=Via.api if self.kind == "token" else Via.page)


def acting(role: PageRole) -> Role:
    if role == "viewer":
        raise UsageError("a viewer may look and change nothing; ask an owner for another role")
    return role


@dataclass(frozen=True, slots=True)
class KnownKey:
    digest: str
    kind: KeyKind
    user: str
    role: str
    label: str
    created_at: float
    expires_at: float
    revoked_at: float | None


@dataclass(frozen=True, slots=True)
class KnownUser:
    name: str
    role: PageRole
    created_at: float


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_of(secret: str) -> str:
    """What a form must show besides the cookie, which other sites' forms bring along too."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def make_key(
    tx: Transaction, kind: KeyKind, user: str, lasts: float, role: PageRole = "viewer", label: str = ""
) -> str:
    """Its secret, which is shown once. What has long expired is forgotten."""
    secret = f"bkt_{secrets.token_urlsafe(32)}"
    tx.conn.execute(sa.delete(KEYS).where(KEYS.c.kind != "token", KEYS.c.expires_at < tx.now - 86400.0))
    tx.conn.execute(
        sa.insert(KEYS),
        {"digest": digest_of(secret), "kind": kind, "user": user, "role": role, "label": label,
         "created_at": tx.now, "expires_at": tx.now + lasts, "revoked_at": None},
    )  # fmt: skip
    return secret


def find_key(tx: Transaction, secret: str, kind: KeyKind) -> KnownKey | None:
    """None for one that is unknown, expired or revoked."""
    asked = sa.select(KEYS).where(KEYS.c.digest == digest_of(secret), KEYS.c.kind == kind)
    row = tx.conn.execute(asked).mappings().first()
    if row is None or row["revoked_at"] is not None or row["expires_at"] <= tx.now:
        return None
    return KnownKey(**row)


def sessions(tx: Transaction, digests: Collection[str]) -> dict[str, tuple[str, PageRole | None]]:
    """Those of them that are open: whose each is, and the role that this user has now. No role: the user is gone."""
    asked = (
        sa.select(KEYS.c.digest, KEYS.c.user, USERS.c.role)
        .outerjoin(USERS, USERS.c.name == KEYS.c.user)
        .where(KEYS.c.digest.in_(sorted(digests)), KEYS.c.kind == "session")
        .where(KEYS.c.revoked_at.is_(None), KEYS.c.expires_at > tx.now)
    )
    return {digest: (user, role) for digest, user, role in tx.conn.execute(asked)}


def begin_session(tx: Transaction, name: str, hashed: str, lasts: float) -> str | None:
    """The secret of a session for a user whose password was checked; None where it is another's by now."""
    still = sa.select(USERS.c.role).where(USERS.c.name == name, USERS.c.password == hashed)
    return None if tx.conn.execute(still).first() is None else make_key(tx, "session", name, lasts)


def enter(tx: Transaction, link: str, lasts: float) -> str | None:
    """Spend a one-time link: the secret of the session it opens, or None. One of two that come at once gets in."""
    spent = tx.conn.execute(
        sa.update(KEYS)
        .where(KEYS.c.digest == digest_of(link), KEYS.c.kind == "link", KEYS.c.revoked_at.is_(None))
        .where(KEYS.c.expires_at > tx.now)
        .values(revoked_at=tx.now)
        .returning(KEYS.c.user)
    ).first()
    return None if spent is None else make_key(tx, "session", spent[0], lasts)


def revoke(tx: Transaction, digest: str, kind: KeyKind | None = None) -> bool:
    """By the beginning of its digest, as lists show it."""
    if not digest:
        raise UsageError("say which one; see `becket token list`")
    query = sa.select(KEYS.c.digest).where(KEYS.c.digest.startswith(digest, autoescape=True))
    if kind is not None:
        query = query.where(KEYS.c.kind == kind)
    found = tx.conn.execute(query.where(KEYS.c.revoked_at.is_(None)).limit(2)).scalars().all()
    if len(found) != 1:
        raise NotFound(f"{digest!r} means {'several' if found else 'none'} of the keys; see `becket token list`")
    tx.conn.execute(sa.update(KEYS).where(KEYS.c.digest == found[0]).values(revoked_at=tx.now))
    return True


def keys(tx: Transaction, kind: KeyKind) -> tuple[KnownKey, ...]:
    asked = sa.select(KEYS).where(KEYS.c.kind == kind).order_by(KEYS.c.created_at.desc()).limit(MOST_SHOWN)
    return tuple(KnownKey(**row) for row in tx.conn.execute(asked).mappings())


def add_user(tx: Transaction, name: str, role: PageRole, hashed: str) -> None:
    """Raises UsageError where there is one of that name."""
    if tx.conn.execute(sa.select(USERS.c.name).where(USERS.c.name == name)).first() is not None:
        raise UsageError(f"there is a user {name!r}; `becket user remove {name}` first")
    row = {"name": name, "role": role, "password": hashed, "created_at": tx.now}
    tx.conn.execute(sa.insert(USERS), row)


def remove_user(tx: Transaction, name: str) -> None:
    """With every session and token of theirs."""
    if not tx.conn.execute(sa.delete(USERS).where(USERS.c.name == name)).rowcount:
        raise NotFound(f"there is no user {name!r}; see `becket user list`")
    mine = sa.update(KEYS).where(KEYS.c.user == name, KEYS.c.revoked_at.is_(None))
    tx.conn.execute(mine.values(revoked_at=tx.now))


def users(tx: Transaction) -> tuple[KnownUser, ...]:
    asked = sa.select(USERS.c.name, USERS.c.role, USERS.c.created_at).order_by(USERS.c.name).limit(MOST_SHOWN)
    return tuple(KnownUser(**row) for row in tx.conn.execute(asked).mappings())


def find_user(tx: Transaction, name: str) -> tuple[KnownUser, str] | None:
    """With the hash of the password."""
    row = tx.conn.execute(sa.select(USERS).where(USERS.c.name == name)).mappings().first()
    return None if row is None else (KnownUser(row["name"], row["role"], row["created_at"]), row["password"])


def note(tx: Transaction, who: str, role: str, via: str, address: str, did: str, about: str, outcome: str) -> None:
    """One line of the audit. A key that somebody sent in the wrong place is not kept."""
    row = {"at": tx.now, "who": who, "role": role, "via": via, "address": address, "did": did,
           "about": KEY.sub("bkt_***", about)[:500], "outcome": KEY.sub("bkt_***", outcome)[:500]}  # fmt: skip
    tx.conn.execute(sa.insert(AUDIT), row)


def hash_password(password: str) -> str:
    """Takes a tenth of a second, on purpose."""
    from argon2 import PasswordHasher

    if len(password) < SHORTEST_PASSWORD:
        raise UsageError(f"a password has {SHORTEST_PASSWORD} characters or more")
    return PasswordHasher(memory_cost=HASH_MEMORY, time_cost=HASH_ROUNDS, parallelism=1).hash(password)


def is_password(hashed: str, password: str) -> bool:
    from argon2 import PasswordHasher
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return PasswordHasher().verify(hashed, password)
    except (Argon2Error, InvalidHashError):
        return False
