"""Services, releases and requests in one small SQLite file of the watchdog's own: a broken journal does not stop it.

`becket status` reads the same tables with the standard library alone.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import NotFound, StoreDamaged, StoreUnavailable, UsageError
from becket.parts.services.ports import Incident, Release, Service, ServiceRequest

T = TypeVar("T", bound=Record)

VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS services (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT, release_id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, settled INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_open ON requests (number) WHERE settled = 0;
CREATE TABLE IF NOT EXISTS incidents (
    number INTEGER PRIMARY KEY AUTOINCREMENT, told INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS incidents_untold ON incidents (number) WHERE told = 0;
"""


class SqliteServiceStore:
    """The watchdog's memory of services. One call is one transaction; durable when it returns.

    Several processes may read; only the watchdog writes, but for a first look at an empty file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.is_dir():
            raise StoreDamaged(f"{path} is damaged: it is a folder")
        try:
            self._conn = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{path} cannot be read: {error}; is it Becket's own, of this version?") from error
        try:
            self._conn.execute("PRAGMA journal_mode = WAL")
            self._conn.execute("PRAGMA synchronous = FULL")
            self._prepare()
        except sqlite3.OperationalError as error:
            self._conn.close()
            raise StoreUnavailable(f"{path} cannot be read: {error}; is it Becket's own, of this version?") from error
        except sqlite3.DatabaseError as error:
            self._conn.close()
            raise StoreDamaged(f"{path} is damaged: {error}") from error

    def _prepare(self) -> None:
        wrong = self._conn.execute("PRAGMA quick_check(1)").fetchone()[0]
        if wrong != "ok":
            raise sqlite3.DatabaseError(wrong)
        found = self._conn.execute("PRAGMA user_version").fetchone()[0]
        if found > VERSION:
            raise StoreUnavailable(f"{self._path} is of a newer Becket (version {found}); update this one")
        if found < VERSION:
            self._conn.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")

    def close(self) -> None:
        self._conn.close()

    def put(self, *records: Service | Release | ServiceRequest | Incident) -> None:
        self._conn.execute("BEGIN IMMEDIATE")
        try:
            for record in records:
                self._write(record)
            self._conn.execute("COMMIT")
        except BaseException:
            self._conn.execute("ROLLBACK")
            raise

    def _write(self, record: Service | Release | ServiceRequest | Incident) -> None:
        body, run = record.model_dump_json(), self._conn.execute
        if isinstance(record, Service):
            run(
                "INSERT INTO services VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body", (record.name, body)
            )
        elif isinstance(record, Release):
            run(
                "INSERT INTO releases (release_id, service, body) VALUES (?, ?, ?) "
                "ON CONFLICT (release_id) DO UPDATE SET body = excluded.body",
                (record.release_id, record.service, body),
            )
        elif isinstance(record, ServiceRequest):
            run(
                "INSERT INTO requests (key, settled, body) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET settled = excluded.settled, body = excluded.body",
                (record.key, record.outcome is not None, body),
            )
        else:
            run("INSERT INTO incidents (body) VALUES (?)", (body,))

    def service(self, name: str) -> Service:
        """As stored, or a new one that nobody wants."""
        return self._one(Service, "SELECT body FROM services WHERE name = ?", name) or Service(name=name)

    def services(self) -> tuple[Service, ...]:
        return self._all(Service, "SELECT body FROM services ORDER BY name")

    def release(self, release_id: str) -> Release:
        found = self._one(Release, "SELECT body FROM releases WHERE release_id = ?", release_id)
        if found is None:
            raise NotFound(f"there is no release {release_id!r}; `becket service list` shows the services")
        return found

    def releases(self, service: str) -> tuple[Release, ...]:
        """Newest first."""
        return self._all(Release, "SELECT body FROM releases WHERE service = ? ORDER BY number DESC", service)

    def request(self, key: str) -> ServiceRequest | None:
        return self._one(ServiceRequest, "SELECT body FROM requests WHERE key = ?", key)

    def accept(self, request: ServiceRequest) -> ServiceRequest:
        """The stored request of this key: this one, or the one that was first. Raises UsageError if they differ."""
        self._conn.execute("BEGIN IMMEDIATE")
        try:
            known = self.request(request.key)
            if known is None:
                self._write(request)
            self._conn.execute("COMMIT")
        except BaseException:
            self._conn.execute("ROLLBACK")
            raise
        if known is not None and _asked(known) != _asked(request):
            raise UsageError(f"the request {request.key} was made before, for something else; use a key of its own")
        return known or request

    def open_requests(self) -> tuple[ServiceRequest, ...]:
        """Without an outcome, oldest first."""
        return self._all(ServiceRequest, "SELECT body FROM requests WHERE settled = 0 ORDER BY number")

    def untold(self) -> list[tuple[int, Incident]]:
        rows = self._conn.execute("SELECT number, body FROM incidents WHERE told = 0 ORDER BY number").fetchall()
        return [(number, self._read(Incident, body)) for number, body in rows]

    def told(self, number: int) -> None:
        self._conn.execute("UPDATE incidents SET told = 1 WHERE number = ?", (number,))

    def _one(self, kind: type[T], query: str, *values: str) -> T | None:
        row = self._conn.execute(query, values).fetchone()
        return self._read(kind, row[0]) if row else None

    def _all(self, kind: type[T], query: str, *values: str) -> tuple[T, ...]:
        return tuple(self._read(kind, row[0]) for row in self._conn.execute(query, values).fetchall())

    def _read(self, kind: type[T], body: str) -> T:
        try:
            return kind.model_validate_json(body)
        except ValueError as error:
            raise StoreDamaged(f"{self._path} is damaged: a row cannot be read ({error})") from error


def _asked(request: ServiceRequest) -> tuple[str, ...]:
    return request.op.value, request.service, request.sha, request.proof
