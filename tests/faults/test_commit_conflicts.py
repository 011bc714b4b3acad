"""Another writer, which ignores the lock, commits to a table during a publication."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.fingerprint import TableDay, fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tests.support.command_line import ledger
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deltalake.transaction import AddAction

    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.staged_files import StagedFiles

pytestmark = pytest.mark.faults

CLUSTER = "shop"
_APPEND = (
    "import sys, deltalake, pyarrow.parquet as pq; "
    "deltalake.write_deltalake(sys.argv[2], pq.read_table(sys.argv[1], partitioning=None), mode='append')"
)


def staged(warehouse: Warehouse) -> Warehouse:
    """Monday is published, and Tuesday is staged and accepted."""
    stage_day(warehouse, MONDAY, queue_assignment=owners("a", "b"))
    publish(warehouse, CLUSTER, MONDAY)
    stage_day(warehouse, TUESDAY, queue_assignment=owners("c", "d", "e"))
    return warehouse


def content(warehouse: Warehouse) -> list[TableDay]:
    return list(fingerprint(warehouse.root, CLUSTER))


def put_in_between(monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, row_file: Path) -> None:
    """Insert another writer's row into Tuesday's assignment, once, after our files are written and before they are committed."""
    place = warehouse.published(QUEUE_ASSIGNMENT)
    original = commits.give_to_table
    calls = count()

    def interrupted(
        files: StagedFiles, footers: Sequence[pq.FileMetaData], table_place: str, day: ClusterDay
    ) -> list[AddAction]:
        actions = original(files, footers, table_place, day)
        if table_place == place and next(calls) == 0:
            pq.write_table(pq.read_table(files.places[0]).slice(0, 1), row_file)
            subprocess.run([sys.executable, "-c", _APPEND, row_file, place], check=True)
        return actions

    monkeypatch.setattr(commits, "give_to_table", interrupted)


def test_a_concurrent_commit_is_reported_in_one_sentence_and_the_next_run_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = staged(Warehouse.at(str(tmp_path / "warehouse")))
    undisturbed = staged(Warehouse.at(str(tmp_path / "undisturbed")))
    publish(undisturbed, CLUSTER, TUESDAY)
    before = content(warehouse)
    version = DeltaTable(warehouse.published(QUEUE_ASSIGNMENT)).version()
    put_in_between(monkeypatch, warehouse, tmp_path / "row.parquet")
    words = ("step", "publish", f"--cluster={CLUSTER}", f"--ds={TUESDAY}", f"--warehouse={warehouse.root}")

    assert ledger(*words) == 1

    assert DeltaTable(warehouse.published(QUEUE_ASSIGNMENT)).version() == version + 2
    output = capsys.readouterr().err
    assert f"{warehouse.root} cannot be written: " in output
    assert "Published tables are unchanged for readers; fix the cause and run the command again." in output
    assert content(warehouse) == before

    assert ledger(*words) == 0
    assert content(warehouse) == content(undisturbed)
