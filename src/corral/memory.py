"""What agents keep from one call to the next: keys and values by scope, in one SQLite file of the state directory.

Several processes may use it at once: every change is one immediate transaction, and whoever finds the file busy waits
for it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from corral.record import Record

FILE = "memory.db"
BUSY_SECONDS = 5.0
REPLAYS_KEPT_SECONDS = 7 * 24 * 3600

SCHEMA = """
CREATE TABLE IF NOT EXISTS memory (
    scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, value_type TEXT NOT NULL,
    kind TEXT NOT NULL, pinned INTEGER NOT NULL, expires_at REAL, created_at REAL NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (scope, scope_id, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replay (
    agent TEXT NOT NULL, request_id TEXT NOT NULL, asked TEXT NOT NULL, answer TEXT NOT NULL, made_at REAL NOT NULL,
    PRIMARY KEY (agent, request_id)
) WITHOUT ROWID;
"""


class Scope(Record):
    """``name``: project, global, task or agent."""

    name: str
    id: str = ""


class Entry(Record):
    key: str
    value: str
    value_type: str
    kind: str
    pinned: bool
    expires_at: float | None
    updated_at: float


class ReplayMismatch(ValueError):
    """A request id that stands for another request already."""


class Memory:
    """One store. May be used from many threads; each call is one transaction."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, 0o700, exist_ok=True)
        path = os.path.join(directory, FILE)
        # SQLite would make the file, and its two companions after it, by the umask.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        self._retried(lambda: self._db.execute("PRAGMA journal_mode = WAL"))
        self._db.execute("PRAGMA synchronous = NORMAL")
        known = self._db.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('memory', 'replay')"
        ).fetchone()
        if known[0] < 2:
            with self._changing():
                for statement in SCHEMA.split(";"):
                    self._db.execute(statement)

    @staticmethod
    def _retried(action: Callable[[], object]) -> None:
        """Going over to WAL does not wait for others by itself."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                action()
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # ---- changes ----

    def once(self, agent: str, request_id: str, asked: dict[str, Any], change: Callable[[], str]) -> str:
        """The answer of a change. With a request id the change and its answer are kept together: the same request again
        gets the same answer and changes nothing."""
        with self._lock, self._changing():
            if not request_id:
                return change()
            said = json.dumps(asked, sort_keys=True)
            row = self._db.execute(
                "SELECT asked, answer FROM replay WHERE agent = ? AND request_id = ?", (agent, request_id)
            ).fetchone()
            if row is not None:
                if row[0] != said:
                    raise ReplayMismatch(f"request_id {request_id!r} was used for another request")
                return str(row[1])
            answer = change()
            self._db.execute(
                "INSERT INTO replay VALUES (?, ?, ?, ?, ?)", (agent, request_id, said, answer, time.time())
            )
            return answer

    def save(
        self, scope: Scope, key: str, value: str, *, kind: str, pin: bool, expires_at: float | None
    ) -> None:
        """Only within `once`. A pin stays, whatever is saved later; what is pinned does not expire."""
        now = time.time()
        self._db.execute(
            "INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "value = excluded.value, value_type = excluded.value_type, kind = excluded.kind, "
            "pinned = max(pinned, excluded.pinned), expires_at = excluded.expires_at, updated_at = excluded.updated_at",
            (scope.name, scope.id, key, value, type_of(value), kind, pin, expires_at, now, now),
        )

    def forget(self, scope: Scope, key: str) -> None:
        """Only within `once`. Harmless if it is not there."""
        self._db.execute(
            "DELETE FROM memory WHERE scope = ? AND scope_id = ? AND key = ?", (*scope._values(), key)
        )

    def collect(self, scope: Scope | None) -> tuple[int, int]:
        """Only within `once`. What has expired and is not pinned goes, of one scope or of all; then old answers."""
        where, values = ("AND scope = ? AND scope_id = ?", scope._values()) if scope is not None else ("", ())
        entries = self._db.execute(
            f"DELETE FROM memory WHERE pinned = 0 AND expires_at <= ? {where}", (time.time(), *values)
        )
        answers = self._db.execute(
            "DELETE FROM replay WHERE made_at < ?", (time.time() - REPLAYS_KEPT_SECONDS,)
        )
        return entries.rowcount, answers.rowcount

    # ---- reading ----

    def recall(self, scope: Scope, key: str) -> Entry | None:
        return next(iter(self._entries("AND key = ?", (*scope._values(), time.time(), key))), None)

    def entries(self, scope: Scope) -> list[Entry]:
        """By key; what has expired is not in it."""
        return self._entries("ORDER BY key", (*scope._values(), time.time()))

    def _entries(self, rest: str, values: tuple[object, ...]) -> list[Entry]:
        with self._lock:
            rows = self._db.execute(
                "SELECT key, value, value_type, kind, pinned, expires_at, updated_at FROM memory WHERE scope = ? AND "
                f"scope_id = ? AND (pinned OR expires_at IS NULL OR expires_at > ?) {rest}",
                values,
            ).fetchall()
        return [
            Entry(key, value, what, kind, bool(pin), *times) for key, value, what, kind, pin, *times in rows
        ]


def type_of(value: str) -> str:
    """boolean, number, array, json or string, by what the text looks like."""
    text = value.strip()
    if text in ("true", "false"):
        return "boolean"
    if text[:1] not in "[{" and not text[:1].isdigit() and text[:1] != "-":
        return "string"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "string"
    return "array" if isinstance(found, list) else "json" if isinstance(found, dict) else "number"
