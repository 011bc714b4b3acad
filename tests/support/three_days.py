"""Three days of one small cluster, the second with a computation fault in one group, for tests of several days.

The fault adds a second owner, which is not even connected, to that group's first queue for each strategy. The settings
quarantine such a group. Clients come and go every day, and the day before the last has no export.

Belongs here: the exports, and computing a day of them. Does not belong here: the order of the days (see the tests).
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql.functions import col, lit

from rebalance_ledger.pipeline.backfill import NO_EXPORT, DayOutcome, backfill
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.pipeline.outdated import stale_days
from rebalance_ledger.warehouse.fingerprint import TableDay, fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from spark_jobs import build as build_module
from tests.support.computed_days import compute_and_publish
from tests.support.export_builder import ExportBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

CLUSTER: Final = "shop-test"
DAYS = MONDAY, TUESDAY, THURSDAY = tuple(date(2026, 11, day) for day in (16, 17, 19))
BAD: Final = "it's -- \" <b>`%s`</b>\\"
GROUPS: Final = ("orders-a", "orders-b", "orders-c", "orders-d", BAD)
QUARANTINE: Final = f"clusters: {{{CLUSTER}: {{gate: {{quarantine_groups: true%s}}}}}}\n"

_MEMBERS: Final[Mapping[date, Sequence[str]]] = {
    MONDAY: ["c1", "c2"],
    TUESDAY: ["c1", "c2", "c3"],
    THURSDAY: ["c2", "c3"],
}
_QUEUES_OF_STOCK: Final = {MONDAY: 8, TUESDAY: 8, THURSDAY: 6}
_READERS_OF_STOCK: Final[Mapping[date, Mapping[str, Sequence[str]]]] = {
    MONDAY: {"front": ["c1"], "steady": ["a", "b"], "gone": ["x"]},
    TUESDAY: {"front": ["c1", "c2", "c3"], "steady": ["a", "b"], "gone": ["x"]},
    THURSDAY: {"front": ["c0", "c1", "c2"], "steady": ["a", "b"], "new": ["y"]},
}


def sealed(exports: Path, *, cluster: str = CLUSTER, **members_of: Sequence[str]) -> Path:
    """Seal the exports of a cluster again, with the members passed by the day's name replaced."""
    shutil.rmtree(exports / cluster, ignore_errors=True)
    for ds in DAYS:
        export = ExportBuilder(cluster, ds)
        export.route("orders", {"a": 4})
        for group in GROUPS:
            export.group(group, ["orders"], members_of.get(f"{ds:%A}", _MEMBERS[ds]), "a")
        export.route("stock", {"a": _QUEUES_OF_STOCK[ds]})
        for group, clients in _READERS_OF_STOCK[ds].items():
            export.group(group, ["stock"], clients, "a")
        _write_changing(export, is_changed=ds == THURSDAY)
        export.seal(exports)
    return exports


def _write_changing(export: ExportBuilder, *, is_changed: bool) -> None:
    """Write a group that changes to a strategy whose parameters are not in the settings; c1 had queues 0 and 2, then 0 and 1."""
    export.route("payments", {"a": 4})
    export.members("a", "changing", ["c1", "c2"], ["payments"])
    held = {"c1": (0, 1), "c2": (2, 3)} if is_changed else {"c1": (0, 2), "c2": (1, 3)}
    for client, queues in held.items():
        strategy = "CONSISTENT_HASH" if is_changed else "AVG_BY_CIRCLE"
        export.client(
            "changing", client, ["payments"], strategy, [("payments", "a", queue) for queue in queues]
        )


def with_a_second_owner(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    """Return `queue_assignment` with Tuesday's fault."""

    def faulty(*arguments: Any) -> DataFrame:
        rows = original(*arguments)
        is_faulty = (col("ds") == TUESDAY) & (col("consumer_group") == BAD) & (col("queue_id") == 0)
        first_queue = rows.where(is_faulty)
        return rows.unionByName(first_queue.withColumn("client_id", lit("stranger")))

    return faulty


@dataclass(frozen=True)
class ThreeDays:
    """The locations of the days' exports and results; they are computed in the tests' shared Spark session."""

    spark: SparkSession
    exports: Path
    warehouse: Warehouse
    settings_file: Path

    @classmethod
    def below(cls, folder: Path, spark: SparkSession) -> ThreeDays:
        """Seal the exports below a folder, with settings and an empty warehouse."""
        settings_file = folder / "ledger.yaml"
        settings_file.write_text(QUARANTINE % "")
        exports = sealed(folder / "exports")
        return cls(spark, exports, Warehouse.at(str(folder / "warehouse")), settings_file)

    def day(self, ds: date) -> Day:
        return Day(CLUSTER, ds, self.exports, self.warehouse, self.settings_file)

    def run(self, *days: date) -> None:
        """Compute days in parallel and publish them in order, with the fault."""
        with self.with_fault():
            compute_and_publish(self.spark, *map(self.day, days))

    @staticmethod
    @contextmanager
    def with_fault() -> Iterator[None]:
        """Add Tuesday's fault to computations inside the context."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                build_module, "queue_assignment", with_a_second_owner(build_module.queue_assignment)
            )
            yield

    def run_without_quarantine(self, ds: date) -> None:
        """Compute and publish a day with settings without quarantine, so that the gate rejects Tuesday."""
        strict = self.settings_file.with_name("strict.yaml")
        strict.write_text("clusters: {}\n")
        replace(self, settings_file=strict).run(ds)

    def backfill(self, first: date, last: date, *, is_reversed: bool = False) -> list[date]:
        """Run days in the order of `ledger backfill`, each computed alone, and return the days that ran, in order."""

        def run(day: Day, why: str, ahead: Iterable[Day]) -> DayOutcome:
            del ahead
            self.run(day.ds)
            return DayOutcome(day.cluster, day.ds, why, "published", 0, "")

        outcomes = backfill(self.day(first), first, last, is_reversed=is_reversed, run=run)
        return [outcome.ds for outcome in outcomes if outcome.outcome != NO_EXPORT]

    @property
    def tables(self) -> list[TableDay]:
        """Return the fingerprints of all published tables, none of which may be outdated."""
        assert stale_days(self.warehouse, CLUSTER) == ()
        return list(fingerprint(self.warehouse.root, CLUSTER))
