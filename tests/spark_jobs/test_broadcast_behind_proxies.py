"""Offset files of clients that may be connected to a proxy: only an answer of every proxy proves that a client is offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from tests.support.broadcasting_cluster import CLIENT, OTHER_CLIENT, write_export_with_proxy
from tests.support.computed_days import newest, staged_rows

if TYPE_CHECKING:
    from rebalance_ledger.pipeline.day import Day
    from tests.support.small_days import SmallDays

pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_export_with_proxy)]


@pytest.fixture(scope="module")
def day(small_days: SmallDays) -> Day:
    [computed] = small_days.of(write_export_with_proxy)
    assert steps.gate(computed).reasons == []
    return computed


@pytest.fixture(scope="module")
def files(day: Day) -> dict[tuple[str, str], dict[str, Any]]:
    rows = staged_rows(newest(day), "broadcast_offset_file")
    return {(row["consumer_group"], row["client_id"]): row for row in rows}


@pytest.mark.parametrize(
    ("group", "state", "is_online", "process_count"),
    [
        ("at_proxy", "ok", True, 1),
        ("gone", "orphan_dir", False, 0),
        ("proxy_failed", "ok", None, None),
        ("grpc_at_proxy", "orphan_dir", False, 0),
    ],
)
def test_files_are_unused_only_if_no_proxy_may_have_their_client(
    group: str,
    state: str,
    is_online: bool | None,  # noqa: FBT001  a column's value
    process_count: int | None,
    files: dict[tuple[str, str], dict[str, Any]],
) -> None:
    row = files[group, OTHER_CLIENT]

    assert (row["state"], row["is_online"], row["process_count"]) == (state, is_online, process_count)
    assert (files[group, CLIENT]["state"], files[group, CLIENT]["is_online"]) == ("ok", True)


def test_a_client_without_a_protocol_for_files_has_no_row(
    files: dict[tuple[str, str], dict[str, Any]],
) -> None:
    assert {client_id for _, client_id in files} == {CLIENT, OTHER_CLIENT}


def test_a_finding_says_that_files_are_unused_only_of_clients_that_are_offline(day: Day) -> None:
    unused = {
        row["consumer_group"]
        for row in staged_rows(newest(day), "finding")
        if row["kind"] == "offset_file_unused"
    }

    assert unused == {"gone", "grpc_at_proxy"}
