"""Progress of a build: one log record for each table and each of the gate's statements.

What belongs here: the logger and the number of its records. What does not: how records are shown (`build.main`,
`rebalance_ledger.cli.build_progress`).
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from expectations.metrics import METRIC_STATEMENTS
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGER: Final = logging.getLogger("rebalance_ledger.build")

RECORD_COUNT: Final = len(SILVER_TABLES) + len(COMPUTED_GOLD_TABLES) + len(METRIC_STATEMENTS)
"""Number of records of a day without quarantined groups; with them, each statement has a second record."""


@contextmanager
def logged(work: str) -> Iterator[None]:
    """Log what was computed and how long it took, once the block has ended without an error."""
    begin = time.monotonic()
    yield
    LOGGER.info("%s: %.1f s", work, time.monotonic() - begin)
