"""What goes wrong when a warehouse is read or written, as sentences for the person who asked."""

from __future__ import annotations

import re
from typing import Final

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""The terminal colours that delta-rs writes into its errors."""


NOT_IN_TIME: Final = "The query was not answered in time and was stopped: narrow it, or give it longer with --timeout-seconds (0: no limit)."


class QueryError(Exception):
    """A query, or the warehouse that it names, cannot be read; `str()` is one sentence that says why."""


class NoWarehouseError(QueryError):
    """There is nothing published and nothing refused at the place that was named."""


class StagingError(Exception):
    """A stage is not there, not whole, or not judged; `str()` is one sentence that says which and what to do."""


class WriteError(Exception):
    """The warehouse cannot be written to now; `str()` is one sentence that says why. Readers see what they saw before."""


class RollbackError(Exception):
    """A day cannot be returned to an earlier publication; `str()` is one sentence that says why. Nothing is changed."""


def one_line(message: str) -> str:
    """Return an engine's error message without its colours, its line breaks and its full stop."""
    return " ".join(_COLOUR.sub("", message).split()).rstrip(".!")
