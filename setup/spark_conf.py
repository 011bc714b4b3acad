"""The folder that `SPARK_CONF_DIR` names, made from the templates in `conf/spark`.

One folder is read by in-process sessions, `spark-submit`, the Spark operator and standalone daemons alike.
Belongs here: putting this checkout's paths into the templates.
"""

from __future__ import annotations

from setup.delta_jars import JARS, PINNED
from setup.steps import LOCAL, ROOT, write_whole

TEMPLATES = ROOT / "conf" / "spark"
TARGET = LOCAL / "spark-conf"


def write() -> None:
    """Write the folder; it takes no time, so it is done whenever set-up runs."""
    values = {
        # As URIs, because Spark splits the list at commas and reads each entry as a URI: a space must be escaped.
        "@JARS@": ",".join((JARS / jar.file_name).as_uri() for jar in PINNED),
        "@LOCAL@": str(LOCAL),
    }
    for template in sorted(TEMPLATES.iterdir()):
        text = template.read_text()
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        target = TARGET / template.name
        if not target.is_file() or target.read_text() != text:
            write_whole(target, text)
