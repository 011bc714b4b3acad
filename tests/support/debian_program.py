"""A self-contained program of a Debian package, unpacked but not installed: no service is started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def debian_program(package: str, program: str, folder: Path) -> Path:
    """Return the path of a program on the PATH, or from the package, unpacked below a folder.

    Args:
        package: The name of the package.
        program: The name of the program in the package's `usr/bin`.
        folder: A folder of the test for all programs of the package.
    """
    installed = shutil.which(program)
    if installed is not None:
        return Path(installed)
    unpacked = folder / "unpacked"
    if not unpacked.is_dir():
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
        [archive] = folder.glob("*.deb")
        subprocess.run(["dpkg", "--extract", archive, unpacked], check=True, capture_output=True)
    return unpacked / "usr" / "bin" / program
