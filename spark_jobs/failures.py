"""Failures of Spark that have their cause in the machine or the cluster, in one sentence each.

Belongs here: recognizing them. Does not belong here: failures of the ledger itself, which keep their traceback.
"""

# Every command imports the error, and PySpark takes a second to import, `subprocess` a few milliseconds.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import pwd
import resource
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_STARTED: Final = "JAVA_GATEWAY_EXITED"
_END_S: Final = 5
"""The longest time between the loss of the connection and the end of the process that caused it."""

_AGAIN: Final = "run the same command again. Nothing of this day was published."
_CAUSES: Final = {
    "No space left on device": (
        "A disk is full (No space left on device): that of the warehouse, or that of Spark's temporary files (spark.local.dir, by default "
        "/tmp). Free some space, then"
    ),
    "Too many open files": (
        "A process of Spark may not open enough files (Too many open files): increase `ulimit -n` to 1024 or more, then"
    ),
    "INVALID_DRIVER_MEMORY": (
        "The driver has less memory than Spark requires: increase spark.driver.memory to 512m or more, then"
    ),
    "java.lang.OutOfMemoryError": (
        "A Java process of Spark has too little memory: increase spark.driver.memory or, on a cluster, spark.executor.memory, then"
    ),
    "Python worker exited unexpectedly": (
        "A Python worker of Spark has ended unexpectedly, most often because memory is short: free some memory, then"
    ),
}
"""What Spark's error contains, and the sentence."""

_MOST_JARS: Final = 400
"""Upper bound of the number of jars of Spark (287 in 4.1) and of Delta."""


class SparkError(Exception):
    """Spark did not start or failed, for a cause outside of the ledger; `str()` is the cause and the solution."""


@contextmanager
def starting() -> Iterator[None]:
    """Start a Spark session within this block.

    Raises:
        SparkError: The Java process ended before Spark was started, or lacks files, memory or room on a disk.
    """
    from pyspark.errors import PySparkRuntimeError

    try:
        with _recognizing_causes():
            yield
    except PySparkRuntimeError as error:
        if error.getCondition() != _NOT_STARTED:
            raise
        raise SparkError(
            f"Spark's Java process did not start; its own message is in the log or above. {_requirement()}"
        ) from error


def _requirement() -> str:
    """Return what Spark requires and this process lacks; without evidence, the Java that it requires."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return (
            f"Spark requires a user with a name, and the system has none for the user id {os.getuid()}: add one to /etc/passwd, or "
            "run as another user."
        )
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)  # Java uses the hard limit.
    if most_files != resource.RLIM_INFINITY and most_files < _MOST_JARS:
        return f"Spark opens up to {_MOST_JARS} files at its start, and this process may open {most_files}: increase `ulimit -n`."
    return (
        f"Spark requires Java 17 or 21, and JAVA_HOME is {os.environ.get('JAVA_HOME') or 'not set'}: `make setup` finds or installs "
        "a Java."
    )


@contextmanager
def working() -> Iterator[None]:
    """Use a Spark session within this block, to stage days.

    Raises:
        SparkError: An error has its cause in the end of the Java process or of a Python worker, or in a lack of files, memory or room on a
            disk.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        with _recognizing_causes():
            yield
    except (Py4JJavaError, CapturedException):  # Java has answered.
        raise
    except (Py4JError, ConnectionError) as error:
        exit_code = java_exit_code(_END_S)
        if exit_code is None:
            raise
        raise SparkError(
            f"Spark's Java process {_end(exit_code)} during the work; its own messages are in the log or above: {_AGAIN}"
        ) from error


@contextmanager
def _recognizing_causes() -> Iterator[None]:
    """Replace an error of Java that contains one of `_CAUSES`."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        yield
    except (Py4JJavaError, CapturedException) as error:
        text = str(error)
        for cause, sentence in _CAUSES.items():
            if cause in text:
                raise SparkError(f"{sentence} {_AGAIN}") from error
        raise


def java_exit_code(timeout_s: float = 0) -> int | None:
    """Return the exit code of the Java process, negative for a signal; None if it runs, or was started by `spark-submit`.

    Args:
        timeout_s: How long to wait for its end.
    """
    from subprocess import TimeoutExpired

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
