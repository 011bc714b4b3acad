"""Delta's two jars, pinned by SHA-256, in `.local/jars`.

Belongs here: fetching and checking them. `spark.jars.packages` would fetch 33 at every cold start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from setup.steps import LOCAL, ROOT, SetUpError, Step, content_key, run_logged

JARS = LOCAL / "jars"
_DOWNLOADS = LOCAL / "jars.partial"
_ATTEMPTS = 3


@dataclass(frozen=True)
class Jar:
    """One artifact of Maven's group `io.delta`."""

    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """As Maven names it."""
        return f"{self.artifact}-{self.version}.jar"


PINNED = (
    Jar("delta-spark_4.1_2.13", "4.4.0", "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10"),
    Jar("delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def step(java_home: Path) -> Step:
    """Return the step; it is repeated when a pin changes."""

    def run() -> None:
        JARS.mkdir(parents=True, exist_ok=True)
        for jar in PINNED:
            if not is_intact(jar, JARS):
                _bring(jar, java_home)
        shutil.rmtree(_DOWNLOADS, ignore_errors=True)

    return Step("jars", "Delta's jars, checked by SHA-256", content_key(repr(PINNED), str(ROOT)), run)


def is_intact(jar: Jar, folder: Path) -> bool:
    """Return whether the folder holds the jar with the pinned content."""
    path = folder / jar.file_name
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


def _bring(jar: Jar, java_home: Path) -> None:
    jars_dir = os.environ.get("LEDGER_JARS_DIR")
    if jars_dir:
        folder = Path(jars_dir)
        if not is_intact(jar, folder):
            raise SetUpError(
                f"LEDGER_JARS_DIR={jars_dir} has no {jar.file_name} with SHA-256 {jar.sha256}; "
                "put it there, or unset LEDGER_JARS_DIR to have it fetched."
            )
    else:
        folder = _DOWNLOADS
        _fetch(jar, java_home, folder)
    partial = JARS / f"{jar.file_name}.partial"
    shutil.copyfile(folder / jar.file_name, partial)
    partial.replace(JARS / jar.file_name)


def _fetch(jar: Jar, java_home: Path, folder: Path) -> None:
    """Let the Ivy that pyspark brings along fetch the jar; it has Maven Central built in."""
    ivy = next((ROOT / ".venv").glob("lib/python3*/site-packages/pyspark/jars/ivy-*.jar"), None)
    if ivy is None:
        raise SetUpError("pyspark's Ivy jar is not in .venv; remove .venv and run this again.")
    command: list[str | Path] = [
        java_home / "bin" / "java",
        f"-Divy.default.ivy.user.dir={LOCAL / 'cache' / 'ivy'}",
        "-jar", ivy,
        "-dependency", "io.delta", jar.artifact, jar.version,
        "-notransitive", "-types", "jar",
        "-retrieve", f"{folder}/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    hint = (
        "If the network failed, run the same command again; without one, put "
        f"{' and '.join(pin.file_name for pin in PINNED)} into a folder and set LEDGER_JARS_DIR to it."
    )
    for attempt in range(1, _ATTEMPTS + 1):
        # Unlike uv and pip, Ivy gives up at the first fault of the network, and keeps a broken download.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            run_logged(command, log="jars", on_failure=hint)
        except SetUpError:
            if attempt == _ATTEMPTS:
                raise
            continue
        if is_intact(jar, folder):
            return
        shutil.rmtree(LOCAL / "cache" / "ivy", ignore_errors=True)
    raise SetUpError(
        f"{jar.file_name} came without the pinned SHA-256 {jar.sha256}, {_ATTEMPTS} times. {hint}"
    )
