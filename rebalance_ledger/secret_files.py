"""Keys of the object store from files, as container platforms deliver secrets.

Belongs here: variables that can be read from a file, `<variable>_FILE`. Does not belong here: the use of the keys
(`storage.location`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def secrets_from_files() -> dict[str, str]:
    """Return the variables that are not set and have a file.

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
