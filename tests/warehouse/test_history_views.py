"""Views over published days: the first day of a client's ownership of a queue, and outdated days."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.exports.catalog import LOOK_BACK_EXPORTS
from rebalance_ledger.tables import GATE_RESULT, OWNERSHIP_DRIFT, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.baseline import newest_earlier_day
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.query import views
from tests.support.command_line import ledger
from tests.support.computed_days import ROOT, asked
from tests.support.staging_fixtures import held_queue, owner, stage_day

if TYPE_CHECKING:
    from pathlib import Path

COMPARED = (QUEUE_ASSIGNMENT, CONSUMER_CONNECTION)
STALE = "SELECT ds::VARCHAR, reasons FROM outdated_day ORDER BY ds"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with only four tables per day: all tables are published in the same way, and each takes time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", (*COMPARED, OWNERSHIP_DRIFT, GATE_RESULT))
    return Warehouse.at(str(tmp_path / "warehouse"))


def november(day: int) -> date:
    return date(2026, 11, day)


def publish_day(
    warehouse: Warehouse,
    day: int,
    client_id: str | None = "c1",
    exports: list[str] | None = None,
    manifest: str = "m",
    state: str | None = None,
) -> None:
    """Publish a day with the client as the observed owner of the only queue, as the build would record it."""
    ds = november(day)
    earlier = newest_earlier_day(warehouse, "shop", ds, COMPARED)
    build: dict[str, Any] = {"manifest_sha256": manifest, "compared_exports": exports}
    if earlier:
        build |= {"baseline_ds": earlier.ds, "compared_content": list(earlier.content)}
    observed = [client_id] if client_id else []
    stage_day(
        warehouse,
        ds,
        run_id=f"{day} {client_id} {manifest}",
        build=build,
        queue_assignment=[{**owner(0, client_id), "is_effective": True, "strategy": "AVG"}],
        ownership_drift=[held_queue(0, *observed, state=state or ("match" if observed else "unowned"))],
    )
    publish(warehouse, "shop", ds)


def history(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return asked(
        warehouse,
        "SELECT client_id, day(owned_from), day(owned_to), day_count, is_latest, begins, missing_day_count, "
        "is_owner_before_gap FROM ownership_history ORDER BY owned_from, client_id",
    )


def test_a_stretch_ends_where_another_client_owns_the_queue(warehouse: Warehouse) -> None:
    for day, client_id in ((16, "c1"), (17, "c1"), (18, "c2")):
        publish_day(warehouse, day, client_id)

    assert history(warehouse) == [
        ("c1", 16, 17, 2, False, "first_day", None, None),
        ("c2", 18, 18, 1, True, "changed", 0, None),
    ]


@pytest.mark.parametrize("before", ["c1", "c2"])
def test_a_missing_day_ends_a_stretch_and_the_previous_owner_is_shown(
    warehouse: Warehouse, before: str
) -> None:
    for day, client_id in ((16, "c1"), (17, before), (20, "c1"), (21, "c1")):
        publish_day(warehouse, day, client_id)

    assert history(warehouse)[-1] == ("c1", 20, 21, 2, True, "after_gap", 2, before == "c1")


def test_a_day_published_later_closes_the_gap(warehouse: Warehouse) -> None:
    for day in (18, 16, 17):
        publish_day(warehouse, day)

    assert history(warehouse) == [("c1", 16, 18, 3, True, "first_day", None, None)]


def test_a_day_without_an_owner_ends_a_stretch(warehouse: Warehouse) -> None:
    for day, client_id in ((16, "c1"), (17, None), (18, "c1")):
        publish_day(warehouse, day, client_id)

    assert history(warehouse)[-1] == ("c1", 18, 18, 1, True, "changed", 0, None)


def test_a_day_on_which_the_owner_was_not_observed_is_a_gap_of_that_queue(warehouse: Warehouse) -> None:
    publish_day(warehouse, 16, "c1")
    publish_day(warehouse, 17, None, state="unknown")
    publish_day(warehouse, 18, "c1")

    assert history(warehouse) == [
        ("c1", 16, 16, 1, False, "first_day", None, None),
        ("c1", 18, 18, 1, True, "after_gap", 1, True),
    ]


def test_stretches_follow_observed_owners_and_not_expected_ones(warehouse: Warehouse) -> None:
    """The strategy assigns the queue to c2 from the second day on, but c1 still holds it."""
    for day, chosen in ((16, "c1"), (17, "c2")):
        stage_day(
            warehouse,
            november(day),
            run_id=str(day),
            build={"manifest_sha256": "m"},
            queue_assignment=[{**owner(0, chosen), "is_effective": True, "strategy": "AVG"}],
            ownership_drift=[held_queue(0, "c1") | {"expected_client_ids": [chosen]}],
        )
        publish(warehouse, "shop", november(day))

    assert history(warehouse) == [("c1", 16, 17, 2, True, "first_day", None, None)]


def test_expected_ownership_restarts_after_a_day_without_the_queue(warehouse: Warehouse) -> None:
    for day, queue_id in ((16, 0), (17, 1), (18, 0), (19, 0), (21, 0)):
        stage_day(
            warehouse,
            november(day),
            run_id=str(day),
            queue_assignment=[{**owner(queue_id, "c1"), "is_effective": True, "strategy": "AVG"}],
            ownership_drift=[held_queue(queue_id, "c1")],
        )
        publish(warehouse, "shop", november(day))

    text = (ROOT / "sql" / "questions" / "queue_history.sql").read_text(encoding="utf-8")
    since = {
        ds.day: since.day
        for _, _, _, _, queue_id, ds, _, _, _, since, *_ in asked(warehouse, text)
        if queue_id == 0
    }
    # The 20th is not published. It does not interrupt a run, which counts published days only.
    assert since == {16: 16, 18: 18, 19: 18, 21: 18}


def test_days_in_order_are_up_to_date(warehouse: Warehouse) -> None:
    for day in (16, 17, 19):
        publish_day(warehouse, day)

    assert asked(warehouse, STALE) == []


def test_the_next_day_is_out_of_date_when_its_baseline_changes(warehouse: Warehouse) -> None:
    for day in (16, 17, 18):
        publish_day(warehouse, day)
    assert asked(warehouse, STALE) == []

    publish_day(warehouse, 16, "c2")
    assert asked(warehouse, STALE) == [("2026-11-17", ["earlier_day_changed"])]

    publish_day(warehouse, 17)
    assert asked(warehouse, STALE) == []


def test_the_same_rows_of_another_run_leave_the_next_day_up_to_date(warehouse: Warehouse) -> None:
    for day in (16, 17):
        publish_day(warehouse, day)

    publish_day(warehouse, 16, manifest="another")

    assert asked(warehouse, STALE) == []


def test_a_warning_names_five_outdated_days_and_counts_the_others(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (23, 22, 21, 20, 19, 18, 17, 16):
        publish_day(warehouse, day)
    publish_day(warehouse, 16, "c2")

    assert ledger("rollback", "--cluster=shop", "--ds=2026-11-16", f"--warehouse={warehouse.root}") == 0

    warning = capsys.readouterr().err
    assert "2026-11-21 (newer_baseline_available) and 2 more; `ledger backfill " in warning
    assert "2026-11-22" not in warning
    assert " --from 2026-11-17 --to 2026-11-23 --skip-published --warehouse " in warning


def test_a_rollback_makes_the_next_day_out_of_date_and_reports_it(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    for day, client_id in ((16, "c1"), (16, "c2"), (17, "c2")):
        publish_day(warehouse, day, client_id)

    assert ledger("rollback", "--cluster=shop", "--ds=2026-11-16", f"--warehouse={warehouse.root}") == 0

    assert capsys.readouterr().err == (
        "warning: outdated comparisons with the baseline: 2026-11-17 (earlier_day_changed); "
        f"`ledger backfill --cluster shop --from 2026-11-17 --to 2026-11-17 --skip-published --warehouse {warehouse.root}` "
        "computes them again; add the --exports and --settings from which the days were computed.\n"
    )
    assert asked(warehouse, STALE) == [("2026-11-17", ["earlier_day_changed"])]


def test_the_command_for_outdated_days_has_the_locations_and_the_settings_in_effect(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (16, 17):
        publish_day(warehouse, day)
    publish_day(warehouse, 16, "c2")
    settings = tmp_path / "my settings.yaml"
    settings.write_text("clusters: {}\n", encoding="utf-8")
    monkeypatch.setenv("LEDGER_EXPORTS", str(tmp_path / "it's exports"))

    day_options = ("--cluster=shop", "--ds=2026-11-16", f"--warehouse={warehouse.root}")
    assert ledger("step", "publish", *day_options, f"--settings={settings}") == 0

    assert capsys.readouterr().err.endswith(
        "`ledger backfill --cluster shop --from 2026-11-17 --to 2026-11-17 --skip-published "
        f"--exports '{tmp_path}/it'\"'\"'s exports' --warehouse {warehouse.root} --settings '{settings}'` computes them again.\n"
    )


def test_a_day_is_out_of_date_when_a_newer_baseline_is_published(warehouse: Warehouse) -> None:
    for day in (18, 16, 17):
        publish_day(warehouse, day)

    assert asked(warehouse, STALE) == [("2026-11-18", ["newer_baseline_available"])]


def test_a_day_of_another_cluster_is_no_baseline(warehouse: Warehouse) -> None:
    publish_day(warehouse, 17)
    stage_day(warehouse, november(16), "pay")
    publish(warehouse, "pay", november(16))

    assert asked(warehouse, STALE) == []


def test_offset_files_that_were_compared_with_another_export_are_out_of_date(warehouse: Warehouse) -> None:
    publish_day(warehouse, 16, manifest="first", exports=[])
    publish_day(warehouse, 17, exports=["2026-11-16=first"])
    assert asked(warehouse, STALE) == []

    publish_day(warehouse, 16, manifest="second", exports=[])

    assert asked(warehouse, STALE) == [("2026-11-17", ["earlier_export_changed"])]


def test_a_new_export_within_the_lookback_is_reported_and_an_older_one_is_not(
    warehouse: Warehouse,
) -> None:
    looked_at = [f"2026-11-{day}=m" for day in (19, 17, 16)]
    for day in (16, 17, 19):
        publish_day(warehouse, day)
    publish_day(warehouse, 20, exports=looked_at)
    publish_day(warehouse, 15)
    assert asked(warehouse, STALE) == [("2026-11-16", ["newer_baseline_available"])]

    publish_day(warehouse, 18)

    assert ("2026-11-20", ["earlier_export_appeared"]) in asked(warehouse, STALE)


def test_the_view_and_the_build_have_the_same_lookback_for_exports() -> None:
    assert f"len(day.compared_exports) < {LOOK_BACK_EXPORTS} " in views()["outdated_day"]
