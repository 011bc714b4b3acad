"""mqadmin tables are parsed strictly, and missing information is never added."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from rebalance_ledger.collectors import mqadmin_text
from rebalance_ledger.collectors.mqadmin_text import ShownName
from rebalance_ledger.collectors.mqadmin_transcript import Answer, Line, TextError, lines_of, read_transcript
from rebalance_ledger.rocketmq.json import ObjectMap, loads
from tests.support.offline_captures import (
    HOSTILE_ID,
    LONG_BROKER,
    LONG_TOPICS,
    RELEASES,
    capture,
    lay_out,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ORDINALS = {"4.9.7": 407, "5.3.3": 479, "5.5.0": 513}
ORDER_9 = "10.1.0.9@order-9"


def answer(release: str, name: str, **options: str) -> Answer:
    """Return a text's first successful answer to a command with these options."""
    answers = read_transcript(text(release, name))
    return next(each for each in answers if options.items() <= each.options.items() and not each.failure)


def running_info(release: str, client_id: str = ORDER_9) -> list[Line]:
    """Return the lines of the file that `consumerStatus -g` wrote for a client."""
    (path,) = (capture(release) / "mqadmin").glob(f"*/{client_id}")
    return lines_of(path.read_text())


def by_queue(table: Any) -> dict[tuple[Any, Any, Any], Any]:
    return {
        (queue["topic"], queue["brokerName"], queue["queueId"]): value
        for queue, value in ObjectMap.of(table).items()
    }


def document(payload: str) -> Any:
    return loads(payload)


class TestNameServers:
    @pytest.mark.parametrize("release", RELEASES)
    def test_topics_are_a_line_each(self, release: str) -> None:
        topics = mqadmin_text.topic_list(answer(release, "mqadmin/topicList.txt").lines)
        assert {"order-events", "%RETRY%gone", "hz@broker-a", *LONG_TOPICS} <= set(topics)
        assert document(mqadmin_text.topic_list_payload(topics)) == {"topicList": topics}

    @pytest.mark.parametrize("release", RELEASES)
    def test_brokers_are_read_with_their_full_names(self, release: str) -> None:
        brokers = mqadmin_text.cluster_list(answer(release, "mqadmin/clusterList.txt").lines)
        assert [(row.cluster, row.broker, row.broker_id) for row in brokers] == [
            ("shop-test", "hz@broker-a", 0),
            ("shop-test", LONG_BROKER, 0),
        ]
        info = document(mqadmin_text.cluster_info_payload(brokers))
        assert info["clusterAddrTable"] == {"shop-test": ["hz@broker-a", LONG_BROKER]}
        assert info["brokerAddrTable"][LONG_BROKER]["brokerAddrs"] == {"0": brokers[1].address}

    def test_a_slave_has_the_name_of_its_master(self) -> None:
        header = answer("5.5.0", "mqadmin/clusterList.txt").lines[0]
        rows = ["c  b  0  10.0.0.1:10911  V5_5_0  1.0  x", "c  b  1  10.0.0.2:10911  V5_5_0  1.0  x"]
        brokers = mqadmin_text.cluster_list([header, *lines_of("\n".join(rows))])
        info = document(mqadmin_text.cluster_info_payload(brokers))
        assert info["brokerAddrTable"]["b"]["brokerAddrs"] == {"0": "10.0.0.1:10911", "1": "10.0.0.2:10911"}
        assert info["clusterAddrTable"] == {"c": ["b"]}

    @pytest.mark.parametrize("release", RELEASES)
    def test_a_route_is_kept_as_text(self, release: str) -> None:
        lines = answer(release, "mqadmin/topicRoute.txt", t="order-events").lines
        payload = mqadmin_text.topic_route_payload(lines)
        assert payload.split("\n") == [line.text for line in lines]
        assert {name for name, _, _ in mqadmin_text.brokers_of_route(payload)} == {"hz@broker-a", LONG_BROKER}
        assert len(document(payload)["queueDatas"]) == 2


class TestMembers:
    @pytest.mark.parametrize("release", RELEASES)
    def test_any_client_id_is_read_completely(self, release: str) -> None:
        payload, client_ids = mqadmin_text.consumer_connection(
            answer(release, "mqadmin/consumerConnection.txt", g="long-names").lines
        )
        assert set(client_ids) == {
            "10.1.0.51@an-instance-whose-name-makes-the-client-id-longer-than-36",
            HOSTILE_ID,
        }
        connection = document(payload)
        assert {each["version"] for each in connection["connectionSet"]} == {ORDINALS[release]}
        assert {each["language"] for each in connection["connectionSet"]} == {"JAVA"}
        assert connection["subscriptionTable"][LONG_TOPICS[1]]["subString"] == "*"
        assert connection["subscriptionTable"][LONG_TOPICS[0]]["subString"] in {"*", "a || b"}
        assert connection["messageModel"] == "CLUSTERING"

    def test_fields_that_the_table_lacks_are_omitted(self) -> None:
        payload, _ = mqadmin_text.consumer_connection(
            lines_of(
                "#ClientId                            #ClientAddr            #Language  #Version\n"
                "1.2.3.4@a                            10.0.0.1:40000         null       HIGHER_VERSION\n"
                "\nBelow is subscription:\n#Topic               #SubExpression\n\n"
                "ConsumeType: CONSUME_ACTIVELY\nMessageModel: CLUSTERING\nConsumeFromWhere: null"
            )
        )
        assert document(payload) == {
            "connectionSet": [{"clientAddr": "10.0.0.1:40000", "clientId": "1.2.3.4@a"}],
            "consumeType": "CONSUME_ACTIVELY",
            "messageModel": "CLUSTERING",
            "subscriptionTable": {},
        }

    @pytest.mark.parametrize("release", RELEASES)
    def test_clients_listed_by_a_status_are_read_completely(self, tmp_path: Path, release: str) -> None:
        client_ids = mqadmin_text.listed_clients(
            answer(release, "mqadmin/consumerStatus.txt", g="long-names").lines
        )
        assert HOSTILE_ID in client_ids.values()
        assert len(client_ids) == 2
        for path in client_ids:
            assert (lay_out(release, "mqadmin", tmp_path) / path).is_file()

    @pytest.mark.parametrize("release", ["4.9.7", "5.5.0"])
    def test_producers(self, release: str) -> None:
        payload = mqadmin_text.producer_connection(answer(release, "more/producerConnection.txt").lines)
        (connection,) = document(payload)["connectionSet"]
        assert (connection["clientId"], connection["version"]) == ("10.1.0.5@gateway-1", ORDINALS[release])


class TestRunningInfo:
    @pytest.mark.parametrize("release", RELEASES)
    def test_strategy_subscriptions_and_queues_are_read(self, release: str) -> None:
        info = document(mqadmin_text.running_info_payload(running_info(release), UTC))
        assert ".AllocateMessageQueueAveragely@" in info["properties"]["allocateMessageQueueStrategy"]
        assert info["properties"]["consumerGroup"] == "order-service"
        assert {each["topic"] for each in info["subscriptionSet"]} == {"order-events", "%RETRY%order-service"}
        owned = by_queue(info["mqTable"])
        assert ("order-events", LONG_BROKER, 2) in owned
        for values in owned.values():
            assert values["droped"] is False
            assert 1_795_230_000_000 < values["lastPullTimestamp"] < 1_795_250_000_000

    @pytest.mark.parametrize("release", ["5.3.3", "5.5.0"])
    def test_popped_queues_are_read(self, release: str) -> None:
        info = document(mqadmin_text.running_info_payload(running_info(release, "10.1.0.71@pop-1"), UTC))
        popped = by_queue(info["mqPopTable"])
        assert set(popped) == {("order-events", "hz@broker-a", -1), ("order-events", LONG_BROKER, -1)}
        assert all(values["lastPopTimestamp"] > 1_795_230_000_000 for values in popped.values())

    def test_times_are_read_in_the_given_zone_and_are_null_without_one(self) -> None:
        lines = running_info("5.5.0")

        def last_pull(zone: ZoneInfo | None) -> list[object]:
            table = by_queue(document(mqadmin_text.running_info_payload(lines, zone))["mqTable"])
            return [values.get("lastPullTimestamp") for values in table.values()]

        utc, shanghai = last_pull(ZoneInfo("UTC")), last_pull(ZoneInfo("Asia/Shanghai"))
        assert [each - 8 * 3_600_000 for each in utc if isinstance(each, int)] == shanghai
        assert set(last_pull(None)) == {None}

    def test_ambiguous_local_times_are_omitted(self) -> None:
        shown = "2026-10-25 02:30:00"  # Clocks in Berlin went back from three to two that night.
        lines = progress_of("#Diff                 #LastTime", f"0                     {shown}")
        (row,) = mqadmin_text.consumer_progress(lines, ZoneInfo("Europe/Berlin"))
        assert "lastTimestamp" not in row.values
        (row,) = mqadmin_text.consumer_progress(lines, UTC)
        assert row.values["lastTimestamp"] == 1_792_895_400_000

    def test_a_thread_dump_is_not_read(self) -> None:
        with_dump = answer("5.3.3", "more/consumerStatus-i-s.txt").lines
        assert any(line.text == "#Consumer jstack#" for line in with_dump)
        info = document(mqadmin_text.running_info_payload(with_dump, UTC))
        assert set(by_queue(info["mqTable"])) == {
            ("order-events", LONG_BROKER, queue_id) for queue_id in (2, 3)
        }


def progress_of(columns: str, values: str) -> list[Line]:
    """Return the output of `consumerProgress` for one queue without lag."""
    return lines_of(
        f"#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  {columns}\n"
        f"orders  broker-a  0  7  7  {values}\n\nConsume TPS: 0.00\nDiff Total: 0"
    )


class TestProgress:
    @pytest.mark.parametrize("release", RELEASES)
    def test_offsets_are_read_for_each_queue(self, release: str) -> None:
        rows = mqadmin_text.consumer_progress(
            answer(release, "mqadmin/consumerProgress.txt", g="order-service").lines, UTC
        )
        assert len(rows) == 10
        orders = [row for row in rows if row.topic == ShownName("order-events", 64)]
        assert sum(row.values["brokerOffset"] for row in orders) == 40
        assert all(row.values["consumerOffset"] == row.values["brokerOffset"] for row in orders)
        assert all(row.values["lastTimestamp"] % 1000 == 0 for row in orders)
        assert {row.values["lastTimestamp"] for row in rows if row not in orders} == {0}

    @pytest.mark.parametrize("release", ["4.9.7", "5.5.0"])
    def test_the_column_with_addresses_is_not_read(self, release: str) -> None:
        with_address = mqadmin_text.consumer_progress(
            answer(release, "more/consumerProgress-s.txt", g="order-service").lines, UTC
        )
        without = mqadmin_text.consumer_progress(
            answer(release, "mqadmin/consumerProgress.txt", g="order-service").lines, UTC
        )
        assert [(row.broker, row.queue_id, row.values) for row in with_address] == [
            (row.broker, row.queue_id, row.values) for row in without
        ]

    def test_a_missing_line_shows_in_the_sum(self) -> None:
        lines = lines_of(
            "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Diff  #LastTime\n"
            "orders  broker-a  0  9  7  2  N/A\n\nConsume TPS: 0.00\nDiff Total: 5"
        )
        with pytest.raises(TextError, match="a sum of 2 is expected; a queue's line may be missing"):
            mqadmin_text.consumer_progress(lines, None)

    def test_a_wrong_difference_is_reported(self) -> None:
        with pytest.raises(TextError, match="line 2: a difference of 0 is expected, not 1"):
            mqadmin_text.consumer_progress(progress_of("#Diff  #LastTime", "1  N/A"), None)

    @pytest.mark.parametrize("release", RELEASES)
    def test_topic_status(self, release: str) -> None:
        rows = mqadmin_text.topic_status(answer(release, "more/topicStatus.txt", t="order-events").lines, UTC)
        assert [(row.broker.text, row.queue_id) for row in rows] == [
            (name, queue_id) for name in ("hz@broker-a", LONG_BROKER[:32]) for queue_id in range(4)
        ]
        assert sum(row.values["maxOffset"] for row in rows) == 40
        assert all(row.values["lastUpdateTimestamp"] % 1000 for row in rows)


class TestCutNames:
    def test_a_short_name_is_complete(self) -> None:
        assert ShownName("broker-a", 32).whole(None) == "broker-a"
        assert ShownName("x" * 100, None).whole(None) == "x" * 100

    def test_a_name_of_full_width_is_complete_only_if_no_known_name_is_longer(self) -> None:
        cut = ShownName("b" * 32, 32)
        assert cut.whole(None) is None
        assert cut.whole([]) is None
        assert cut.whole(["b" * 40, "other"]) == "b" * 40
        assert cut.whole(["b" * 32, "other"]) == "b" * 32
        assert cut.whole(["b" * 32, "b" * 33]) is None

    def test_the_column_width_comes_from_the_header(self) -> None:
        header, row = (
            f"{topic:32}  {'#Broker Name' if topic[0] == '#' else 'broker-a':32}  {rest}"
            for topic, rest in (
                (
                    "#Topic",
                    "#QID  #Broker Offset        #Consumer Offset      #Diff                 #LastTime",
                ),
                ("t" * 32, "0     7                     7                     0                     N/A"),
            )
        )
        lines = lines_of(f"{header}\n{row}\n\nConsume TPS: 0.00\nDiff Total: 0")
        (row,) = mqadmin_text.consumer_progress(lines, None)
        assert (row.topic, row.broker) == (ShownName("t" * 32, 32), ShownName("broker-a", 32))

    def test_java_counts_a_supplementary_character_twice(self) -> None:
        assert ShownName("\U0001f600" * 15, 32).whole(None) == "\U0001f600" * 15
        assert ShownName("\U0001f600" * 16, 32).whole(None) is None


class TestBrokerConfig:
    def test_each_section_is_a_broker(self) -> None:
        configs = mqadmin_text.broker_configs(
            lines_of(
                "============Master: 10.0.0.1:10911============\n"
                "brokerName                                        =  broker-a\n"
                "brokerIP1                                         =  \n"
                "messageDelayLevel                                 =  1s 5s = 10s\n\n"
                "============My Master: 10.0.0.1:10911=====Slave: 10.0.0.2:10911============\n"
                "brokerName                                        =  broker-a\n"
            )
        )
        assert [(config.address, config.broker) for config in configs] == [
            ("10.0.0.1:10911", "broker-a"),
            ("10.0.0.2:10911", "broker-a"),
        ]
        assert configs[0].payload == "brokerName=broker-a\nbrokerIP1=\nmessageDelayLevel=1s 5s = 10s\n"

    def test_the_config_of_a_real_broker_is_read(self) -> None:
        configs = mqadmin_text.broker_configs(answer("5.5.0", "mqadmin/brokerConfig.txt").lines)
        assert [config.broker for config in configs] == ["hz@broker-a"]
        assert "\ndefaultTopicQueueNums=8\n" in configs[0].payload

    def test_a_broker_without_settings_is_a_truncated_text(self) -> None:
        with pytest.raises(TextError, match=r"settings of 10\.0\.0\.1:10911 are expected"):
            mqadmin_text.broker_configs(lines_of("============10.0.0.1:10911============"))


READINGS: dict[str, tuple[Callable[[Sequence[Line]], object], Callable[[str], Sequence[Line]]]] = {
    "topicRoute": (
        mqadmin_text.topic_route_payload,
        lambda release: answer(release, "mqadmin/topicRoute.txt", t="order-events").lines,
    ),
    "consumerConnection": (
        mqadmin_text.consumer_connection,
        lambda release: answer(release, "mqadmin/consumerConnection.txt", g="order-service").lines,
    ),
    "consumerProgress": (
        lambda lines: mqadmin_text.consumer_progress(lines, UTC),
        lambda release: answer(release, "mqadmin/consumerProgress.txt", g="order-service").lines,
    ),
    "consumerStatus": (lambda lines: mqadmin_text.running_info_payload(lines, UTC), running_info),
    "topicStatus": (
        lambda lines: mqadmin_text.topic_status(lines, UTC),
        lambda release: answer(release, "more/topicStatus.txt", t="order-events").lines,
    ),
    "clusterList": (
        mqadmin_text.cluster_list,
        lambda release: answer(release, "mqadmin/clusterList.txt").lines,
    ),
}

NOT_READ = ("#Consumer RT&TPS#", "#User Consume Info#")
"""Sections of a running info that the parser ignores."""


class TestSpoiltTexts:
    @pytest.mark.parametrize("release", RELEASES)
    @pytest.mark.parametrize("command", READINGS)
    def test_an_unexpected_line_is_reported_with_its_number(self, command: str, release: str) -> None:
        read, lines_for = READINGS[command]
        lines = list(lines_for(release))
        read(lines)
        for index, line in enumerate(lines):
            if line.text.startswith(NOT_READ):
                break
            if command == "consumerStatus" and not line.text:
                continue  # Blank lines between sections have no meaning.
            spoilt = [*lines[:index], Line(line.number, "? not what mqadmin prints"), *lines[index + 1 :]]
            with pytest.raises(TextError) as caught:
                read(spoilt)
            # Without its title a whole section is missing, and its lines belong to the previous section.
            assert line.text.startswith("#Consumer") or caught.value.line_number == line.number

    @pytest.mark.parametrize("release", RELEASES)
    @pytest.mark.parametrize("command", ["topicRoute", "consumerConnection", "consumerProgress"])
    def test_a_truncated_text_is_refused(self, command: str, release: str) -> None:
        read, lines_for = READINGS[command]
        lines = list(lines_for(release))
        for length in range(len(lines)):
            with pytest.raises(TextError):
                read(lines[:length])

    @pytest.mark.parametrize("release", RELEASES)
    def test_a_running_info_truncated_before_the_end_of_its_queues_is_refused(self, release: str) -> None:
        lines = running_info(release)
        end = next(index for index, line in enumerate(lines) if line.text == "#Consumer RT&TPS#")
        for length in range(end):
            with pytest.raises(TextError):
                mqadmin_text.running_info_payload(lines[:length], UTC)

    def test_a_table_of_another_command_is_refused(self) -> None:
        texts = {name: lines_for("5.5.0") for name, (_, lines_for) in READINGS.items()}
        for name, (read, _) in READINGS.items():
            for other, lines in texts.items():
                if other != name:
                    with pytest.raises(TextError):
                        read(lines)

    def test_payloads_are_json_in_rocketmqs_dialect(self) -> None:
        payload, _ = mqadmin_text.consumer_connection(READINGS["consumerConnection"][1]("5.5.0"))
        assert json.loads(payload) == loads(payload)
