"""Options that depend on the size of exports and must be known before the driver's JVM starts.

Belongs here: options of the JVM, and the size of a batch of days. Does not belong here: configuration that a running session can change
(`spark_jobs/session.py`).
"""

from __future__ import annotations

from typing import Final

LARGE_EXPORT_BYTES: Final = 200_000_000
"""From this size on, compiling a day's queries costs less than interpreting them."""

SIDE_BY_SIDE_BYTES: Final = 80_000_000
"""Largest size of the exports of days that are computed together; beyond it, rows and not plans determine the cost."""

_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"

_BOTH_COMPILERS: Final = (
    "-XX:TieredStopAtLevel=4 -XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)
"""The second compiler, for code that runs five times as often as by default.

Spark generates code for each query and each of its stages, and most of it runs for seconds only. With Java's own thresholds, the second
compiler took a fifth of the CPU time of a build (`docs/benchmarks.md`, whole day).
"""


def driver_options(export_bytes: int) -> dict[str, str]:
    """Return the Spark configuration of a driver, in addition to `spark-defaults.conf`.

    `spark-defaults.conf` limits the JVM to its first compiler, which suits small days; a large day would take a third more CPU time.

    Args:
        export_bytes: Size of all files of the export.
    """
    return {_JAVA_OPTIONS: _BOTH_COMPILERS} if export_bytes >= LARGE_EXPORT_BYTES else {}
