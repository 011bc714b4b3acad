"""Programs that Airflow's tasks start: they get no secrets of Airflow, and end with their task.

Belongs here: the environment of such a program, and `ledger-spark-submit`. Does not belong here: the work of the programs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

from rebalance_ledger.host_name import variables_without_address
from rebalance_ledger.secret_files import read_secret_files

SPARK_PROPERTIES_VARIABLE: Final = "LEDGER_SPARK_PROPERTIES_FILE"
"""Environment variable with the path of a file of Spark properties that only this user can read, such as the secret of Spark's RPC."""
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def is_of_airflow(variable: str) -> bool:
    """Return whether an environment variable belongs to Airflow and is withheld from the programs that tasks start.

    These variables include the URLs of the metadata database, the message broker and its result backend, the Fernet key, API
    secrets, commands that print any of these, and connections. The prefix decides, so that new variables are covered too.
    """
    return variable.lstrip("_").upper().startswith("AIRFLOW")


def environment_of_child() -> dict[str, str]:
    """Return the environment of this process without Airflow's variables."""
    return {name: value for name, value in os.environ.items() if not is_of_airflow(name)}


def spark_submit() -> None:
    """Replace this process by `spark-submit`, which the kernel kills when the parent task dies.

    This is the program (`spark_binary`) of the Spark provider's operator. A task whose process is killed (out of memory, `kill -9`) is
    retried, and its first application must not run at the same time as the second.
    """
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # The task died before the call.
        sys.exit(128 + signal.SIGKILL)
    read_secret_files()
    environment = variables_without_address() | environment_of_child()
    os.execvpe("spark-submit", ["spark-submit", *_secret_properties(), *sys.argv[1:]], environment)  # noqa: S606, S607  # an argument list; found on the PATH


def _secret_properties() -> list[str]:
    """Return the options that add the file of secret properties to `spark-defaults.conf`; none without such a file."""
    file = os.environ.get(SPARK_PROPERTIES_VARIABLE)
    return ["--properties-file", file, "--load-spark-defaults"] if file else []
