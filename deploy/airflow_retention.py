"""Remove old rows of Airflow's metadata and old task logs once a day: `airflow_retention.py`; `--check` for its health check.

Belongs here: what Airflow keeps. Does not belong here: the ledger's tables, exports and staged days; the DAG `warehouse_maintenance`
and the settings decide about those, and this service has no access to them.

It is a service and no DAG, because a task of Airflow 3 has no access to the metadata.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

_LAST_SUCCESS: Final = Path("/tmp/retention-succeeded")  # noqa: S108  # the container's own
_BETWEEN_RUNS_S: Final = 24 * 3600
_BEFORE_RETRY_S: Final = 3600
_UNHEALTHY_AFTER_S: Final = 2 * _BETWEEN_RUNS_S


def main() -> int:
    """Clean at once and then every day; with `--check` look when it last succeeded, with `--once` do it and end.

    Returns:
        0, or 1 for a check of a service that has not succeeded for two days.
    """
    if "--check" in sys.argv:
        is_fresh = time.time() - _LAST_SUCCESS.stat().st_mtime < _UNHEALTHY_AFTER_S
        return 0 if is_fresh else 1
    if "--once" in sys.argv:
        clean()
        return 0
    _LAST_SUCCESS.touch()
    while True:
        try:
            clean()
        except (subprocess.CalledProcessError, OSError) as error:
            sys.stderr.write(f"{error}; the next attempt is in an hour.\n")
            time.sleep(_BEFORE_RETRY_S)
        else:
            _LAST_SUCCESS.touch()
            time.sleep(_BETWEEN_RUNS_S)


def clean() -> None:
    """Remove rows and log files that are older than the variables allow.

    Raises:
        subprocess.CalledProcessError: Airflow could not clean a table.
    """
    rows_before = datetime.now(tz=UTC) - timedelta(days=int(os.environ["AIRFLOW_METADATA_RETENTION_DAYS"]))
    # Without --skip-archive the rows would move to tables that nothing removes.
    command = ["airflow", "db", "clean", "--yes", "--skip-archive", "--error-on-cleanup-failure"]
    subprocess.run([*command, "--clean-before-timestamp", rows_before.isoformat()], check=True)  # noqa: S603  # an argument list
    days = int(os.environ["AIRFLOW_LOG_RETENTION_DAYS"])
    removed = remove_old_files(Path(os.environ["AIRFLOW_HOME"], "logs"), days)
    sys.stdout.write(f"Rows before {rows_before:%Y-%m-%d} and {removed} log files are removed.\n")


def remove_old_files(folder: Path, days: int) -> int:
    """Remove files that were not written for some days, and folders that have been empty as long; return how many files.

    Args:
        folder: Folder of the logs.
        days: Files that were changed since then stay.
    """
    oldest = time.time() - days * 24 * 3600
    removed = 0
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = Path(path, name)
            if file.lstat().st_mtime < oldest:
                file.unlink()
                removed += 1
        current = Path(path)
        # A young folder may be one that a task has just made for its log.
        if current != folder and current.stat().st_mtime < oldest and not any(current.iterdir()):
            current.rmdir()
    return removed


if __name__ == "__main__":
    sys.exit(main())
