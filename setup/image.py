"""What the image of `deploy/Dockerfile` is made of: `python3 -m setup.image dependencies`, then `… project`.

The same steps as a checkout's set-up, cut in two so that a change of the code fetches nothing. What a checkout has beside is
left out: Airflow's SQLite, and the caches.
"""

from __future__ import annotations

import shutil
import sys

from setup import collector, delta_jars, java, object_store, python_environment, spark_conf
from setup.steps import LOCAL, SetUpError, perform

_EXIT_BAD_SURROUNDINGS = 2
_ONLY_FOR_BUILDING = ("cache", "logs", "maven")


def main() -> int:
    """Do one of the two parts.

    Returns:
        0, or 2 after printing why it cannot be done.
    """
    parts = {"dependencies": _dependencies, "project": _project}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:  # noqa: PLR2004  # the program and the part
        sys.stderr.write(f"Which part: {' or '.join(parts)}?\n")
        return _EXIT_BAD_SURROUNDINGS
    try:
        parts[sys.argv[1]]()
    except SetUpError as error:
        sys.stderr.write(f"The image cannot be made. {error}\n")
        return _EXIT_BAD_SURROUNDINGS
    return 0


def _dependencies() -> None:
    python_environment.check_interpreter()
    *packages, _ = python_environment.steps()
    for step in packages:
        perform(step)
    java_home = java.ensure()
    perform(delta_jars.step(java_home))
    perform(collector.step(java_home))
    perform(object_store.step(java_home))
    for folder in _ONLY_FOR_BUILDING:
        shutil.rmtree(LOCAL / folder, ignore_errors=True)


def _project() -> None:
    *_, project = python_environment.steps()
    perform(project)
    spark_conf.write(spark_conf.OF_A_CLUSTER)


if __name__ == "__main__":
    sys.exit(main())
