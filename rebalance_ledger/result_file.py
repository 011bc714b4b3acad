"""The file in which a program returns its result to the Airflow task that started it.

Belongs here: the name of the file, writing and reading it. Does not belong here: the meaning of results.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

RESULT_FILE_VARIABLE: Final = "LEDGER_RESULT_FILE"
"""Environment variable with the name of the file; without it no result is written."""


def write_result(**facts: Any) -> None:  # noqa: ANN401  # whatever JSON can hold
    """Write the facts as one JSON object, if the environment names a file.

    Args:
        facts: `reason` for a failure, one or more sentences; the result of the step for a success.
    """
    name = os.environ.get(RESULT_FILE_VARIABLE)
    if name:
        Path(name).write_text(json.dumps(facts, default=str), encoding="utf-8")


def read_result(path: Path) -> dict[str, Any]:
    """Return the facts; empty if the program ended before it wrote any."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return facts if isinstance(facts, dict) else {}
