"""How Airflow connects to SQLite, the metadata database of one machine (`conf/environment.sh`).

Belongs here: arguments of `sqlite3.connect`. Does not belong here: other databases, which need none.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final, Self


class _Cursor(sqlite3.Cursor):
    """A cursor whose transactions begin with the write lock, also those that begin with a savepoint.

    `isolation_level` applies to statements that write. A savepoint outside a transaction would begin one without the lock, as
    `airflow backfill create` does (3.3, `models.backfill`).
    """

    def execute(self, sql: str, *parameters: Any) -> Self:  # noqa: ANN401  # as in the base class
        """Execute a statement; see `sqlite3.Cursor.execute`."""
        if sql.startswith("SAVEPOINT") and not self.connection.in_transaction:
            super().execute("BEGIN IMMEDIATE")
        return super().execute(sql, *parameters)


class _Connection(sqlite3.Connection):
    """A connection with such cursors."""

    def cursor(self, factory: Any = _Cursor) -> Any:  # noqa: ANN401  # as in the base class
        """Return a cursor; see `sqlite3.Connection.cursor`."""
        return super().cursor(factory)


CONNECT_ARGS: Final[dict[str, Any]] = {
    # Seconds that a writer waits for the other one. The default of five is less than a busy scheduler may take.
    "timeout": 60.0,
    # A transaction takes the write lock when it begins. One that has read first, and writes after another has written, cannot wait
    # for the lock: SQLite ends it at once with "database is locked", whatever the timeout.
    "isolation_level": "IMMEDIATE",
    "factory": _Connection,
}
