"""How Airflow connects to SQLite, the metadata database of one machine (`conf/environment.sh`).

Belongs here: arguments of `sqlite3.connect`. Does not belong here: other databases, which need none.
"""

from __future__ import annotations

from typing import Any, Final

CONNECT_ARGS: Final[dict[str, Any]] = {
    # Seconds that a writer waits for the other one. The default of five is less than a busy scheduler may take.
    "timeout": 60.0,
    # A transaction takes the write lock when it begins. One that has read first, and writes after another has written, cannot wait
    # for the lock: SQLite ends it at once with "database is locked", whatever the timeout.
    "isolation_level": "IMMEDIATE",
}
