"""Days computed in parallel do not affect each other, and no day is published with an unpublished baseline."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.pipeline import steps
from rebalance_ledger.settings import ClusterSettings, GateSettings
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import newest_stage, read_build
from spark_jobs import landed_days, side_by_side
from spark_jobs.landed_days import landed_beside
from spark_jobs.side_by_side import SideBySide
from spark_jobs.staged_day import staged_result
from tests.support.computed_days import staged_rows
from tests.support.three_days import CLUSTER, MONDAY, THURSDAY, TUESDAY, ThreeDays, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.side_by_side import DayKey
    from tests.support.computed_days import Row

OTHER = 'it\'s -- "other" + ü#? %2F*\\'
"""A second cluster, whose name must be escaped in a path, a pattern or a statement."""


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ThreeDays:
    """Return three days, with a damaged export of the last one, and the days of another cluster."""
    computed = ThreeDays.below(tmp_path_factory.mktemp("side-by-side"), spark)
    sealed(computed.exports, cluster=OTHER)
    with (computed.exports / CLUSTER / str(THURSDAY) / "nameserver_routes.jsonl").open("ab") as file:
        file.write(b"{}\n")
    return computed


def rows_of(days: ThreeDays, cluster: str, ds: date) -> dict[str, list[Row]]:
    """Return all staged rows of a day without the name of the cluster, in a stable order."""
    stage = newest_stage(days.warehouse, cluster, ds)
    assert {row["cluster"] for row in staged_rows(stage, "export_record")} == {cluster}
    return {
        table.name: sorted(({**row, "cluster": ""} for row in staged_rows(stage, table.name)), key=str)
        for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)
    }


@pytest.mark.e2e
@pytest.mark.spark
def test_a_day_is_the_same_in_parallel_and_is_recomputed_if_its_baseline_is_not_published(
    days: ThreeDays, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[date] = []
    build = side_by_side.build
    monkeypatch.setattr(
        side_by_side, "build", lambda *given, ds, **named: (alone.append(ds), build(*given, ds=ds, **named))
    )
    settings = {CLUSTER: ClusterSettings(), OTHER: ClusterSettings()}
    with closing(SideBySide(spark, days.exports, days.warehouse)) as builder:
        ahead = [(CLUSTER, TUESDAY), (CLUSTER, THURSDAY), (OTHER, MONDAY)]
        builder.build((CLUSTER, MONDAY), settings, ahead)
        builder.build((OTHER, MONDAY), settings)
        assert alone == []

        assert rows_of(days, OTHER, MONDAY) == rows_of(days, CLUSTER, MONDAY)

        # Monday is staged but not published.
        builder.build((CLUSTER, TUESDAY), settings)
        assert alone == [TUESDAY]
        assert read_build(newest_stage(days.warehouse, CLUSTER, TUESDAY)).baseline_ds is None
        states = {row["state"] for row in rows_of(days, CLUSTER, TUESDAY)["assignment_churn"]}
        assert states == {"no_baseline"}

        with pytest.raises(ExportError, match="nameserver_routes"):
            builder.build((CLUSTER, THURSDAY), settings)


class Staged(NamedTuple):
    """A stub of a day that needs no Spark."""

    settings_sha256: str

    def finish(self) -> None:
        pass


@pytest.mark.spark
def test_a_day_that_cannot_be_computed_with_others_causes_few_retries(
    days: ThreeDays, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[int] = []
    together: list[list[int]] = []
    poison, day_count = 11, 24

    @contextmanager
    def build_days(*_: object, days: list[DayKey], **__: object) -> Iterator[dict[DayKey, Staged]]:
        together.append([ds.day for _, ds in days])
        if poison in together[-1]:
            raise MemoryError
        yield {day: Staged(ClusterSettings().sha256) for day in days}

    monkeypatch.setattr(side_by_side, "build_days", build_days)
    monkeypatch.setattr(side_by_side, "build", lambda *_, ds, **__: alone.append(ds.day))
    monkeypatch.setattr(side_by_side, "verify", lambda *_, **__: None)
    october = [(CLUSTER, date(2026, 10, day)) for day in range(1, day_count + 1)]
    with closing(SideBySide(spark, days.exports, days.warehouse)) as builder:
        for position, day in enumerate(october):
            builder.build(day, {CLUSTER: ClusterSettings()}, october[1:] if position == 0 else ())

    computed = [day for batch in together if poison not in batch for day in batch]
    assert sorted([*computed, *alone]) == list(range(1, day_count + 1))
    assert poison in alone
    assert len(alone) <= 3
    assert len(together) <= 1 + day_count.bit_length()


@pytest.mark.spark
def test_days_with_different_settings_are_not_computed_together(
    days: ThreeDays, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[date] = []
    monkeypatch.setattr(side_by_side, "build", lambda *_, ds, **__: alone.append(ds))

    def without_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(side_by_side, "build_days", without_memory)
    with closing(SideBySide(spark, days.exports, days.warehouse)) as builder:
        builder.build((CLUSTER, MONDAY), {CLUSTER: ClusterSettings()}, [(CLUSTER, TUESDAY)])
        monkeypatch.delattr(side_by_side, "build_days")  # It must not be used any more.
        other = ClusterSettings(gate=GateSettings(quarantine_groups=True))
        builder.build((CLUSTER, TUESDAY), {CLUSTER: other})

    assert alone == [MONDAY, TUESDAY]


CONFIGURED = ClusterSettings.model_validate(
    {"groups": {"changing": {"strategy": "CONSISTENT_HASH", "virtual_node_count": 3}}}
)
"""Settings with the parameters of a group's reported strategy, without which the owners are unknown."""


@pytest.mark.e2e
@pytest.mark.spark
def test_landed_clusters_are_staged_in_one_application_each_with_its_own_settings(
    days: ThreeDays, spark: SparkSession, tmp_path: Path
) -> None:
    third = "third"
    sealed(days.exports, cluster=third)
    day, other = (OTHER, THURSDAY), (third, THURSDAY)
    settings = {OTHER: ClusterSettings(), third: CONFIGURED, "absent": ClusterSettings()}
    alone, beside = (Warehouse.at(str(tmp_path / name)) for name in ("alone", "beside"))
    with closing(SideBySide(spark, days.exports, alone)) as builder:
        result = builder.build(other, settings)
    with closing(SideBySide(spark, days.exports, beside)) as builder:
        assert landed_beside(days.exports, beside, settings, day, lambda _: False) == []
        assert landed_beside(days.exports, beside, settings, day, lambda _: True) == [other]
        assert staged_result(days.exports, beside, CONFIGURED, other) is None
        builder.build(day, settings, [other])
        # Another application does not need to stage it.
        assert landed_beside(days.exports, beside, settings, day, lambda _: True) == []
        assert list(builder.finish_waiting()) == [other]

    assert staged_result(days.exports, beside, CONFIGURED, other) == result
    assert staged_result(days.exports, beside, ClusterSettings(), other) is None
    assert landed_beside(days.exports, beside, settings, day, lambda _: True) == []
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        staged = [staged_rows(newest_stage(at, *other), table.name) for at in (alone, beside)]
        assert sorted(staged[0], key=str) == sorted(staged[1], key=str)
    has_owner = {
        cluster: {
            row["client_id"] is not None
            for row in staged_rows(newest_stage(beside, cluster, ds), "queue_assignment")
            if row["is_effective"] and row["consumer_group"] == "changing"
        }
        for cluster, ds in (day, other)
    }
    assert has_owner == {OTHER: {False}, third: {True}}


@pytest.mark.e2e
@pytest.mark.spark
def test_a_day_staged_ahead_is_used_if_its_baseline_is_published_unchanged(
    three_days: ThreeDays, spark: SparkSession, tmp_path: Path
) -> None:
    """Tuesday is published without a group, so Thursday is computed again."""
    own = ThreeDays.below(tmp_path, spark)
    settings = {CLUSTER: own.day(MONDAY).settings}

    def staged(ds: date) -> bool:
        return staged_result(own.exports, own.warehouse, settings[CLUSTER], (CLUSTER, ds)) is not None

    def publish(ds: date) -> None:
        steps.gate(own.day(ds))
        steps.publish(own.day(ds))

    with own.with_fault(), closing(SideBySide(spark, own.exports, own.warehouse)) as builder:
        ahead = landed_beside(
            own.exports, own.warehouse, settings, (CLUSTER, MONDAY), lambda _: True, through=THURSDAY
        )
        assert ahead == [(CLUSTER, TUESDAY), (CLUSTER, THURSDAY)]
        builder.build((CLUSTER, MONDAY), settings, ahead)
        assert set(builder.finish_waiting()) == set(ahead)

        assert not staged(TUESDAY)
        with pytest.raises(StagingError, match="has no record of the day that it was compared with"):
            steps.gate(own.day(TUESDAY))

        publish(MONDAY)
        assert staged(TUESDAY)
        publish(TUESDAY)
        assert not staged(THURSDAY)
        builder.build((CLUSTER, THURSDAY), settings)
        publish(THURSDAY)

    assert own.tables == three_days.tables


@pytest.mark.spark
def test_staging_ahead_stops_at_a_day_that_does_not_fit_or_belongs_to_another_application(
    three_days: ThreeDays, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {CLUSTER: three_days.day(MONDAY).settings}
    empty = Warehouse.at(str(tmp_path / "warehouse"))

    def ahead(warehouse: Warehouse, reserve: Callable[[DayKey], bool] = lambda _: True) -> list[date]:
        days = landed_beside(
            three_days.exports, warehouse, settings, (CLUSTER, MONDAY), reserve, through=THURSDAY
        )
        return [ds for _, ds in days]

    assert ahead(empty) == [TUESDAY, THURSDAY]
    assert ahead(empty, lambda day: day != (CLUSTER, TUESDAY)) == []
    assert ahead(three_days.warehouse) == []
    monkeypatch.setattr(landed_days, "MOST_DAYS", 2)
    assert ahead(empty) == [TUESDAY]
