"""The columns that the gate judges, and the reason for each one that it does not.

What belongs here: the list of columns that no expectation judges; a test keeps it complete. What does not: the columns of an
expectation, which are in `Expectation.judges`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from expectations.suites import EXPECTATIONS
from rebalance_ledger.tables import GATE_RESULT, PUBLICATION, QUARANTINED_GROUP

_AFTER: Final = "written from the verdict, after the day was judged"
_OF_FILES: Final = "how a client's library reads an offset file; no SQL recomputes it"
_OF_EARLIER_DAY: Final = "taken from an earlier export, which the gate does not read"
_FOR_PEOPLE: Final = "evidence for a judged state or number; no expectation recomputes it"

_NOT_JUDGED: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "export_record",
        "is_repeat",
        "whether it is set follows from counted_line; only the build compares the two lines",
    ),
    (
        "rejected_record",
        "reason text",
        "how the build's parser names the fault, and the text without secrets",
    ),
    ("queue_assignment", "client_connection_count", _FOR_PEOPLE),
    ("assignment_fairness", "reporting_client_count", _FOR_PEOPLE),
    ("ownership_drift", "deviating_parameters", _FOR_PEOPLE),
    ("queue_sharing", "unobserved_reader_count puller_ids retry_backlog_count", _FOR_PEOPLE),
    (
        "broadcast_offset_file",
        (
            "reason start_outcome start_from main_state bak_state main_size_bytes bak_size_bytes main_modified_at bak_modified_at "
            "main_entry_count bak_entry_count age_ms moment captured_at snapshot_count earlier_snapshots"
        ),
        _OF_FILES,
    ),
    (
        "broadcast_offset_file",
        "message_model is_online process_count host_count client_language client_version client_version_source",
        _FOR_PEOPLE,
    ),
    ("broadcast_offset_file", "previous_ds previous_start_outcome previous_modified_at", _OF_EARLIER_DAY),
    ("broadcast_offset", "start_from stored_offset", _OF_FILES),
    (
        "broadcast_offset",
        "highest_earlier_offset previous_ds previous_offset",
        _OF_EARLIER_DAY,
    ),
    ("broadcast_offset", "offsets_captured_at last_stored_at is_routed consume_from_where", _FOR_PEOPLE),
    (
        "broadcast_offset",
        "restart_offset restart_reason skipped_message_count repeated_message_count",
        "compared with each other and the stored offset only where the reason determines how",
    ),
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
