"""Write the secrets of the deployment into files, one folder for each set of services that reads them: `draw_secrets.py FOLDER`.

Belongs here: generating secrets, and migrating those that an older installation has in `.env`. Does not belong here: who reads which
folder; the volumes in `docker-compose.yml` decide that.

A secret is generated once and then kept. Only the keys of the object store can change in `.env` later, because they may belong to
another store. Standard library only.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_MODE: Final = 0o440
"""For the user of our image, and for services whose other user is in its group."""
_EXIT_CONFLICT: Final = 2
_BYTES: Final = 32


class ConflictError(Exception):
    """The environment contradicts a secret that is in use."""


def _hexadecimal() -> str:
    return secrets.token_hex(_BYTES)


def _short() -> str:
    return secrets.token_hex(_BYTES // 2)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


class Secret(NamedTuple):
    """One generated value.

    Attributes:
        file: Its path below the folder of secrets.
        draw: Function that generates a new value.
        variable: The variable of `.env` that gives the value instead; empty if there is none.
        is_replaceable: Whether a later value of the variable replaces the file.
    """

    file: str
    draw: Callable[[], str]
    variable: str = ""
    is_replaceable: bool = False


METADATA_PASSWORD: Final = "metadata/password"  # noqa: S105  # a path
SPARK_SECRET: Final = "spark/secret"  # noqa: S105  # a path
STORE_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
SECRETS: Final = (
    Secret(METADATA_PASSWORD, _hexadecimal, "POSTGRES_PASSWORD"),
    Secret("admin/password", _short, "AIRFLOW_ADMIN_PASSWORD"),
    Secret("fernet/key", _fernet_key, "AIRFLOW_FERNET_KEY"),
    Secret("api/secret-key", _hexadecimal, "AIRFLOW_SECRET_KEY"),
    Secret("jwt/secret", _hexadecimal, "AIRFLOW_JWT_SECRET"),
    Secret(SPARK_SECRET, _hexadecimal),
    Secret("object-store/access-key-id", _short, STORE_KEYS[0], is_replaceable=True),
    Secret("object-store/secret-access-key", _hexadecimal, STORE_KEYS[1], is_replaceable=True),
)


def main() -> int:
    """Write what is missing.

    Returns:
        0, or 2 after printing which variable contradicts a secret that is in use.
    """
    folder = Path(sys.argv[1])
    given = {
        secret.variable: os.environ[secret.variable] for secret in SECRETS if os.environ.get(secret.variable)
    }
    try:
        _check(folder, given)
    except ConflictError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_CONFLICT
    for secret in SECRETS:
        sys.stdout.write(f"{secret.file}: {_ensure(folder, secret, given.get(secret.variable, ''))}\n")
    for name, text in _derived(folder).items():
        _replace(folder / name, text)
    return 0


def _check(folder: Path, given: dict[str, str]) -> None:
    if len(set(STORE_KEYS) & set(given)) == 1:
        raise ConflictError(f"Set both of {' and '.join(STORE_KEYS)} in .env, or neither.")
    for secret in SECRETS:
        value = given.get(secret.variable)
        file = folder / secret.file
        if value and not secret.is_replaceable and file.exists() and file.read_text() != value:
            raise ConflictError(
                f"{secret.variable} in .env is not the secret that this deployment uses; remove it from .env "
                "(docs/cluster.md says how a secret is changed)."
            )


def _ensure(folder: Path, secret: Secret, given: str) -> str:
    """Write one secret unless it is there; return what was done, for the log."""
    file = folder / secret.file
    if file.exists() and not (given and secret.is_replaceable):
        return "kept"
    if given:
        _replace(file, given)
        return f"taken from {secret.variable}"
    _write_once(file, secret.draw())
    return "generated"


def _derived(folder: Path) -> dict[str, str]:
    """Return the files that contain a secret in the form that a program requires, by their paths."""
    password = quote((folder / METADATA_PASSWORD).read_text(), safe="")
    spark = (folder / SPARK_SECRET).read_text()
    return {
        # One driver for Airflow's synchronous and asynchronous halves.
        "metadata/url": f"postgresql+psycopg://airflow:{password}@postgres:5432/airflow",
        # For `--properties-file` of Spark's daemons and of spark-submit.
        "spark/rpc.conf": (
            "spark.authenticate             true\n"
            f"spark.authenticate.secret      {spark}\n"
            "spark.network.crypto.enabled   true\n"
        ),
    }


def _write_once(file: Path, text: str) -> None:
    temporary = _temporary(file, text)
    try:
        os.link(temporary, file)  # fails if there is one, unlike a rename
    finally:
        temporary.unlink()


def _replace(file: Path, text: str) -> None:
    if not file.exists() or file.read_text() != text:
        _temporary(file, text).replace(file)


def _temporary(file: Path, text: str) -> Path:
    """Write a file beside the target, so that the target never holds a part of a secret."""
    file.parent.mkdir(mode=0o750, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".")
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fchmod(stream.fileno(), _MODE)
        os.fsync(stream.fileno())
    return Path(name)


if __name__ == "__main__":
    sys.exit(main())
