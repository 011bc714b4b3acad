"""Prepare Airflow's metadata and exit: tables, pools, and the user `admin` with the generated password: `airflow_init.py PASSWORD_FILE`.

Belongs here: what every start of the deployment does once, before Airflow's components. Does not belong here: further users; an
administrator adds them on Airflow's pages or with `airflow users create`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_POOLS: Final = Path(__file__).with_name("airflow-pools.json")
_USER: Final = "admin"
_ROLE: Final = "Admin"


def main() -> int:
    """Run the steps; each changes nothing where it has been done.

    Returns:
        0.

    Raises:
        subprocess.CalledProcessError: A command of Airflow's failed.
    """
    _airflow("db", "migrate")
    _import_pools()
    _create_admin(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return 0


def _airflow(*command: str) -> None:
    subprocess.run(["airflow", *command], check=True)  # noqa: S603, S607  # in the image there is one


def _import_pools() -> None:
    """Add the pools, or change their slots; builds have those of all workers, `AIRFLOW_WORKERS` times `AIRFLOW_WORKER_SLOTS`."""
    pools = json.loads(_POOLS.read_text(encoding="utf-8"))
    pools["ledger_build"]["slots"] = int(os.environ["AIRFLOW_WORKERS"]) * int(
        os.environ["AIRFLOW_WORKER_SLOTS"]
    )
    with TemporaryDirectory() as folder:
        file = Path(folder, "pools.json")
        file.write_text(json.dumps(pools), encoding="utf-8")
        _airflow("pools", "import", str(file))


def _create_admin(password: str) -> None:
    """Add the user unless it is there; a password that was changed on Airflow's pages stays."""
    # `airflow users create` takes a password as an argument, which the list of processes shows, or from a terminal.
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder  # noqa: PLC0415

    with get_application_builder() as builder:
        manager = builder.sm
        if manager.find_user(_USER) is not None:
            return
        role = manager.find_role(_ROLE)
        if not manager.add_user(_USER, "Admin", "User", "admin@localhost", role, password):
            sys.exit(f"The user {_USER} could not be created; see the lines above.")


if __name__ == "__main__":
    sys.exit(main())
