"""Differences between the routes of name servers, or between a route and a broker. Each case has its own topic and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from tests.support.computed_days import newest, staged_rows
from tests.support.export_builder import DS, NAMESERVERS, ExportBuilder

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.pipeline.day import Day
    from tests.support.small_days import SmallDays

CLUSTER = "divergence-test"
FIRST, SECOND = NAMESERVERS
NOT_REACHED = "connect to 10.0.0.1:9876 failed"

OWN_TOPICS = ("%RETRY%g", "SCHEDULE_TOPIC_XXXX", "partial-1", f"{CLUSTER}_REPLY_TOPIC")
LOST_TOPICS = tuple(f"of-lost-{number:02}" for number in range(34))
"""Topics of a dead broker that one of the name servers still lists."""

Row = dict[str, Any]


def divergent_export() -> ExportBuilder:
    """Return an export in which each topic has separate brokers, so that its divergence affects no other topic."""
    export = ExportBuilder(CLUSTER)
    export.no_members("agree-1", "nobody")
    configured = {
        "agree": 4,
        "wiped": 4,
        "fewer-to-write": 4,
        "fewer-to-read": 4,
        "half-known": 4,
        "ordered": 4,
        "moved": 4,
        "config-grew": 8,
        "config-closed": 4,
        "half-asked": 4,
        "acting": 4,
        "acting-and-grown": 8,
    }
    for topic in (*configured, "not-configured"):
        export.configured(
            f"{topic}-1",
            {topic: configured[topic]} if topic in configured else {"another": 4},
            4 if topic == "config-closed" else 6,
        )
    for topic in ("agree", "moved", "config-grew", "config-closed", "not-configured", "broker-silent"):
        export.route(topic, {f"{topic}-1": 4})
    for topic in ("acting", "acting-and-grown"):
        export.route(topic, {f"{topic}-1": 4}, perm=4)
    export.route("wiped", {"wiped-1": 4}, FIRST)
    export.route("wiped", {"wiped-1": 4}, SECOND, perm=4)
    for nameserver, write in ((FIRST, 4), (SECOND, 2)):
        queues = {"brokerName": "fewer-to-write-1", "perm": 6, "readQueueNums": 4, "writeQueueNums": write}
        export.answer(
            "nameserver_route",
            {"brokerDatas": [], "queueDatas": [queues]},
            nameserver=nameserver,
            topic="fewer-to-write",
        )
    export.route("fewer-to-read", {"fewer-to-read-1": 4}, FIRST)
    export.route("fewer-to-read", {"fewer-to-read-1": 3}, SECOND)
    export.route("half-known", {"half-known-1": 4}, FIRST)
    export.route("half-known", None, SECOND)
    export.route("ordered", {"ordered-1": 4}, FIRST, order="ordered-1:4")
    export.route("ordered", {"ordered-1": 4}, SECOND)
    export.configured("unheard-of-1", {"agree": 4})
    # As `exportMetadata -t` writes it: without topics of RocketMQ's own.
    for topic in OWN_TOPICS:
        export.route(topic, {"partial-1": 1, "complete-1": 1})
    export.configured("partial-1", {})
    export.configured("complete-1", {"SELF_TEST_TOPIC": 1})
    export.route("half-asked", {"half-asked-1": 4}, FIRST)
    export.failure("nameserver_route", NOT_REACHED, nameserver=SECOND, topic="half-asked")
    export.failure("broker_topic_config", NOT_REACHED, broker="broker-silent-1")
    for topic in LOST_TOPICS:
        export.route(topic, {"lost-1": 4}, FIRST)
        export.route(topic, None, SECOND)
    export.failure(
        "broker_topic_config",
        NOT_REACHED,
        error_type="remoting.exception.RemotingConnectException",
        broker="lost-1",
    )
    for nameserver, host in ((FIRST, "10.0.0.1"), (SECOND, "10.0.0.2")):
        slave = {"1": "10.0.0.8:10911"}
        export.brokers(
            nameserver,
            {
                "moved-1": {"0": f"{host}:10911"},
                "agree-1": {"0": "10.0.0.9:10911"},
                "partial-1": {"0": "10.0.0.3:10911"},
                "complete-1": {"0": "10.0.0.4:10911"},
                "acting-1": slave,
                "acting-and-grown-1": slave,
            },
        )
    return export


def write_exports(exports: Path) -> list[tuple[str, date]]:
    divergent_export().seal(exports)
    return [(CLUSTER, DS)]


pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_exports)]


@pytest.fixture(scope="module")
def day(small_days: SmallDays) -> Day:
    [day] = small_days.of(write_exports)
    return day


@pytest.fixture(scope="module")
def rows(day: Day) -> dict[tuple[str, str, str], Row]:
    """Return the row of each topic, broker and name server."""
    staged = staged_rows(newest(day), "route_divergence")
    return {(row["topic"], row["broker_name"], row["nameserver"]): row for row in staged}


@pytest.fixture(scope="module")
def findings(day: Day) -> dict[tuple[str, str], Row]:
    """Return kind and subject -> finding, for findings about routes."""
    return {
        (row["kind"], row["topic"] or row["broker_name"]): row
        for row in staged_rows(newest(day), "finding")
        if row["consumer_group"] is None and row["kind"] != "source_failed"
    }


@pytest.mark.parametrize("topic", OWN_TOPICS)
def test_a_configuration_without_rocketmqs_own_topics_does_not_show_that_one_is_missing(
    topic: str, rows: dict[tuple[str, str, str], Row]
) -> None:
    assert rows[topic, "partial-1", FIRST]["differences"] == []
    assert rows[topic, "complete-1", FIRST]["differences"] == ["not_configured"]


@pytest.mark.parametrize(
    ("topic", "of_first", "of_second", "is_read_affected"),
    [
        ("agree", [], [], False),
        ("wiped", ["perm"], ["perm", "config_perm"], False),
        ("fewer-to-write", ["write_queues"], ["write_queues", "config_write_queues"], False),
        (
            "fewer-to-read",
            ["read_queues", "write_queues"],
            ["read_queues", "write_queues", "config_read_queues", "config_write_queues"],
            True,
        ),
        ("half-known", ["broker_missing"], ["broker_missing", "not_routed"], True),
        ("ordered", ["order_conf"], ["order_conf"], False),
        ("moved", ["addresses"], ["addresses"], False),
        (
            "config-grew",
            ["config_read_queues", "config_write_queues"],
            ["config_read_queues", "config_write_queues"],
            False,
        ),
        ("config-closed", ["config_perm"], ["config_perm"], False),
        ("not-configured", ["not_configured"], ["not_configured"], False),
        ("acting", ["config_perm"], ["config_perm"], False),
        ("half-asked", [], [], False),
        ("broker-silent", [], [], False),
    ],
)
def test_differences_are_listed_for_each_name_server(
    topic: str,
    of_first: list[str],
    of_second: list[str],
    is_read_affected: bool,  # noqa: FBT001 - a column of the table above
    rows: dict[tuple[str, str, str], Row],
) -> None:
    first, second = (rows[topic, f"{topic}-1", nameserver] for nameserver in NAMESERVERS)

    assert (first["differences"], second["differences"]) == (of_first, of_second)
    assert {first["is_read_affected"], second["is_read_affected"]} == {is_read_affected}


def test_a_name_server_that_could_not_be_asked_is_neither_the_same_nor_different(
    rows: dict[tuple[str, str, str], Row],
) -> None:
    answering, silent = (rows["half-asked", "half-asked-1", nameserver] for nameserver in NAMESERVERS)

    assert (answering["state"], answering["is_routed"], answering["nameserver_count"]) == ("same", True, 1)
    assert (silent["state"], silent["is_routed"], silent["perm"]) == ("unknown", None, None)
    assert silent["agreeing_nameserver_count"] is None


def test_a_broker_that_could_not_be_asked_is_not_one_without_the_topic(
    rows: dict[tuple[str, str, str], Row],
) -> None:
    row = rows["broker-silent", "broker-silent-1", FIRST]

    assert (row["state"], row["is_config_known"], row["config_perm"]) == ("same", False, None)


def test_a_broker_that_has_the_topic_but_is_in_no_route_is_reported(
    rows: dict[tuple[str, str, str], Row],
) -> None:
    row = rows["agree", "unheard-of-1", FIRST]

    assert (row["differences"], row["is_routed"], row["config_read_queue_count"]) == (
        ["not_routed"],
        False,
        4,
    )


def test_both_answers_are_in_columns(rows: dict[tuple[str, str, str], Row]) -> None:
    first, second = (rows["wiped", "wiped-1", nameserver] for nameserver in NAMESERVERS)

    assert (first["perm"], second["perm"], first["config_perm"]) == (6, 4, 6)
    assert [row["agreeing_nameserver_count"] for row in (first, second)] == [1, 1]
    assert rows["moved", "moved-1", SECOND]["broker_addrs"] == ["0=10.0.0.2:10911"]


def test_each_difference_has_one_finding(findings: dict[tuple[str, str], Row]) -> None:
    assert set(findings) == {
        ("write_route_differs", "wiped-1"),
        ("write_route_differs", "fewer-to-write-1"),
        ("route_differs", "fewer-to-read"),
        ("route_differs", "half-known"),
        ("broker_missing_on_nameserver", "half-known-1"),
        ("broker_missing_on_nameserver", "lost-1"),
        *(("route_differs", topic) for topic in LOST_TOPICS),
        ("order_conf_differs", "ordered"),
        ("broker_address_differs", "moved-1"),
        ("route_config_differs", "config-grew-1"),
        ("route_config_differs", "config-closed-1"),
        ("route_config_differs", "not-configured-1"),
        ("route_config_differs", "unheard-of-1"),
        ("route_config_differs", "complete-1"),
        ("broker_without_master", "acting-1"),
        ("broker_without_master", "acting-and-grown-1"),
        ("route_config_differs", "acting-and-grown-1"),
    }


def test_a_lost_broker_is_one_problem(day: Day, findings: dict[tuple[str, str], Row]) -> None:
    [lost] = [
        row
        for row in staged_rows(newest(day), "finding")
        if row["kind"] == "source_failed" and row["broker_name"] == "lost-1"
    ]
    below = {key for key, row in findings.items() if row["root_finding_id"] == lost["finding_id"]}
    missing = findings["broker_missing_on_nameserver", "lost-1"]

    assert below == {
        ("broker_missing_on_nameserver", "lost-1"),
        *(("route_differs", topic) for topic in LOST_TOPICS),
    }
    assert {findings["route_differs", topic]["parent_finding_id"] for topic in LOST_TOPICS} == {
        missing["finding_id"]
    }
    assert (
        "34 topics (of-lost-00, of-lost-01, of-lost-02, of-lost-03, of-lost-04 (5 of 34))"
        in missing["evidence"]
    )


def test_a_route_that_differs_for_another_reason_is_a_separate_problem(
    findings: dict[tuple[str, str], Row],
) -> None:
    known = findings["broker_missing_on_nameserver", "half-known-1"]

    assert findings["route_differs", "half-known"]["parent_finding_id"] == known["finding_id"]
    assert findings["route_differs", "fewer-to-read"]["parent_finding_id"] is None
    assert known["parent_finding_id"] is None


def test_a_finding_on_a_route_has_its_evidence_in_columns(findings: dict[tuple[str, str], Row]) -> None:
    wiped = findings["write_route_differs", "wiped-1"]
    half_known = findings["route_differs", "half-known"]
    missing = findings["broker_missing_on_nameserver", "half-known-1"]

    assert (wiped["topic_count"], wiped["examples"]) == (1, ["wiped"])
    assert wiped["seen_values"] == [f"{FIRST} perm 6 write 4", f"{SECOND} perm 4 write 4"]
    assert half_known["examples"] == ["half-known-1"]
    assert half_known["seen_values"] == [f"{FIRST} half-known-1 4", f"{SECOND} half-known-1 none"]
    assert missing["seen_values"] == [SECOND]


def test_a_slave_acting_as_master_is_reported_with_the_broker_without_master(
    findings: dict[tuple[str, str], Row],
) -> None:
    """The route is not writable, but the configuration is. This difference has no separate finding."""
    acting = findings["broker_without_master", "acting-1"]

    assert (acting["topic_count"], acting["seen_values"]) == (1, ["id 1 at 10.0.0.8:10911"])
    assert acting["examples"] == ["acting"]
    # Whether it does depends on its release, which no export has.
    assert "whether a slave serves pulls is unknown" in acting["evidence"]


def test_the_gate_finds_no_violation(day: Day) -> None:
    assert steps.gate(day).reasons == []
