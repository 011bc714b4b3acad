"""The edge-case cluster, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.computed_days import compute
from tests.support.edge_case_cluster import CLUSTER, OddCluster
from tests.support.export_builder import DS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def odd_day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Return the sealed export of the edge-case cluster, and a warehouse for it."""
    folder = tmp_path_factory.mktemp("odd")
    OddCluster().seal(folder / "exports")
    return Day(CLUSTER, DS, folder / "exports", Warehouse.at(str(folder / "warehouse")), None)


@pytest.fixture(scope="session")
def staged_odd_day(spark: SparkSession, odd_day: Day) -> Day:
    """Return the edge-case day with its staging area. Tests only read it."""
    compute(spark, odd_day)
    return odd_day
