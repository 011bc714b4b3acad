"""An isolated Airflow home, which other test runs do not share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DAGS = Path(__file__).resolve().parents[2] / "dags"


def airflow_home(folder: Path) -> dict[str, str]:
    """Create Airflow's home and database in a folder; return the environment for its processes."""
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    airflow = Path(sys.executable).with_name("airflow")
    subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
    return environment
