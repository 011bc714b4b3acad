"""The columns that the gate judges, and the reason for each one that it does not.

Belongs here: the list of columns that no expectation judges; a test keeps it complete. Does not belong here: the columns of an
expectation, which are in `Expectation.judges`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.tables import GATE_RESULT, PUBLICATION, QUARANTINED_GROUP

_AFTER: Final = "written from the verdict, after the day was judged"
_NOT_JUDGED: Final[tuple[tuple[str, str, str], ...]] = (
    *(
        (table.name, " ".join(column.name for column in table.all_columns), _AFTER)
        for table in (QUARANTINED_GROUP, GATE_RESULT, PUBLICATION)
    ),
)

NOT_JUDGED: Final[dict[str, str]] = {
    f"{table}.{column}": reason for table, columns, reason in _NOT_JUDGED for column in columns.split()
}
"""`table.column` -> why no expectation judges it. A wrong value in such a column is published unnoticed."""


def judges_by_column() -> dict[str, tuple[str, ...]]:
    """Return `table.column` -> ids of the expectations that a wrong value violates, in the order of the suites."""
    expectation_ids: dict[str, list[str]] = defaultdict(list)
    for expectation_id, expectation in EXPECTATIONS.items():
        for column in expectation.judged_columns:
            expectation_ids[column].append(expectation_id)
    return {column: tuple(ids) for column, ids in expectation_ids.items()}
