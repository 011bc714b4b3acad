"""The jars of five RocketMQ releases, pinned by SHA-256, in `.local/rocketmq/<version>`.

Belongs here: fetching and checking them. `jars.txt` holds only what the program in `java` loads: a broker with all
that it depends on would be 120 jars more.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from setup.steps import LOCAL, ROOT, SetUpError, run_logged

FOLDER: Final = LOCAL / "rocketmq"
VERSIONS: Final = ("4.7.1", "4.9.3", "4.9.7", "5.3.3", "5.5.0")

_PINS: Final = Path(__file__).with_name("jars.txt")
_CACHE: Final = LOCAL / "cache" / "ivy-rocketmq"
_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Jar:
    """One line of `jars.txt`: an artifact of Maven Central that a RocketMQ release is run with."""

    version: str
    organisation: str
    artifact: str
    revision: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / self.version / f"{self.artifact}-{self.revision}.jar"

    def is_intact(self) -> bool:
        """Whether it is there with the pinned content."""
        return self.path.is_file() and hashlib.sha256(self.path.read_bytes()).hexdigest() == self.sha256


def pinned() -> list[Jar]:
    """All jars of all releases."""
    return [Jar(*line.split()) for line in _PINS.read_text(encoding="utf-8").splitlines()]


def shipped_by_pyspark(pattern: str) -> Path:
    """A jar that comes with pyspark, so that it need not be fetched.

    Raises:
        SetUpError: pyspark is not installed in `.venv`, or has no such jar.
    """
    folder = ROOT / ".venv"
    found = sorted(folder.glob(f"lib/python3*/site-packages/pyspark/jars/{pattern}"))
    if not found:
        raise SetUpError(f"pyspark's {pattern} is not in {folder.name}; run `make setup`.")
    return found[0]


def ensure(java_home: Path) -> None:
    """Fetch the jars that are missing or broken, with the Ivy that pyspark brings along.

    Raises:
        SetUpError: Some did not come, or not with the pinned content.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        missing = [jar for jar in pinned() if not jar.is_intact()]
        if not missing:
            return
        try:
            _fetch(missing, java_home)
        except SetUpError:
            # Ivy gives up at the first fault of the network.
            if attempt == _ATTEMPTS:
                raise
        # It also keeps broken downloads; what is whole by now need not come again.
        shutil.rmtree(_CACHE, ignore_errors=True)
    broken = [jar.path.relative_to(ROOT) for jar in pinned() if not jar.is_intact()]
    if broken:
        raise SetUpError(
            f"{len(broken)} of RocketMQ's jars, the first of them {broken[0]}, did not come with the SHA-256 that "
            f"{_PINS.relative_to(ROOT)} pins; run it again, or put them there by hand."
        )


def _fetch(missing: list[Jar], java_home: Path) -> None:
    """One Ivy run for all releases: a configuration each, so that none evicts another's jars."""
    for jar in missing:
        jar.path.unlink(missing_ok=True)
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="rebalance-ledger", module="rocketmq-java")
    configurations = ET.SubElement(module, "configurations")
    for version in sorted({jar.version for jar in missing}):
        ET.SubElement(configurations, "conf", name=version)
    dependencies = ET.SubElement(module, "dependencies")
    for jar in missing:
        ET.SubElement(
            dependencies,
            "dependency",
            org=jar.organisation,
            name=jar.artifact,
            rev=jar.revision,
            conf=f"{jar.version}->master",
            transitive="false",
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = FOLDER / "ivy.xml"
    ET.ElementTree(module).write(wanted)
    command: list[str | Path] = [
        java_home / "bin" / "java",
        f"-Divy.default.ivy.user.dir={_CACHE}",
        "-jar", shipped_by_pyspark("ivy-*.jar"),
        "-ivy", wanted,
        "-confs", "*",
        "-types", "jar", "bundle",
        "-retrieve", f"{FOLDER}/[conf]/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    run_logged(
        command,
        log="rocketmq-jars",
        on_failure="RocketMQ's jars come from Maven Central: if the network failed, run the same command again.",
    )
