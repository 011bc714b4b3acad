"""Failures that are findings, and failures that are answers."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.findings.export import of_failed_sources

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

POP_MODES = "broker_message_request_mode"
DAY_OF_LINES = ("shop", date(2026, 11, 16))

COLUMNS = (
    "cluster string, ds date, broker_name string, kind string, state string, error_code int, error_type string, error_message string, "
    "nameserver string, consumer_group string"
)
CONNECT = "org.apache.rocketmq.remoting.exception.RemotingConnectException"
TIMEOUT = "org.apache.rocketmq.remoting.exception.RemotingTimeoutException"
BROKER = "org.apache.rocketmq.client.exception.MQBrokerException"


def failed(spark: SparkSession, *lines: tuple[Any, ...]) -> dict[tuple[str | None, str | None], Row]:
    """Return broker and cause -> the finding.

    A line has a broker, kind, state, error code, error type and message, and optionally a name server.
    """
    rows = [DAY_OF_LINES + line + (None,) * (8 - len(line)) for line in lines]
    found = of_failed_sources(spark.createDataFrame(rows, COLUMNS)).collect()
    return {(row["broker_name"], row["likely_cause"]): row for row in found}


def test_a_failure_that_is_an_answer_is_no_finding(spark: SparkSession) -> None:
    found = failed(
        spark,
        ("old", POP_MODES, "error", 3, BROKER, "CODE: 3  DESC: request type 401 not supported"),
        (
            "older",
            POP_MODES,
            "error",
            None,
            "NotAsked",
            "not asked: release 4.7.1 does not know the question",
        ),
        ("odd", "consume_stats", "error", 3, BROKER, "CODE: 3  DESC: request type 208 not supported"),
        ("silent", POP_MODES, "error", None, None, None),
        ("well", POP_MODES, "payload", None, None, None),
        (None, "nameserver_route", "error", 17, BROKER, "CODE: 17  DESC: No topic route info"),
        ("offline", "consumer_connection", "error", 206, BROKER, "CODE: 206  DESC: not online"),
        ("new", "consume_stats", "error", 213, BROKER, "CODE: 213  DESC: no progress"),
        ("gone", "consumer_running_info", "error", 1, BROKER, "The consumer <g> <c> not online"),
        # This failure is a finding of the group.
        (None, "consumer_running_info", "error", None, TIMEOUT, "wait response timeout"),
    )

    assert {subject: row["seen_values"] for subject, row in found.items()} == {
        ("odd", None): ["consume_stats"],
        ("silent", None): [POP_MODES],
    }


def test_failures_are_distinguished_by_cause_and_have_advice(spark: SparkSession) -> None:
    found = failed(
        spark,
        ("b", "broker_config", "error", 16, BROKER, "CODE: 16  DESC: no permission"),
        (
            "b",
            "consume_stats",
            "error",
            1,
            BROKER,
            "CODE: 1  DESC: org.apache.rocketmq.acl.common.AclException: x",
        ),
        ("b", "consume_stats", "error", None, TIMEOUT, "wait response on the channel timeout"),
        ("c", "broker_config", "error", None, CONNECT, "connect to 10.0.0.1:10911 failed"),
        ("c", "consume_stats", "error", None, "ServerNotAnswering", "not called any more"),
        (
            None,
            "nameserver_route",
            "error",
            None,
            CONNECT,
            "connect to 10.0.0.2:9876 failed",
            "10.0.0.2:9876",
        ),
        (None, "consumer_running_info", "error", 16, BROKER, "CODE: 16  DESC: no permission", None, "g"),
    )

    assert found.keys() == {
        ("b", "permission_denied"),
        ("b", "timed_out"),
        ("c", "connection_failed"),
        (None, "connection_failed"),
        (None, "permission_denied"),
    }
    refused = found["b", "permission_denied"]
    assert refused["evidence"].startswith(
        "2 questions refused (broker_config, consume_stats); these kinds need Get and List on Cluster:*, Group:*: "
    )
    assert "updateAcl" in refused["advice"]
    assert found[None, "connection_failed"]["examples"] == ["10.0.0.2:9876"]
    assert found["c", "connection_failed"]["record_count"] == 2
