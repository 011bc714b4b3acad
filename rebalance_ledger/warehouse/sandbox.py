"""DuckDB without access to files, network and extensions. Does not belong here: registered tables, and queries."""

from __future__ import annotations

from typing import Final

import duckdb

SANDBOX_CONFIG: Final = {
    "enable_external_access": "false",
    "allow_persistent_secrets": "false",
    # They would be in the home directory, and the catalog exposes its path.
    "secret_directory": "",
    "extension_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GB",
}
"""DuckDB can read registered tables only, and writes nothing, not even to spill."""


def connect(**changes: str) -> duckdb.DuckDBPyConnection:
    """Open a database in memory whose time zone is UTC, also for its cursors.

    The texts of instants, and hashes over them, are then the same on every machine.

    Args:
        changes: Changes of `SANDBOX_CONFIG`.
    """
    connection = duckdb.connect(":memory:", config=SANDBOX_CONFIG | changes)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection
