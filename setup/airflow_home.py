"""Airflow's project-local home: its SQLite database and the pools that the DAG names.

Belongs here: Airflow settings that are written once. Settings of every start are in `conf/environment.sh`.
"""

from __future__ import annotations

import re
import shutil

from setup.steps import LOCAL, ROOT, Step, content_key, run_logged

HOME = LOCAL / "airflow"
_LOCK = ROOT / "requirements" / "lock.txt"
_WITH_TABLES = r"^apache-airflow(?:-providers-(?:edge3|fab))?==\S+"
_IN_ENVIRONMENT = ROOT / "setup" / "in-environment"
POOLS = (
    ("ledger_publish", "1", "One writer of the published tables; Delta on a file system requires it."),
    ("ledger_build", "1", "Concurrent Spark applications and gates."),
    ("cluster_export", "1", "Concurrent captures of live clusters; each starts a JVM."),
)


def step() -> Step:
    """Return the step; it is repeated for another Airflow, another provider with tables in its database, or other pools."""
    versions = re.findall(_WITH_TABLES, _LOCK.read_text(), re.MULTILINE)
    key = content_key(str(ROOT), *versions, repr(POOLS))
    title = "Airflow's database and pools"
    return Step("airflow", title, key, _prepare, _remove_home, made=HOME / "airflow.cfg")


def _remove_home() -> None:
    # A migration that was cut short cannot be taken up again; the history of local runs is no loss.
    shutil.rmtree(HOME, ignore_errors=True)


def _prepare() -> None:
    hint = "Run the same command again; if it stays so, remove .local/airflow first."
    for command in (["db", "migrate"], *(["pools", "set", *pool] for pool in POOLS)):
        run_logged(["bash", _IN_ENVIRONMENT, "airflow", *command], log="airflow", on_failure=hint)
