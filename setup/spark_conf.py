"""The folder that `SPARK_CONF_DIR` names, made from the templates in `conf/spark` or those in `deploy/spark`.

One folder is read by in-process sessions, `spark-submit`, the Spark operator and standalone daemons alike.
Belongs here: putting this checkout's paths into the templates, and the native library that one of them names.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING
from zipfile import ZipFile

from setup.delta_jars import JARS, PINNED
from setup.maven_jars import shipped_by_pyspark
from setup.steps import LOCAL, ROOT, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DEFAULTS = "spark-defaults.conf"
OF_AN_OBJECT_STORE = ROOT / "conf" / "spark-object-store.conf"
OF_THIS_MACHINE = (ROOT / "conf" / "spark",)
OF_A_CLUSTER = (ROOT / "conf" / "spark", ROOT / "deploy" / "spark")
TARGET = LOCAL / "spark-conf"
_JARS_OF_MOST_CLASSES = (
    "spark-catalyst_*.jar",
    "scala-library-*.jar",
    "spark-core_*.jar",
    "scala-reflect-*.jar",
    "spark-sql-api_*.jar",
    "spark-sql_*.jar",
    "log4j-core-*.jar",
    "parquet-column-*.jar",
    "jackson-databind-*.jar",
    "hadoop-client-api-*.jar",
)
"""Two thirds of the classes that a day of the sample loads from jars, the jar with the most first (`-Xlog:class+load`)."""
OBJECT_STORE_JARS = LOCAL / "object-store"
"""The folder of the object store's jars: all of them, or none if `setup.object_store` has not run."""

NATIVE = LOCAL / "native"
"""The folder of the native library of Snappy, named in `conf/spark/org-xerial-snappy.properties`."""


def write(templates: Iterable[Path] = OF_THIS_MACHINE, target: Path = TARGET) -> None:
    """Write the folder; it takes no time, so it is done whenever set-up runs.

    Once the object store's jars are there, the defaults name them and the committer.

    Args:
        templates: Folders of templates; a file of a later one takes the place of its namesake.
        target: The folder to write.

    Raises:
        SetUpError: pyspark is not installed in `.venv`.
    """
    object_store_jars = sorted(OBJECT_STORE_JARS.glob("*.jar"))
    values = {
        # As URIs, because Spark splits the list at commas and reads each entry as a URI: a space must be escaped.
        "@JARS@": ",".join(
            jar.as_uri() for jar in (*(JARS / jar.file_name for jar in PINNED), *object_store_jars)
        ),
        "@FIRST_JARS@": ":".join(str(shipped_by_pyspark(pattern)) for pattern in _JARS_OF_MOST_CLASSES),
        "@LOCAL@": str(LOCAL),
    }
    files = {template.name: template for folder in templates for template in folder.iterdir()}
    for name, template in sorted(files.items()):
        text = template.read_text()
        if name == DEFAULTS and object_store_jars:
            text += f"\n{OF_AN_OBJECT_STORE.read_text()}"
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        written = target / name
        if not written.is_file() or written.read_text() != text:
            write_whole(written, text)
    _extract_snappy()


def _extract_snappy() -> None:
    """Extract the native library of Snappy; without one for this processor, Java looks for another way itself."""
    library = NATIVE / "libsnappyjava.so"
    with ZipFile(shipped_by_pyspark("snappy-java-*.jar")) as jar:
        member = f"org/xerial/snappy/native/Linux/{platform.machine()}/{library.name}"
        content = jar.read(member) if member in jar.namelist() else None
    if content is not None and (not library.is_file() or library.read_bytes() != content):
        write_whole(library, content)
