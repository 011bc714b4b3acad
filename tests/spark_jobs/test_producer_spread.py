"""Queues that producers write to: each topic is a separate case, with routes from one or more name servers."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.exports.contract import Envelope
from rebalance_ledger.exports.payloads import facts
from rebalance_ledger.rocketmq.routes import BrokerData, QueueData, Route, publish_queues
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.tables.silver.topic_route import TOPIC_ROUTE
from spark_jobs.day_key import DAY
from spark_jobs.gold.producer_spread import producer_spread
from spark_jobs.session import spark_schema
from strategies.producer import QueueSelector
from tests.support.computed_days import asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse

pytestmark = pytest.mark.spark

Row = dict[str, Any]
CLUSTER = "shop"
DS = date(2026, 11, 16)


def route(queue_datas: Iterable[QueueData], without_master: Iterable[str] = (), **fields: Any) -> Row:
    queue_datas, without_master = list(queue_datas), set(without_master)
    return {
        "brokerDatas": [
            {
                "brokerName": data.broker_name,
                "brokerAddrs": {"1" if data.broker_name in without_master else "0": f"{data.broker_name}:1"},
            }
            for data in queue_datas
        ],
        "queueDatas": [
            {
                "brokerName": data.broker_name,
                "perm": data.perm,
                "readQueueNums": data.read_queue_nums,
                "writeQueueNums": data.write_queue_nums,
            }
            for data in queue_datas
        ],
        **fields,
    }


def plain(**queue_counts: int) -> Row:
    """Return a route whose brokers have these numbers of queues, both for reading and for writing."""
    return route(QueueData(broker, 6, count, count) for broker, count in queue_counts.items())


AB = [QueueData("a", 6, 4, 4), QueueData("b", 6, 4, 4)]
STATIC = {
    "a": {"bname": "a", "scope": "__global__", "totalQueues": 3, "epoch": 1, "currIdMap": {"0": 0, "1": 1}},
    "b": {"bname": "b", "scope": "__global__", "totalQueues": 3, "epoch": 1, "currIdMap": {"2": 0}},
}
CASES: dict[str, list[Row]] = {
    "even": [plain(a=4, b=4), plain(a=4, b=4)],
    "uneven": [plain(a=6, b=2, c=1)],
    "one-broker": [plain(a=4)],
    "less-written-than-read": [route([QueueData("a", 6, 8, 4)])],
    "more-written-than-read": [route([QueueData("a", 6, 3, 12), QueueData("b", 6, 4, 4)])],
    "written-and-not-read": [route([QueueData("a", 6, 4, 4), QueueData("b", 2, 4, 4)])],
    "three-take-nothing": [
        route(
            [
                QueueData("a", 6, 4, 4),
                QueueData("b", 4, 4, 4),
                QueueData("c", 6, 4, 4),
                QueueData("d", 6, 4, 0),
            ],
            without_master="c",
        )
    ],
    "nobody-can-write": [route([QueueData("a", 4, 4, 4), QueueData("b", 4, 4, 4)])],
    "most-votes": [plain(a=2), plain(a=2, b=6), plain(a=2)],
    "votes-are-for-lists": [
        route([QueueData("a", 6, 2, 2), QueueData("b", 4, 2, 2)]),
        plain(a=2, b=2),
        route([QueueData("a", 6, 2, 2), QueueData("b", 6, 2, 2)], without_master="b"),
    ],
    "tie-to-the-larger": [plain(a=2), plain(a=2, b=6)],
    "tie-to-the-first-address": [plain(a=2), plain(b=2)],
    "wiped-on-one": [plain(a=4, b=4), route([QueueData("a", 6, 4, 4), QueueData("b", 4, 4, 4)])],
    "readers-have-no-vote": [plain(a=2), route([QueueData("a", 6, 9, 2)])],
    "ordered": [
        route([QueueData("a", 4, 4, 4), *AB[1:]], without_master="b", orderTopicConf="a:4;b:2;gone:2")
    ],
    "ordered-elsewhere": [route(AB, orderTopicConf="a:4")],
    "ordered-badly": [route(AB, orderTopicConf="a:4;b")] * 2,
    "ordered-badly-on-one": [route(AB, orderTopicConf="a:4;b"), route(AB, orderTopicConf="a:4;b:4")],
    "ordered-badly-on-most": [
        route(AB, orderTopicConf="a:4;b"),
        route(AB),
        route(AB, orderTopicConf="a:4;b"),
    ],
    "static": [route(AB, topicQueueMappingByBroker=STATIC)],
    "static-and-ordered": [route(AB, topicQueueMappingByBroker=STATIC, orderTopicConf="a:1")],
    "no-broker": [route([])],
    # RocketMQ's internal topics.
    "%RETRY%group": [plain(a=1)],
    "%DLQ%group": [plain(a=1)],
    "rmq_sys_REVIVE_LOG_shop": [plain(a=8)],
    "TBW102": [plain(a=8)],
    "a": [plain(a=1)],
    CLUSTER: [plain(a=16)],
    f"{CLUSTER}_REPLY_TOPIC": [plain(a=1)],
}


def frame(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    schema = spark_schema(table)
    day = {"cluster": CLUSTER, "ds": DS}
    whole = [day | dict(row) for row in rows]
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.fieldNames()) for row in whole], schema
    )


def spread_of(spark: SparkSession, routes: Mapping[str, list[Row]]) -> dict[str, dict[str, Row]]:
    """Return topic -> broker -> row, computed from each name server's route of the topic."""
    route_rows = [
        fact.row
        for topic, payloads in routes.items()
        for number, payload in enumerate(payloads, start=1)
        for fact in facts(
            Envelope(
                kind="nameserver_route",
                cluster=CLUSTER,
                captured_at=datetime(2026, 11, 16, tzinfo=UTC),
                nameserver=f"ns-{number}:9876",
                broker=None,
                group=None,
                topic=topic,
                client_id=None,
                payload=json.dumps(payload),
                error=None,
            )
        )
    ]
    broker = {"nameserver": "ns-1:9876", "broker_cluster_name": CLUSTER, "broker_name": "a", "broker_id": 0}
    silver = {
        "topic_route": frame(spark, TOPIC_ROUTE, route_rows),
        "broker": frame(spark, BROKER, [broker | {"broker_addr": "a:1"}]),
    }
    found: dict[str, dict[str, Row]] = {}
    for row in producer_spread(silver).collect():
        assert found.setdefault(row["topic"], {}).setdefault(row["broker_name"], row.asDict()) == row.asDict()
    return found


@pytest.fixture(scope="module")
def spread(spark: SparkSession) -> dict[str, dict[str, Row]]:
    return spread_of(spark, CASES)


def column(rows: dict[str, Row], name: str) -> dict[str, Any]:
    return {broker: row[name] for broker, row in rows.items()}


def test_an_even_topic(spread: dict[str, dict[str, Row]]) -> None:
    assert spread["even"]["a"] == {
        "cluster": CLUSTER,
        "ds": DS,
        "topic": "even",
        "broker_name": "a",
        "publish_source": "route",
        "writable_queue_count": 4,
        "share": 0.5,
        "share_per_queue": 0.125,
        "unread_share": 0.0,
        "is_only_writable_broker": False,
        "retried_share_while_lost": 0.25,
        "largest_share_after_loss": 1.0,
        "load_ratio_after_loss": 2.0,
        "publish_list_count": 1,
        "reason": None,
    }


def test_losing_the_largest_broker_adds_the_most_traffic_to_the_others(
    spread: dict[str, dict[str, Row]],
) -> None:
    rows = spread["uneven"]

    assert column(rows, "share") == pytest.approx({"a": 6 / 9, "b": 2 / 9, "c": 1 / 9})
    assert column(rows, "load_ratio_after_loss") == pytest.approx({"a": 3, "b": 9 / 7, "c": 9 / 8})
    assert column(rows, "largest_share_after_loss") == pytest.approx({"a": 2 / 3, "b": 6 / 7, "c": 6 / 8})


def test_the_only_broker_takes_the_topic_with_it(spread: dict[str, dict[str, Row]]) -> None:
    row = spread["one-broker"]["a"]

    assert (row["share"], row["is_only_writable_broker"]) == (1.0, True)
    assert [
        row[name]
        for name in ("retried_share_while_lost", "largest_share_after_loss", "load_ratio_after_loss")
    ] == [None, None, None]


def test_producers_use_write_queues_and_not_read_queues(
    spread: dict[str, dict[str, Row]],
) -> None:
    row = spread["less-written-than-read"]["a"]

    assert (row["writable_queue_count"], row["share_per_queue"], row["unread_share"]) == (4, 0.25, 0.0)


def test_messages_that_no_consumer_can_read_are_reported(spread: dict[str, dict[str, Row]]) -> None:
    assert column(spread["more-written-than-read"], "unread_share") == pytest.approx({"a": 9 / 16, "b": 0})
    assert column(spread["written-and-not-read"], "unread_share") == {"a": 0.0, "b": 0.5}


def test_a_broker_without_writes_has_a_reason(spread: dict[str, dict[str, Row]]) -> None:
    rows = spread["three-take-nothing"]

    assert column(rows, "reason") == {
        "a": None,
        "b": "no_write_permission",
        "c": "no_master",
        "d": "no_write_queues",
    }
    assert column(rows, "share") == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    assert column(rows, "is_only_writable_broker") == {"a": True, "b": False, "c": False, "d": False}
    assert column(rows, "load_ratio_after_loss") == {"a": None, "b": 1.0, "c": 1.0, "d": 1.0}


def test_without_writable_queues_shares_are_null(spread: dict[str, dict[str, Row]]) -> None:
    rows = spread["nobody-can-write"]

    assert column(rows, "writable_queue_count") == {"a": 0, "b": 0}
    assert column(rows, "share") == {"a": None, "b": None}
    assert column(rows, "is_only_writable_broker") == {"a": False, "b": False}


@pytest.mark.parametrize(
    ("topic", "shares", "list_count"),
    [
        ("most-votes", {"a": 1.0}, 2),
        ("votes-are-for-lists", {"a": 1.0, "b": 0.0}, 2),
        ("tie-to-the-larger", {"a": 0.25, "b": 0.75}, 2),
        ("tie-to-the-first-address", {"a": 1.0}, 2),
        ("wiped-on-one", {"a": 0.5, "b": 0.5}, 2),
        ("readers-have-no-vote", {"a": 1.0}, 1),
        ("ordered-badly-on-one", {"a": 0.5, "b": 0.5}, 2),
        ("ordered-badly-on-most", {"a": None, "b": None}, 2),
    ],
)
def test_if_name_servers_differ_the_majority_decides(
    spread: dict[str, dict[str, Row]], topic: str, shares: dict[str, float | None], list_count: int
) -> None:
    assert column(spread[topic], "share") == shares
    assert set(column(spread[topic], "publish_list_count").values()) == {list_count}


def test_the_reason_is_that_of_the_first_name_server_with_the_list(spread: dict[str, dict[str, Row]]) -> None:
    assert column(spread["votes-are-for-lists"], "reason") == {"a": None, "b": "no_write_permission"}


def test_an_order_configuration_sends_producers_to_brokers_that_cannot_answer(
    spread: dict[str, dict[str, Row]],
) -> None:
    rows = spread["ordered"]

    assert set(column(rows, "publish_source").values()) == {"order_configuration"}
    assert column(rows, "share") == {"a": 0.5, "b": 0.25, "gone": 0.25}
    # The permission in the route has no effect: only the broker itself could reject a message.
    assert column(rows, "reason") == {"a": None, "b": "no_master", "gone": "not_in_route"}
    assert column(rows, "is_only_writable_broker") == {"a": True, "b": False, "gone": False}


def test_a_broker_that_the_order_configuration_does_not_name_gets_nothing(
    spread: dict[str, dict[str, Row]],
) -> None:
    row = spread["ordered-elsewhere"]["b"]

    assert (row["share"], row["reason"]) == (0.0, "not_in_order_configuration")


def test_an_unreadable_order_configuration_makes_all_values_unknown(
    spread: dict[str, dict[str, Row]],
) -> None:
    for row in spread["ordered-badly"].values():
        given = {name for name, value in row.items() if value is not None}
        assert given == {*DAY, "topic", "broker_name", "publish_source", "publish_list_count", "reason"}
        assert (row["publish_source"], row["reason"]) == ("order_configuration", "bad_order_configuration")


def test_a_static_topic_is_written_by_its_logical_queues(spread: dict[str, dict[str, Row]]) -> None:
    rows = spread["static"]

    assert column(rows, "share") == {"__syslo__global__": 1.0, "a": None, "b": None}
    assert column(rows, "writable_queue_count") == {"__syslo__global__": 3, "a": 0, "b": 0}
    assert column(rows, "reason") == {
        "__syslo__global__": None,
        "a": "behind_logical_queues",
        "b": "behind_logical_queues",
    }
    assert set(column(rows, "is_only_writable_broker").values()) == {None}


def test_an_order_configuration_overrides_logical_queues(spread: dict[str, dict[str, Row]]) -> None:
    assert column(spread["static-and-ordered"], "share") == {"a": 1.0, "b": 0.0}


def test_system_topics_are_excluded(spread: dict[str, dict[str, Row]]) -> None:
    own = {topic for topic in CASES if topic not in spread}

    assert own == {
        "no-broker",
        "%RETRY%group",
        "%DLQ%group",
        "rmq_sys_REVIVE_LOG_shop",
        "TBW102",
        "a",
        CLUSTER,
        f"{CLUSTER}_REPLY_TOPIC",
    }


def test_the_shares_equal_one_round_robin_cycle_of_a_producer(spark: SparkSession) -> None:
    """Compare random routes. All client versions from 4.1.0 on rotate over the list in the same way."""
    drawn = random.Random(20261116)  # noqa: S311 - seeded on purpose, and no secret
    routes = {}
    for number in range(60):
        queue_datas = [
            QueueData(broker, drawn.choice((2, 4, 6, 6, 6)), drawn.randrange(5), drawn.randrange(5))
            for broker in drawn.sample("abcdef", drawn.randrange(1, 6))
        ]
        without_master = [data.broker_name for data in queue_datas if drawn.random() < 0.2]
        conf = None
        if drawn.random() < 0.3:
            conf = ";".join(
                f"{drawn.choice('abx')}:{drawn.randrange(1, 4)}" for _ in range(drawn.randrange(1, 5))
            )
        routes[f"t{number}"] = (queue_datas, without_master, conf)
    found = spread_of(
        spark,
        {
            topic: [route(queue_datas, without_master, orderTopicConf=conf)]
            for topic, (queue_datas, without_master, conf) in routes.items()
        },
    )

    for topic, (queue_datas, without_master, conf) in routes.items():
        addresses = [
            BrokerData(data.broker_name, {int(data.broker_name in without_master): f"{data.broker_name}:1"})
            for data in queue_datas
        ]
        queues = publish_queues(topic, Route(queue_datas, addresses, conf)).queues
        selector = QueueSelector(queues, start=drawn.randrange(100), client_version="5.3.3")
        taken = Counter(str(selector.select().broker_name) for _ in queues)
        shares = column(found[topic], "share")
        assert {broker for broker, share in shares.items() if share} == taken.keys()
        if queues:
            assert shares == pytest.approx({broker: taken[broker] / len(queues) for broker in shares})


# The bundled sample


def test_the_sample_has_the_topics_of_its_applications(sample_warehouse: Warehouse) -> None:
    topics = asked(
        sample_warehouse,
        "SELECT ds::VARCHAR, list(DISTINCT topic ORDER BY topic) FROM producer_spread GROUP BY ds ORDER BY ds",
    )
    of_applications = [
        "config-push",
        "coupon-grant",
        "inventory-sync",
        "order-events",
        "order-state-fifo",
        "payment-notify",
        "price-change",
        "sh-local-audit",
        "user-behavior",
    ]

    assert topics == [
        ("2026-11-16", of_applications),
        ("2026-11-17", of_applications),
        # After the loss of broker-c, no name server has a route for it.
        ("2026-11-18", [topic for topic in of_applications if topic != "sh-local-audit"]),
    ]


def test_user_behavior_is_written_to_four_queues_of_each_broker(sample_warehouse: Warehouse) -> None:
    found = asked(
        sample_warehouse,
        "SELECT broker_name, writable_queue_count, share_per_queue, unread_share FROM producer_spread "
        "WHERE topic = 'user-behavior' AND ds = '2026-11-16' ORDER BY broker_name",
    )

    brokers = ("hz@broker-a", "hz@broker-b", "sh@broker-c")
    assert found == [(broker, 4, pytest.approx(1 / 12), 0.0) for broker in brokers]


def test_a_third_of_price_change_is_written_to_unreadable_queues(sample_warehouse: Warehouse) -> None:
    assert asked(
        sample_warehouse,
        "SELECT broker_name, share, unread_share FROM producer_spread "
        "WHERE topic = 'price-change' AND ds = '2026-11-17' AND unread_share > 0",
    ) == [("sh@broker-c", pytest.approx(1 / 3), pytest.approx(1 / 3))]


def test_write_permission_removed_on_one_name_server_shows_as_two_lists(
    sample_warehouse: Warehouse,
) -> None:
    differing = asked(
        sample_warehouse,
        "SELECT DISTINCT ds::VARCHAR, topic FROM producer_spread WHERE publish_list_count > 1 ORDER BY ALL",
    )

    # Without coupon-grant and sh-local-audit, which are not on broker-b, and without the ordered topic: its producers do
    # not check permissions. The ordered topic differs a day later, after one name server got a shorter configuration.
    assert differing == [
        *(
            ("2026-11-17", topic)
            for topic in (
                "config-push",
                "inventory-sync",
                "order-events",
                "payment-notify",
                "price-change",
                "user-behavior",
            )
        ),
        ("2026-11-18", "order-state-fifo"),
    ]


def test_the_order_configuration_still_names_the_removed_broker(sample_warehouse: Warehouse) -> None:
    assert asked(
        sample_warehouse,
        "SELECT ds::VARCHAR, topic, broker_name, share, reason FROM producer_spread WHERE reason IS NOT NULL",
    ) == [("2026-11-18", "order-state-fifo", "sh@broker-c", pytest.approx(1 / 3), "not_in_route")]


def test_topics_on_one_broker_would_stop_with_it(sample_warehouse: Warehouse) -> None:
    assert asked(
        sample_warehouse,
        "SELECT ds::VARCHAR, topic, broker_name FROM producer_spread WHERE is_only_writable_broker ORDER BY ds, topic",
    ) == [
        ("2026-11-16", "coupon-grant", "hz@broker-a"),
        ("2026-11-16", "sh-local-audit", "sh@broker-c"),
        ("2026-11-17", "coupon-grant", "hz@broker-a"),
        ("2026-11-17", "sh-local-audit", "sh@broker-c"),
        ("2026-11-18", "coupon-grant", "hz@broker-a"),
    ]
