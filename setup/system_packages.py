"""Installing a package of the distribution, where this user may.

Belongs here: apt, and nothing about what the packages are for.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from setup.steps import SetUpError, run_logged


def install(package: str, *, why: str) -> None:
    """Install one Debian package as root or through a password-less sudo.

    Args:
        package: Its name, such as `openjdk-17-jre-headless`.
        why: A sentence that opens the message if it cannot be installed from here.

    Raises:
        SetUpError: With the command to type, if this user may not install packages or apt fails.
    """
    by_hand = f"sudo apt-get install --no-install-recommends {package}"
    if shutil.which("apt-get") is None:
        raise SetUpError(f"{why} Install it (Debian's name for it is {package}) and run this again.")
    prefix = _root_prefix()
    if prefix is None:
        raise SetUpError(f"{why} Type: {by_hand}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    hint = f"{why} Type: {by_hand}"
    run_logged([*prefix, "apt-get", "update"], log="apt", on_failure=hint, env=quiet)
    run_logged(
        [*prefix, "apt-get", "install", "--yes", "--no-install-recommends", package],
        log="apt",
        on_failure=hint,
        env=quiet,
    )


def _root_prefix() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    # -n: never ask; a set-up that waits for a password looks as if it hung.
    allowed = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)  # noqa: S603  # a fixed list
    return [sudo, "-n"] if allowed.returncode == 0 else None
