"""A real cluster, and the groups of real consumers in it.

Belongs here: what a test asks of a cluster. Does not belong here: starting processes and JVMs (see the modules beside).
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

# How long a server or a client may take on a machine that does much else.
TIMEOUT_S = 180.0

# The clients do every two seconds what they do twice or three times a minute by default.
_INTERVAL_MS = 2_000

# A broker deletes files of a disk that is used more than this, and refuses messages a little above it.
_DISK_USED_MAX_PERCENT = 85
_DISK_FREE_MIN_BYTES = 512 * 2**20
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # a folder of a random name is made in it

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
    """The offsets that a listener was given of one queue."""

    first: int
    last: int


@dataclass(frozen=True)
class Broker:
    """A master to start.

    Attributes:
        name: Its broker name.
        name_servers: The numbers of the name servers that it registers with; None for all.
        properties: Lines of its configuration file, beside those that it needs to be small and on loopback.
        version: Its release; None for that of the cluster.
        has_proxy: Whether a proxy in LOCAL mode is in the same process, as with `mqbroker --enable-proxy`.
        can_pop: Whether clients may pop, as by default: it takes the broker's timers, which the other tests do without.
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
        name: Its name; for one in LOCAL mode that of its broker.
        remoting_address: Where remoting clients connect to, as to a name server.
        grpc_address: Where gRPC clients connect to.
    """

    name: str
    remoting_address: str
    grpc_address: str


@dataclass(frozen=True)
class GrpcMember:
    """One gRPC consumer.

    Attributes:
        key: Distinguishes it from the others of its host.
        client_id: The id that the client library generated.
        host: The JVM that it lives in.
    """

    key: str
    client_id: str
    host: str


@dataclass(frozen=True)
class Member:
    """One consumer of a group.

    Attributes:
        key: Tells it from others with the same client id.
        client_id: What it calls itself: `clientIP@instanceName`.
        host: The JVM that it lives in.
        topics: What it subscribes to: topic and expression.
        strategy: What it was configured with, as in the ledger's settings file.
        name_servers: The numbers of the name servers that it may ask.
        is_broadcasting: Whether it takes every queue for itself.
        is_orderly: Whether it locks each of its queues at the broker before it takes it.
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
    """Name servers and brokers of one release; to be used in a `with`, after which nothing of it is left running.

    Args:
        version: `4.9.7`, `5.3.3` or `5.5.0`.
        directory: Where everything is written; must not be there, or be empty.
        brokers: Masters, by name or in detail.
        nameservers: How many name servers.
        name: The name of the cluster.
        account: Access key and secret key that clients, the operator and `mqadmin` sign with.

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
        # A broker also listens two ports below and one above its own.
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
        """Make or change a topic, and wait until every name server that should know it knows it so.

        Args:
            topic: Its name.
            queues: How many queues can be read, per broker.
            brokers: Where; None for all that are alive.
            write_queues: How many can be written, if not as many.
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
        """Delete it on brokers (None: all alive), and from the routes of every name server."""
        for broker in self.alive_brokers if brokers is None else brokers:
            name_server = self._known_to(broker)[0]
            self._operate(
                "delete_topic", name_server=name_server, broker=self.broker_addresses[broker], topic=topic
            )
        self.delete_route(topic)

    def delete_route(self, topic: str, name_servers: Sequence[int] | None = None) -> None:
        """Let name servers (None: all) forget a topic.

        A broker tells them again when the topic is made again there; from 5.0 on also by itself within seconds, unless it
        has `forceRegister=false`.
        """
        for number in range(len(self.name_servers)) if name_servers is None else name_servers:
            self._operate("delete_route", name_server=self.name_servers[number], topic=topic)

    def route(self, topic: str, name_server: str) -> dict[str, int]:
        """Return how many queues of a topic can be read on each broker, by what one name server says."""
        try:
            answer: dict[str, int] = self._operate("queues", name_server=name_server, topic=topic)
        except NoAnswerError as error:
            if "No topic route info" in str(error) or "CODE: 17" in str(error):
                return {}
            raise
        return answer

    def wait_for_route(self, topic: str, name_server: int, queues: Mapping[str, int]) -> None:
        """Wait until a name server says so many queues of a topic on each broker."""

        def missing() -> str | None:
            seen = self.route(topic, self.name_servers[name_server])
            return None if seen == queues else f"name server {name_server} says {seen} of {topic}"

        wait_until(missing, TIMEOUT_S)

    def start_broker(self, broker: Broker) -> None:
        """Start one more, and wait until every name server that should know it does."""
        self._planned[broker.name] = broker
        self.broker_addresses[broker.name] = f"127.0.0.1:{self._ports.block(4) + 2}"
        self._start_broker(broker)
        self._wait_for_brokers([broker.name])

    def plant_ghost(self, group: Group, client_id: str, broker: str) -> None:
        """Let one broker alone list a member that no process is: what a dead connection looks like.

        It goes after two minutes without another heartbeat, or when the cluster ends. While it is there the clients get
        different lists, so their group is never stable.
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
        """Make or change a subscription group on every broker.

        Args:
            group: Its name.
            is_orderly: Whether it consumes in order, which gRPC clients cannot choose by themselves.
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
        """Send a heartbeat of a client to one broker, over a connection that is the client's own.

        The broker lists it for two minutes. No process answers for it.
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
        """Return what a broker answers to QUERY_ASSIGNMENT.

        Args:
            broker: The one that is asked.
            questions: `topic`, `group`, `client_id`, `strategy` and `message_model` of each.

        Returns:
            For each question the queues, each with the request mode, or None for an answer without any list.
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
            topics: What it subscribes to.
            proxy: Where it connects to.
            is_simple: Whether it receives and acknowledges by itself; else it is a push consumer.
            host: The JVM for it; it is started when it is named for the first time.
        """
        self._member_count += 1
        key = f"{self._member_count}"
        client_id = self._grpc_host(host).tell(
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
        """Stop it in an orderly way."""
        self._hosts[member.host].tell("stop_consumer", key=member.key)
        self._listed_grpc.pop(member.key, None)

    def hold_grpc_consumer(self, member: GrpcMember, *, is_held: bool = True) -> None:
        """Let it receive messages without acknowledging them, or acknowledge again."""
        self._hosts[member.host].tell("hold", key=member.key, is_held=is_held)

    def consumed_by_grpc(self, member: GrpcMember) -> dict[str, int]:
        """Return how many messages of each topic a gRPC consumer has acknowledged."""
        counts: dict[str, int] = self._hosts[member.host].tell("consumed", key=member.key)
        return counts

    def unused_port(self) -> int:
        """Return a port of loopback on which nothing of this cluster listens, nor did when it was asked."""
        return self._ports.block(1)

    def set_request_mode(
        self,
        topic: str,
        group: str,
        mode: str,
        pop_share_queues: int = 0,
        brokers: Sequence[str] | None = None,
    ) -> None:
        """Choose `PULL` or `POP` for a group on brokers (None: all); for members that leave rebalancing to the brokers."""
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
        """Send so many small messages."""
        self._operate("send", name_server=self.name_servers[0], topic=topic, count=count)

    def start_consumers(  # noqa: PLR0913  # each is something that a consumer can be configured with
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
            client_ids: `clientIP@instanceName`, a consumer for each. One that is there already needs another host.
            strategy: A name, or an entry of `groups` in the ledger's settings file.
            host: The JVM for them; it is started when it is named for the first time.
            version: The release of a host that is started, perhaps `OLD_CLIENT`; None for that of the brokers.
            name_servers: The numbers of the name servers that they may ask; None for all.
            is_broadcasting: Whether each takes every queue.
            is_orderly: Whether they lock their queues.
            is_rebalanced_by_server: Whether they ask a broker for their queues (from 5.0).
            consume_from: RocketMQ's `ConsumeFromWhere`: where a queue begins of which no offset is stored.
            persist_interval_ms: How often they write their offsets; the first time is always after ten seconds.
            disk: The host on whose disk a host that is started keeps offset files; None for a disk of its own.
            proxy: Where they connect to in place of the name servers. No broker lists them then, so `wait_until_stable` is not
                for such a group.

        Returns:
            The group, with all its members.

        Raises:
            NoAnswerError: A consumer does not start; the message is its own.
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
            answered = self._host(host, version, disk).tell(
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
        """Stop members in an orderly way; the others get their queues."""
        for member in [member for member in group.members if member.client_id in client_ids]:
            self._hosts[member.host].tell("stop_consumer", key=member.key)
            group.members.remove(member)

    def wait_until_stable(self, *groups: Group, seconds: float = TIMEOUT_S) -> None:
        """Wait until another rebalance would change nothing.

        That is so when every broker has exactly the members that send heartbeats to it (and the gRPC clients of its own proxy), when every member sees the
        retry topic on each of those brokers, when all brokers answer alike whom they rebalance, when each queue that is locked
        by its owner has one (a lock is kept for up to 20 seconds after its queue was given away), and when two rounds of route,
        heartbeat and rebalance (which are made here and now, beside those that the clients make by themselves) end with the same
        queues.

        Args:
            groups: Which; none for all.
            seconds: How long to wait at most.
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
        """Return what each member has in its own process table, asked of its own process."""
        seen = self._look(group.members, settle=False)
        return [
            (member, frozenset(Queue(*queue) for queue in seen[member.key]["owned"]))
            for member in group.members
        ]

    def popped(self, group: Group) -> dict[str, list[str]]:
        """Return the client ids that pop from each broker, in order."""
        seen = self._look(group.members, settle=False)
        poppers: dict[str, list[str]] = {}
        for member in group.members:
            for _, broker, _ in seen[member.key]["popped"]:
                poppers.setdefault(broker, []).append(member.client_id)
        return {broker: sorted(ids) for broker, ids in sorted(poppers.items())}

    def owners(self, group: Group) -> dict[Queue, list[str]]:
        """Return the client ids that hold each queue, in order; a queue that nobody holds is not in it."""
        holders: dict[Queue, list[str]] = {}
        for member, queues in self.owned(group):
            for queue in queues:
                holders.setdefault(queue, []).append(member.client_id)
        return {queue: sorted(ids) for queue, ids in sorted(holders.items())}

    def running_info(self, member: Member) -> str:
        """Return a member's `consumerRunningInfo()` as text, asked of its own process."""
        text: str = self._hosts[member.host].tell("running_info", key=member.key)
        return text

    def consumed(self, member: Member) -> dict[Queue, Consumed]:
        """Return what its listener was given of each queue since it was started, asked of its own process."""
        ranges = self._hosts[member.host].tell("consumed", key=member.key)
        return {Queue(*queue): Consumed(first, last) for *queue, first, last in ranges}

    def persist_offsets(self, member: Member) -> None:
        """Let it write its offsets now, beside the times at which it does so by itself."""
        self._hosts[member.host].tell("persist", key=member.key)

    def members_known_to(self, broker: str, group: str) -> list[str]:
        """Return the client ids of a group as a broker gives them to clients: sorted, one a connection."""
        ids: list[str] = self._operate(
            "members",
            name_server=self._known_to(broker)[0],
            broker=self.broker_addresses[broker],
            group=group,
        )
        return ids

    @property
    def alive_brokers(self) -> list[str]:
        """The names of the brokers whose processes run, or are frozen."""
        return [broker for broker in self._planned if self._servers[broker].is_alive()]

    def kill_broker(self, broker: str) -> None:
        """End it as a power cut would, and wait until no name server lists it."""
        self._servers[broker].kill()

        def missing() -> str | None:
            for name_server in self.name_servers:
                if broker in self._operate("brokers", name_server=name_server):
                    return f"{name_server} still lists {broker}"
            return None

        wait_until(missing, TIMEOUT_S)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Brokers or hosts that accept connections and answer nothing; inside, only those may be asked that are not."""
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
        """End a JVM of consumers as a power cut would; its members are no longer members."""
        self._hosts.pop(host).started.kill()
        for group in self.groups.values():
            group.members[:] = [member for member in group.members if member.host != host]

    def fill_disk(self, host: str, file_size_bytes: int) -> None:
        """Let no file of a host grow past a size: what is written beyond is refused in mid-write, as by a full disk.

        The operating system refuses it (RLIMIT_FSIZE), so this needs no rights and no mount, and cuts at the byte.
        """
        _, hard = psutil.Process(self._hosts[host].started.pid).rlimit(psutil.RLIMIT_FSIZE)
        psutil.Process(self._hosts[host].started.pid).rlimit(psutil.RLIMIT_FSIZE, (file_size_bytes, hard))

    def mqadmin(self, *words: str, seconds: float = TIMEOUT_S) -> str:
        """Return what `mqadmin` prints, in a JVM of its own. What it writes into its folder is in `mqadmin` in ours."""
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
        """Return where the broadcasting consumers of a host keep their offset files."""
        return self.directory / host / "offsets"

    @property
    def processes(self) -> Processes:
        """What ends everything that was started for this cluster; for clients of other kinds."""
        return self._processes

    def process_ids(self) -> dict[str, int]:
        """Return the process of each server and each host of consumers, by name."""
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
                # Clients before 5.0 connect to every broker with the topic that others are made from.
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
                # A busy machine is no reason to refuse a message here.
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
        return self._host("operator", None).tell(do, **parameters)

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
                self._hosts[host].tell("settle", keys=keys)
        seen: dict[str, Any] = {}
        for host, keys in by_host.items():
            seen |= self._hosts[host].tell("look", keys=keys)
        return seen

    def _problems(self, group: Group, seen: Mapping[str, Any]) -> Iterator[str]:
        """Yield what keeps a group from being stable, apart from queues that still move."""
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
    """Provide a folder whose disk has room for the stores of brokers: in the cluster's folder, or in memory.

    A broker refuses messages from a minute after its start if its disk is used more than 90 percent, which no property changes
    (5.3.3, `DefaultMessageStore.CleanCommitLogService.isSpaceToDelete` and `getDiskSpaceWarningLevelRatio`).

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
    """A JVM could not do what it was told; the message is its own."""


class _Host:
    """A JVM of consumers, told one thing at a time."""

    def __init__(self, started: Started) -> None:
        self.started = started

    def tell(self, do: str, **parameters: Any) -> Any:
        """Tell it, and return its answer.

        Raises:
            NoAnswerError: It could not, or it has ended.
        """
        pipes = self.started.process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        pipes.stdin.write(json.dumps({"do": do, **parameters}).encode() + b"\n")
        pipes.stdin.flush()
        line = pipes.stdout.readline()
        if not line:
            raise NoAnswerError(f"the JVM that was told to {do} has ended:\n{self.started.last_words()}")
        output = json.loads(line)
        if "error" in output:
            raise NoAnswerError(f"{do}: {output['error']}")
        return output["answer"]


def _properties(path: Path, values: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")
    return path
