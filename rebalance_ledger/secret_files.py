"""Keys of the object store from files, as container platforms deliver secrets.

What belongs here: variables that may be given by a file, `<variable>_FILE`. What does not: what the keys are for (`storage.location`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def secrets_from_files() -> dict[str, str]:
    """Return each variable that is not set and that a file gives.

    Raises:
        OSError: A file cannot be read.
    """
    files = {variable: os.environ.get(f"{variable}_FILE") for variable in _VARIABLES}
    return {
        variable: Path(file).read_text(encoding="utf-8").strip()
        for variable, file in files.items()
        if file and not os.environ.get(variable)
    }


def read_secret_files() -> None:
    """Set each variable that is not set from the file that `<variable>_FILE` names.

    Raises:
        OSError: A file cannot be read.
    """
    os.environ.update(secrets_from_files())
