"""Builds small exports from the answers of brokers, name servers and clients, one Python line per export line."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.exports.manifest import export_directory
from rebalance_ledger.exports.sealing import seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

DS = date(2026, 11, 16)
NAMESERVERS = ("ns-1:9876", "ns-2:9876")
JAVA_5_3_3 = 479
"""The version ordinal that a Java client 5.3.3 reports."""

_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."
CLASSES = {
    "AVG": f"{_PACKAGE}AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": f"{_PACKAGE}AllocateMessageQueueAveragelyByCircle",
    "CONFIG": f"{_PACKAGE}AllocateMessageQueueByConfig",
    "CONSISTENT_HASH": f"{_PACKAGE}AllocateMessageQueueConsistentHash",
    "MACHINE_ROOM": f"{_PACKAGE}AllocateMessageQueueByMachineRoom",
    "MACHINE_ROOM_NEARBY": f"{_PACKAGE}AllocateMachineRoomNearby",
}

Queue = tuple[str, str, int]
"""Topic, broker name, queue id."""


class ExportBuilder:
    """The lines of an unfinished export; `seal` writes them."""

    def __init__(self, cluster: str = "shop-test", ds: date = DS) -> None:
        self.cluster = cluster
        self.ds = ds
        self._lines: dict[str, list[str]] = defaultdict(list)
        self._tables: dict[tuple[str, str], tuple[int, dict[str, str]]] = {}
        self._modes: dict[tuple[str, str], dict[str, object]] = defaultdict(dict)
        self.answer("nameserver_topic_list", {"topicList": []}, nameserver=NAMESERVERS[0])

    def answer(self, kind: str, payload: object, **asked: str) -> int:
        """Add a source's answer with this text or value; return the line's number in its file."""
        text = payload if isinstance(payload, str) else json.dumps(payload)
        return self._add(kind, asked, payload=text)

    def failure(self, kind: str, message: str, *, error_type: str = "MQBrokerException", **asked: str) -> int:
        """Add a source's failure; return the line's number in its file."""
        return self._add(kind, asked, error={"type": error_type, "message": message})

    def repeat_last(self, kind: str) -> None:
        """Repeat the last line of a kind, as a collector that queries twice writes it."""
        self._lines[kind].append(self._lines[kind][-1])

    def route(
        self,
        topic: str,
        queues: Mapping[str, int] | None,
        *nameservers: str,
        perm: int = 6,
        order: str | None = None,
    ) -> int:
        """Add the route of a topic from name servers (by default all): queues by broker, or no route; return the last line's number."""
        line_number = 0
        for nameserver in nameservers or NAMESERVERS:
            if queues is None:
                message = f"CODE: 17  DESC: No topic route info in name server for the topic: {topic}"
                line_number = self.failure("nameserver_route", message, nameserver=nameserver, topic=topic)
                continue
            payload = {
                "brokerDatas": [
                    {"brokerName": broker, "brokerAddrs": {"0": f"{broker}:10911"}} for broker in queues
                ],
                "queueDatas": [
                    {"brokerName": broker, "perm": perm, "readQueueNums": count, "writeQueueNums": count}
                    for broker, count in queues.items()
                ],
                **({} if order is None else {"orderTopicConf": order}),
            }
            line_number = self.answer("nameserver_route", payload, nameserver=nameserver, topic=topic)
        return line_number

    def members(
        self,
        broker: str,
        group: str,
        client_ids: Iterable[str],
        topics: Iterable[str],
        message_model: str = "CLUSTERING",
        language: str = "JAVA",
        others: Mapping[str, tuple[str, int]] | None = None,
        **asked: str,
    ) -> int:
        """Add one broker's answer about a group: a connection for each id, and the subscriptions; return the line's number.

        `others` are ids with their own language and version ordinal. `asked` can set another address of the broker, or another
        time.
        """
        own = others or {}
        payload = {
            "connectionSet": [
                {
                    "clientId": client_id,
                    "clientAddr": f"10.0.0.1:{port}",
                    "language": own.get(client_id, (language, JAVA_5_3_3))[0],
                    "version": own.get(client_id, (language, JAVA_5_3_3))[1],
                }
                for port, client_id in enumerate(client_ids, start=40_000)
            ],
            "subscriptionTable": {topic: {"subString": "*", "expressionType": "TAG"} for topic in topics},
            "messageModel": message_model,
            "consumeType": "CONSUME_PASSIVELY",
        }
        return self.answer("consumer_connection", payload, broker=broker, group=group, **asked)

    def no_members(self, broker: str, group: str) -> None:
        """Add a broker's answer that the group has no connected members."""
        message = f"CODE: 206  DESC: Not found the consumer group consumer connection info of {group}"
        self.failure("consumer_connection", message, broker=broker, group=group)

    def progress(self, broker: str, group: str, *queues: Queue) -> None:
        """Add a broker's answer about a group's offsets: the group has consumed 10 of 12 messages in each queue."""
        table = {
            json.dumps({"topic": topic, "brokerName": name, "queueId": queue_id}): json.dumps(
                {"brokerOffset": 12, "consumerOffset": 10, "lastTimestamp": 1794794077843}
            )
            for topic, name, queue_id in queues
        }
        self._add_entries("consume_stats", "offsetTable", table, broker=broker, group=group)

    def offsets(
        self, broker: str, group: str, topic: str, *queues: tuple[int, int, int], last_ms: int = 1794794077843
    ) -> None:
        """Add a broker's offsets of a group in a topic: for each queue from 0 the maximum, committed and handed-out offset."""
        table = {
            json.dumps({"topic": topic, "brokerName": broker, "queueId": queue_id}): json.dumps(
                {
                    "brokerOffset": most,
                    "consumerOffset": committed,
                    "lastTimestamp": last_ms,
                    "pullOffset": pulled,
                }
            )
            for queue_id, (most, committed, pulled) in enumerate(queues)
        }
        self._add_entries("consume_stats", "offsetTable", table, broker=broker, group=group)

    def subscription_groups(self, broker: str, *groups: str) -> None:
        """Add a broker's own configuration of its groups."""
        table = {group: {"groupName": group, "consumeEnable": True} for group in groups}
        self.answer("broker_subscription_group", {"subscriptionGroupTable": table}, broker=broker)

    def proxy_members(
        self, proxy: str, group: str, client_ids: Iterable[str], topics: Iterable[str], **payload: object
    ) -> None:
        """Add a proxy's answer about a group, in the format of a broker's."""
        answer = {
            "connectionSet": [
                {
                    "clientId": client_id,
                    "clientAddr": f"10.0.0.1:{port}",
                    "language": "JAVA",
                    "version": JAVA_5_3_3,
                }
                for port, client_id in enumerate(client_ids, start=40_000)
            ],
            "subscriptionTable": {topic: {"subString": "*", "expressionType": "TAG"} for topic in topics},
            "messageModel": "CLUSTERING",
            "consumeType": "CONSUME_PASSIVELY",
        }
        self.answer("proxy_consumer_connection", answer | payload, proxy=proxy, group=group)

    def no_members_at_proxy(self, proxy: str, group: str) -> None:
        """Add a proxy's answer that the group has no connected members."""
        message = f"CODE: 206  DESC: the consumer group[{group}] not online"
        self.failure("proxy_consumer_connection", message, proxy=proxy, group=group)

    def topic_offsets(self, broker: str, *queues: Queue, stored_s_ago: int, max_offset: int = 5) -> None:
        """Add a broker's offsets of a topic's queues: messages 0 to `max_offset`, the newest stored this many seconds ago."""
        stored = int((self._captured_at() - timedelta(seconds=stored_s_ago)).timestamp() * 1000)
        ends = {"minOffset": 0, "maxOffset": max_offset, "lastUpdateTimestamp": stored}
        table = ",".join(
            json.dumps({"topic": topic, "brokerName": name, "queueId": queue_id}) + ":" + json.dumps(ends)
            for topic, name, queue_id in queues
        )
        self.answer("broker_topic_stats", f'{{"offsetTable":{{{table}}}}}', broker=broker, topic=queues[0][0])

    def client(  # noqa: PLR0913 - one argument for each part of a client's answer
        self,
        group: str,
        client_id: str,
        topics: Iterable[str],
        strategy: str | None = "AVG",
        owns: Iterable[Queue] = (),
        version: str = "V5_3_3",
        *,
        gives_up: Iterable[Queue] = (),
        pops: Iterable[Queue] = (),
        expression: str = "*",
        age_s: int = 3600,
        process: str | None = None,
        properties: Mapping[str, str] | None = None,
        consumed_s_ago: int = 0,
        asks_broker: bool = False,
        is_orderly: bool = False,
    ) -> None:
        """Add a client's answer; `strategy` is RocketMQ's name or a class, None for a client that reports none.

        It was started `age_s` seconds before the query. `process` identifies the process that answered. `properties` are added to
        those that every client has. Its last pull is at the time of the query, and its last consumption `consumed_s_ago` seconds
        earlier.
        """

        def queue_entries(queues: Iterable[Queue], **process_queue: object) -> list[str]:
            return [
                json.dumps({"topic": topic, "brokerName": broker, "queueId": queue_id})
                + ":"
                + json.dumps(process_queue)
                for topic, broker, queue_id in queues
            ]

        pulled = {
            "commitOffset": 0,
            "lastPullTimestamp": 1794794077843,
            "lastConsumeTimestamp": 1794794077843 - 1000 * consumed_s_ago,
        }
        table = ",".join(
            [*queue_entries(owns, droped=False, **pulled), *queue_entries(gives_up, droped=True, **pulled)]
        )
        pop_table = ",".join(
            queue_entries(pops, droped=False, lastPopTimestamp=1794794077843, waitAckCount=0)
        )
        started = self._captured_at() - timedelta(seconds=age_s)
        reported_properties = {
            **(
                {}
                if strategy is None
                else {"allocateMessageQueueStrategy": f"{CLASSES.get(strategy, strategy)}@1b2c3d"}
            ),
            "PROP_CLIENT_VERSION": version,
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMER_START_TIMESTAMP": str(int(started.timestamp() * 1000)),
            "PROP_CONSUMEORDERLY": str(is_orderly).lower(),
            "clientRebalance": "false" if pops or asks_broker else "true",
            **(properties or {}),
        }
        subscriptions = [{"topic": topic, "subString": expression} for topic in topics]
        text = (
            f'{{"properties":{json.dumps(reported_properties)},"subscriptionSet":{json.dumps(subscriptions)},'
            f'"mqTable":{{{table}}},"mqPopTable":{{{pop_table}}}}}'
        )
        asked = {"group": group, "client_id": client_id}
        if process is None:
            self.answer("consumer_running_info", text, **asked)
        else:
            self.answer("process_assignment", text, process=process, **asked)

    def popped(self, broker: str, topic: str, group: str) -> None:
        """Add a broker's entry that it serves the group's topic by POP."""
        mode = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": -1}
        self._add_modes(broker, {topic: {group: mode}})

    def request_modes(self, broker: str, modes: Mapping[str, tuple[str, int]]) -> None:
        """Add a broker's entries for groups, each for the topic with the group's name: mode and popShareQueueNum."""
        table = {
            name: {
                name: {
                    "topic": name,
                    "consumerGroup": name,
                    "mode": mode,
                    "popShareQueueNum": share,
                }
            }
            for name, (mode, share) in modes.items()
        }
        self._add_modes(broker, table)

    def order_locks(self, broker: str, group: str, topic: str, *queues: Mapping[str, object] | None) -> None:
        """Add the `OrderInfo` that a broker has for each queue of a FIFO group's topic; None for a queue without one."""
        table = {str(queue_id): info for queue_id, info in enumerate(queues) if info is not None}
        entry = {json.dumps(f"{topic}@{group}"): json.dumps(table)}
        self._add_entries("consumer_order_info", "table", entry, broker=broker)

    def broker_settings(self, broker: str, **settings: object) -> None:
        """Add a broker's settings, as it reports them."""
        lines = [f"{name}={value}" for name, value in {"brokerName": broker, **settings}.items()]
        self.answer("broker_config", "\n".join(lines), broker=broker)

    def configured(self, broker: str, queues_of: Mapping[str, int], perm: int = 6) -> None:
        """Add a broker's own configuration of its topics."""
        table = {
            topic: {"topicName": topic, "perm": perm, "readQueueNums": count, "writeQueueNums": count}
            for topic, count in queues_of.items()
        }
        self.answer("broker_topic_config", {"topicConfigTable": table}, broker=broker)

    def brokers(self, nameserver: str, addresses_of: Mapping[str, Mapping[str, str]]) -> None:
        """Add a name server's list of brokers: for each its addresses by broker id."""
        table = {
            broker: {"brokerName": broker, "cluster": self.cluster, "brokerAddrs": dict(addresses)}
            for broker, addresses in addresses_of.items()
        }
        self.answer("nameserver_cluster_info", {"brokerAddrTable": table}, nameserver=nameserver)

    def group(
        self,
        group: str,
        topics: Iterable[str],
        client_ids: Iterable[str],
        *brokers: str,
        strategy: str = "AVG",
        message_model: str = "CLUSTERING",
    ) -> None:
        """Add a healthy group: every broker lists the same members, and every member answers."""
        topics, client_ids = list(topics), list(client_ids)
        for broker in brokers:
            self.members(broker, group, client_ids, topics, message_model)
        for client_id in dict.fromkeys(client_ids):
            self.client(group, client_id, topics, strategy)

    def seal(self, exports: Path) -> Path:
        """Write and seal the export below a folder of exports; return its directory."""
        directory = self.write(exports)
        seal(directory)
        return directory

    def write(self, exports: Path) -> Path:
        """Write the lines without a manifest, as a collector does before it seals the export."""
        directory = export_directory(exports, self.cluster, self.ds)
        directory.mkdir(parents=True)
        for kind, lines in self._lines.items():
            (directory / KIND_BY_NAME[kind].file_name).write_text("".join(lines), encoding="utf-8")
        return directory

    def _add_modes(self, broker: str, modes: Mapping[str, Mapping[str, object]]) -> None:
        for topic, of_groups in modes.items():
            self._modes[broker, topic].update(of_groups)
        table = {json.dumps(topic): json.dumps(self._modes[broker, topic]) for topic in modes}
        self._add_entries("broker_message_request_mode", "messageRequestModeMap", table, broker=broker)

    def _add_entries(self, kind: str, name: str, entries: Mapping[str, str], **asked: str) -> None:
        """Add entries to a source's table, which stays one line of the export."""
        key = (kind, json.dumps(asked))
        index, table = self._tables.setdefault(key, (len(self._lines[kind]), {}))
        table.update(entries)
        text = ",".join(f"{queue}:{value}" for queue, value in table.items())
        self.answer(kind, f'{{"{name}":{{{text}}}}}', **asked)
        if index < len(self._lines[kind]) - 1:
            self._lines[kind][index] = self._lines[kind].pop()

    def _captured_at(self) -> datetime:
        return datetime(self.ds.year, self.ds.month, self.ds.day, 12, tzinfo=UTC)

    def _add(self, kind: str, asked: dict[str, str], **content: Any) -> int:
        if "broker" in asked:
            asked = {"broker_addr": f"{asked['broker']}:10911", **asked}
        line = {
            "kind": kind,
            "cluster": self.cluster,
            "captured_at": f"{self._captured_at():%Y-%m-%dT%H:%M:%SZ}",
            **asked,
            **content,
        }
        self._lines[kind].append(json.dumps(line, ensure_ascii=False) + "\n")
        return len(self._lines[kind])
