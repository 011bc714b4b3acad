"""What depends on the size of exports and must be known before the driver's JVM starts.

What belongs here: options of the JVM, and how much one application takes on. What does not: configuration that a running session can change (`spark_jobs/session.py`).
"""

from __future__ import annotations

from typing import Final

LARGE_EXPORT_BYTES: Final = 200_000_000
"""From this size on, compiling a day's queries costs less than interpreting them."""

SIDE_BY_SIDE_BYTES: Final = 80_000_000
"""Bytes of export of the days that are computed side by side: more than that cost their rows, and not their plans."""

_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"


def driver_options(export_bytes: int) -> dict[str, str]:
    """Return the Spark configuration to start a driver with, beside `spark-defaults.conf`.

    `spark-defaults.conf` limits the JVM to its first compiler, which suits small days. A large day takes a third more CPU time that way.

    Args:
        export_bytes: Size of all files of the export.
    """
    return {_JAVA_OPTIONS: "-XX:TieredStopAtLevel=4"} if export_bytes >= LARGE_EXPORT_BYTES else {}
