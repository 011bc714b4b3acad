"""A cluster that answers the collector's queries from memory, for behaviour that a real cluster cannot produce on demand."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rebalance_ledger.collectors.admin import Answer, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from rebalance_ledger.collectors.admin import Credentials

BROKER_ERROR = "org.apache.rocketmq.client.exception.MQBrokerException"
CLIENT_ERROR = "org.apache.rocketmq.client.exception.MQClientException"
NO_CONNECTION = "org.apache.rocketmq.remoting.exception.RemotingConnectException"
NO_ANSWER_IN_TIME = "org.apache.rocketmq.remoting.exception.RemotingTimeoutException"


def success(document: Any) -> Answer:
    return Answer(payload=json.dumps(document).encode(), response_code=0)


def topic_list(topics: list[str]) -> Answer:
    return success({"topicList": topics})


def topic_configs(topics: list[str]) -> Answer:
    return success({"topicConfigTable": {topic: {"topicName": topic} for topic in topics}})


def group_configs(groups: list[str]) -> Answer:
    return success({"subscriptionGroupTable": {group: {"groupName": group} for group in groups}})


def connections(client_ids: list[str], topics: list[str], **more: Any) -> Answer:
    """Return a connection list; `hosts` gives the address of each connection."""
    hosts = more.pop("hosts", ["10.1.0.1"] * len(client_ids))
    return success(
        {
            "connectionSet": [
                {"clientId": client_id, "clientAddr": f"{host}:{50000 + number}", "language": "JAVA"}
                for number, (client_id, host) in enumerate(zip(client_ids, hosts, strict=True))
            ],
            "messageModel": "CLUSTERING",
            "subscriptionTable": {topic: {"topic": topic} for topic in topics},
            **more,
        }
    )


def runtime_info(release: str) -> Answer:
    return success({"table": {"brokerVersionDesc": f"V{release.replace('.', '_')}"}})


def refused(code: int, text: str, kind: str = BROKER_ERROR) -> Answer:
    return Answer(error_type=kind, error_message=f"CODE: {code}  DESC: {text}", response_code=code)


def silence(kind: str = NO_CONNECTION) -> Answer:
    return Answer(error_type=kind, error_message="nobody there")


@dataclass
class SimulatedCluster:
    """The state of its servers, which tests change as needed.

    Attributes:
        topics: Topics by name server.
        brokers: By name server: (name, id, address) of each broker.
        groups: Groups by broker address.
        members: By group: client id -> addresses of the brokers that list it.
        subscribed: The topics of every group that has members.
        release: The release of each broker.
        instead: Called first: returns an answer that replaces the usual one, or None.
        calls: Every query, in order of arrival.
        most_at_once: The maximum number of concurrent calls.
    """

    topics: dict[str, list[str]]
    brokers: dict[str, list[tuple[str, str, str]]]
    groups: dict[str, list[str]]
    members: dict[str, dict[str, list[str]]]
    subscribed: list[str] = field(default_factory=list)
    release: str = "5.3.3"
    instead: Callable[[Question], Answer | None] = lambda _: None
    calls: list[Question] = field(default_factory=list)
    called_at: list[float] = field(default_factory=list)
    most_at_once: int = 0
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, question: Question, _timeout_ms: int) -> Answer:
        with self._lock:
            self.calls.append(question)
            self.called_at.append(time.monotonic())
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            return self.instead(question) or self._usual(question)
        finally:
            with self._lock:
                self._under_way -= 1

    def calls_of(self, kind: str, **asked: str) -> list[Question]:
        return [call for call in self.calls if call.kind == kind and asked.items() <= call.fields.items()]

    def _usual(self, asked: Question) -> Answer:
        return self._of_name_server(asked) if asked.nameserver else self._of_broker(asked)

    def _of_name_server(self, asked: Question) -> Answer:
        match asked.kind:
            case "nameserver_topic_list":
                return topic_list(self.topics[asked.nameserver])
            case "nameserver_cluster_info":
                table: dict[str, Any] = {}
                for name, broker_id, address in self.brokers[asked.nameserver]:
                    broker = table.setdefault(name, {"brokerName": name, "brokerAddrs": {}})
                    broker["brokerAddrs"][broker_id] = address
                return success({"brokerAddrTable": table})
            case "nameserver_route":
                if asked.topic in self.topics[asked.nameserver]:
                    return success(f"route of {asked.topic}")
                return refused(
                    17, f"No topic route info in name server for the topic: {asked.topic}", CLIENT_ERROR
                )
            case _:
                return success(asked.kind)

    def _of_broker(self, asked: Question) -> Answer:
        here = asked.broker_addr
        match asked.kind:
            case "broker_runtime_info":
                return runtime_info(self.release)
            case "broker_topic_config":
                return topic_configs(sorted({topic for known in self.topics.values() for topic in known}))
            case "broker_subscription_group":
                return group_configs(self.groups[here])
            case "consumer_connection":
                seen = [
                    client for client, where in self.members.get(asked.group, {}).items() if here in where
                ]
                return connections(seen, self.subscribed) if seen else refused(206, "not online")
            case "proxy_consumer_connection":
                return refused(206, "not online")
            case "consumer_running_info":
                return success(f"what {asked.client_id} holds")
            case _:
                return success(asked.kind)


def small_cluster() -> SimulatedCluster:
    """Return a cluster of two name servers, two masters, three topics, and two groups, of which one has members."""
    brokers = [("broker-a", "0", "10.0.0.1:10911"), ("broker-b", "0", "10.0.0.2:10911")]
    everywhere = ["10.0.0.1:10911", "10.0.0.2:10911"]
    return SimulatedCluster(
        topics={"ns-1:9876": ["orders", "payments", "stock"], "ns-2:9876": ["orders", "payments", "stock"]},
        brokers={"ns-1:9876": brokers, "ns-2:9876": brokers},
        groups={address: ["biller", "idler"] for address in everywhere},
        members={"biller": {"10.1.0.1@one": everywhere, "10.1.0.2@two": everywhere}},
    )


class Lines:
    """Collects the lines instead of writing them: (kind, request parameters, payload or None, error type)."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any], str | None, str | None, str | None]] = []
        self.events: list[str] = []
        self._lock = threading.Lock()

    def payload(self, kind: str, _captured_at: datetime, payload: str, **asked: str | int) -> None:
        with self._lock:
            self.all.append((kind, asked, payload, None, None))

    def error(
        self, kind: str, _captured_at: datetime, error_type: str, message: str, **asked: str | int
    ) -> None:
        with self._lock:
            self.all.append((kind, asked, None, error_type, message))

    def event(self, _at: datetime, text: str) -> None:
        with self._lock:
            self.events.append(text)

    def of(self, kind: str, **asked: str) -> list[tuple[str | None, str | None, str | None]]:
        """Return (payload, error type, error message) of the lines of a kind with these request parameters."""
        return [line[2:] for line in self.all if line[0] == kind and asked.items() <= line[1].items()]

    def counts(self) -> Counter[str]:
        return Counter(line[0] for line in self.all)


class Steps:
    """A progress listener that counts: part -> (completed steps, total steps)."""

    def __init__(self) -> None:
        self.parts: dict[str, list[int]] = {}
        self._now: list[int] = []
        self._lock = threading.Lock()

    def begin(self, name: str, total: int) -> None:
        self._now = self.parts[name] = [0, total]

    def advance(self) -> None:
        with self._lock:
            self._now[0] += 1


class AdminClients:
    """A substitute for the admin client, which records its arguments and provides a simulated cluster."""

    def __init__(self) -> None:
        self.cluster = small_cluster()
        self.started: list[tuple[list[str], Credentials]] = []

    @contextmanager
    def __call__(
        self, _jars: Path, _java: str, nameservers: list[str], *, credentials: Credentials, **_: Any
    ) -> Iterator[SimulatedCluster]:
        self.started.append((nameservers, credentials))
        yield self.cluster
