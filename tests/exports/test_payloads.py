"""Payloads are parsed to facts. A missing number becomes null, never zero."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.exports.contract import KIND_BY_NAME, Envelope, SourceError, parse_envelope
from rebalance_ledger.exports.payloads import Fact, PayloadError, error_code, facts, facts_of_unreadable
from rebalance_ledger.tables import SILVER_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "exports" / "shop-prod" / "2026-11-16"
READ_KINDS = (
    "nameserver_cluster_info",
    "nameserver_route",
    "broker_topic_config",
    "broker_subscription_group",
    "broker_message_request_mode",
    "consumer_order_info",
    "consumer_connection",
    "proxy_consumer_connection",
    "consumer_running_info",
    "process_assignment",
    "consumer_status",
    "consume_stats",
    "broker_topic_stats",
)
NOT_IN_THE_SAMPLE = ("consumer_order_info", "consumer_status", "proxy_consumer_connection")
COLUMNS = {table.name: {column.name: column for column in table.columns} for table in SILVER_TABLES}


def envelope(kind: str, payload: object = None, error: str | None = None) -> Envelope:
    return Envelope(
        kind=kind,
        cluster="shop",
        captured_at=datetime(2026, 11, 16, 12, tzinfo=UTC),
        nameserver="ns:9876",
        broker="broker-a",
        proxy="proxy:8080",
        group="g",
        topic="t",
        client_id="c",
        process="p-1",
        payload=payload if isinstance(payload, str) or payload is None else json.dumps(payload),
        error=None if error is None else SourceError("MQBrokerException", error),
    )


def rows(kind: str, payload: object, table: str | None = None) -> list[dict[str, Any]]:
    return [fact.row for fact in facts(envelope(kind, payload)) if table in {None, fact.table}]


def refusal(kind: str, payload: object) -> str:
    with pytest.raises(PayloadError) as refused:
        list(facts(envelope(kind, payload)))
    return str(refused.value)


def of_sample(kind: str) -> list[list[Fact]]:
    lines = (SAMPLE / KIND_BY_NAME[kind].file_name).read_text(encoding="utf-8").splitlines()
    return [list(facts(parse_envelope(line, kind))) for line in lines]


def assert_fits(fact: Fact) -> None:
    """Assert that the row has only columns of its table, including all required ones."""
    columns = COLUMNS[fact.table]
    assert fact.row.keys() <= columns.keys()
    for name, column in columns.items():
        value = fact.row.get(name)
        assert value is not None or column.nullable, f"{fact.table}.{name} is null"
        wanted = {"int": int, "bigint": int, "boolean": bool}.get(column.type, str)
        assert value is None or type(value) is wanted, f"{fact.table}.{name} is {value!r}"


@pytest.mark.parametrize("kind", [kind for kind in READ_KINDS if kind not in NOT_IN_THE_SAMPLE])
def test_every_record_of_the_sample_is_parsed_to_rows_of_its_tables(kind: str) -> None:
    of_lines = of_sample(kind)

    for of_line in of_lines:
        for fact in of_line:
            assert_fits(fact)
    if kind != "broker_message_request_mode":
        assert any(of_lines)


@pytest.mark.parametrize("kind", sorted(KIND_BY_NAME.keys() - {*READ_KINDS, "offset_file"}))
def test_other_kinds_are_kept_and_produce_no_facts(kind: str) -> None:
    assert list(facts(envelope(kind, "anything"))) == []


def test_each_line_of_the_offset_file_index_gives_only_the_location_of_the_file() -> None:
    fact_list = [fact for of_line in of_sample("offset_file") for fact in of_line]

    for fact in fact_list:
        assert_fits(Fact(fact.table, fact.row | {"line_number": 1}))
    assert {fact.row["state"] for fact in fact_list} == {"landed"}
    assert len({fact.row["path"] for fact in fact_list}) == len(fact_list) == 24
    assert fact_list[0].row["size_bytes"] == 670


def test_an_offset_file_that_failed_to_land_has_its_owner_and_reason() -> None:
    line = {
        "kind": "offset_file",
        "cluster": "shop-test",
        "captured_at": "2026-11-16T12:00:00Z",
        "moment": 0,
        "host": "h1",
        "client_id": "h1@DEFAULT",
        "group": "g",
        "error": {"type": "PermissionError", "message": "permission denied"},
    }

    [fact] = facts(parse_envelope(json.dumps(line), "offset_file"))

    assert_fits(Fact(fact.table, fact.row | {"line_number": 1}))
    assert (fact.row["state"], fact.row["host"], fact.row["error_message"]) == (
        "failed",
        "h1",
        "permission denied",
    )


def test_a_snapshot_index_out_of_range_is_rejected() -> None:
    with pytest.raises(PayloadError, match="moment is 2147483648, which no Java integer of 32 bits holds"):
        list(facts(replace(envelope("offset_file", error="gone"), moment=2**31)))


def test_a_broker_reports_minimum_and_maximum_offset_of_each_queue() -> None:
    text = (
        '{"offsetTable":{{"topic":"t","brokerName":"broker-a","queueId":3}:'
        '{"minOffset":5,"maxOffset":12,"lastUpdateTimestamp":0}}}'
    )

    [fact] = facts(envelope("broker_topic_stats", text))

    assert_fits(fact)
    assert (fact.row["min_offset"], fact.row["max_offset"], fact.row["last_stored_at"]) == (5, 12, None)


def test_a_client_reports_its_in_memory_offsets() -> None:
    text = '{"consumerTable":{"c":{{"topic":"t","brokerName":"b","queueId":3}:5000000000}},"messageQueueTable":{}}'

    [fact] = facts(envelope("consumer_status", text))

    assert_fits(fact)
    assert fact.table == "memory_offset"
    assert (fact.row["client_id"], fact.row["queue_id"], fact.row["memory_offset"]) == ("c", 3, 5_000_000_000)


def test_a_client_that_did_not_answer_its_broker_has_null_and_not_zero_in_memory() -> None:
    assert rows("consumer_status", {"consumerTable": {}, "messageQueueTable": {}}) == []


def test_a_client_of_the_sample_reports_its_queues() -> None:
    fact_list = [fact for of_line in of_sample("consumer_running_info") for fact in of_line]
    [client] = [
        fact.row
        for fact in fact_list
        if fact.table == "consumer_client" and fact.row["client_id"] == "10.1.0.10@order-2"
    ]
    owned = Counter(
        fact.row["topic"]
        for fact in fact_list
        if fact.table == "observed_owner" and fact.row["client_id"] == "10.1.0.10@order-2"
    )

    assert (client["state"], client["strategy"], client["client_version"]) == ("online", "AVG", "5.3.3")
    assert (
        client["strategy_class"]
        == "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    )
    assert client["is_client_rebalance"] is True
    assert owned == {"order-events": 8, "%RETRY%order-service": 1}


def test_processes_with_one_client_id_are_distinguished_by_their_own_answers() -> None:
    fact_list = [fact for of_line in of_sample("process_assignment") for fact in of_line]
    states = {
        fact.row["process"]: fact.row["state"]
        for fact in fact_list
        if fact.table == "client_process" and fact.row["client_id"] == "10.1.0.101@member"
    }
    owned = Counter(
        fact.row["process"]
        for fact in fact_list
        if fact.table == "process_owner" and fact.row["client_id"] == "10.1.0.101@member"
    )

    assert states == {"member-1": "online", "member-1x": "online"}
    assert owned == {"member-1": 4, "member-1x": 4}
    # Subscriptions are reported once per client id.
    assert {fact.table for fact in fact_list} == {"client_process", "process_owner"}


def test_brokers_and_their_addresses() -> None:
    text = '{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1","1":"h:2"},"brokerName":"b","cluster":"x"}}}'

    assert [
        (row["broker_id"], row["broker_addr"], row["broker_cluster_name"])
        for row in rows("nameserver_cluster_info", text)
    ] == [
        (0, "h:1", "x"),
        (1, "h:2", "x"),
    ]


def route(queue_datas: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    brokers = [
        {"brokerName": "b", "brokerAddrs": {"0": "h:1"}},
        {"brokerName": "s", "brokerAddrs": {"1": "h:2"}},
    ]
    return {"brokerDatas": brokers, "queueDatas": queue_datas} | fields


def queue_data(broker: str, perm: int = 6, read: int = 4, write: int = 2) -> dict[str, Any]:
    return {"brokerName": broker, "perm": perm, "readQueueNums": read, "writeQueueNums": write}


def test_a_route_defines_the_queues_that_consumers_balance() -> None:
    rows_by_key = {
        row["broker_name"]: (
            row["subscribe_queue_count"],
            row["read_queue_count"],
            row["write_queue_count"],
            row["has_master"],
        )
        for row in rows(
            "nameserver_route", route([queue_data("b"), queue_data("s"), queue_data("w", perm=2)])
        )
    }

    assert rows_by_key == {"b": (4, 4, 2, True), "s": (4, 4, 2, False), "w": (0, 4, 2, False)}


def test_two_entries_of_one_broker_count_once_for_consumers_and_twice_for_producers() -> None:
    """`topicRouteData2TopicSubscribeInfo` returns a set of queues, `topicRouteData2TopicPublishInfo` a list."""
    numbers = (
        "queue_data_count",
        "perm",
        "read_queue_count",
        "write_queue_count",
        "subscribe_queue_count",
        "publish_queue_count",
        "publish_unread_count",
    )

    def broker(*entries: dict[str, Any]) -> tuple[int, ...]:
        [row] = rows("nameserver_route", route(list(entries)))
        return tuple(row[name] for name in numbers)

    assert broker(queue_data("b")) == (1, 6, 4, 2, 4, 2, 0)
    assert broker(queue_data("b"), queue_data("b")) == (2, 6, 4, 4, 4, 4, 0)
    assert broker(queue_data("b", read=3, write=5), queue_data("b", read=1)) == (2, 6, 3, 7, 3, 7, 2)
    assert broker(queue_data("b", perm=4, read=8), queue_data("b", perm=2, write=9)) == (2, 6, 8, 9, 8, 9, 1)
    assert broker(queue_data("b", perm=0), queue_data("b", perm=1, write=3)) == (2, 1, 4, 3, 0, 0, 0)
    assert broker(queue_data("b", write=-3), queue_data("b")) == (2, 6, 4, 2, 4, 2, 0)


def test_a_static_topic_is_balanced_by_its_logical_queues() -> None:
    mapping = {
        "b": {
            "bname": "b",
            "scope": "__global__",
            "totalQueues": 3,
            "epoch": 1,
            "currIdMap": {"0": 0, "1": 1, "2": 5},
        }
    }
    rows_by_key = {
        row["broker_name"]: row
        for row in rows("nameserver_route", route([queue_data("b")], topicQueueMappingByBroker=mapping))
    }

    assert {name: row["subscribe_queue_count"] for name, row in rows_by_key.items()} == {
        "b": 0,
        "__syslo__global__": 3,
    }
    assert "read_queue_count" not in rows_by_key["__syslo__global__"]
    assert {name: row["publish_queue_count"] for name, row in rows_by_key.items()} == {
        "b": 0,
        "__syslo__global__": 3,
    }


def publish_side(payload: object) -> dict[str, tuple[bool, int | None, int | None, int | None]]:
    """Return broker -> whether it is in the route, publish queues, runs, and publish queues without readers."""
    return {
        row["broker_name"]: (
            row["is_in_route"],
            row.get("publish_queue_count"),
            row.get("publish_run_count"),
            row.get("publish_unread_count"),
        )
        for row in rows("nameserver_route", payload)
    }


def test_a_route_defines_the_queues_that_producers_write() -> None:
    assert publish_side(route([queue_data("b"), queue_data("s"), queue_data("w", perm=2)])) == {
        "b": (True, 2, 1, 0),
        # Brokers without a master, and without any address.
        "s": (True, 0, 0, 0),
        "w": (True, 0, 0, 0),
    }


def test_queues_that_are_written_but_not_readable_are_counted() -> None:
    assert publish_side(route([queue_data("b", read=3, write=8)])) == {"b": (True, 8, 1, 5)}
    assert publish_side(route([queue_data("b", perm=2)])) == {"b": (True, 2, 1, 2)}


def test_an_order_configuration_overrides_the_route_for_producers() -> None:
    payload = route([queue_data("b", perm=4), queue_data("s")], orderTopicConf="b:2;gone:1;b:1")

    assert publish_side(payload) == {"b": (True, 3, 1, 0), "s": (True, 0, 0, 0), "gone": (False, 1, 1, 1)}
    [gone] = [row for row in rows("nameserver_route", payload) if row["broker_name"] == "gone"]
    assert (gone["subscribe_queue_count"], gone["has_master"], gone.get("perm")) == (0, False, None)


def test_separated_positions_of_a_broker_are_counted_as_runs() -> None:
    payload = route([queue_data("b")], orderTopicConf="x:1;b:2;s:1;b:1")

    assert {name: side[1:3] for name, side in publish_side(payload).items()} == {
        "x": (1, 1),
        "b": (3, 2),
        "s": (1, 1),
    }


@pytest.mark.parametrize("order_topic_conf", ["b", "b:4;s: 4", "b:four", ";b:4"])
def test_an_order_configuration_that_makes_producers_throw_gives_no_numbers(order_topic_conf: str) -> None:
    assert publish_side(route([queue_data("b")], orderTopicConf=order_topic_conf)) == {
        "b": (True, None, None, None)
    }
    [row] = rows("nameserver_route", route([queue_data("b")], orderTopicConf=order_topic_conf))
    assert row["subscribe_queue_count"] == 4


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "bomb",
    [
        route([queue_data("b", read=2**31 - 1)]),
        route([queue_data("b", perm=2, write=2**31 - 1)]),
        route([queue_data(f"b{number}", read=1_001) for number in range(100)]),
        route([queue_data("b")], orderTopicConf="b:2147483647"),
        # A producer builds the list, and throws at the end of this configuration.
        route([queue_data("b")], orderTopicConf="b:2147483647;b"),
        route(
            [],
            topicQueueMappingByBroker={
                "b": {"bname": "b", "scope": "s", "totalQueues": 2**31 - 1, "epoch": 1, "currIdMap": {}}
            },
        ),
    ],
    ids=["read", "write", "many brokers", "order", "order, and then an error", "static"],
)
def test_a_short_text_that_expands_to_too_many_queues_is_refused(bomb: object) -> None:
    assert "queues; a topic has at most 100000 here" in refusal("nameserver_route", bomb)


def test_route_data_of_unlisted_queues_is_no_reason_to_refuse_the_route() -> None:
    unlisted = [queue_data("b", perm=4, write=2**31 - 1), queue_data("s", perm=2, read=2**31 - 1)]
    of_both_brokers = {
        name: {"bname": name, "scope": "s", "totalQueues": 60_000, "epoch": 1, "currIdMap": {}}
        for name in "bs"
    }

    assert len(rows("nameserver_route", route(unlisted))) == 2
    assert rows("nameserver_route", route([], topicQueueMappingByBroker=of_both_brokers))


@pytest.mark.parametrize("empty", [{}, None])
def test_a_route_without_a_static_mapping_is_plain(empty: object) -> None:
    [row] = rows("nameserver_route", route([queue_data("b")], topicQueueMappingByBroker=empty))

    assert row["subscribe_queue_count"] == 4


@pytest.mark.parametrize(
    "payload", [{}, {"brokerDatas": None, "queueDatas": None}, {"brokerDatas": [], "queueDatas": []}]
)
def test_a_route_without_brokers_gives_no_rows(payload: object) -> None:
    assert rows("nameserver_route", payload) == []


def test_topic_and_group_configurations_are_parsed() -> None:
    topics = {"topicConfigTable": {"t": {"perm": 6, "readQueueNums": 8, "writeQueueNums": 4, "order": True}}}
    groups = {
        "subscriptionGroupTable": {"g": {"retryQueueNums": 1, "retryMaxTimes": 16, "consumeEnable": False}}
    }

    assert rows("broker_topic_config", topics) == [
        {
            "broker_name": "broker-a",
            "topic": "t",
            "perm": 6,
            "read_queue_count": 8,
            "write_queue_count": 4,
            "is_order": True,
        }
    ]
    [group] = rows("broker_subscription_group", groups)
    assert (group["retry_queue_count"], group["retry_max_count"]) == (1, 16)
    assert (group["is_consume_enabled"], group["is_broadcast_enabled"]) == (False, None)


def test_the_connections_of_a_group_are_parsed() -> None:
    payload = {
        "connectionSet": [
            {"clientId": "c", "clientAddr": "h:1", "language": "JAVA", "version": 479},
            {"clientId": "c", "clientAddr": "h:2", "language": None, "version": 99999},
        ],
        "subscriptionTable": {"t": {"subString": "a || b", "expressionType": None}},
        "messageModel": "BROADCASTING",
        "consumeType": "CONSUME_ACTIVELY",
    }

    [presence] = rows("consumer_connection", payload, "group_presence")
    assert (presence["state"], presence["message_model"]) == ("online", "BROADCASTING")
    assert [
        (row["client_addr"], row["client_language"], row["client_version"])
        for row in rows("consumer_connection", payload, "consumer_connection")
    ] == [("h:1", "JAVA", "5.3.3"), ("h:2", None, None)]
    assert rows("consumer_connection", payload, "subscription") == [
        {
            "broker_name": "broker-a",
            "consumer_group": "g",
            "topic": "t",
            "expression_type": None,
            "expression": "a || b",
        }
    ]


def test_an_answer_without_connections_means_that_no_client_is_online() -> None:
    [presence] = rows("consumer_connection", {"connectionSet": [], "messageModel": "CLUSTERING"})

    assert (presence["state"], presence["message_model"]) == ("offline", None)


@pytest.mark.parametrize(("field", "is_dropped"), [("droped", True), ("dropped", True), ("unknown", None)])
def test_java_and_go_use_different_names_for_a_dropped_queue(field: str, *, is_dropped: bool | None) -> None:
    text = (
        '{"properties":{"PROP_CLIENT_VERSION":"v2.1.1"},'
        f'"mqTable":{{{{"topic":"t","brokerName":"b","queueId":0}}:{{"{field}":true}}}}}}'
    )
    [owner] = rows("consumer_running_info", text, "observed_owner")
    [client] = rows("consumer_running_info", text, "consumer_client")

    assert owner["is_dropped"] is is_dropped
    assert (client["strategy"], client["client_version"]) == (None, None)


def test_a_client_that_pops_shows_its_pop_table() -> None:
    text = (
        '{"properties":{"PROP_CLIENT_VERSION":"V5_1_0","clientRebalance":"FALSE"},"subscriptionSet":null,"mqTable":{},'
        '"mqPopTable":{{"topic":"t","brokerName":"b","queueId":-1}:{"droped":false,"lastPopTimestamp":1000}}}'
    )

    [owner] = rows("consumer_running_info", text, "observed_owner")
    assert (owner["queue_id"], owner["is_pop"], owner["last_pull_at"]) == (
        -1,
        True,
        "1970-01-01T00:00:01+00:00",
    )
    [client] = rows("consumer_running_info", text, "consumer_client")
    assert (client["strategy"], client["is_client_rebalance"], client["client_version"]) == (
        None,
        False,
        "5.1.0",
    )


def test_a_strategy_that_rocketmq_does_not_ship_keeps_its_class() -> None:
    payload = {"properties": {"allocateMessageQueueStrategy": "com.example.Mine@1f"}, "mqTable": {}}

    [client] = rows("consumer_running_info", payload)

    assert (client["strategy_class"], client["strategy"]) == ("com.example.Mine", None)


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        ("1794793844000", "2026-11-16T01:50:44+00:00"),
        ("0", None),
        ("soon", None),
        (None, None),
        ("9" * 18, None),
    ],
)
def test_an_invalid_start_time_is_null(started: str | None, expected: str | None) -> None:
    payload = {"properties": {"PROP_CONSUMER_START_TIMESTAMP": started}, "mqTable": {}}

    assert rows("consumer_running_info", payload)[0]["started_at"] == expected


def test_missing_offsets_are_null_and_minus_one_is_kept() -> None:
    key = '{"topic":"t","brokerName":"broker-a","queueId":0}'
    [row] = rows(
        "consume_stats",
        f'{{"offsetTable":{{{key}:{{"brokerOffset":null,"consumerOffset":-1,"lastTimestamp":0}}}}}}',
    )

    assert (row["broker_offset"], row["consumer_offset"], row["last_consumed_at"]) == (None, -1, None)


OFFSETS = '{"minOffset":1,"maxOffset":2}'


def table(*entries: tuple[str, str], name: str = "offsetTable") -> str:
    return f'{{"{name}":{{' + ",".join(f"{key}:{value}" for key, value in entries) + "}}"


def queue_key(broker: str = "broker-a", topic: str = "t", queue_id: str = "0") -> str:
    return f'{{"topic":"{topic}","brokerName":"{broker}","queueId":{queue_id}}}'


@pytest.mark.parametrize(
    ("kind", "payload", "sentence"),
    [
        ("consume_stats", table((queue_key("b"), "{}")), "is of broker b, and broker-a was requested"),
        (
            "broker_topic_stats",
            table((queue_key("b"), OFFSETS)),
            "is of broker b, and broker-a was requested",
        ),
        (
            "broker_topic_stats",
            table((queue_key(topic="u"), OFFSETS)),
            "is of topic u, and t was requested",
        ),
        (
            "broker_topic_stats",
            table((queue_key(), '{"minOffset":5,"maxOffset":3}')),
            "has minOffset 5 above maxOffset 3",
        ),
        (
            "broker_topic_stats",
            table((queue_key(), '{"minOffset":-5,"maxOffset":3}')),
            ".minOffset is -5, which is no offset of a queue",
        ),
        (
            "consume_stats",
            table((queue_key(), '{"brokerOffset":-1}')),
            ".brokerOffset is -1, which is no offset of a queue",
        ),
        (
            "consume_stats",
            table((queue_key(), '{"brokerOffset":1,"consumerOffset":-2}')),
            ".consumerOffset is -2, which is no offset of a queue",
        ),
        ("consume_stats", table((queue_key(), '{"brokerOffset":NaN}')), "expected a value, found 'N'"),
    ],
)
def test_impossible_offsets_are_rejected(kind: str, payload: str, sentence: str) -> None:
    assert sentence in refusal(kind, payload)


def test_a_broker_reports_the_offsets_of_a_static_topics_logical_queues() -> None:
    [row] = rows("broker_topic_stats", table((queue_key("__syslo__global__"), OFFSETS)))

    assert row["broker_name"] == "__syslo__global__"


def test_the_last_entry_of_a_key_counts_as_in_javas_maps() -> None:
    progress = [(queue_key(), f'{{"brokerOffset":{offset}}}') for offset in (9, 7)]
    assert [row["broker_offset"] for row in rows("consume_stats", table(*progress))] == [7]

    text = '{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1","0":"h:2"}}}}'
    assert [row["broker_addr"] for row in rows("nameserver_cluster_info", text)] == ["h:2"]

    settings = envelope("broker_config", "defaultPopShareQueueNum=1\ndefaultPopShareQueueNum=2")
    assert [fact.row["value"] for fact in facts(settings)] == ["2"]


def test_a_duplicate_element_of_a_set_counts_once() -> None:
    connection = {"clientId": "c", "clientAddr": "h:1", "version": 479}
    subscription = {"topic": "t", "subString": "*"}
    info = {"properties": {}, "mqTable": {}, "subscriptionSet": [subscription] * 2}

    assert len(rows("consumer_connection", {"connectionSet": [connection] * 2}, "consumer_connection")) == 1
    assert len(rows("consumer_running_info", info, "client_subscription")) == 1
    assert (
        refusal("consumer_connection", {"connectionSet": [connection, connection | {"version": 1}]})
        == "the payload says two different things of broker_name broker-a, consumer_group g, client_id c, client_addr h:1"
    )
    assert (
        refusal(
            "consumer_running_info",
            info | {"subscriptionSet": [subscription, subscription | {"subString": "a"}]},
        )
        == "the payload says two different things of consumer_group g, client_id c, topic t"
    )


@pytest.mark.parametrize(("dropped", "is_pop"), [("false", False), ("true", True)])
def test_a_queue_in_both_tables_of_a_client_is_held_until_it_is_dropped(dropped: str, is_pop: bool) -> None:  # noqa: FBT001 - a parameter of the test
    pulled, popped = (queue_key(), f'{{"droped":{dropped}}}'), (queue_key(), '{"droped":false}')
    text = (
        '{"properties":{},' + table(pulled, name="mqTable")[1:-1] + "," + table(popped, name="mqPopTable")[1:]
    )

    assert [row["is_pop"] for row in rows("consumer_running_info", text, "observed_owner")] == [is_pop]


@pytest.mark.parametrize("group", ["g", "ns%g", None, ""])
def test_an_answer_may_name_its_group_with_its_namespace(group: str | None) -> None:
    assert rows("consumer_running_info", {"properties": {"consumerGroup": group}, "mqTable": {}})


def test_an_answer_of_another_group_is_rejected() -> None:
    for group in ("G", "other", "g%other"):
        payload = {"properties": {"consumerGroup": group}, "mqTable": {}}
        assert refusal("consumer_running_info", payload) == (
            f"the payload.properties.consumerGroup is {group}, and g was requested"
        )


def test_request_modes_of_topics_and_groups_are_parsed() -> None:
    payload = {
        "messageRequestModeMap": {"t": {"g": {"mode": "POP", "popShareQueueNum": 3}, "h": {"mode": "PULL"}}}
    }

    assert [
        (row["topic"], row["consumer_group"], row["mode"], row["pop_share_queue_count"])
        for row in rows("broker_message_request_mode", payload)
    ] == [("t", "g", "POP", 3), ("t", "h", "PULL", None)]


POPPED_MS = 1795391240856
OF_5_3_3 = (
    '{"table":{"orders@fifo":{0:{"a":"at-1","cm":1,"i":60000,"l":1795391240857,"o":[40,1,3],"popTime":1795391240856},'
    '1:{"a":"bt-2","cm":0,"i":60000,"l":1795391240866,"o":[7,1],"oc":{7:2,8:2},"ot":{7:1795391330856},'
    '"popTime":1795391240858},2:{"a":"ct","cm":1,"i":60000,"l":1795391240866,"o":[5],"popTime":1795391240856},'
    '3:{"cm":0,"i":60000,"l":1795391240866,"o":[9],"popTime":1795391120856}}}}'
)
OF_5_5_0 = OF_5_3_3.replace('{"table"', '{"orderInfoCount":1,"orderedConsumptionLevel":"QUEUE","table"', 1)
"""Output of `encode()` of the two releases after calls of `update`, `commitAndNext` and `updateNextVisibleTime`."""


def after_pop(milliseconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=POPPED_MS + milliseconds)).isoformat()


@pytest.mark.parametrize("payload", [OF_5_3_3, OF_5_5_0])
def test_the_wait_of_a_fifo_queue_equals_that_of_the_brokers_class(payload: str) -> None:
    rows_by_key = {row["queue_id"]: row for row in rows("consumer_order_info", payload)}

    # `getNextOffset` and `getLockFreeTimestamp` of the same objects return 41 and 60 s, 7 and 90 s, none, 9 and a minute ago.
    assert {queue: (row["head_offset"], row["blocked_until"]) for queue, row in rows_by_key.items()} == {
        0: (41, after_pop(60_000)),
        1: (7, after_pop(90_000)),
        2: (None, None),
        3: (9, after_pop(-60_000)),
    }
    assert [row["redelivery_count"] for row in rows_by_key.values()] == [0, 2, None, 0]
    assert [row["in_flight_count"] for row in rows_by_key.values()] == [2, 2, 0, 1]
    assert [row["last_offset"] for row in rows_by_key.values()] == [43, 8, 5, 9]
    assert (rows_by_key[1]["next_visible_at"], rows_by_key[1]["popped_at"]) == (
        after_pop(60_002),
        after_pop(2),
    )
    assert {(row["topic"], row["consumer_group"], row["invisible_ms"]) for row in rows_by_key.values()} == {
        ("orders", "fifo", 60_000)
    }


def test_without_an_invisible_time_the_end_of_a_lease_is_unknown() -> None:
    for invisible in ({}, {"i": 0}):
        info = {"popTime": POPPED_MS, "o": [7], "l": 1, "cm": 0, "ot": {"7": POPPED_MS}, **invisible}
        [row] = rows("consumer_order_info", {"table": {"t@g": {"0": info}}})

        assert (row["head_offset"], row["next_visible_at"], row["blocked_until"]) == (7, None, None)


def test_bits_of_acknowledged_messages_are_counted_as_java_counts_them() -> None:
    info = {"popTime": 1, "i": 1, "o": [100, *range(1, 64)], "l": 1, "cm": -(2**63) | 1}
    [row] = rows("consumer_order_info", {"table": {"t@g": {"0": info}}})

    assert (row["in_flight_count"], row["head_offset"], row["last_offset"]) == (62, 101, 163)


@pytest.mark.parametrize("key", ["t", "@g", "t@", "t@g@h"])
def test_an_order_lock_without_a_known_holder_gives_no_row(key: str) -> None:
    assert rows("consumer_order_info", {"table": {key: {"0": {"popTime": 1, "cm": 0}}}}) == []


@pytest.mark.parametrize(
    ("kind", "payload", "sentence"),
    [
        (
            "consumer_order_info",
            {"table": {"t@g": {"0": {"popTime": 1, "o": [1]}}}},
            "the payload.table[t@g].queues[0].cm is missing",
        ),
        (
            "consumer_order_info",
            {"table": {"t@g": {"0": {"popTime": 1, "cm": 0, "o": [2**63 - 1, 1]}}}},
            "the payload.table[t@g].queues[0].o[1] is 9223372036854775808, which no Java integer of 64 bits holds",
        ),
        (
            "consumer_order_info",
            {"table": {"t@g": {"x": {}}}},
            "the payload.table[t@g].queues has the key x, which is no integer",
        ),
        ("nameserver_route", "", "line 1, column 1: the text is empty"),
        ("nameserver_route", [], "the payload is a list where an object is expected"),
        (
            "nameserver_route",
            route([{**queue_data("b"), "readQueueNums": None}]),
            "the payload.queueDatas[0].readQueueNums is missing",
        ),
        (
            "nameserver_route",
            route([{**queue_data("b"), "readQueueNums": "4"}]),
            "the payload.queueDatas[0].readQueueNums is a string where an integer is expected",
        ),
        (
            "nameserver_route",
            route([queue_data("b", read=2**31)]),
            "the payload.queueDatas[0].readQueueNums is 2147483648, which no Java integer of 32 bits holds",
        ),
        (
            "nameserver_route",
            {"queueDatas": {}},
            "the payload.queueDatas is an object where a list is expected",
        ),
        (
            "nameserver_cluster_info",
            {"brokerAddrTable": {"b": {"brokerAddrs": {"0": None}}}},
            "the payload.brokerAddrTable[b].brokerAddrs[0] is null where a string is expected",
        ),
        (
            "nameserver_cluster_info",
            {"brokerAddrTable": {"b": {"brokerAddrs": {"first": "h:1"}}}},
            "the payload.brokerAddrTable[b].brokerAddrs has the key first, which is no integer",
        ),
        ("nameserver_cluster_info", {}, "the payload.brokerAddrTable is missing"),
        (
            "broker_topic_config",
            {"topicConfigTable": {"t": None}},
            "the payload.topicConfigTable[t] is null where an object is expected",
        ),
        (
            "broker_topic_config",
            {"topicConfigTable": {"t": {"perm": True, "readQueueNums": 1, "writeQueueNums": 1}}},
            "the payload.topicConfigTable[t].perm is true or false where an integer is expected",
        ),
        (
            "broker_message_request_mode",
            {"messageRequestModeMap": {"t": 1}},
            "the payload.messageRequestModeMap[t].groups is an integer where a map is expected",
        ),
        ("consumer_connection", {}, "the payload.connectionSet is missing"),
        (
            "consumer_connection",
            {"connectionSet": [{"clientAddr": "h:1"}]},
            "the payload.connectionSet[0].clientId is missing",
        ),
        ("consumer_running_info", {"mqTable": {}}, "the payload.properties is missing"),
        ("consumer_running_info", {"properties": {}}, "the payload.mqTable is missing"),
        (
            "consumer_running_info",
            '{"properties":{},"mqTable":{{"topic":"t","queueId":0}:{}}}',
            "a key of the payload.mqTable.brokerName is missing",
        ),
        ("consumer_status", {"consumerTable": None}, "the payload.consumerTable is missing"),
        (
            "consumer_status",
            '{"consumerTable":{"c":{{"topic":"t"}:null}}}',
            "a key of the payload.consumerTable[c].queues.brokerName is missing",
        ),
        (
            "consumer_status",
            {"consumerTable": {"another": {}}},
            "the payload is of client another, and c was requested",
        ),
        (
            "consumer_status",
            {"consumerTable": {"c" * 200: {}}},
            f"the payload is of client {'c' * 77}..., and c was requested",
        ),
        ("consume_stats", {"offsetTable": None}, "the payload.offsetTable is missing"),
        (
            "broker_topic_stats",
            '{"offsetTable":{{"topic":"t","brokerName":"broker-a","queueId":0}:{"maxOffset":1}}}',
            "the payload.offsetTable[{'topic': 't', 'brokerName': 'broker-a', 'queueId': 0}].minOffset is missing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value in READ_KINDS else None,
)
def test_missing_or_mistyped_values_are_named_and_never_zero(
    kind: str, payload: object, sentence: str
) -> None:
    assert refusal(kind, payload) == sentence


@pytest.mark.parametrize(
    "curr_id_map", [{"0": None}, {"0": "one"}, {"first": 0}, {"0": 2**40}, {"9" * 30: 0}, {"0": [1]}], ids=str
)
def test_an_unreadable_static_mapping_is_rejected_without_a_crash(curr_id_map: object) -> None:
    mapping = {"b": {"bname": "b", "scope": None, "totalQueues": 3, "epoch": 1, "currIdMap": curr_id_map}}

    assert "currIdMap" in refusal(
        "nameserver_route", route([queue_data("b")], topicQueueMappingByBroker=mapping)
    )


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("CODE: 206  DESC: Not found the consumer group consumer connection info of g", "offline"),
        ("CODE: 1  DESC: system error", "unknown"),
        ("connect to 127.0.0.1:10911 failed", "unknown"),
        ("see CODE: 206", "unknown"),
        ("", "unknown"),
    ],
)
def test_only_a_brokers_answer_makes_a_group_offline(message: str, state: str) -> None:
    [fact] = facts(envelope("consumer_connection", error=message))

    assert_fits(fact)
    assert (fact.table, fact.row["state"]) == ("group_presence", state)


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("CODE: 206  DESC: the consumer is not there", "offline"),
        ("CODE: 1  DESC: The Consumer <g> <c> not online", "offline"),
        ("CODE: 1  DESC: a stack trace\nThe Consumer <g> <c> not online", "unknown"),
        ("wait response timeout", "unknown"),
        ("\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_only_a_brokers_answer_makes_a_client_offline(message: str, state: str) -> None:
    [fact] = facts(envelope("consumer_running_info", error=message))

    assert_fits(fact)
    assert (fact.table, fact.row["state"]) == ("consumer_client", state)


def test_members_listed_by_proxies_and_by_brokers_are_kept_separate() -> None:
    payload = {
        "connectionSet": [
            {"clientId": "host@7@0@abc", "clientAddr": "10.0.0.1:40000", "language": "JAVA", "version": 479}
        ],
        "subscriptionTable": {"orders": {"subString": "*", "expressionType": "TAG"}},
        "messageModel": "CLUSTERING",
        "consumeType": "CONSUME_ACTIVELY",
    }
    fact_list = list(facts(envelope("proxy_consumer_connection", payload)))

    for fact in fact_list:
        assert_fits(fact)
        assert (fact.row["proxy"], fact.row["consumer_group"]) == ("proxy:8080", "g")
    assert {fact.table: fact.row.get("consume_type") or fact.row.get("client_id") for fact in fact_list} == {
        "proxy_presence": "CONSUME_ACTIVELY",
        "proxy_connection": "host@7@0@abc",
        "proxy_subscription": None,
    }


def test_a_process_whose_request_failed_is_unknown_for_any_error() -> None:
    [fact] = facts(envelope("process_assignment", error="CODE: 206  DESC: ?"))

    assert_fits(fact)
    assert (fact.table, fact.row["state"], fact.row["process"]) == ("client_process", "unknown", "p-1")


@pytest.mark.parametrize(
    "kind",
    sorted(
        set(READ_KINDS)
        - {
            "consumer_connection",
            "proxy_consumer_connection",
            "consumer_running_info",
            "process_assignment",
        }
    ),
)
def test_other_errors_give_no_fact_about_their_subject(kind: str) -> None:
    assert list(facts(envelope(kind, error="CODE: 206  DESC: ?"))) == []
    assert list(facts_of_unreadable(envelope(kind, "{"))) == []


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("consumer_connection", "group_presence"),
        ("proxy_consumer_connection", "proxy_presence"),
        ("consumer_running_info", "consumer_client"),
        ("process_assignment", "client_process"),
    ],
)
def test_an_unreadable_answer_leaves_its_subject_unknown(kind: str, table: str) -> None:
    [fact] = facts_of_unreadable(envelope(kind, "{"))

    assert_fits(fact)
    assert (fact.table, fact.row["state"]) == (table, "unknown")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("CODE: 17  DESC: x", 17),
        ("CODE: 17", 17),
        ("code: 17", None),
        ("CODE: x", None),
        ("CODE: 1234567890", None),
    ],
)
def test_the_code_of_an_exception_is_at_the_start_of_its_message(message: str, code: int | None) -> None:
    assert error_code(message) == code


WHOLE = {
    "nameserver_cluster_info": {"brokerAddrTable": {"b": {"cluster": "x", "brokerAddrs": {"0": "h:1"}}}},
    "nameserver_route": route(
        [queue_data("b")],
        orderTopicConf="b:4",
        topicQueueMappingByBroker={
            "b": {"bname": "b", "scope": "__global__", "totalQueues": 1, "epoch": 1, "currIdMap": {"0": 0}}
        },
    ),
    "broker_topic_config": {
        "topicConfigTable": {"t": {"perm": 6, "readQueueNums": 8, "writeQueueNums": 4, "order": True}}
    },
    "broker_subscription_group": {
        "subscriptionGroupTable": {"g": {"retryQueueNums": 1, "retryMaxTimes": 16, "consumeEnable": False}}
    },
    "broker_message_request_mode": {
        "messageRequestModeMap": {"t": {"g": {"mode": "POP", "popShareQueueNum": 3}}}
    },
    "consumer_connection": {
        "connectionSet": [{"clientId": "c", "clientAddr": "h:1", "language": "JAVA", "version": 479}],
        "subscriptionTable": {"t": {"subString": "*", "expressionType": "TAG"}},
        "messageModel": "CLUSTERING",
    },
    "consumer_running_info": {
        "properties": {"allocateMessageQueueStrategy": "x.Y@1", "PROP_CONSUMEORDERLY": "true"},
        "subscriptionSet": [{"topic": "t", "subString": "*"}],
        "mqTable": {},
        "mqPopTable": {},
    },
    "process_assignment": {"properties": {"allocateMessageQueueStrategy": "x.Y@1"}, "mqTable": {}},
    "consumer_status": {"consumerTable": {"c": {}}, "messageQueueTable": {}},
    "consume_stats": {"offsetTable": {}},
    "broker_topic_stats": {"offsetTable": {}},
}
WHOLE["consumer_order_info"] = {
    "table": {
        "t@g": {"0": {"popTime": 1, "i": 1, "o": [1, 1], "ot": {"1": 1}, "oc": {"1": 1}, "l": 1, "cm": 2}}
    }
}
WHOLE["proxy_consumer_connection"] = WHOLE["consumer_connection"]
ODD_VALUES = (None, True, -1, 2**40, 2**70, 1.5, "", "x", "9" * 30, [], [None], {}, {"x": None}, {"0": {}})


def odd_variants(value: object) -> Iterator[object]:
    """Yield the value with each of its parts removed or replaced by each odd value."""
    yield from ODD_VALUES
    if isinstance(value, dict):
        for key, part in value.items():
            others = {name: other for name, other in value.items() if name != key}
            yield others
            yield from ({**others, key: odd} for odd in odd_variants(part))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from ([*value[:index], odd, *value[index + 1 :]] for odd in odd_variants(part))


@pytest.mark.parametrize("kind", READ_KINDS)
def test_a_payload_with_any_damaged_part_gives_valid_rows_or_one_sentence(kind: str) -> None:
    refused = 0
    for payload in odd_variants(WHOLE[kind]):
        try:
            fact_list = list(facts(envelope(kind, payload)))
        except PayloadError as error:
            refused += "\n" not in str(error)
        else:
            for fact in fact_list:
                assert_fits(fact)

    assert refused > len(ODD_VALUES) / 2


def test_only_broker_settings_about_fetching_become_rows() -> None:
    text = (
        "brokerName=broker-a\ndefaultMessageRequestMode=POP\ndefaultPopShareQueueNum = 3\n"
        'initAuthenticationUser={"username":"admin","password":"hidden"}\nserverLoadBalancerEnable=false\n'
        f"enableRetryTopicV2={'x' * 1000}\nnonsense\n"
    )
    fact_list = list(facts(envelope("broker_config", text)))

    for fact in fact_list:
        assert_fits(fact)
    assert {(fact.table, fact.row["setting"], fact.row["value"]) for fact in fact_list} == {
        ("broker_setting", "defaultMessageRequestMode", "POP"),
        ("broker_setting", "defaultPopShareQueueNum", "3"),
        ("broker_setting", "serverLoadBalancerEnable", "false"),
    }
