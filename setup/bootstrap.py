"""Everything that `make run` needs before it can run: `python3 -m setup.bootstrap`.

Belongs here: the order of the steps and how a failure is reported. Each step has its own module.
Written for the Python of a fresh Debian 12, with the standard library alone. Writes nothing outside the checkout,
except for packages that the distribution's apt installs.
"""

from __future__ import annotations

import fcntl
import sys
import time

from setup import airflow_home, delta_jars, java, python_environment, spark_conf
from setup.steps import LOCAL, SetUpError, perform, say

_EXIT_BAD_SURROUNDINGS = 2


def main() -> int:
    """Do what is not done yet.

    Returns:
        0, or 2 after printing which step failed, why, and what to do.
    """
    begin = time.monotonic()
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "setup.lock").open("w") as lock:
        # Two makes at once would install into one .venv; the second waits, then finds everything done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            worked = _set_up()
        except SetUpError as error:
            sys.stderr.write(f"Set-up stopped. {error}\n")
            return _EXIT_BAD_SURROUNDINGS
    if worked:
        say(f"Set-up done in {time.monotonic() - begin:.0f} s.")
    return 0


def _set_up() -> bool:
    python_environment.check_interpreter()
    worked = [perform(step) for step in python_environment.steps()]
    java_home = java.ensure()
    worked.append(perform(delta_jars.step(java_home)))
    spark_conf.write()
    worked.append(perform(airflow_home.step()))
    return any(worked)


if __name__ == "__main__":
    sys.exit(main())
