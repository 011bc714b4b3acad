"""The secrets of a deployment: `python3 -m setup.deployment_secrets` writes .env from .env.example, once.

Belongs here: drawing them. There are no defaults, so that no two installations share a password.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from typing import TYPE_CHECKING

from setup.steps import ROOT, say

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / ".env.example"
TARGET = ROOT / ".env"
_FORMER_TARGET = ROOT / "deploy" / ".env"
_FERNET_KEY = "AIRFLOW_FERNET_KEY"
_BYTES = 32


def main() -> int:
    """Write the file unless it is there; returns 0."""
    if not TARGET.exists() and _FORMER_TARGET.exists():
        _FORMER_TARGET.rename(TARGET)
        say(
            "deploy/.env is .env now, beside docker-compose.yml; relative paths in it start at the root of the checkout."
        )
    elif not TARGET.exists():
        write(TARGET)
        say(".env has the secrets of this deployment; keep it to yourself, and keep it.")
    return 0


def write(target: Path) -> None:
    """Write the example with a secret for every variable that it leaves empty, readable for this user alone.

    Raises:
        FileExistsError: There is one. Other secrets than the first would lock everybody out of the metadata.
    """
    text = re.sub(
        r"^([A-Z_]+)=$", lambda line: f"{line[1]}={drawn(line[1])}", EXAMPLE.read_text(), flags=re.MULTILINE
    )
    file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w") as stream:
        stream.write(text)


def drawn(name: str) -> str:
    """A secret for a variable of the example: 32 hexadecimal digits, or a Fernet key where one is wanted."""
    if name == _FERNET_KEY:
        return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()
    return secrets.token_hex(_BYTES // 2)


if __name__ == "__main__":
    sys.exit(main())
