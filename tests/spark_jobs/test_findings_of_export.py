"""Which failures are faults, and which are answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.findings.of_export import of_failed_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

POP_MODES = "broker_message_request_mode"


def test_what_answers_the_question_is_no_fault(spark: SparkSession) -> None:
    lines = [
        ("old", POP_MODES, "error", 3, "CODE: 3  DESC: request type 401 not supported"),
        ("odd", "consume_stats", "error", 3, "CODE: 3  DESC: request type 208 not supported"),
        ("denied", POP_MODES, "error", 16, "CODE: 16  DESC: No permission"),
        ("silent", POP_MODES, "error", None, None),
        ("well", POP_MODES, "ok", None, None),
        (None, "nameserver_route", "error", 17, "CODE: 17  DESC: No topic route info"),
        ("offline", "consumer_connection", "error", 206, "CODE: 206  DESC: not online"),
        ("new", "consume_stats", "error", 213, "CODE: 213  DESC: no progress"),
        ("gone", "consumer_running_info", "error", 1, "The consumer <g> <c> not online"),
    ]
    columns = "broker_name string, kind string, state string, error_code int, error_message string"
    found = of_failed_sources(spark.createDataFrame(lines, columns)).collect()
    assert sorted((row["broker_name"], row["seen_values"]) for row in found) == [
        ("denied", [POP_MODES]),
        ("odd", ["consume_stats"]),
        ("silent", [POP_MODES]),
    ]
