"""An Airflow with a home of its own, which no other test run sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DAGS = Path(__file__).resolve().parents[2] / "dags"


def airflow_home(folder: Path) -> dict[str, str]:
    """Make the home and the database of an Airflow in a folder; return the environment of its processes."""
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    airflow = Path(sys.executable).with_name("airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    return environment
