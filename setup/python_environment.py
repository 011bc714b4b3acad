"""The virtual environment: uv from its pinned hash, the lock from its hashes, then this project itself.

Belongs here: everything below `.venv` and `.local/uv`.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from setup import system_packages
from setup.steps import LOCAL, ROOT, SetUpError, Step, content_key, run_logged

BOOTSTRAP = ROOT / "requirements" / "bootstrap.txt"
LOCK = ROOT / "requirements" / "lock.txt"
UV_HOME = LOCAL / "uv"
VENV = ROOT / ".venv"
_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_AGAIN = "If the network failed, run the same command again: what is done stays done."


def check_interpreter() -> None:
    """Refuse another Python than the one that the lock was made for.

    Raises:
        SetUpError: Under any other version than 3.11.
    """
    if sys.version_info[:2] != (3, 11):
        version = platform.python_version()
        raise SetUpError(
            f"Python 3.11 is needed and {sys.executable} is {version}. "
            "Install python3.11, or name it: make run PYTHON=/path/to/python3.11"
        )


def steps() -> list[Step]:
    """Return the three steps, in order; the path of the checkout is in their keys because scripts contain it."""
    here = f"{ROOT} {sys.version}"
    return [
        Step(
            "uv", "uv, pinned by hash", content_key(here, BOOTSTRAP), _install_uv, made=UV_HOME / "bin" / "uv"
        ),
        Step(
            "venv",
            "the locked packages into .venv",
            content_key(here, BOOTSTRAP, LOCK),
            _sync,
            _remove_venv,
            made=VENV / "bin" / "python",
        ),
        Step(
            "project",
            "this project into .venv",
            content_key(here, LOCK, ROOT / "pyproject.toml"),
            _install_project,
        ),
    ]


def _install_uv() -> None:
    if importlib.util.find_spec("ensurepip") is None:
        # Debian cuts this module out of its Python and ships it in a separate package.
        system_packages.install("python3-venv", why="This Python cannot make virtual environments.")
    shutil.rmtree(UV_HOME, ignore_errors=True)
    run_logged([sys.executable, "-m", "venv", UV_HOME], log="uv", on_failure=_AGAIN)
    run_logged(
        [
            UV_HOME / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--require-hashes", "--only-binary", ":all:", "--requirement", BOOTSTRAP,
        ],
        log="uv",
        on_failure=_AGAIN,
        env={"PIP_CACHE_DIR": str(LOCAL / "cache" / "pip")},
    )  # fmt: skip


def _remove_venv() -> None:
    # uv trusts what a killed run left half copied; its cache makes a fresh start cheap.
    shutil.rmtree(VENV, ignore_errors=True)


def _sync() -> None:
    if not (VENV / "bin" / "python").exists():
        uv("venv", "--quiet", "--python", sys.executable, str(VENV))
    # Compiled here once: without it every start of Airflow and of Great Expectations costs three to five times
    # as much where the user's environment forbids Python to write byte code.
    uv("pip", "sync", "--require-hashes", "--compile-bytecode", "--python", _python(), str(LOCK))
    (LOCAL / "stamps" / "project").unlink(missing_ok=True)  # sync has removed what is not in the lock: us


def _install_project() -> None:
    uv("pip", "install", "--no-deps", "--no-build-isolation", "--python", _python(), "--editable", str(ROOT))


def _python() -> str:
    return str(VENV / "bin" / "python")


def uv(*arguments: str) -> None:
    """Run uv.

    Raises:
        SetUpError: It does not end well.
    """
    run_logged(
        [UV_HOME / "bin" / "uv", "--no-progress", *arguments],
        log="venv",
        on_failure=_AGAIN,
        env={
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(LOCAL / "cache" / "uv"),
            "UV_HTTP_TIMEOUT": os.environ.get("UV_HTTP_TIMEOUT") or "180",
            "UV_PYTHON_DOWNLOADS": "never",
            # uv brings its own list of authorities; a company's own is only in the system's.
            "UV_SYSTEM_CERTS": "true" if _SYSTEM_CERTIFICATES.is_file() else "",
        },
    )
