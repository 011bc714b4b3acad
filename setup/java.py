"""A Java that Spark 4.1 runs on: 17 or 21.

Belongs here: finding one, and installing the distribution's headless 17 where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from setup import system_packages
from setup.steps import LOCAL, SetUpError, say, write_whole

USABLE = (17, 21)
_PACKAGE = "openjdk-17-jre-headless"
_DISTRIBUTION_FOLDER = Path("/usr/lib/jvm")


def ensure() -> Path:
    """Find or install Java and note its home in `.local/java-home`.

    Looked at in this order: `JAVA_HOME`, `java` on the PATH, what the distribution has installed. What is found
    is queried for its version each time (a tenth of a second), because Java is the one part of the set-up that
    lives outside the checkout and can go away.

    Raises:
        SetUpError: If there is none and this user may not install it.
    """
    home = find()
    if home is None:
        say(f"  Java 17 ({_PACKAGE}) … ", end="")
        system_packages.install(_PACKAGE, why="Spark needs Java 17 or 21, and there is none here.")
        home = find()
        if home is None:
            raise SetUpError(f"{_PACKAGE} is installed and still no Java 17 or 21 is found; set JAVA_HOME.")
        say("done")
    write_whole(LOCAL / "java-home", f"{home}\n")
    return home


def find() -> Path | None:
    """Return the home of the first usable Java, or None."""
    return next((home for home in _candidates() if major_version(home) in USABLE), None)


def find_jdk(purpose: str) -> Path:
    """Return the home of the first usable Java, which must be able to compile.

    Args:
        purpose: Subject of the error message: the step that needs a compiler.

    Raises:
        SetUpError: There is none, or it is one that can only run.
    """
    home = find()
    if home is None or not (home / "bin" / "javac").is_file():
        raise SetUpError(
            f"{purpose} compiles a small program, and {home or 'this machine'} has no javac: "
            "install a JDK (Debian's name for it is openjdk-17-jdk-headless), or set JAVA_HOME to one."
        )
    return home


def _candidates() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    if _DISTRIBUTION_FOLDER.is_dir():
        homes.extend(sorted(path.resolve() for path in _DISTRIBUTION_FOLDER.iterdir()))
    return homes


def major_version(home: Path) -> int | None:
    """Return the major version that a Java reports: 17 for `17.0.15`, 8 for `1.8.0_412`; None if it reports none."""
    try:
        answer = subprocess.run(  # noqa: S603  # a fixed list
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    # Java prints its version on stderr, after lines about options taken from the environment.
    version_match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(version_match.group(1)) if version_match else None
