"""Spark's Java process, which this process starts: why it did not start or has ended, in one sentence.

Belongs here: errors that have their cause in that process. Does not belong here: the session and its configuration
(`spark_jobs.session`).
"""

# Every command imports the error, and PySpark takes a second to import.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_STARTED: Final = "JAVA_GATEWAY_EXITED"
_END_S: Final = 5
"""The longest time between the loss of the connection and the end of the process that caused it."""


class SparkProcessError(Exception):
    """Spark's Java process did not start or has ended; `str()` is the reason and the solution."""


@contextmanager
def java_start() -> Iterator[None]:
    """Start a Spark session within this block.

    Raises:
        SparkProcessError: The Java process ended before Spark was started.
    """
    from pyspark.errors import PySparkRuntimeError

    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != _NOT_STARTED:
            raise
        raise SparkProcessError(
            f"Spark's Java process did not start; its own message is in the log or above. Spark requires Java 17 or 21, and JAVA_HOME "
            f"is {os.environ.get('JAVA_HOME') or 'not set'}: `make setup` finds or installs a Java."
        ) from error


@contextmanager
def java_work() -> Iterator[None]:
    """Use a Spark session within this block.

    Raises:
        SparkProcessError: An error has its cause in the end of the Java process.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError:  # Java has answered.
        raise
    except (Py4JError, ConnectionError) as error:
        exit_code = java_exit_code(_END_S)
        if exit_code is None:
            raise
        raise SparkProcessError(
            f"Spark's Java process {_end(exit_code)} during the work; its own messages are in the log or above. Nothing of this day was "
            "published: run the same command again."
        ) from error


def java_exit_code(timeout_s: float = 0) -> int | None:
    """Return the exit code of the Java process, negative for a signal; None if it runs, or was started by `spark-submit`.

    Args:
        timeout_s: How long to wait for its end.
    """
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark stores the process there for its callers
    if process is None:
        return None
    try:
        return int(process.wait(timeout_s))
    except TimeoutExpired:
        return None


def _end(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "was killed (SIGKILL), as by a system that is short of memory,"
    if exit_code < 0:
        return f"was ended by signal {-exit_code}"
    return f"ended with exit code {exit_code}"
