"""Starts Airflow's API server with the administrator's password from the environment, `AIRFLOW_ADMIN_PASSWORD`.

Airflow's simple auth manager reads passwords from a file alone, and draws one and prints it to the log for a user who has none there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Write the file, readable by us alone, and become the server; ends with 1 if there is no password."""
    password = os.environ.pop("AIRFLOW_ADMIN_PASSWORD", "")
    if not password:
        sys.exit("AIRFLOW_ADMIN_PASSWORD is not set; set it in .env.")
    passwords = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    passwords.unlink(missing_ok=True)
    passwords.touch(mode=0o600)
    passwords.write_text(json.dumps({"admin": password}), encoding="utf-8")
    os.execvp("airflow", ["airflow", "api-server"])  # noqa: S606, S607  # in the image there is one


if __name__ == "__main__":
    main()
