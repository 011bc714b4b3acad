"""Shared fixtures: one Spark session for the whole run, configured as in production, and the sample computed once."""

from __future__ import annotations

import logging
import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from rebalance_ledger.warehouse.layout import Warehouse
    from tests.support.small_days import SmallDays
    from tests.support.three_days import ThreeDays

pytest.register_assert_rewrite("tests.support")

# The same cases in each run; pass --hypothesis-profile=default to pytest for random ones.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")

_ROOT = Path(__file__).resolve().parent.parent
_LOCAL = _ROOT / ".local"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a session with Delta on two local cores, shared by all tests because a JVM takes seconds to start.

    Its configuration is the folder of `SPARK_CONF_DIR`, or the one that set-up writes.
    """
    from pyspark.sql import SparkSession

    from spark_jobs.session import spark_session

    conf = Path(os.environ.setdefault("SPARK_CONF_DIR", str(_LOCAL / "spark-conf")))
    if not (conf / "spark-defaults.conf").is_file():
        pytest.fail(
            f"There is no spark-defaults.conf in {conf}: run `make setup`, or let SPARK_CONF_DIR name a folder with one.",
            pytrace=False,
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers are separate processes, which need this process's path to find the project's packages.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    java_home = _LOCAL / "java-home"
    if "JAVA_HOME" not in os.environ and java_home.is_file():
        os.environ["JAVA_HOME"] = java_home.read_text(encoding="utf-8").strip()
    local = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", value=False)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark-warehouse")))
    )
    local.getOrCreate()
    session = spark_session("tests")
    yield session
    session.stop()
    # py4j logs its shutdown at interpreter exit, after pytest has closed the captured streams.
    logging.getLogger("py4j").setLevel(logging.WARNING)


SAMPLE_DAYS = (date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18))


@pytest.fixture(scope="session")
def sample_warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return the sample's three days, computed, evaluated and published, with their stages; tests must only read them."""
    from rebalance_ledger.warehouse.layout import Warehouse
    from tests.support.computed_days import compute_and_publish, sample_day

    warehouse = Warehouse.at(str(tmp_path_factory.mktemp("sample") / "warehouse"))
    compute_and_publish(spark, *(sample_day(ds, warehouse) for ds in SAMPLE_DAYS))
    return warehouse


@pytest.fixture(scope="session")
def small_days(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> SmallDays:
    """Return the days that tests request by the mark `small_days`, computed by one plan."""
    from tests.support.small_days import SmallDays

    marks = (mark for item in request.session.items for mark in item.iter_markers("small_days"))
    return SmallDays(spark, tmp_path_factory.mktemp("small-days"), (mark.args[0] for mark in marks))


@pytest.fixture(scope="session")
def three_days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ThreeDays:
    """Return the days of `three_days`, computed and published in order; tests must only read them."""
    from tests.support.three_days import DAYS, ThreeDays

    computed = ThreeDays.below(tmp_path_factory.mktemp("three-days"), spark)
    computed.run(*DAYS)
    return computed
