"""Jars of Maven Central, pinned by SHA-256 in a text file next to the code that runs them, kept in `.local/maven`.

Belongs here: reading and writing pin files, fetching with the Ivy that pyspark ships, checking what came. All pin files
share one folder, so a jar that several of them name is fetched once.
Does not belong here: which jars a part of the project needs (see its pin file).

A pin file has one jar a line: the set that it belongs to (for us a RocketMQ release), Maven's organisation, artifact and
revision, and the SHA-256. Lines that begin with `#` are comments. A set is written, and written anew, with all that it
depends on, by

    python -m setup.maven_jars FILE SET ORGANISATION:ARTIFACT:REVISION...

Standard library only: set-up uses it before there is anything else.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from setup import java
from setup.steps import LOCAL, ROOT, SetUpError, run_logged, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDER: Final = LOCAL / "maven"

_ATTEMPTS: Final = 3
_FIELDS: Final = 5
_COORDINATES: Final = 3
# What Maven calls a jar; some of RocketMQ's dependencies are of the second kind.
_TYPES: Final = ("jar", "bundle")


@dataclass(frozen=True)
class Jar:
    """One line of a pin file.

    Attributes:
        group: The set of jars that it belongs to, such as a release of RocketMQ.
        organisation: Maven's groupId.
        artifact: Maven's artifactId.
        revision: Maven's version.
        sha256: Of its content, in hexadecimal digits.
    """

    group: str
    organisation: str
    artifact: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """As Maven names it."""
        return f"{self.artifact}-{self.revision}.jar"

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / self.organisation / self.file_name

    def is_intact(self) -> bool:
        """Return whether the jar exists with the pinned content."""
        return self._is(self.path)

    def is_in(self, folder: Path) -> bool:
        """Return whether a folder, flat or laid out like ours, has the jar with the pinned content."""
        return self._is(folder / self.file_name) or self._is(folder / self.organisation / self.file_name)

    def take_from(self, folder: Path) -> None:
        """Put the copy that such a folder has into ours; there is never half a jar under its name."""
        flat = folder / self.file_name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        shutil.copyfile(flat if self._is(flat) else folder / self.organisation / self.file_name, partial)
        partial.replace(self.path)

    def _is(self, path: Path) -> bool:
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


class Pins:
    """The jars that a pin file names.

    Args:
        file: The pin file; it is read at every use.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def jars(self, group: str | None = None) -> list[Jar]:
        """Return the jars of one set, or of all, in the file's order.

        Raises:
            SetUpError: The file is not there, a line of it is not a pin, or it has no such set.
        """
        found = [jar for jar in self._read() if group in {None, jar.group}]
        if group is not None and not found:
            raise SetUpError(f"{_shown(self.file)} pins no jars of {group}.")
        return found

    def class_path(self, group: str) -> list[Path]:
        """Return the paths of the jars of one set, in the file's order; see `ensure`."""
        return [jar.path for jar in self.jars(group)]

    def ensure(self, java_home: Path, group: str | None = None) -> None:
        """Bring the jars that are missing or broken: from the folder `LEDGER_JARS_DIR`, else from Maven Central.

        Several processes may do this at once; the second waits, and finds the work done.

        Args:
            java_home: Of the Java that runs Ivy.
            group: One set alone.

        Raises:
            SetUpError: Some did not come, or not with the pinned content.
        """
        FOLDER.mkdir(parents=True, exist_ok=True)
        with (FOLDER / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            given = os.environ.get("LEDGER_JARS_DIR")
            for jar in self._missing(group) if given else ():
                if jar.is_in(Path(str(given))):
                    jar.take_from(Path(str(given)))
            for attempt in range(1, _ATTEMPTS + 1):
                missing = self._missing(group)
                if not missing:
                    return
                try:
                    _fetch(missing, java_home)
                except SetUpError:
                    # Ivy gives up at the first fault of the network; what is whole by now need not come again.
                    if attempt == _ATTEMPTS:
                        raise
            broken = self._missing(group)
        if broken:
            raise SetUpError(
                f"{len(broken)} jars, the first of them {broken[0].file_name}, did not come with the SHA-256 that "
                f"{_shown(self.file)} pins; run it again, or put them into a folder and set LEDGER_JARS_DIR to it."
            )

    def write(self, group: str, roots: Sequence[str], java_home: Path) -> list[Jar]:
        """Pin a set anew: some artifacts with all that they depend on, as Ivy resolves it.

        Artifacts with a classifier are left out: they are native code that RocketMQ does not load by default.

        Args:
            group: The set; its old lines are replaced, those of other sets stay.
            roots: Coordinates, `organisation:artifact:revision`.
            java_home: Of the Java that runs Ivy.

        Returns:
            The pinned jars, ordered by artifact.

        Raises:
            SetUpError: Something cannot be resolved or fetched.
        """
        wanted = [tuple(root.split(":")) for root in roots]
        with tempfile.TemporaryDirectory(dir=LOCAL) as scratch:
            folder = Path(scratch)
            _run_ivy(((group, *root) for root in wanted), folder, java_home, with_dependencies=True)
            made = []
            for path in folder.glob("jars/*/*.jar"):
                artifact, revision, classifier = path.stem.split("__")
                if not classifier:
                    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
                    made.append(Jar(group, path.parent.name, artifact, revision, sha256))
        made.sort(key=lambda jar: (jar.artifact, jar.organisation))
        kept = self.jars() if self.file.exists() else []
        jars = sorted([*made, *(jar for jar in kept if jar.group != group)], key=lambda jar: jar.group)
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        comments = [line for line in lines if line.startswith("#")]
        pins = [f"{j.group} {j.organisation} {j.artifact} {j.revision} {j.sha256}" for j in jars]
        write_whole(self.file, "".join(f"{line}\n" for line in [*comments, *pins]))
        return made

    def _missing(self, group: str | None) -> list[Jar]:
        return [jar for jar in self.jars(group) if not jar.is_intact()]

    def _read(self) -> list[Jar]:
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SetUpError(f"{_shown(self.file)} is not there; it belongs to the checkout.") from None
        jars = []
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.split()
            if line.startswith("#"):
                continue
            if len(fields) != _FIELDS:
                raise SetUpError(
                    f"{_shown(self.file)}, line {number} is not a pin: it should have a set, an organisation, an artifact, "
                    "a revision and a SHA-256."
                )
            jars.append(Jar(*fields))
        return jars


def shipped_by_pyspark(pattern: str) -> Path:
    """Return a jar that comes with pyspark, so that it need not be fetched.

    Raises:
        SetUpError: pyspark is not installed in `.venv`, or has no such jar.
    """
    folder = ROOT / ".venv"
    found = sorted(folder.glob(f"lib/python3*/site-packages/pyspark/jars/{pattern}"))
    if not found:
        raise SetUpError(f"pyspark's {pattern} is not in {folder.name}; run `make setup`.")
    return found[0]


def _fetch(missing: Sequence[Jar], java_home: Path) -> None:
    """Fetch the missing jars; the caller checks the content."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        folder = Path(scratch)
        wanted = ((jar.group, jar.organisation, jar.artifact, jar.revision) for jar in missing)
        try:
            _run_ivy(wanted, folder, java_home, with_dependencies=False)
        finally:
            # Also after a failure: what came before it need not come again.
            for came in folder.glob("jars/*/*__.jar"):
                came.rename(came.with_name(came.name.replace("__.jar", ".jar").replace("__", "-")))
            for jar in missing:
                if jar.is_in(folder / "jars"):
                    jar.take_from(folder / "jars")


def _run_ivy(
    wanted: Iterable[tuple[str, ...]], folder: Path, java_home: Path, *, with_dependencies: bool
) -> None:
    """Run Ivy once for all sets, with a configuration each, so that none evicts another's revisions.

    The jars are in `jars/<organisation>/<artifact>__<revision>__<classifier>.jar` in the folder, which is Ivy's own
    cache: so they are also there when it has given up half-way.
    """
    settings = ET.Element("ivysettings")
    ET.SubElement(settings, "settings", defaultResolver="central")
    pattern = "[organisation]/[artifact]__[revision]__([classifier]).[ext]"
    ET.SubElement(settings, "caches", defaultCacheDir=str(folder / "jars"), artifactPattern=pattern)
    # Ivy has Maven Central built in. Without poms it requests the pinned files only.
    resolvers = ET.SubElement(settings, "resolvers")
    poms = str(with_dependencies).lower()
    ET.SubElement(resolvers, "ibiblio", name="central", m2compatible="true", usepoms=poms)
    ET.ElementTree(settings).write(folder / "settings.xml")
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="rebalance-ledger", module="jars")
    configurations = ET.SubElement(module, "configurations")
    dependencies = ET.SubElement(module, "dependencies")
    groups: dict[str, str] = {}
    for group, organisation, artifact, revision in wanted:
        if group not in groups:
            groups[group] = f"set{len(groups)}"
            ET.SubElement(configurations, "conf", name=groups[group])
        ET.SubElement(
            dependencies,
            "dependency",
            org=organisation,
            name=artifact,
            rev=revision,
            conf=f"{groups[group]}->default",
            transitive=str(with_dependencies).lower(),
        )
    ET.ElementTree(module).write(folder / "ivy.xml")
    command: list[str | Path] = [
        java_home / "bin" / "java",
        f"-Divy.default.ivy.user.dir={folder / 'ivy'}",
        "-jar", shipped_by_pyspark("ivy-*.jar"),
        "-settings", folder / "settings.xml",
        "-ivy", folder / "ivy.xml",
        "-confs", "*",
        "-types", *_TYPES,
    ]  # fmt: skip
    run_logged(
        command,
        log="maven-jars",
        on_failure=(
            "If the network failed, run the same command again; without one, put the jars into a folder and set "
            "LEDGER_JARS_DIR to it."
        ),
    )


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def main() -> int:
    """Write a set of a pin file; the exit code is 1 when it cannot be resolved."""
    parser = argparse.ArgumentParser(prog="python -m setup.maven_jars", description="Pin a set of jars anew.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the pin file")
    parser.add_argument("group", metavar="SET", help="names the set, such as a release of RocketMQ")
    parser.add_argument(
        "roots", nargs="+", metavar="ORGANISATION:ARTIFACT:REVISION", help="what the set is to hold"
    )
    given = parser.parse_args()
    malformed = [root for root in given.roots if len(root.split(":")) != _COORDINATES]
    if malformed:
        parser.error(f"{malformed[0]} is not ORGANISATION:ARTIFACT:REVISION")
    try:
        jars = Pins(given.file).write(given.group, given.roots, java.ensure())
    except SetUpError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{given.file}: {len(jars)} jars of {given.group}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
