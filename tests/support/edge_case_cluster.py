"""A small cluster in which every group or topic is one edge case: sources that fail, differ or are unreadable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.exports.contract import KIND_BY_NAME
from tests.support.export_builder import ExportBuilder

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = "odd-test"
NOT_REACHED = "connect to 10.0.0.1:10911 failed"
LATER = "2026-11-16T12:30:00Z"
ABC = {"a": 2, "b": 2, "c": 2}


class OddCluster:
    """The export of the cluster, and its unreadable lines."""

    def __init__(self) -> None:
        self._export = ExportBuilder(CLUSTER)
        self.broken_lines: set[tuple[str, int]] = set()
        """File and line number of each unreadable record."""
        self.bombs: set[tuple[str, str]] = set()
        """File and text of the unreadable records that would fill the memory."""
        self.contradicting_lines: set[tuple[str, int]] = set()
        """File and line number of each record that contradicts another record of the same time."""
        self._name_servers_that_differ()
        self._routes_that_fail()
        self._brokers_that_differ()
        self._brokers_that_fail()
        self._members()
        self._broken_records()
        self._bombs()
        self._two_masters()
        self._records_that_repeat_each_other()
        self._records_that_contradict_each_other()
        self._odd_values()

    def seal(self, exports: Path) -> Path:
        """Write the export, and return its directory."""
        return self._export.seal(exports)

    def _name_servers_that_differ(self) -> None:
        by_nameserver = {
            "most-votes": ({"a": 2}, {"a": 2, "b": 2}, {"a": 2, "b": 2}),
            "votes-before-size": ({"a": 2}, {"a": 2}, {"a": 8}),
            "tie-to-the-larger": ({"a": 2}, {"a": 4}),
            "tie-to-the-first-address": ({"a": 2}, {"b": 2}),
            "one-knows-no-route": (None, {"a": 3}),
        }
        for topic, answers in by_nameserver.items():
            for number, queues in enumerate(answers, start=1):
                self._export.route(topic, queues, f"ns-{number}:9876")
            self._export.group(f"g-{topic}", [topic], ["c1"], "a", "b")

    def _routes_that_fail(self) -> None:
        export = self._export
        export.route("no-route", None)
        export.failure("nameserver_route", NOT_REACHED, nameserver="ns-1:9876", topic="half-failed")
        export.route("half-failed", None, "ns-2:9876")
        for nameserver in ("ns-1:9876", "ns-2:9876"):
            export.failure("nameserver_route", NOT_REACHED, nameserver=nameserver, topic="all-failed")
        export.route("write-only", {"a": 2}, perm=2)
        for topic in ("no-route", "half-failed", "all-failed", "write-only", "never-asked"):
            export.members("a", f"g-{topic}", ["c1"], [topic])
            export.client(f"g-{topic}", "c1", [topic], owns=[(topic, "a", 0), (topic, "a", 1)])
        # Each broker lists another member, so one of the two owners is not in the elected list. Queue 1 is dropped.
        topic, group = "lost-route", "g-lost-route"
        export.route(topic, None)
        for broker, client_id in (("a", "c1"), ("b", "c2")):
            export.members(broker, group, [client_id], [topic])
        export.client(group, "c1", [topic], owns=[(topic, "c", 0)], gives_up=[(topic, "c", 1)])
        export.client(group, "c2", [topic], owns=[(topic, "c", 2)])

    def _brokers_that_differ(self) -> None:
        members = {
            "most-brokers": {"a": ["c1", "c2"], "b": ["c1", "c2"], "c": ["c1"]},
            "tie-to-the-longer-list": {"a": ["c1"], "b": ["c1", "c2"]},
            "tie-to-the-first-broker": {"b": ["c2"], "a": ["c1"]},
            "one-broker-knows-nobody": {"a": ["c1"], "b": None},
        }
        for topic, by_broker in members.items():
            self._export.route(topic, ABC)
            for broker, client_ids in by_broker.items():
                if client_ids is None:
                    self._export.no_members(broker, f"g-{topic}")
                else:
                    self._export.members(broker, f"g-{topic}", client_ids, [topic])
            for client_id in ("c1", "c2"):
                self._export.client(f"g-{topic}", client_id, [topic])
        self._export.route("off-route", {"a": 2})
        self._export.members("a", "g-off-route", ["c1"], ["off-route"])
        for broker in ("b", "c"):
            self._export.members(broker, "g-off-route", ["c8", "c9"], ["off-route"])
        self._export.client("g-off-route", "c1", ["off-route"])
        # Only brokers outside the route were queried; an unnamed broker can be in the route.
        for topic in ("unasked-route", "unnamed-broker"):
            self._export.route(topic, {"b": 2})
            self._export.members("a", f"g-{topic}", ["c9"], [topic])
            self._export.client(f"g-{topic}", "c1", [topic], owns=[(topic, "b", 0), (topic, "b", 1)])
        self._export.members("(unknown)", "g-unnamed-broker", ["c1"], ["unnamed-broker"])

    def _brokers_that_fail(self) -> None:
        export = self._export
        for topic in ("route-failed", "half-offline", "all-offline"):
            export.route(topic, {"a": 2, "b": 2})
            export.progress("a", f"g-{topic}", (topic, "a", 0))
        for broker in ("a", "b"):
            export.failure("consumer_connection", NOT_REACHED, broker=broker, group="g-route-failed")
        export.members("c", "g-route-failed", ["c9"], ["another"])
        export.client("g-route-failed", "c1", ["route-failed"])
        export.failure("consumer_connection", NOT_REACHED, broker="a", group="g-half-offline")
        export.no_members("b", "g-half-offline")
        for broker in ("a", "b"):
            export.no_members(broker, "g-all-offline")

    def _members(self) -> None:
        export = self._export
        export.route("orders", {"a": 4, "b": 2})
        export.group("g-order", ["orders"], ["c\uffff", "c\U0001f600", "c2", "c10"], "a", "b")
        export.group("g-twins", ["orders"], ["c1", "c1", "c2"], "a", "b")
        export.group("g-broadcast", ["orders"], ["c1", "c2"], "a", "b", message_model="BROADCASTING")
        for broker in ("a", "b"):
            export.members(broker, "g-one-silent", ["c1", "c2"], ["orders"])
        export.client("g-one-silent", "c1", ["orders"], "AVG_BY_CIRCLE")
        export.failure("consumer_running_info", NOT_REACHED, group="g-one-silent", client_id="c2")
        for broker in ("a", "b"):
            export.members(broker, "g-one-elsewhere", ["c1", "c2"], ["orders"])
        export.client("g-one-elsewhere", "c1", ["orders"])
        export.client("g-one-elsewhere", "c2", ["payments"])
        # One name for two programs: one broadcasts and is connected to a broker only, the other has more members and brokers.
        export.members("a", "g-two-models", ["m1"], ["orders"], "BROADCASTING")
        export.client("g-two-models", "m1", ["orders"])
        export.members("b", "g-two-models", ["c1", "c2"], ["payments"])
        for client_id in ("c1", "c2"):
            export.client("g-two-models", client_id, ["payments"])
        # Brokers keep the subscription of a member that is gone.
        for group, model in (("g-broadcast-elsewhere", "BROADCASTING"), ("g-unlisted-reader", "CLUSTERING")):
            for broker in ("a", "b"):
                export.members(broker, group, ["c1", "c2"], ["orders", "payments"], model)
            for client_id, topic in (("c1", "payments"), ("c2", "payments"), ("c3", "orders")):
                export.client(group, client_id, [topic])

    def _broken_records(self) -> None:
        """Add broken records that would count as zero if treated as empty: no queues, no members, no owner."""
        self._broken("broker_topic_config", '{"topicConfigTable":{"orders":{"perm":6}}}', broker="a")
        self._broken("broker_subscription_group", '{"subscriptionGroupTable":[]}', broker="a")
        queues = '"queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":4}]'
        for nameserver in ("ns-1:9876", "ns-2:9876"):
            text = f'{{"brokerDatas":[],{queues}}}'
            self._broken("nameserver_route", text, nameserver=nameserver, topic="no-read-count")
        self._export.group("g-no-read-count", ["no-read-count"], ["c1"], "a")
        self._export.route("torn-members", {"a": 2, "b": 2})
        self._broken(
            "consumer_connection", '{"connectionSet":[{"clientId":"c1"', broker="a", group="g-torn-members"
        )
        self._broken("consume_stats", '{"offsetTable":', broker="a", group="g-torn-members")
        self._export.no_members("b", "g-torn-members")
        self._export.progress("b", "g-torn-members", ("torn-members", "b", 0))
        for broker in ("a", "b"):
            self._export.members(broker, "g-torn-client", ["c1", "c2"], ["orders"])
        self._export.client("g-torn-client", "c1", ["orders"])
        text = '{"properties":{"allocateMessageQueueStrategy":7},"mqTable":{}}'
        self._broken("consumer_running_info", text, group="g-torn-client", client_id="c2")

    def _bombs(self) -> None:
        """Add short or simple texts that expand to more than fits into memory."""
        queues = '"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":2147483647,"writeQueueNums":4}]'
        self._bomb("nameserver_route", f'{{"brokerDatas":[],{queues}}}', nameserver="ns-1:9876", topic="bomb")
        doubled = [f'"a{n}":[{{"$ref":"$.a{n - 1}"}},{{"$ref":"$.a{n - 1}"}}]' for n in range(1, 100)]
        self._bomb(
            "nameserver_route", '{"a0":[1,2],' + ",".join(doubled) + "}", nameserver="ns-2:9876", topic="bomb"
        )
        self._bomb("consume_stats", '{"offsetTable":' + "[" * 1_000, broker="a", group="g-bomb")
        self._export.group("g-bomb", ["bomb"], ["c1"], "a")

    def _bomb(self, kind: str, text: str, **asked: str) -> None:
        self._broken(kind, text, **asked)
        self.bombs.add((KIND_BY_NAME[kind].file_name, text))

    def _two_masters(self) -> None:
        """Add name servers with different masters of one broker, both of which were queried."""
        export = self._export
        export.route("two-masters", {"d": 2})
        for group in ("g-old-master-down", "g-two-masters"):
            export.client(group, "c1", ["two-masters"])
        export.failure("consumer_connection", NOT_REACHED, broker="d", group="g-old-master-down")
        export.members("d", "g-old-master-down", ["c1"], ["two-masters"], broker_addr="d-new:10911")
        # The old master still answers, but new members no longer register there.
        export.members("d", "g-two-masters", ["c1"], ["two-masters"])
        export.members("d", "g-two-masters", ["c1", "c2"], ["two-masters"], broker_addr="d-new:10911")
        export.client("g-two-masters", "c2", ["two-masters"])
        # Each master reaches one of the two members.
        for address, reached, other, offset in (("d:10911", "c1", "c2", 5), ("d-new:10911", "c2", "c1", 7)):
            asked = {"broker": "d", "broker_addr": address, "group": "g-two-masters", "topic": "two-masters"}
            queue = '{"brokerName": "d", "queueId": 0, "topic": "two-masters"}'
            payload = f'{{"consumerTable": {{"{reached}": {{{queue}: {offset}}}}}}}'
            export.answer("consumer_status", payload, client_id=reached, **asked)
            export.failure("consumer_status", NOT_REACHED, client_id=other, **asked)
        # Each broker forwards the request for all members to the same one.
        for broker, offset in (("a", 3), ("b", 3)):
            payload = f'{{"consumerTable": {{"c1": {{{queue}: {offset}}}}}}}'
            asked = {"broker": broker, "group": "g-broadcast", "topic": "two-masters"}
            export.answer("consumer_status", payload, **asked)

    def _records_that_repeat_each_other(self) -> None:
        export = self._export
        for _ in range(2):
            export.route("repeated", {"a": 2, "b": 2})
            export.group("g-repeated", ["repeated"], ["c1", "c2"], "a", "b")
            export.failure("consumer_connection", NOT_REACHED, broker="c", group="g-repeated")
        export.progress("a", "g-repeated", ("repeated", "a", 0))
        export.repeat_last("consume_stats")
        # A failure, an answer, and a later answer.
        export.route("asked-again", {"a": 2})
        export.failure("consumer_connection", NOT_REACHED, broker="a", group="g-asked-again")
        export.members("a", "g-asked-again", ["c1"], ["asked-again"])
        export.members("a", "g-asked-again", ["c1", "c2"], ["asked-again"], captured_at=LATER)
        for client_id in ("c1", "c2"):
            export.client("g-asked-again", client_id, ["asked-again"])

    def _records_that_contradict_each_other(self) -> None:
        export = self._export
        export.route("contradicted", {"a": 2, "b": 2})
        for client_ids in (["c1"], ["c1", "c2"]):
            line = export.members("a", "g-contradicted", client_ids, ["contradicted"])
            self.contradicting_lines.add(("consumer_connections.jsonl", line))
        export.members("b", "g-contradicted", ["c1"], ["contradicted"])
        export.client("g-contradicted", "c1", ["contradicted"])
        # For the first topic, another name server answers too.
        export.route("route-contradicted", {"a": 3}, "ns-2:9876")
        for topic in ("route-contradicted", "only-contradicted"):
            for queues in ({"a": 2}, {"a": 4}):
                line = export.route(topic, queues, "ns-1:9876")
                self.contradicting_lines.add(("nameserver_routes.jsonl", line))
            export.group(f"g-{topic}", [topic], ["c1"], "a")

    def _odd_values(self) -> None:
        """Add odd values, some of which are parsed as RocketMQ parses them."""
        export = self._export
        entry = {"brokerName": "a", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2}
        addresses = [{"brokerName": "a", "brokerAddrs": {"0": "a:10911"}}]
        for nameserver in ("ns-1:9876", "ns-2:9876"):
            for topic, entries in {
                "two-entries": [entry, entry],
                "negative-counts": [{**entry, "readQueueNums": -2, "writeQueueNums": -2}],
            }.items():
                payload = {"brokerDatas": addresses, "queueDatas": entries}
                export.answer("nameserver_route", payload, nameserver=nameserver, topic=topic)
        for topic in ("two-entries", "negative-counts"):
            export.group(f"g-{topic}", [topic], ["c1", "c2"], "a")
        export.route("torn-order", {"a": 2, "b": 2}, order="a:2;b")
        for group in ("g-case", "G-CASE"):
            export.group(group, ["orders"], [f"{group}-1", f"{group}-2"], "a", "b")
        export.members("a", "g-nowhere", ["c1"], ["orders"])
        export.members("b", "g-nowhere", ["c1"], ["orders"])
        held = [("orders", "a", 0), ("orders", "a", 99), ("orders", "nowhere", 0), ("nowhere", "a", 0)]
        export.client("g-nowhere", "c1", ["orders"], owns=held)
        for broker in ("a", "b"):
            export.members(broker, "g-listed-twice", ["c1"], ["orders"])
        queue = '{"topic":"orders","brokerName":"a","queueId":0}'
        info = (
            '{"properties":{},"mqTable":{%s:{"droped":false},%s:{"droped":false}},'
            '"subscriptionSet":[{"topic":"orders","subString":"*"},{"topic":"orders","subString":"*"}]}'
        )
        export.answer("consumer_running_info", info % (queue, queue), group="g-listed-twice", client_id="c1")

    def _broken(self, kind: str, text: str, **asked: str) -> None:
        line_number = self._export.answer(kind, text, **asked)
        self.broken_lines.add((KIND_BY_NAME[kind].file_name, line_number))
