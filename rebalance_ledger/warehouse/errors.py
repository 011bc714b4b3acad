"""Errors of reading and writing a warehouse, with messages for the user."""

from __future__ import annotations

import re
from typing import Final

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""The terminal colours that delta-rs writes into its errors."""


NOT_IN_TIME: Final = "The query was not answered in time and was stopped: narrow it, or give it longer with --timeout-seconds (0: no limit)."


class QueryError(Exception):
    """A query or its warehouse cannot be read; `str()` is one sentence with the reason."""


class NoWarehouseError(QueryError):
    """The location has no published and no refused day."""


class StagingError(Exception):
    """A stage is missing, incomplete or not evaluated; `str()` is one sentence with the reason and the fix."""


class ApprovalError(Exception):
    """A day cannot be approved; `str()` is one sentence with the reason. Nothing was written."""


class WriteError(Exception):
    """The warehouse cannot be written now; `str()` is one sentence with the reason. Readers are unaffected."""


class RollbackError(Exception):
    """A day cannot be rolled back; `str()` is one sentence with the reason. The warehouse is unchanged."""


def one_line(message: str) -> str:
    """Return an engine's error message without its colours, its line breaks and its full stop."""
    return " ".join(_COLOUR.sub("", message).split()).rstrip(".!")
