"""An export of broadcasting clients in every state that the sample does not contain: one group for each, on two consecutive days.

Each group reads one queue of a topic with the group's name, with messages 10 to 99, on host 10.0.0.1.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.support.export_builder import DS, ExportBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from pathlib import Path

CLUSTER = "broadcast-test"
HOST = "10.0.0.1"
CLIENT = f"{HOST}@DEFAULT"
OTHER_CLIENT = f"{HOST}@4711#99"
"""A client id that ends with its process."""
SPRING_CLIENT = f"{HOST}@ns-1:9876@4711@123456789012"
"""Another one, as rocketmq-spring generates it."""
PORT_CLIENT = f"{HOST}@8081"
"""A client id with a number that somebody chose as the name."""
PROXIED_CLUSTER = "broadcast-proxy-test"
PROXY = "10.0.0.8:8080"
CUT = b'{"offsetTable":{{"bro'
ZEROS = bytes(600)
JAVA_LONG_MAX = 2**63 - 1
QUEUE_COUNTS = {"past_64_bits": 2}
"""Queue counts of the topics that do not have exactly one queue."""
NESTED = b'{"a":' * 1_000_000
"""JSON whose depth some clients can parse and others cannot, depending on their stack size."""
EARLIER = DS - timedelta(days=1)


def table(topic: str, offset: int, *queue_ids: int) -> bytes:
    """Return a file with the same offset for these queues, or for queue 0."""
    queues = (
        f'{{"brokerName":"broker-a","queueId":{queue_id},"topic":"{topic}"}}:{offset}'
        for queue_id in queue_ids or (0,)
    )
    return f'{{"offsetTable":{{{",".join(queues)}}}}}'.encode()


class Hosts(ExportBuilder):
    """An export with offset files."""

    def __init__(self, ds: date, cluster: str = CLUSTER) -> None:
        super().__init__(cluster, ds)
        self.files: dict[str, bytes] = {}

    def file(
        self, group: str, content: bytes, name: str = "offsets.json", *, client: str = CLIENT, age_s: int = 2
    ) -> None:
        """Add a file, written this many seconds before its capture at noon."""
        path = f"offset_files/{HOST}/{client}/{group}/{name}"
        self.files[path] = content
        written = self._captured_at() - timedelta(seconds=age_s)
        self._add(
            "offset_file",
            {"host": HOST, "client_id": client, "group": group},
            moment=0,
            path=path,
            size=len(content),
            mtime=f"{written:%Y-%m-%dT%H:%M:%SZ}",
            sha256=hashlib.sha256(content).hexdigest(),
        )

    def reader(  # noqa: PLR0913 - one argument for each property of a client
        self,
        group: str,
        main: bytes | None = None,
        bak: bytes | None = None,
        *,
        from_where: str = "CONSUME_FROM_LAST_OFFSET",
        model: str = "BROADCASTING",
        client: str = CLIENT,
        age_s: int = 2,
        addresses: Sequence[str] = (HOST,),
        language: str | None = "JAVA",
    ) -> None:
        """Add a group with a client that is connected once from each address, and its files."""
        self.route(group, {"broker-a": QUEUE_COUNTS.get(group, 1)})
        self.connections(group, from_where=from_where, model=model, addresses=addresses, language=language)
        if main is not None:
            self.file(group, main, client=client, age_s=age_s)
        if bak is not None:
            self.file(group, bak, "offsets.json.bak", client=client, age_s=age_s)

    def connections(
        self,
        group: str,
        *,
        from_where: str,
        model: str = "BROADCASTING",
        addresses: Sequence[str] = (HOST,),
        language: str | None = "JAVA",
        broker: str = "broker-a",
    ) -> None:
        """Add a broker's answer about a group whose client is connected once from each address."""
        connection = {"clientId": CLIENT, "language": language, "version": 479}
        payload = {
            "connectionSet": [
                {**connection, "clientAddr": f"{address}:{port}"}
                for port, address in enumerate(addresses, start=4)
            ],
            "subscriptionTable": {group: {"subString": "*", "expressionType": "TAG"}},
            "messageModel": model,
            "consumeType": "CONSUME_PASSIVELY",
            "consumeFromWhere": from_where,
        }
        self.answer("consumer_connection", payload, broker=broker, group=group)

    def bounds(self, topic: str, max_offset: int = 100) -> None:
        """Add the broker's answer that each queue has the messages from 10 on, the newest stored at noon."""
        stored_at_ms = int(self._captured_at().timestamp() * 1000)
        ends = f'{{"minOffset":10,"maxOffset":{max_offset},"lastUpdateTimestamp":{stored_at_ms}}}'
        queues = ",".join(
            f'{{"topic":"{topic}","brokerName":"broker-a","queueId":{queue_id}}}:{ends}'
            for queue_id in range(QUEUE_COUNTS.get(topic, 1))
        )
        self.answer("broker_topic_stats", f'{{"offsetTable":{{{queues}}}}}', broker="broker-a", topic=topic)

    def remembers(self, group: str, offset: int) -> None:
        """Add the client's answer that it has this offset of the queue in memory."""
        queue = f'{{"topic":"{group}","brokerName":"broker-a","queueId":0}}'
        text = f'{{"consumerTable":{{"{CLIENT}":{{{queue}:{offset}}}}},"messageQueueTable":{{}}}}'
        self.answer("consumer_status", text, broker="broker-a", group=group, client_id=CLIENT, topic=group)

    def write(self, exports: Path) -> Path:
        directory = super().write(exports)
        for path, content in self.files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)
        return directory


def earlier_day() -> Hosts:
    hosts = Hosts(EARLIER)
    for group, offset in {
        "well": 50,
        "went_back": 95,
        "stuck": 90,
        "removed": 90,
        "emptied": 90,
        "not_written": 90,
    }.items():
        hosts.reader(group, table(group, offset))
    hosts.reader("tidied", table("tidied", 50), client=OTHER_CLIENT)
    hosts.reader("port_removed", table("port_removed", 50), client=PORT_CLIENT)
    hosts.reader("nested_again", NESTED)
    hosts.reader("largest_again", table("largest_again", JAVA_LONG_MAX))
    return hosts


def _add_settings(hosts: Hosts) -> None:
    """Add groups without a stored offset of queue 0, with different reports of where they would begin."""
    for group, properties in {
        "brokers_differ": None,
        "client_knows": {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"},
        "pulls": {"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"},
        "pulls_lite": {"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY", "defaultLitePullConsumerImpl": "o"},
        "processes_differ": {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"},
    }.items():
        hosts.reader(group, table(group, 90, 7))
        hosts.bounds(group)
        if properties is not None:
            hosts.client(group, CLIENT, [group], properties={"messageModel": "BROADCASTING"} | properties)
    for group in ("brokers_differ", "client_knows"):
        hosts.connections(group, from_where="CONSUME_FROM_TIMESTAMP", broker="broker-b")
    other = {"messageModel": "BROADCASTING", "consumeFromWhere": "CONSUME_FROM_TIMESTAMP"}
    hosts.client("processes_differ", CLIENT, ["processes_differ"], process="p1", properties=other)


def day() -> Hosts:
    hosts = Hosts(DS)
    for group, offset in {
        "well": 90,
        "went_back": 90,
        "stuck": 90,
        "behind": 4,
        "ahead": 105,
        "not_written": 90,
    }.items():
        hosts.reader(group, table(group, offset))
        hosts.bounds(group)
    hosts.remembers("not_written", 97)
    hosts.remembers("stuck", 90)
    hosts.reader("listed_twice", table("listed_twice", 90), addresses=(HOST, HOST))
    # Two processes on this host, on two hosts of which one landed, and such whose addresses nobody lists.
    for group, addresses in {
        "on_one_host": (HOST, HOST),
        "on_two_hosts": (HOST, "10.0.0.2"),
        "nowhere_listed": (),
    }.items():
        hosts.reader(group, table(group, 90), addresses=addresses)
        for process in ("p1", "p2"):
            hosts.client(group, CLIENT, [group], process=process, properties={"messageModel": "BROADCASTING"})
        hosts.bounds(group)
    hosts.reader("in_cpp", language="CPP")
    hosts.reader("in_no_language", language=None)
    hosts.reader("removed", from_where="CONSUME_FROM_FIRST_OFFSET")
    hosts.reader("emptied", b"")
    hosts.reader("cut_without_bak", CUT)
    hosts.reader("cut_twice", CUT, CUT)
    hosts.reader("recovered", CUT, table("recovered", 90))
    hosts.reader("zeroed", ZEROS, table("zeroed", 90))
    hosts.reader("nested", NESTED)
    hosts.reader("nested_again", NESTED)
    hosts.reader("negative", table("negative", -12))
    hosts.reader("negative_of_many", table("negative_of_many", -12))
    hosts.bounds("negative_of_many", JAVA_LONG_MAX)
    hosts.reader("largest_again", table("largest_again", JAVA_LONG_MAX))
    hosts.bounds("largest_again")
    hosts.reader("silent_writer", table("silent_writer", 90), age_s=2 * 3600)
    hosts.reader("moved_to_clustering", table("moved_to_clustering", 90), model="CLUSTERING")
    hosts.reader("old_process", table("old_process", 90), client=OTHER_CLIENT)
    hosts.reader("old_spring", table("old_spring", 90), client=SPRING_CLIENT)
    hosts.reader("torn_process", CUT, CUT, client=OTHER_CLIENT)
    hosts.reader("torn_long_ago", CUT, CUT, client=PORT_CLIENT, age_s=8 * 24 * 3600)
    hosts.reader("torn_port", CUT, CUT, client=PORT_CLIENT)
    hosts.reader("port", table("port", 90), client=PORT_CLIENT)
    hosts.reader("port_removed", table("port_removed", 90))
    hosts.reader("queue_gone", table("queue_gone", 90, 7))
    hosts.reader("timed", from_where="CONSUME_FROM_TIMESTAMP")
    hosts.reader("broken_setting", from_where="CONSUME_FROM\nLAST_OFFSET")
    _add_settings(hosts)
    hosts.reader("past_64_bits", table("past_64_bits", JAVA_LONG_MAX, 0, 1), age_s=3600)
    hosts.bounds("past_64_bits")
    for group in (
        "removed",
        "emptied",
        "cut_twice",
        "recovered",
        "queue_gone",
        "timed",
        "nested",
        "negative",
    ):
        hosts.bounds(group)
    hosts.reader("broker_untold", table("broker_untold", 90))
    hosts.reader("tidied")
    hosts.reader("unreadable")
    hosts.failure(
        "offset_file", "permission denied", host=HOST, client_id=CLIENT, group="unreadable", moment=0
    )  # type: ignore[arg-type]  # moment is a number
    hosts.route("asleep", {"broker-a": 1})
    hosts.no_members("broker-a", "asleep")
    hosts.file("asleep", table("asleep", 90))
    hosts.members("broker-a", "elsewhere", ["10.0.0.77@DEFAULT"], ["well"], "BROADCASTING")
    return hosts


def day_with_proxy() -> Hosts:
    """Return a day on which one client of each group is connected to the broker, and the proxy knows whether another one is connected."""
    hosts = Hosts(DS, PROXIED_CLUSTER)
    for group in ("at_proxy", "gone", "proxy_failed", "grpc_at_proxy"):
        hosts.reader(group, table(group, 90))
        hosts.file(group, table(group, 90), client=OTHER_CLIENT)
        hosts.bounds(group)
    hosts.proxy_members(PROXY, "at_proxy", [OTHER_CLIENT], ["at_proxy"], messageModel="BROADCASTING")
    hosts.proxy_members(PROXY, "grpc_at_proxy", ["host-a@7@0@1k2j3h"], ["grpc_at_proxy"])
    hosts.no_members_at_proxy(PROXY, "gone")
    hosts.failure("proxy_consumer_connection", "connect failed", proxy=PROXY, group="proxy_failed")
    return hosts


def write_export_with_proxy(exports: Path) -> list[tuple[str, date]]:
    day_with_proxy().seal(exports)
    return [(PROXIED_CLUSTER, DS)]


def write_exports(exports: Path) -> list[tuple[str, date]]:
    """Write both exports; the earlier day has nothing but its export."""
    earlier_day().seal(exports)
    day().seal(exports)
    return [(CLUSTER, DS)]
