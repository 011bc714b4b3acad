"""A real cluster, and its groups of real consumers.

Belongs here: the operations that tests run on a cluster. Does not belong here: starting processes and JVMs (see the
modules beside).
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import psutil

from setup.steps import SetUpError

from .java_program import GRPC_CLIENT, JavaProgram
from .processes import FreePorts, Processes, Started, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

# Timeout of a server or a client on a busy machine.
TIMEOUT_S = 180.0

# The interval of client tasks that run two or three times a minute by default.
_INTERVAL_MS = 2_000

# A broker deletes files if its disk usage exceeds this, and rejects messages slightly above it.
_DISK_USED_MAX_PERCENT = 85
_DISK_FREE_MIN_BYTES = 512 * 2**20
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # a folder with a random name is created in it

_MASTER_HEAP_MIB = 384
_PROXY_HEAP_MIB = 256
_NAME_SERVER_HEAP_MIB = 128
_HOST_HEAP_MIB = 128
_TOOL_HEAP_MIB = 192


class Queue(NamedTuple):
    """A message queue, as RocketMQ identifies it."""

    topic: str
    broker_name: str
    queue_id: int


class Consumed(NamedTuple):
    """The offsets that a listener received from one queue."""

    first: int
    last: int


@dataclass(frozen=True)
class Broker:
    """A master to start.

    Attributes:
        name: Its broker name.
        name_servers: The indexes of the name servers that it registers with; None for all.
        properties: Lines of its configuration file, in addition to those for a small broker on loopback.
        version: Its release; None for that of the cluster.
        has_proxy: Whether a proxy in LOCAL mode runs in the same process, as with `mqbroker --enable-proxy`.
        can_pop: Whether clients can pop, as by default. It requires the broker's timers, which the other tests do not need.
    """

    name: str
    name_servers: tuple[int, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    has_proxy: bool = False
    can_pop: bool = False


@dataclass(frozen=True)
class Proxy:
    """A proxy that is running.

    Attributes:
        name: Its name; in LOCAL mode the name of its broker.
        remoting_address: The address for remoting clients, which use it like a name server.
        grpc_address: The address for gRPC clients.
    """

    name: str
    remoting_address: str
    grpc_address: str


@dataclass(frozen=True)
class GrpcMember:
    """One gRPC consumer.

    Attributes:
        key: Unique within its host.
        client_id: The id that the client library generated.
        host: The JVM that it runs in.
    """

    key: str
    client_id: str
    host: str


@dataclass(frozen=True)
class Member:
    """One consumer of a group.

    Attributes:
        key: Distinguishes it from members with the same client id.
        client_id: Its client id: `clientIP@instanceName`.
        host: The JVM that it runs in.
        topics: Its subscriptions: topic to expression.
        strategy: Its configured allocation strategy, as in the ledger's settings file.
        name_servers: The indexes of the name servers that it may query.
        is_broadcasting: Whether it consumes every queue itself.
        is_orderly: Whether it locks each of its queues at the broker before consuming it.
    """

    key: str
    client_id: str
    host: str
    topics: Mapping[str, str]
    strategy: Mapping[str, Any]
    name_servers: tuple[int, ...]
    is_broadcasting: bool
    is_orderly: bool


@dataclass
class Group:
    """A consumer group and those of its members that are running."""

    name: str
    members: list[Member] = field(default_factory=list)


class RealCluster:
    """Name servers and brokers of one release, as a context manager that ends all of their processes on exit.

    Args:
        version: `4.9.7`, `5.3.3` or `5.5.0`.
        directory: Where everything is written; must be missing or empty.
        brokers: Masters, as names or as `Broker` objects.
        nameservers: The number of name servers.
        name: The name of the cluster.
        account: Access key and secret key with which clients, the operator and `mqadmin` sign requests.

    Raises:
        SetUpError: There is no JDK, or the jars cannot be fetched.
    """

    def __init__(
        self,
        version: str,
        directory: Path,
        *,
        brokers: Sequence[str | Broker] = ("broker-a", "broker-b"),
        nameservers: int = 1,
        name: str = "real",
        account: tuple[str, str] | None = None,
    ) -> None:
        self._account = account
        self.version = version
        self.name = name
        self.directory = directory
        self.groups: dict[str, Group] = {}
        self._programs = {version: JavaProgram(version)}
        self._planned = {
            broker.name: broker
            for broker in (Broker(given) if isinstance(given, str) else given for given in brokers)
        }
        self._ports = FreePorts()
        self.name_servers = [f"127.0.0.1:{self._ports.block(1)}" for _ in range(nameservers)]
        # A broker also listens on the two ports below its own and on the one above it.
        self.broker_addresses = {broker: f"127.0.0.1:{self._ports.block(4) + 2}" for broker in self._planned}
        self.proxies: dict[str, Proxy] = {}
        self._servers: dict[str, Started] = {}
        self._hosts: dict[str, _Host] = {}
        self._member_count = 0
        # By key: the group and the broker of each gRPC consumer that a broker lists, as it does in LOCAL mode.
        self._listed_grpc: dict[str, tuple[str, str, GrpcMember]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stores = stack.enter_context(_folder_for_stores(self.directory))
            self._processes = Processes()
            stack.callback(self._processes.close)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def create_topic(
        self,
        topic: str,
        queues: int = 4,
        *,
        brokers: Sequence[str] | None = None,
        write_queues: int | None = None,
        perm: int = 6,
    ) -> None:
        """Create or change a topic, and wait until every name server of its brokers has the new route.

        Args:
            topic: Its name.
            queues: The number of read queues per broker.
            brokers: The brokers to create it on; None for all that are alive.
            write_queues: The number of write queues, if it differs.
            perm: RocketMQ's bits: 4 read, 2 write.
        """
        chosen = self.alive_brokers if brokers is None else list(brokers)
        for broker in chosen:
            self._operate(
                "create_topic",
                name_server=self._known_to(broker)[0],
                broker=self.broker_addresses[broker],
                topic=topic,
                read_queues=queues,
                write_queues=queues if write_queues is None else write_queues,
                perm=perm,
            )
        readable = queues if perm & 4 else None

        def missing() -> str | None:
            for broker in chosen:
                for name_server in self._known_to(broker):
                    seen = self.route(topic, name_server).get(broker)
                    if seen != readable:
                        return f"{name_server} sees {seen} queues of {topic} on {broker}"
            return None

        wait_until(missing, TIMEOUT_S)

    def delete_topic(self, topic: str, brokers: Sequence[str] | None = None) -> None:
        """Delete a topic on brokers (None: all alive), and from the routes of every name server."""
        for broker in self.alive_brokers if brokers is None else brokers:
            name_server = self._known_to(broker)[0]
            self._operate(
                "delete_topic", name_server=name_server, broker=self.broker_addresses[broker], topic=topic
            )
        self.delete_route(topic)

    def delete_route(self, topic: str, name_servers: Sequence[int] | None = None) -> None:
        """Delete the route of a topic from name servers (None: all).

        A broker registers it again when the topic is created again there. From 5.0 on it also does so by itself within seconds,
        unless it has `forceRegister=false`.
        """
        for number in range(len(self.name_servers)) if name_servers is None else name_servers:
            self._operate("delete_route", name_server=self.name_servers[number], topic=topic)

    def route(self, topic: str, name_server: str) -> dict[str, int]:
        """Return the number of read queues of a topic on each broker, according to one name server."""
        try:
            answer: dict[str, int] = self._operate("queues", name_server=name_server, topic=topic)
        except NoAnswerError as error:
            if "No topic route info" in str(error) or "CODE: 17" in str(error):
                return {}
            raise
        return answer

    def wait_for_route(self, topic: str, name_server: int, queues: Mapping[str, int]) -> None:
        """Wait until a name server returns these numbers of queues of a topic, by broker."""

        def missing() -> str | None:
            seen = self.route(topic, self.name_servers[name_server])
            return None if seen == queues else f"name server {name_server} says {seen} of {topic}"

        wait_until(missing, TIMEOUT_S)

    def start_broker(self, broker: Broker) -> None:
        """Start another broker, and wait until each of its name servers lists it."""
        self._planned[broker.name] = broker
        self.broker_addresses[broker.name] = f"127.0.0.1:{self._ports.block(4) + 2}"
        self._start_broker(broker)
        self._wait_for_brokers([broker.name])

    def plant_ghost(self, group: Group, client_id: str, broker: str) -> None:
        """Register a member without a process at one broker only, as a dead connection would appear.

        It disappears after two minutes without another heartbeat, or when the cluster ends. Until then the clients receive
        different member lists, so their group never becomes stable.
        """
        self._operate(
            "heartbeat",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            group=group.name,
            client_id=client_id,
            groups=[group.name],
            topics=sorted({topic for member in group.members for topic in member.topics}),
        )

    def create_group(self, group: str, *, is_orderly: bool = False) -> None:
        """Create or change a subscription group on every broker.

        Args:
            group: Its name.
            is_orderly: Whether it consumes in order, which gRPC clients cannot configure themselves.
        """
        for broker in self.alive_brokers:
            self._operate(
                "create_group",
                name_server=self._known_to(broker)[0],
                broker=self.broker_addresses[broker],
                group=group,
                orderly=is_orderly,
            )

    def register(self, broker: str, client_id: str, groups: Sequence[str], topics: Sequence[str]) -> None:
        """Send a client's heartbeat to one broker, over a connection of its own.

        The broker lists the client for two minutes. No process answers for it.
        """
        self._operate(
            "register",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            connection=client_id,
            client_id=client_id,
            groups=list(groups),
            topics=list(topics),
        )

    def configure_broker(self, broker: str, **properties: str) -> None:
        """Change settings of a running broker."""
        self._operate(
            "configure_broker",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            properties=properties,
        )

    def query_assignments(
        self, broker: str, questions: Sequence[Mapping[str, str]]
    ) -> list[list[tuple[Queue, str] | None] | None]:
        """Return a broker's answers to QUERY_ASSIGNMENT.

        Args:
            broker: The broker to query.
            questions: `topic`, `group`, `client_id`, `strategy` and `message_model` of each request.

        Returns:
            For each request the queues, each with the request mode, or None for an answer without any list.
        """
        answers = self._operate(
            "assignments",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            questions=list(questions),
        )
        return [
            answer and [entry and (Queue(entry[0], entry[1], entry[2]), entry[3]) for entry in answer]
            for answer in answers
        ]

    def start_proxy(self, name: str = "proxy") -> Proxy:
        """Start a proxy in CLUSTER mode, and wait until clients can connect to it."""
        folder = self.directory / name
        proxy = self._plan_proxy(name)
        words = self._programs[self.version].proxy(
            "-pc", str(self._proxy_file(proxy, "CLUSTER")), heap_mib=_PROXY_HEAP_MIB, folder=folder
        )
        self._servers[name] = self._processes.start(words, folder)
        self._wait_for_proxy(proxy)
        return proxy

    def start_grpc_consumer(
        self,
        group: str,
        topics: Sequence[str],
        proxy: Proxy,
        *,
        is_simple: bool = False,
        host: str = "grpc-host",
    ) -> GrpcMember:
        """Start a consumer of the gRPC client library.

        Args:
            group: Its consumer group.
            topics: The topics that it subscribes to.
            proxy: The proxy that it connects to.
            is_simple: Whether it is a simple consumer, which receives and acknowledges explicitly, instead of a push consumer.
            host: The JVM that it runs in, which is started at its first use.
        """
        self._member_count += 1
        key = f"{self._member_count}"
        client_id = self._grpc_host(host).send(
            "start_consumer",
            key=key,
            group=group,
            topics=list(topics),
            endpoints=proxy.grpc_address,
            is_simple=is_simple,
        )
        member = GrpcMember(key, client_id, host)
        if proxy.name in self._planned:
            self._listed_grpc[key] = (group, proxy.name, member)
        return member

    def stop_grpc_consumer(self, member: GrpcMember) -> None:
        """Shut a gRPC consumer down cleanly."""
        self._hosts[member.host].send("stop_consumer", key=member.key)
        self._listed_grpc.pop(member.key, None)

    def hold_grpc_consumer(self, member: GrpcMember, *, is_held: bool = True) -> None:
        """Make a gRPC consumer receive messages without acknowledging them, or acknowledge them again."""
        self._hosts[member.host].send("hold", key=member.key, is_held=is_held)

    def consumed_by_grpc(self, member: GrpcMember) -> dict[str, int]:
        """Return the number of messages of each topic that a gRPC consumer has acknowledged."""
        counts: dict[str, int] = self._hosts[member.host].send("consumed", key=member.key)
        return counts

    def unused_port(self) -> int:
        """Return a loopback port on which nothing listened when it was probed, and which this cluster never uses."""
        return self._ports.block(1)

    def set_request_mode(
        self,
        topic: str,
        group: str,
        mode: str,
        pop_share_queues: int = 0,
        brokers: Sequence[str] | None = None,
    ) -> None:
        """Set `PULL` or `POP` for a group on brokers (None: all); it applies to members that let brokers rebalance."""
        for broker in self.alive_brokers if brokers is None else brokers:
            self._operate(
                "request_mode",
                name_server=self._known_to(broker)[0],
                broker=self.broker_addresses[broker],
                topic=topic,
                group=group,
                mode=mode,
                pop_share_queues=pop_share_queues,
            )

    def send(self, topic: str, count: int) -> None:
        """Send a number of small messages."""
        self._operate("send", name_server=self.name_servers[0], topic=topic, count=count)

    def start_consumers(  # noqa: PLR0913  # each is a setting of a consumer
        self,
        group: str,
        topics: Sequence[str] | Mapping[str, str],
        client_ids: Sequence[str],
        strategy: str | Mapping[str, Any] = "AVG",
        *,
        host: str = "host",
        version: str | None = None,
        name_servers: Sequence[int] | None = None,
        is_broadcasting: bool = False,
        is_orderly: bool = False,
        is_rebalanced_by_server: bool = False,
        consume_from: str = "CONSUME_FROM_FIRST_OFFSET",
        persist_interval_ms: int = 5_000,
        disk: str | None = None,
        proxy: Proxy | None = None,
    ) -> Group:
        """Start push consumers; a second call with the same group adds members to it.

        Args:
            group: The consumer group.
            topics: Topics, with their expressions if they are not `*`.
            client_ids: `clientIP@instanceName` of each consumer to start. A second one with the same id needs another host.
            strategy: A name, or an entry of `groups` in the ledger's settings file.
            host: The JVM that they run in, which is started at its first use.
            version: The release of a host that is started, such as `OLD_CLIENT`; None for that of the brokers.
            name_servers: The indexes of the name servers that they may query; None for all.
            is_broadcasting: Whether each consumes every queue.
            is_orderly: Whether they lock their queues.
            is_rebalanced_by_server: Whether they request their queues from a broker (from 5.0).
            consume_from: RocketMQ's `ConsumeFromWhere`: the position at which a queue without a stored offset starts.
            persist_interval_ms: How often they write their offsets. They always write them ten seconds after the start first.
            disk: The host whose disk stores the offset files of a host that is started; None for a disk of its own.
            proxy: The proxy that they connect to instead of the name servers. No broker lists them then, so do not call
                `wait_until_stable` for such a group.

        Returns:
            The group, with all its members.

        Raises:
            NoAnswerError: A consumer does not start; the message comes from its JVM.
        """
        running = self.groups.setdefault(group, Group(group))
        numbers = tuple(range(len(self.name_servers)) if name_servers is None else name_servers)
        wanted = {"strategy": strategy} if isinstance(strategy, str) else strategy
        subscribed = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
        for client_id in client_ids:
            client_ip, instance = client_id.split("@", 1)
            self._member_count += 1
            member = Member(
                key=f"{self._member_count}",
                client_id=client_id,
                host=host,
                topics=subscribed,
                strategy=wanted,
                name_servers=numbers,
                is_broadcasting=is_broadcasting,
                is_orderly=is_orderly,
            )
            answered = self._host(host, version, disk).send(
                "start_consumer",
                key=member.key,
                group=group,
                client_ip=client_ip,
                instance=instance,
                name_servers=";".join(self.name_servers[number] for number in numbers)
                if proxy is None
                else proxy.remoting_address,
                topics=member.topics,
                strategy=wanted,
                broadcasting=is_broadcasting,
                orderly=is_orderly,
                server_rebalance=is_rebalanced_by_server,
                consume_from=consume_from,
                persist_interval_ms=persist_interval_ms,
                interval_ms=_INTERVAL_MS,
            )
            assert answered == client_id
            running.members.append(member)
        return running

    def stop_consumers(self, group: Group, client_ids: Sequence[str]) -> None:
        """Shut members down cleanly, after which the others take over their queues."""
        for member in [member for member in group.members if member.client_id in client_ids]:
            self._hosts[member.host].send("stop_consumer", key=member.key)
            group.members.remove(member)

    def wait_until_stable(self, *groups: Group, seconds: float = TIMEOUT_S) -> None:
        """Wait until another rebalance would change nothing.

        All of these must be true:

        - Every broker lists exactly the members that send heartbeats to it, and the gRPC clients of its own proxy.
        - Every member sees the retry topic on each of those brokers.
        - All brokers give the same answer to each member that they rebalance.
        - Each queue that its owner must lock has an owner. A lock lasts up to 20 seconds after its queue was reassigned.
        - Two rounds of route update, heartbeat and rebalance end with the same queues. This method triggers them, in addition
          to those that the clients run themselves.

        Args:
            groups: The groups to wait for; all if there are none.
            seconds: The timeout.
        """
        waited = list(groups or self.groups.values())
        last: dict[str, Any] = {}

        def missing() -> str | None:
            nonlocal last
            seen = self._look([member for group in waited for member in group.members], settle=True)
            problems = [problem for group in waited for problem in self._problems(group, seen)]
            changed = [
                f"{member.client_id} of {group.name} ({', '.join(_differences(seen[member.key], last.get(member.key)))})"
                for group in waited
                for member in group.members
                if seen[member.key] != last.get(member.key)
            ]
            last = seen
            if problems:
                return f"{len(problems)} times, {problems[0]}"
            return f"{len(changed)} members still change, {changed[0]}" if changed else None

        wait_until(missing, seconds)

    def owned(self, group: Group) -> list[tuple[Member, frozenset[Queue]]]:
        """Return the queues in the process queue table of each member, as its own process reports them."""
        seen = self._look(group.members, settle=False)
        return [
            (member, frozenset(Queue(*queue) for queue in seen[member.key]["owned"]))
            for member in group.members
        ]

    def popped(self, group: Group) -> dict[str, list[str]]:
        """Return the sorted client ids that pop from each broker."""
        seen = self._look(group.members, settle=False)
        poppers: dict[str, list[str]] = {}
        for member in group.members:
            for _, broker, _ in seen[member.key]["popped"]:
                poppers.setdefault(broker, []).append(member.client_id)
        return {broker: sorted(ids) for broker, ids in sorted(poppers.items())}

    def owners(self, group: Group) -> dict[Queue, list[str]]:
        """Return the sorted client ids that own each queue; queues without an owner are missing."""
        holders: dict[Queue, list[str]] = {}
        for member, queues in self.owned(group):
            for queue in queues:
                holders.setdefault(queue, []).append(member.client_id)
        return {queue: sorted(ids) for queue, ids in sorted(holders.items())}

    def running_info(self, member: Member) -> str:
        """Return a member's `consumerRunningInfo()` as text, as its own process reports it."""
        text: str = self._hosts[member.host].send("running_info", key=member.key)
        return text

    def consumed(self, member: Member) -> dict[Queue, Consumed]:
        """Return the offsets that a member's listener has received from each queue since its start, as its process reports them."""
        ranges = self._hosts[member.host].send("consumed", key=member.key)
        return {Queue(*queue): Consumed(first, last) for *queue, first, last in ranges}

    def persist_offsets(self, member: Member) -> None:
        """Make a member write its offsets now, in addition to its own schedule."""
        self._hosts[member.host].send("persist", key=member.key)

    def members_known_to(self, broker: str, group: str) -> list[str]:
        """Return the client ids of a group as a broker returns them to clients: sorted, one per connection."""
        ids: list[str] = self._operate(
            "members",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            group=group,
        )
        return ids

    @property
    def alive_brokers(self) -> list[str]:
        """The names of the brokers whose processes run or are frozen."""
        return [broker for broker in self._planned if self._servers[broker].is_alive()]

    def kill_broker(self, broker: str) -> None:
        """Kill a broker as a power failure would, and wait until no name server lists it."""
        self._servers[broker].kill()

        def missing() -> str | None:
            for name_server in self.name_servers:
                if broker in self._operate("brokers", name_server=name_server):
                    return f"{name_server} still lists {broker}"
            return None

        wait_until(missing, TIMEOUT_S)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Freeze brokers or hosts, so that they accept connections but do not answer. Query only the others inside the context."""
        chosen = [
            self._servers[name] if name in self._servers else self._hosts[name].started for name in names
        ]
        for started in chosen:
            started.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for started in chosen:
                started.process.send_signal(signal.SIGCONT)

    def kill_host(self, host: str) -> None:
        """Kill a JVM of consumers as a power failure would, and remove its members from their groups."""
        self._hosts.pop(host).started.kill()
        for group in self.groups.values():
            group.members[:] = [member for member in group.members if member.host != host]

    def fill_disk(self, host: str, file_size_bytes: int) -> None:
        """Limit the size of a host's files: a write beyond the limit fails part-way, as on a full disk.

        The operating system enforces it (RLIMIT_FSIZE), so this needs no privileges and no mount, and truncates at that byte.
        """
        _, hard = psutil.Process(self._hosts[host].started.pid).rlimit(psutil.RLIMIT_FSIZE)
        psutil.Process(self._hosts[host].started.pid).rlimit(psutil.RLIMIT_FSIZE, (file_size_bytes, hard))

    def mqadmin(self, *words: str, seconds: float = TIMEOUT_S) -> str:
        """Return the output of `mqadmin`, run in a JVM of its own with the folder `mqadmin` of the cluster as its home."""
        folder = self.directory / "mqadmin"
        folder.mkdir(exist_ok=True)
        if self._account is not None:
            (folder / "conf").mkdir(exist_ok=True)
            keys = "accessKey: {}\nsecretKey: {}\n".format(*self._account)
            (folder / "conf" / "tools.yml").write_text(keys, encoding="utf-8")
        answer = subprocess.run(
            self._programs[self.version].other(
                "org.apache.rocketmq.tools.command.MQAdminStartup",
                *words,
                heap_mib=_TOOL_HEAP_MIB,
                folder=folder,
            ),
            cwd=folder,
            timeout=seconds,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        return answer.stdout

    def offsets_folder(self, host: str) -> Path:
        """Return the folder in which the broadcasting consumers of a host store their offset files."""
        return self.directory / host / "offsets"

    @property
    def processes(self) -> Processes:
        """The processes of this cluster, all of which end with it; tests add clients of other kinds."""
        return self._processes

    def process_ids(self) -> dict[str, int]:
        """Return the process id of each server and each host of consumers, by name."""
        hosts = {name: host.started for name, host in self._hosts.items()}
        return {name: started.pid for name, started in {**self._servers, **hosts}.items()}

    def _start(self) -> None:
        program = self._programs[self.version]
        for number, address in enumerate(self.name_servers):
            folder = self.directory / f"nameserver-{number}"
            conf = _properties(
                folder / "namesrv.properties",
                {
                    "listenPort": address.rpartition(":")[2],
                    "bindAddress": "127.0.0.1",
                    "kvConfigPath": str(folder / "kv.json"),
                },
            )
            words = program.server(
                "org.apache.rocketmq.namesrv.NamesrvStartup",
                "-c",
                str(conf),
                heap_mib=_NAME_SERVER_HEAP_MIB,
                folder=folder,
            )
            self._servers[f"nameserver-{number}"] = self._processes.start(words, folder)
        for number, address in enumerate(self.name_servers):
            self._wait_for_port(f"nameserver-{number}", address)
        for broker in self._planned.values():
            self._start_broker(broker)
        self._wait_for_brokers(list(self._planned))

    def _wait_for_brokers(self, names: Sequence[str]) -> None:
        for name in names:
            self._wait_for_port(name, self.broker_addresses[name])
            if name in self.proxies:
                self._wait_for_proxy(self.proxies[name])

        def missing() -> str | None:
            for name in names:
                for name_server in self._known_to(name):
                    if name not in self._operate("brokers", name_server=name_server):
                        return f"{name_server} does not list {name}"
            return None

        wait_until(missing, TIMEOUT_S)

    def _start_broker(self, broker: Broker) -> None:
        folder = self.directory / broker.name
        store = self._stores / broker.name
        conf = _properties(
            folder / "broker.properties",
            {
                "brokerClusterName": self.name,
                "brokerName": broker.name,
                "brokerId": "0",
                "brokerIP1": "127.0.0.1",
                "brokerIP2": "127.0.0.1",
                "bindAddress": "127.0.0.1",
                "listenPort": self.broker_addresses[broker.name].rpartition(":")[2],
                "haListenPort": str(int(self.broker_addresses[broker.name].rpartition(":")[2]) + 1),
                "namesrvAddr": ";".join(self._known_to(broker.name)),
                # Clients before 5.0 connect to every broker that has the topic from which others are created.
                "autoCreateTopicEnable": "false",
                "registerNameServerPeriod": "10000",
                "loadBalancePollNameServerInterval": str(_INTERVAL_MS),
                "storePathRootDir": str(store),
                "storePathCommitLog": str(store / "commitlog"),
                "mappedFileSizeCommitLog": "16777216",
                "mappedFileSizeConsumeQueue": "300000",
                "maxHashSlotNum": "500",
                "maxIndexNum": "1000",
                "diskMaxUsedSpaceRatio": "99",
                "timerWheelEnable": str(broker.can_pop).lower(),
                # Do not reject messages because the machine is busy.
                "osPageCacheBusyTimeOutMills": "60000",
                "waitTimeMillsInSendQueue": "60000",
                **broker.properties,
            },
        )
        program = self._program(broker.version or self.version)
        if broker.has_proxy:
            proxy = self._plan_proxy(broker.name)
            words = program.proxy(
                *("-pm", "LOCAL", "-bc", str(conf), "-pc", str(self._proxy_file(proxy, "LOCAL"))),
                heap_mib=_MASTER_HEAP_MIB,
                folder=folder,
            )
        else:
            words = program.server(
                "org.apache.rocketmq.broker.BrokerStartup",
                "-c",
                str(conf),
                heap_mib=_MASTER_HEAP_MIB,
                folder=folder,
            )
        self._servers[broker.name] = self._processes.start(words, folder)

    def _program(self, version: str) -> JavaProgram:
        if version not in self._programs:
            self._programs[version] = JavaProgram(version)
        return self._programs[version]

    def _plan_proxy(self, name: str) -> Proxy:
        port = self._ports.block(2)
        self.proxies[name] = Proxy(name, f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}")
        return self.proxies[name]

    def _proxy_file(self, proxy: Proxy, mode: str) -> Path:
        path = self.directory / proxy.name / "rmq-proxy.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {
            "proxyMode": mode,
            "rocketMQClusterName": self.name,
            "proxyClusterName": self.name,
            "proxyName": proxy.name,
            "namesrvAddr": ";".join(self.name_servers),
            "localServeAddr": "127.0.0.1",
            "remotingAccessAddr": "127.0.0.1",
            "remotingListenPort": int(proxy.remoting_address.rpartition(":")[2]),
            "grpcServerPort": int(proxy.grpc_address.rpartition(":")[2]),
            "enablePrintJstack": False,
        }
        path.write_text(json.dumps(values), encoding="utf-8")
        return path

    def _wait_for_proxy(self, proxy: Proxy) -> None:
        self._wait_for_port(proxy.name, proxy.remoting_address)
        self._wait_for_port(proxy.name, proxy.grpc_address)

    def _wait_for_port(self, name: str, address: str) -> None:
        port = int(address.rpartition(":")[2])
        started = self._servers[name]
        wait_until(lambda: None if started.listens_on(port) else f"{name} does not listen", TIMEOUT_S)

    def _known_to(self, broker: str) -> list[str]:
        """Return the addresses of the name servers that a broker registers with."""
        numbers = self._planned[broker].name_servers
        return self.name_servers if numbers is None else [self.name_servers[number] for number in numbers]

    def _operate(self, do: str, **parameters: Any) -> Any:
        return self._host("operator", None).send(do, **parameters)

    def _host(self, name: str, version: str | None, disk: str | None = None) -> _Host:
        if name not in self._hosts:
            release = version or self.version
            folder = self.directory / name
            keys = ("ledger_access_key", "ledger_secret_key")
            words = self._program(release).other(
                "ledger.cluster.ClientHost",
                heap_mib=_HOST_HEAP_MIB,
                folder=folder,
                **dict(zip(keys, self._account or (), strict=False)),
                rocketmq_client_localOffsetStoreDir=str(self.offsets_folder(disk or name)),
                rocketmq_client_rebalance_waitInterval=str(_INTERVAL_MS),
            )
            self._hosts[name] = _Host(self._processes.start(words, folder, with_pipes=True))
        return self._hosts[name]

    def _grpc_host(self, name: str) -> _Host:
        if name not in self._hosts:
            folder = self.directory / name
            words = self._program(GRPC_CLIENT).other(
                "ledger.cluster.GrpcHost", heap_mib=_HOST_HEAP_MIB, folder=folder
            )
            self._hosts[name] = _Host(self._processes.start(words, folder, with_pipes=True))
        return self._hosts[name]

    def _look(self, members: Sequence[Member], *, settle: bool) -> dict[str, Any]:
        by_host: dict[str, list[str]] = {}
        for member in members:
            by_host.setdefault(member.host, []).append(member.key)
        if settle:
            for host, keys in by_host.items():
                self._hosts[host].send("settle", keys=keys)
        seen: dict[str, Any] = {}
        for host, keys in by_host.items():
            seen |= self._hosts[host].send("look", keys=keys)
        return seen

    def _problems(self, group: Group, seen: Mapping[str, Any]) -> Iterator[str]:
        """Yield the reasons why a group is not stable, except queues that still move."""
        for broker in self.alive_brokers:
            expected = Counter(
                member.client_id for member in group.members if broker in seen[member.key]["brokers"]
            )
            expected.update(
                member.client_id
                for name, lister, member in self._listed_grpc.values()
                if (name, lister) == (group.name, broker)
            )
            known = Counter(self.members_known_to(broker, group.name))
            if known != expected:
                yield f"{broker} knows {dict(known)} of {group.name}, and {dict(expected)} send heartbeats to it"
        lockers = [seen[member.key] for member in group.members if member.is_orderly]
        if waiting := _queues("readable", lockers) - _queues("owned", lockers):
            yield f"nobody in {group.name} has the lock of {min(waiting)} yet"
        retry = f"%RETRY%{group.name}"
        for member in group.members:
            by_broker = seen[member.key]["assigned"]
            answers = [by_broker[broker] for broker in self.alive_brokers if broker in by_broker]
            if any(answer != answers[0] for answer in answers):
                yield f"brokers give {member.client_id} different queues"
            if member.is_broadcasting:
                continue
            known_brokers = set(seen[member.key]["brokers"]) & set(self.alive_brokers)
            with_retry = {broker for topic, broker, _ in seen[member.key]["readable"] if topic == retry}
            if known_brokers != with_retry & set(self.alive_brokers):
                yield f"{member.client_id} sees {retry} on {sorted(with_retry)} of {sorted(known_brokers)}"


def _queues(table: str, of_members: Sequence[Mapping[str, Any]]) -> set[Queue]:
    return {Queue(*queue) for seen in of_members for queue in seen[table]}


def _differences(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    return [name for name in now if before is None or now[name] != before[name]]


@contextmanager
def _folder_for_stores(directory: Path) -> Iterator[Path]:
    """Provide a folder for the brokers' stores on a disk with enough space: in the cluster's folder, or in memory.

    From one minute after its start on, a broker rejects messages if its disk is more than 90 percent full. No property
    changes this (5.3.3, `DefaultMessageStore.CleanCommitLogService.isSpaceToDelete` and `getDiskSpaceWarningLevelRatio`).

    Raises:
        SetUpError: Both disks are full.
    """
    directory.mkdir(parents=True, exist_ok=True)
    full = []
    for disk in filter(Path.is_dir, (directory, _MEMORY_DISK)):
        usage = psutil.disk_usage(str(disk))
        if usage.percent <= _DISK_USED_MAX_PERCENT and usage.free >= _DISK_FREE_MIN_BYTES:
            with tempfile.TemporaryDirectory(
                prefix="stores-", dir=disk, ignore_cleanup_errors=True
            ) as folder:
                yield Path(folder)
            return
        full.append(f"{disk} is {usage.percent:.0f} % full with {usage.free >> 20} MiB free")
    raise SetUpError(
        f"brokers need a disk that is at most {_DISK_USED_MAX_PERCENT} % full with {_DISK_FREE_MIN_BYTES >> 20} MiB free, "
        f"but {' and '.join(full)}: delete files there, or set TMPDIR to a folder on another disk"
    )


class NoAnswerError(AssertionError):
    """A JVM could not execute a command; the message is the JVM's."""


class _Host:
    """A JVM of consumers that executes one command at a time."""

    def __init__(self, started: Started) -> None:
        self.started = started

    def send(self, do: str, **parameters: Any) -> Any:
        """Send a command, and return its answer.

        Raises:
            NoAnswerError: The command failed, or the JVM has ended.
        """
        pipes = self.started.process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        pipes.stdin.write(json.dumps({"do": do, **parameters}).encode() + b"\n")
        pipes.stdin.flush()
        line = pipes.stdout.readline()
        if not line:
            raise NoAnswerError(f"the JVM has ended after the command {do}:\n{self.started.last_output()}")
        output = json.loads(line)
        if "error" in output:
            raise NoAnswerError(f"{do}: {output['error']}")
        return output["answer"]


def _properties(path: Path, values: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")
    return path
