"""Map errors to exit codes and messages.

Belongs here: the mapping that every process of the command line uses. Does not belong here: writing to the terminal.
"""

from __future__ import annotations

import traceback
from typing import Final, NamedTuple

from rebalance_ledger.collectors.errors import AdminClientError, CollectError, UnreachableError
from rebalance_ledger.pipeline.steps import RefusedError, SetUpMissingError
from rebalance_ledger.storage.location import InvalidLocationError
from rebalance_ledger.warehouse.errors import (
    ApprovalError,
    QueryError,
    RollbackError,
    StagingError,
    WriteError,
)
from spark_jobs.failures import SparkError

CRASHED: Final = 1
BAD_INPUT: Final = 2
REFUSED: Final = 3

_BAD_INPUTS: Final = (
    ApprovalError,
    InvalidLocationError,
    CollectError,
    QueryError,
    RollbackError,
    StagingError,
    SetUpMissingError,
)
_OUTSIDE: Final = (AdminClientError, SparkError, UnreachableError, WriteError)


class Failure(NamedTuple):
    """Exit code and message of an error.

    Attributes:
        exit_code: `CRASHED`, `BAD_INPUT` or `REFUSED`.
        sentence: The problem and its solution.
    """

    exit_code: int
    sentence: str


def failure_of(error: Exception) -> Failure | None:
    """Return exit code and message of an error; None for a bug of the ledger, which needs a traceback."""
    if isinstance(error, RefusedError):
        return Failure(REFUSED, str(error))
    # Few commands fail, and pydantic and smtplib, which these modules use, take time to import.
    from rebalance_ledger.exports.check_processes import CheckEndedError  # noqa: PLC0415
    from rebalance_ledger.exports.manifest import ExportError  # noqa: PLC0415
    from rebalance_ledger.notification.destination import NotificationError  # noqa: PLC0415
    from rebalance_ledger.settings import SettingsError  # noqa: PLC0415

    if isinstance(error, (*_BAD_INPUTS, ExportError, SettingsError)):
        return Failure(BAD_INPUT, str(error))
    if isinstance(error, (*_OUTSIDE, CheckEndedError, NotificationError)):
        return Failure(CRASHED, str(error))
    if isinstance(error, OSError):
        # Permissions, disks and networks: what is wrong lies outside of the ledger, and a traceback would not say more.
        return Failure(CRASHED, _sentence_of_system(error))
    return None


def logged_failure(error: Exception) -> Failure:
    """Return exit code and message for one of many days; write the traceback of a bug to standard error."""
    failure = failure_of(error)
    if failure is not None:
        return failure
    traceback.print_exception(error)
    lines = str(error).splitlines()
    return Failure(CRASHED, f"{type(error).__name__}: {lines[0] if lines else ''}")


def _sentence_of_system(error: OSError) -> str:
    named = " to ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    return (
        f"{named or 'A file'} cannot be read or written: {reason}. Check that it is there and that you may use it, and that "
        "the disk has room; then run the same command again."
    )
