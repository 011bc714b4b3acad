"""The three days of the sample: the tables match the known state of its broadcasting hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.computed_days import asked

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.layout import Warehouse

pytestmark = pytest.mark.spark

QUEUES = 8


def states(warehouse: Warehouse, ds: str) -> dict[str, str]:
    rows = asked(warehouse, "SELECT ds::text, host, state FROM broadcast_offset_file")
    return {host: state for day, host, state in rows if day == ds}


def files(warehouse: Warehouse, host: str, *columns: str) -> tuple[Any, ...]:
    rows = asked(
        warehouse,
        f"SELECT host, {', '.join(columns)} FROM broadcast_offset_file WHERE ds = '2026-11-18'",  # noqa: S608 - our own columns
    )
    return next(row[1:] for row in rows if row[0] == host)


@pytest.mark.parametrize("ds", ["2026-11-16", "2026-11-17"])
def test_on_the_first_two_days_only_duplicate_client_ids_are_reported(
    sample_warehouse: Warehouse, ds: str
) -> None:
    assert states(sample_warehouse, ds) == {
        "10.1.1.21": "ok",
        "10.1.1.22": "ok",
        "10.1.1.23": "ok",
        "10.1.1.30": "shared_file",
    }


def test_on_the_third_day_one_cannot_start_and_one_would_start_from_bak(sample_warehouse: Warehouse) -> None:
    assert states(sample_warehouse, "2026-11-18") == {
        "10.1.1.21": "ok",
        "10.1.1.22": "corrupt_both",
        "10.1.1.23": "recovered_from_bak",
        "10.1.1.30": "shared_file",
    }


def test_the_client_that_cannot_start_has_an_empty_file_and_a_truncated_one(
    sample_warehouse: Warehouse,
) -> None:
    seen = files(
        sample_warehouse,
        "10.1.1.22",
        "main_state",
        "bak_state",
        "start_outcome",
        "is_online",
        "previous_ds::text",
    )

    assert seen == ("empty", "refused", "fails_to_start", False, "2026-11-17")


def test_the_client_that_would_recover_has_a_main_file_of_391_bytes(sample_warehouse: Warehouse) -> None:
    seen = files(
        sample_warehouse, "10.1.1.23", "main_state", "main_size_bytes", "start_from", "bak_entry_count"
    )

    assert seen == ("refused", 391, "bak", QUEUES)


def test_a_truncated_and_rewritten_file_is_ok_and_earlier_snapshots_show_the_truncation(
    sample_warehouse: Warehouse,
) -> None:
    assert files(sample_warehouse, "10.1.1.21", "state", "moment", "earlier_snapshots") == (
        "ok",
        2,
        ["0: refused/offsets", "1: offsets/refused"],
    )


def test_duplicate_client_ids_are_two_processes_on_one_host(sample_warehouse: Warehouse) -> None:
    assert files(sample_warehouse, "10.1.1.30", "process_count", "host_count") == (2, 1)


def test_the_client_that_cannot_start_resumes_no_queue(sample_warehouse: Warehouse) -> None:
    rows = asked(
        sample_warehouse,
        "SELECT state, restart_reason, restart_offset, max_offset - previous_offset > 0, count(*) "
        "FROM broadcast_offset WHERE ds = '2026-11-18' AND host = '10.1.1.22' GROUP BY ALL",
    )

    assert rows == [("no_offset", "fails_to_start", None, True, QUEUES)]


def test_the_client_that_would_recover_lags_and_continues(sample_warehouse: Warehouse) -> None:
    rows = asked(
        sample_warehouse,
        "SELECT DISTINCT state, restart_reason, restart_offset = stored_offset, lag_message_count > 0 "
        "FROM broadcast_offset WHERE ds = '2026-11-18' AND host = '10.1.1.23'",
    )

    assert rows == [("ok", "stored", True, True)]


def test_a_file_newer_than_the_brokers_answer_is_not_ahead_of_the_log(
    sample_warehouse: Warehouse,
) -> None:
    rows = asked(
        sample_warehouse,
        "SELECT state, count(*) FROM broadcast_offset WHERE stored_offset > max_offset GROUP BY ALL",
    )

    assert [state for state, _ in rows] == ["ok"]


def test_each_problem_is_reported_once(sample_warehouse: Warehouse) -> None:
    rows = asked(
        sample_warehouse,
        "SELECT ds::text, kind, client_id FROM finding WHERE kind LIKE 'offset%' OR kind LIKE 'broadcast%' ORDER BY ALL",
    )

    assert rows == [
        ("2026-11-16", "offset_file_shared", "10.1.1.30@DEFAULT"),
        ("2026-11-17", "offset_file_shared", "10.1.1.30@DEFAULT"),
        ("2026-11-18", "offset_file_recovered", "10.1.1.23@DEFAULT"),
        ("2026-11-18", "offset_file_shared", "10.1.1.30@DEFAULT"),
        ("2026-11-18", "offset_files_corrupt", "10.1.1.22@DEFAULT"),
    ]
