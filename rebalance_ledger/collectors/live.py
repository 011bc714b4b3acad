"""Capture of a live cluster: the plan of calls, their order and rate, retries, and the lines of the export.

Belongs here: the plan of calls, rate limits, handling of servers that do not answer, and the choice of lines. Does not belong here:
the calls themselves (`admin`), files on disk (`rebalance_ledger.exports.writer`), the origin of settings and credentials.

The order of calls:

1. every name server for its topics and brokers: the plan depends on them;
2. every broker for its release, which determines the further requests, then for its topics, groups, settings and producers;
3. the brokers that know the group of the proxies for its members, which gives the addresses of the proxies;
4. every name server for the route of every topic, including topics that only another name server knows;
5. for each group: every broker and every proxy for the group's members, then immediately each member for its assignment (in
   a broadcasting group also for its offsets in memory), several members in parallel, then the group's progress. Calls close
   together make a rebalance in between unlikely. If a member does not answer its broker, the whole group is asked a second time;
6. every name server for the routes of topics that members subscribe to and no name server lists: a missing route is an
   answer, and clients keep the queues of such a topic;
7. every broker for the offsets of each of its topics.

A further attempt at a day gets the answers of the earlier ones and repeats only failed questions, except that a failure
within a group repeats all questions of that group, because the members of a group must be asked close together.

Memory grows with the names of topics, groups and brokers only; payloads go to disk directly, or with the other answers of their group.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rebalance_ledger.collectors.admin import Answer, Question
from rebalance_ledger.collectors.answered_names import (
    HEARTBEAT_SYNCER,
    Connections,
    NamesError,
    brokers_of_cluster,
    connections_of,
    group_of_retry_topic,
    groups_of_broker,
    is_system_group,
    release_of_broker,
    start_of_process,
    topics_of_broker,
    topics_of_list,
)
from rebalance_ledger.collectors.earlier_answers import Line
from rebalance_ledger.collectors.errors import CollectError, UnreachableError
from rebalance_ledger.collectors.permissions import refusal_sentences
from rebalance_ledger.collectors.tally import FORWARDED_KINDS, SYSTEM_BUSY, Tally, is_failure
from rebalance_ledger.exports.contract import NOT_ASKED, EnvelopeError
from rebalance_ledger.rocketmq.client_ids import is_grpc_client_id
from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from rebalance_ledger.collectors.earlier_answers import EarlierAnswers
    from rebalance_ledger.settings.model import CollectSettings

_T = TypeVar("_T")
_U = TypeVar("_U")

NO_ANSWER: Final = "ServerNotAnswering"
"""Error type of a line whose server was given up, because it had not answered for too long."""

_PAUSE_S: Final = 0.5  # Before the first retry; doubled before each further one.
_MIN_FAILURE_COUNT: Final = 3
_MAX_BROKERS_PER_MEMBER: Final = 2  # The second is used if the first cannot reach the member.

_MAX_FORWARDED_COUNT: Final = 8
"""Limit of concurrent requests that one broker forwards to clients: half of its threads for them, which block meanwhile."""

_CLIENT_TIMED_OUT: Final = 207
"""`ResponseCode.CONSUME_MSG_TIMEOUT`."""

_CLIENT_FAILED: Final = 1
"""`ResponseCode.SYSTEM_ERROR`: the broker has lost the client (`AdminBrokerProcessor.callConsumer`), or the client its group."""

_MAX_REPEATED_GROUP_COUNT: Final = 100
"""Limit of groups that one capture asks twice, because each takes as long as a client's timeout."""

_MAX_HELD_GROUP_BYTES: Final = 4 << 20
"""Limit of a group's answers that wait in memory for the last one; a group with more is written at once and asked once."""

_FIRST_RELEASES: Final = {"broker_producer_table": (4, 9, 4), "broker_message_request_mode": (5, 0, 0)}
"""First release that supports a kind of question, where not every release does. Before 4.9.1 a broker does not respond at
all to an unknown request."""

# Questions that each broker is asked once, in this order.
_BROKER_KINDS: Final = (
    "broker_topic_config",
    "broker_subscription_group",
    "broker_config",
    "broker_message_request_mode",
    "broker_producer_table",
)

# The consequence of a failure for other questions.
_LOSS_BY_KIND: Final = {
    "nameserver_topic_list": "topics that only it knows were not asked for",
    "nameserver_cluster_info": "brokers that only it knows were not asked",
    "broker_topic_config": "it was not asked for the offsets of its topics",
    "broker_subscription_group": "groups that only it knows were not asked for",
}


class QuestionClient(Protocol):
    """A client that makes calls, such as `AdminClient`."""

    def ask(self, question: Question, timeout_ms: int) -> Answer:
        """Ask one question, once."""


class RecordSink(Protocol):
    """A sink for lines, such as `ExportWriter`."""

    def payload(self, kind: str, captured_at: datetime, payload: str, **request: str | int) -> None:
        """Write the answer of a source."""

    def error(
        self, kind: str, captured_at: datetime, error_type: str, message: str, **request: str | int
    ) -> None:
        """Write the failure of a source."""

    def event(self, at: datetime, text: str) -> None:
        """Write an event."""


class ProgressListener(Protocol):
    """A listener for the progress of a capture."""

    def begin(self, name: str, total: int) -> None:
        """Begin a part with the given number of steps."""

    def advance(self) -> None:
        """Count one completed step."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker to call: the master, or the slave with the lowest id if no name server knows a master."""

    name: str
    address: str


@dataclass(slots=True)
class Collected:
    """The result of a capture.

    Attributes:
        line_counts: Number of lines by kind.
        error_counts: Number of error lines by kind.
        silent: Servers that were given up, with the reason.
        remarks: Gaps in the capture, as sentences; the export has them too, as events.
        tally: Counts of questions and failures.
    """

    line_counts: Counter[str] = field(default_factory=Counter)
    error_counts: Counter[str] = field(default_factory=Counter)
    silent: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=lambda: Tally(counts_proxies=True))


def collect(  # noqa: PLR0913  # tests replace each of these
    client: QuestionClient,
    writer: RecordSink,
    nameservers: Sequence[str],
    settings: CollectSettings,
    *,
    ds: date,
    progress: ProgressListener,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    earlier: EarlierAnswers | None = None,
    cause_of_silence: Callable[[str], str] = lambda _: "",
) -> Collected:
    """Capture a cluster and write every answer and every failure as a line.

    Args:
        client: Makes the calls.
        writer: Receives the lines.
        nameservers: Addresses of the name servers; all are called.
        settings: Rate limits, timeouts and kinds.
        ds: The UTC day; it must be today until the end of the capture.
        progress: Receives the progress.
        now: The clock.
        earlier: The answers of the day's earlier attempts, if any.
        cause_of_silence: Returns the reason why a server does not answer, as a clause; empty if it is unknown.

    Raises:
        AdminClientError: The client's JVM has stopped.
        CollectError: The day is not today, or the capture would continue after midnight.
        ExportError: A line cannot be written.
        UnreachableError: No name server returns topics and brokers, or no broker returns groups.
    """
    return _Capture(client, writer, settings, ds, progress, now, earlier, cause_of_silence).run(nameservers)


class _Server:
    """The rate limit of one address, and whether it has been given up."""

    def __init__(self, calls_per_second: float, unresponsive_after_s: float) -> None:
        self._interval_s = 1 / calls_per_second
        self._unresponsive_after_s = unresponsive_after_s
        self._lock = threading.Lock()
        self._next_call_at = 0.0
        self._silent_since: float | None = None
        self._failure_count = 0
        self.given_up = ""
        self.forwarded = threading.Semaphore(_MAX_FORWARDED_COUNT)

    def reserve(self) -> float:
        """Reserve the next call; return the seconds until it may start."""
        with self._lock:
            call_at = max(self._next_call_at, time.monotonic())
            self._next_call_at = call_at + self._interval_s
            return call_at - time.monotonic()

    def record_answer(self) -> None:
        """Record a response: the server is responsive."""
        with self._lock:
            self._silent_since, self._failure_count = None, 0

    def record_failure(self, called_at: float, message: str) -> None:
        """Record a call without a response, begun at this monotonic time."""
        with self._lock:
            self._failure_count += 1
            self._silent_since = called_at if self._silent_since is None else self._silent_since
            silent_s = time.monotonic() - self._silent_since
            if self._failure_count >= _MIN_FAILURE_COUNT and silent_s >= self._unresponsive_after_s:
                self.given_up = self.given_up or (
                    f"not called any more in this run, after {self._failure_count} calls in {silent_s:.0f} s "
                    f"without a response; the last error: {message}"
                )


class _Capture:
    """One run of `collect`."""

    def __init__(
        self,
        client: QuestionClient,
        writer: RecordSink,
        settings: CollectSettings,
        ds: date,
        progress: ProgressListener,
        now: Callable[[], datetime],
        earlier: EarlierAnswers | None,
        cause_of_silence: Callable[[str], str],
    ) -> None:
        self._cause_of_silence = cause_of_silence
        self._client = client
        self._writer = writer
        self._settings = settings
        self._ds = ds
        self._progress = progress
        self._now = now
        self._is_cancelled = threading.Event()
        self._lock = threading.Lock()
        self._servers: dict[str, _Server] = {}
        self._collected = Collected(tally=Tally(counts_proxies=bool(settings.proxies)))
        self._subscribed: set[str] = set()
        self._earlier = earlier
        self._attempt = earlier.attempt_count + 1 if earlier is not None else None
        self._releases: dict[str, tuple[int, int, int]] = {}
        self._proxies: list[str] = []
        self._repeated_group_count = 0
        # Threads for groups and for members share one limit of concurrent calls.
        self._call_slots = threading.Semaphore(settings.parallelism)

    def run(self, nameservers: Sequence[str]) -> Collected:
        self._check_day()
        topics, brokers = self._ask_name_servers(nameservers)
        topics_of, groups = self._ask_brokers(topics, brokers)
        self._check_time(nameservers, topics, groups, topics_of)
        self._ask_routes("routes", nameservers, topics)
        with ThreadPoolExecutor(self._settings.parallelism, thread_name_prefix="members") as members:
            self._run_parallel(
                "groups",
                len(groups),
                enumerate(groups),
                lambda group: self._ask_group(*group, brokers, members),
            )
        self._ask_routes("routes of unlisted topics", nameservers, sorted(self._subscribed - set(topics)))
        if self._is_wanted("broker_topic_stats"):
            self._run_parallel(
                "topic offsets",
                sum(map(len, topics_of.values())),
                _round_robin(topics_of),
                lambda of: self._record(
                    Question(
                        kind="broker_topic_stats", broker=of[0].name, broker_addr=of[0].address, topic=of[1]
                    )
                ),
            )
        self._collected.silent = {
            address: server.given_up + self._cause_clause(address)
            for address, server in self._servers.items()
            if server.given_up
        }
        for sentence in refusal_sentences(self._collected.tally.refused, self._collected.line_counts):
            self._remark(sentence)
        self._remark_silent_proxies()
        return self._collected

    def _ask_name_servers(self, nameservers: Sequence[str]) -> tuple[list[str], list[Broker]]:
        """Ask for topics and brokers; return the sorted union of all answers."""
        topics: set[str] = set()
        addresses: dict[str, set[tuple[int, str]]] = {}
        failures: list[str] = []

        def ask(nameserver: str) -> None:
            topic_line = self._record(Question(kind="nameserver_topic_list", nameserver=nameserver))
            broker_line = self._record(Question(kind="nameserver_cluster_info", nameserver=nameserver))
            topic_names = self._read_names(topic_line, topics_of_list, ())
            broker_addresses = self._read_names(broker_line, brokers_of_cluster, ())
            with self._lock:
                topics.update(topic_names)
                for name, broker_id, address in broker_addresses:
                    addresses.setdefault(name, set()).add((broker_id, address))
                if topic_line.answer.payload is None:
                    failures.append(f"{nameserver}: {_one_line(topic_line.answer)}")

        self._run_parallel("name servers", len(nameservers), nameservers, ask)
        if not topics or not addresses:
            reason = "; ".join(failure + self._cause_clause(failure) for failure in sorted(failures))
            reason = reason or "they know no topic or no broker"
            raise UnreachableError(
                f"None of the name servers ({', '.join(nameservers)}) returns topics and brokers ({reason}); "
                "check the addresses, the credentials, and whether they run."
            )
        brokers = []
        for name in sorted(addresses):
            lowest = min(addresses[name])[0]
            # After a failover, name servers may have different masters.
            brokers += [Broker(name, address) for id_, address in sorted(addresses[name]) if id_ == lowest]
        return sorted(topics), brokers

    def _ask_brokers(
        self, topics: list[str], brokers: list[Broker]
    ) -> tuple[dict[Broker, list[str]], list[str]]:
        """Ask each broker its own questions; return the topics by broker and the sorted groups of all brokers."""
        topics_of: dict[Broker, list[str]] = {broker: [] for broker in brokers}
        groups: set[str] = set()
        failures: list[str] = []
        proxy_brokers: list[Broker] = []

        def ask(broker: Broker) -> None:
            self._learn_release(broker)
            lines = {
                kind: self._record(Question(kind=kind, broker=broker.name, broker_addr=broker.address))
                for kind in _BROKER_KINDS
                if self._is_wanted(kind)
            }
            # Most brokers have most topics, so interned names save memory.
            own_topics = self._read_names(lines["broker_topic_config"], topics_of_broker, ())
            topics_of[broker] = sorted(map(sys.intern, own_topics))
            group_line = lines["broker_subscription_group"]
            own_groups = self._read_names(group_line, groups_of_broker, None)
            with self._lock:
                groups.update(own_groups or ())
                if own_groups is None:
                    failures.append(f"{broker.address}: {_one_line(group_line.answer)}")
                if PROXY_HEARTBEAT_GROUP in (own_groups or ()) or HEARTBEAT_SYNCER in own_topics:
                    proxy_brokers.append(broker)

        self._run_parallel("brokers", len(brokers), brokers, ask)
        if failures:
            # Retry topics reveal groups of a broker that failed; otherwise they may belong to deleted groups.
            all_topics = set(topics).union(*topics_of.values())
            groups.update(filter(None, (group_of_retry_topic(topic, all_topics) for topic in all_topics)))
        users = sorted(group for group in groups if not is_system_group(group))
        if not users and failures:
            raise UnreachableError(
                f"No broker returns consumer groups ({'; '.join(each + self._cause_clause(each) for each in sorted(failures))}); check whether they can be "
                "reached from here, and the credentials."
            )
        if not users:
            raise CollectError(
                "The cluster has no consumer group, so an export would have no ownership data; collect it "
                "when it has one."
            )
        self._find_proxies(sorted(proxy_brokers, key=lambda broker: (broker.name, broker.address)))
        return topics_of, users

    def _cause_clause(self, failure: str) -> str:
        """Return the cause of a failure that begins with a server's address, as a clause; empty if none is found."""
        cause = self._cause_of_silence(failure.partition(": ")[0])
        return f": {cause}" if cause else ""

    def _learn_release(self, broker: Broker) -> None:
        """Ask a broker for its release, which determines the supported requests."""
        line = self._record(
            Question(kind="broker_runtime_info", broker=broker.name, broker_addr=broker.address)
        )
        release = self._read_names(line, release_of_broker, None)
        if release is not None:
            with self._lock:
                self._releases[broker.address] = release

    def _find_proxies(self, brokers: list[Broker]) -> None:
        """Determine the proxies' addresses: those of the settings, or else the hosts in the proxies' heartbeat group."""
        hosts: set[str] = set()
        for broker in brokers:
            line = self._record(_group_question("consumer_connection", broker, PROXY_HEARTBEAT_GROUP))
            hosts.update(filter(None, self._read_names(line, connections_of, Connections()).hosts))
        discovered_addresses = sorted(f"{host}:{self._settings.proxy_port}" for host in hosts)
        self._proxies = self._settings.proxies or discovered_addresses
        if self._settings.proxies and len(hosts) > len(self._settings.proxies):
            self._remark(
                f"Proxies are connected from {len(hosts)} hosts ({', '.join(sorted(hosts))}), and the settings name "
                f"{len(self._settings.proxies)}; add the others to collect.proxies, so that their clients are known."
            )

    def _ask_routes(self, name: str, nameservers: Sequence[str], topics: list[str]) -> None:
        self._run_parallel(
            name,
            len(nameservers) * len(topics),
            (
                Question(kind="nameserver_route", nameserver=nameserver, topic=topic)
                for topic in topics
                for nameserver in nameservers
            ),
            self._record,
        )

    def _ask_group(self, index: int, group: str, brokers: list[Broker], pool: ThreadPoolExecutor) -> None:
        """Ask for one group's members, their assignments, and the group's progress; a second time if a member does not answer.

        A member that is starting, stopping or paused may answer a few seconds later. The answers of the others may be outdated
        by then, so the export has the lines of one pass: those of the second, unless it has more errors.
        """
        # Each group begins at another broker, which spreads the load.
        first = index % len(brokers)
        ordered_brokers = brokers[first:] + brokers[:first]
        lines = self._pass_through(group, ordered_brokers, pool)
        if lines.has_silent_member and lines.are_held and self._may_repeat_group():
            again = self._pass_through(group, ordered_brokers, pool)
            if again.error_count <= lines.error_count or not again.are_held:
                lines = again
        lines.release()

    def _may_repeat_group(self) -> bool:
        with self._lock:
            self._repeated_group_count += 1
            return self._repeated_group_count <= _MAX_REPEATED_GROUP_COUNT

    def _pass_through(
        self, group: str, ordered_brokers: list[Broker], pool: ThreadPoolExecutor
    ) -> _GroupLines:
        """Ask all questions of a group once; return the lines."""
        lines = _GroupLines(self._write)
        members = _Members()
        for broker in ordered_brokers:
            line = self._record(_group_question("consumer_connection", broker, group), lines)
            members.add(broker, self._read_names(line, connections_of, Connections()))
        for proxy in self._proxies:
            self._record(Question(kind="proxy_consumer_connection", proxy=proxy, group=group), lines)
        with self._lock:
            self._subscribed.update(members.topics)
        member_tasks = [
            pool.submit(self._capture_member, group, number, client_id, members, lines)
            for number, client_id in enumerate(sorted(members.brokers))
        ]
        wait(member_tasks, return_when=FIRST_EXCEPTION)
        failures = [error for task in member_tasks if task.done() and (error := task.exception()) is not None]
        if failures:
            self._is_cancelled.set()
            raise min(failures, key=lambda error: isinstance(error, _CancelledError))
        if self._is_wanted("consume_stats"):
            for broker in ordered_brokers:
                self._record(_group_question("consume_stats", broker, group), lines)
        return lines

    def _capture_member(
        self, group: str, number: int, client_id: str, members: _Members, lines: _GroupLines
    ) -> None:
        """Ask one member for its running info, and in a broadcasting group for its offsets in memory."""
        if self._is_cancelled.is_set():
            raise _CancelledError
        # Members begin at different brokers, each at one that lists it.
        brokers = members.brokers[client_id]
        first = number % len(brokers)
        ordered_brokers = brokers[first:] + brokers[:first]
        route: Broker | None = ordered_brokers[0]
        if self._is_wanted("consumer_running_info"):
            route = self._ask_member(
                group, client_id, ordered_brokers, lines, is_doubled=client_id in members.doubled
            )
        if members.is_broadcasting and route is not None and self._is_wanted("consumer_status"):
            for topic in sorted(members.topics):
                self._ask_status(group, client_id, topic, route, lines)

    def _ask_member(
        self, group: str, client_id: str, routes: list[Broker], lines: _GroupLines, *, is_doubled: bool
    ) -> Broker | None:
        """Ask one member, through another broker if the first cannot reach it; write one line.

        Several processes may share an id that a broker lists twice, and a broker forwards a request to the first of them. So
        every broker is asked, and the start time distinguishes the processes.

        Returns:
            The broker through which the member answered; None if it did not answer.
        """
        question = _group_question("consumer_running_info", routes[0], group, client_id)
        if is_grpc_client_id(client_id):
            reason = "its id is that of a gRPC client, and such a client has no running info"
            lines.write(question, self._skipped(reason, question))
            return None
        answers: list[tuple[Question, Line]] = []
        for index, broker in enumerate(routes):
            if index >= _MAX_BROKERS_PER_MEMBER and not is_doubled:
                break
            question = _group_question("consumer_running_info", broker, group, client_id)
            line = self._ask(question)
            if line.answer.payload is not None:
                answers.append((question, line))
            if not is_doubled and (answers or line.answer.response_code == _CLIENT_TIMED_OUT):
                break
        if not answers:
            if self._is_silent_now(line):
                lines.has_silent_member = True
            lines.write(question, line)
            return None
        lines.write(*answers[0])
        if is_doubled:
            self._write_processes(answers, lines)
        answering = answers[0][1].question
        return Broker(answering.broker, answering.broker_addr)

    def _is_silent_now(self, line: Line) -> bool:
        """Return whether a member gave this attempt no answer, for a reason that may be temporary."""
        answer = line.answer
        return line.attempt == self._attempt and (
            answer.response_code in {_CLIENT_TIMED_OUT, _CLIENT_FAILED} or "Timeout" in answer.error_type
        )

    def _write_processes(self, answers: list[tuple[Question, Line]], lines: _GroupLines) -> None:
        """Write the assignment of each process with one client id, if the answers prove that there are several."""
        processes: dict[str, tuple[Question, Line]] = {}
        for question, line in answers:
            start = self._read_names(line, start_of_process, None)
            if start is not None:
                processes.setdefault(start, (question, line))
        if len(processes) > 1:
            for start, (question, line) in sorted(processes.items()):
                lines.write(replace(question, kind="process_assignment"), line, process=f"started {start}")

    def _ask_status(self, group: str, client_id: str, topic: str, broker: Broker, lines: _GroupLines) -> None:
        """Ask one member for its offsets of a topic in memory and write the line."""
        question = replace(_group_question("consumer_status", broker, group, client_id), topic=topic)
        lines.write(question, self._ask(question))

    def _record(self, question: Question, lines: _GroupLines | None = None) -> Line:
        """Ask a question and write the line, to the lines of a group if it is the question of one."""
        line = self._ask(question)
        (self._write if lines is None else lines.write)(question, line)
        answer = line.answer
        if answer.error_type and question.kind in _LOSS_BY_KIND:
            who = f"{question.broker} at {question.address}" if question.broker else question.address
            self._remark(
                f"The answer of {who} to {question.kind} was an error, so {_LOSS_BY_KIND[question.kind]}."
            )
        return line

    def _read_names(self, line: Line, read: Callable[[bytes], _T], otherwise: _U) -> _T | _U:
        """Return the names in an answer, or `otherwise` for an error or a payload that cannot be parsed."""
        if line.answer.payload is None:
            return otherwise
        try:
            return read(line.answer.payload)
        except NamesError as error:
            question = line.question
            who = f"{question.broker} at {question.address}" if question.broker else question.address
            whose = f" for group {question.group!r}" if question.group else ""
            self._remark(
                f"The answer of {who} to {question.kind}{whose} cannot be read ({error}), so names that only it has were not asked for."
            )
            return otherwise

    def _ask(self, question: Question) -> Line:
        """Return the answer to a question, from an earlier attempt if that succeeded and this one is not needed or fails."""
        if self._earlier is None:
            return self._ask_now(question)
        earlier = self._earlier.find(question)
        if earlier is not None and not self._earlier.is_asked_again(question):
            return earlier
        line = self._ask_now(question)
        if earlier is None or not is_failure(question.kind, line.answer):
            return line
        return line if is_failure(question.kind, earlier.answer) else earlier

    def _ask_now(self, question: Question) -> Line:
        since = _FIRST_RELEASES.get(question.kind)
        release = self._releases.get(question.address)
        if since is not None and release is not None and release < since:
            reason = f"release {'.'.join(map(str, release))} does not know this question"
            return self._skipped(reason, question)
        # If the release is unknown, a missing response may mean an unknown request rather than a dead server.
        may_be_unknown = since is not None and release is None
        answer = self._call(question, may_be_unknown=may_be_unknown)
        if answer is None:
            given_up = self._server(question.address).given_up
            answer = Answer(error_type=NO_ANSWER, error_message=f"{question.address} was {given_up}")
        elif may_be_unknown and answer.response_code is None:
            reason = "the broker's release is not known, and releases before 4.9.1 do not respond to a question that they do not know"
            answer = replace(answer, error_message=f"{answer.error_message} ({reason})")
        return Line(question, answer, self._now(), self._attempt)

    def _call(self, question: Question, *, may_be_unknown: bool) -> Answer | None:
        """Call a server, with retries; return None if it has been given up."""
        server = self._server(question.address)
        is_forwarded = question.kind in FORWARDED_KINDS
        settings = self._settings
        timeout_ms = settings.client_timeout_ms if is_forwarded else settings.call_timeout_ms
        retries = 0 if may_be_unknown else settings.retries
        answer = None
        for attempt in range(1 + retries):
            if server.given_up:
                break
            with _acquired(server.forwarded if is_forwarded else None, self._call_slots):
                self._pause(server.reserve())
                self._check_day()
                called_at = time.monotonic()
                answer = self._client.ask(question, timeout_ms)
            if answer.response_code is not None:
                server.record_answer()
                if answer.response_code != SYSTEM_BUSY:
                    break
            elif not may_be_unknown:
                server.record_failure(called_at, _one_line(answer))
            if is_forwarded and "Timeout" in answer.error_type:
                break  # The timeout is long, and another broker may reach the client.
            if attempt < retries:
                self._pause(_PAUSE_S * 2**attempt)
        return answer

    def _skipped(self, reason: str, question: Question) -> Line:
        answer = Answer(error_type=NOT_ASKED, error_message=f"not asked: {reason}")
        return Line(question, answer, self._now(), self._attempt)

    def _write(self, question: Question, line: Line, **extra_fields: str) -> None:
        # An answer of an earlier attempt may have come through another broker.
        fields = line.question.fields | extra_fields
        if line.attempt is not None:
            fields["attempt"] = line.attempt
        answer = line.answer
        try:
            if answer.payload is None:
                self._writer.error(question.kind, line.at, answer.error_type, answer.error_message, **fields)
            else:
                text = answer.payload.decode(errors="replace")
                self._writer.payload(question.kind, line.at, text, **fields)
        except EnvelopeError as error:
            request_text = ", ".join(f"{name} {value!r}" for name, value in question.fields.items())
            self._remark(
                f"The answer to {question.kind} ({request_text}) is not in this export: {error.reason}."
            )
            return
        if self._earlier is not None:
            self._earlier.replaced(question)
        if question.kind != "process_assignment":
            self._collected.tally.add(question, answer)
        with self._lock:
            self._collected.line_counts[question.kind] += 1
            self._collected.error_counts[question.kind] += answer.payload is None

    def _remark_silent_proxies(self) -> None:
        """Add a remark with advice for each proxy that was given up."""
        for proxy in self._proxies:
            if proxy in self._collected.silent:
                self._remark(
                    f"The proxy at {proxy} does not answer, so whether groups have clients there is unknown; let this machine "
                    "reach its remotingListenPort, or set collect.proxies or collect.proxy_port."
                )

    def _remark(self, sentence: str) -> None:
        with self._lock:
            if sentence in self._collected.remarks:
                return  # The second pass through a group found it again.
            self._collected.remarks.append(sentence)
        self._writer.event(self._now(), sentence)

    def _run_parallel(self, name: str, total: int, items: Iterable[_T], do: Callable[[_T], object]) -> None:
        """Process the items in parallel; the first failure cancels the rest."""
        self._progress.begin(name, total)
        remaining = iter(items)

        def work() -> None:
            try:
                while not self._is_cancelled.is_set():
                    with self._lock:
                        item = next(remaining, _END)
                    if isinstance(item, _End):
                        return
                    do(item)
                    self._progress.advance()
            except BaseException:
                self._is_cancelled.set()
                raise

        count = min(self._settings.parallelism, max(total, 1))
        with ThreadPoolExecutor(count, thread_name_prefix="collect") as pool:
            try:
                done, _ = wait([pool.submit(work) for _ in range(count)], return_when=FIRST_EXCEPTION)
            except BaseException:
                self._is_cancelled.set()
                raise
        failures = [error for task in done if (error := task.exception()) is not None]
        if failures:
            # Cancelled threads raise too; the original failure takes precedence.
            raise min(failures, key=lambda error: isinstance(error, _CancelledError))

    def _server(self, address: str) -> _Server:
        with self._lock:
            if address not in self._servers:
                settings = self._settings
                self._servers[address] = _Server(settings.calls_per_second, settings.unresponsive_after_s)
            return self._servers[address]

    def _pause(self, seconds: float) -> None:
        if self._is_cancelled.wait(max(0.0, seconds)):
            raise _CancelledError

    def _is_wanted(self, kind: str) -> bool:
        return kind not in self._settings.exclude_kinds

    def _check_day(self) -> None:
        today = self._now().date()
        if today == self._ds:
            return
        if self._collected.line_counts:
            raise CollectError(
                f"It is {today} (UTC), and the capture of {self._ds} is not done; an export holds one day, so nothing is "
                "kept. Collect earlier in the day, or raise parallelism and calls_per_second."
            )
        raise CollectError(
            f"{self._ds} is not today ({today}, UTC), and a live cluster has only its current state; use the export that was "
            "landed on that day."
        )

    def _check_time(
        self,
        nameservers: Sequence[str],
        topics: list[str],
        groups: list[str],
        topics_of: dict[Broker, list[str]],
    ) -> None:
        """Refuse a capture that cannot end before midnight at the configured rate."""
        calls_per_group = 1 + self._is_wanted("consume_stats")
        offsets = self._is_wanted("broker_topic_stats")
        slowest = max(
            len(topics) if nameservers else 0,
            *(
                len(groups) * calls_per_group + offsets * len(broker_topics)
                for broker_topics in topics_of.values()
            ),
        )
        min_duration = timedelta(seconds=slowest / self._settings.calls_per_second)
        if (self._now() + min_duration).date() != self._ds:
            raise CollectError(
                f"The capture takes at least {min_duration.total_seconds() / 60:.0f} minutes at "
                f"{self._settings.calls_per_second:g} calls a second for each server, and {self._ds} (UTC) does not last so "
                "long; start it earlier, or raise calls_per_second."
            )


@dataclass(slots=True)
class _Members:
    """The members of a group in the lists of the brokers.

    Attributes:
        brokers: Brokers that list the member, by client id.
        doubled: Client ids that a broker lists more than once.
        topics: Topics that the group subscribes to.
        is_broadcasting: Whether the group is in broadcasting mode.
    """

    brokers: dict[str, list[Broker]] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    is_broadcasting: bool = False

    def add(self, broker: Broker, connections: Connections) -> None:
        """Add one broker's list."""
        self.topics.update(connections.topics)
        self.is_broadcasting = self.is_broadcasting or connections.is_broadcasting
        for client_id, count in Counter(connections.client_ids).items():
            self.brokers.setdefault(client_id, []).append(broker)
            if count > 1:
                self.doubled.add(client_id)


class _GroupLines:
    """The lines of one pass through a group, held until another pass cannot replace them any more. Thread-safe.

    Attributes:
        has_silent_member: Whether a member gave no answer, and may give one later.
        error_count: Number of lines with an error.
    """

    def __init__(self, write: Callable[..., None]) -> None:
        self.has_silent_member = False
        self.error_count = 0
        self._write = write
        self._lock = threading.Lock()
        self._held: list[tuple[Question, Line, dict[str, str]]] = []
        self._held_bytes = 0

    @property
    def are_held(self) -> bool:
        """Whether no line has been written to the export."""
        return self._held_bytes <= _MAX_HELD_GROUP_BYTES

    def write(self, question: Question, line: Line, **extra_fields: str) -> None:
        """Add a line; write all of them to the export if they are too large to be held."""
        with self._lock:
            self.error_count += line.answer.payload is None
            self._held.append((question, line, extra_fields))
            self._held_bytes += len(line.answer.payload or b"")
        if not self.are_held:
            self.release()

    def release(self) -> None:
        """Write the held lines to the export."""
        with self._lock:
            lines, self._held = self._held, []
        for question, line, extra_fields in lines:
            self._write(question, line, **extra_fields)


@contextmanager
def _acquired(*semaphores: threading.Semaphore | None) -> Iterator[None]:
    with ExitStack() as stack:
        for semaphore in filter(None, semaphores):
            stack.enter_context(semaphore)
        yield


class _End:
    """Sentinel type for the end of the items."""


_END: Final = _End()


class _CancelledError(Exception):
    """Ends a thread after a failure in another one."""


def _group_question(kind: str, broker: Broker, group: str, client_id: str = "") -> Question:
    return Question(
        kind=kind, broker=broker.name, broker_addr=broker.address, group=group, client_id=client_id
    )


def _round_robin(topics_of: dict[Broker, list[str]]) -> Iterator[tuple[Broker, str]]:
    """Yield the first topic of each broker, then the second of each, to spread the load."""
    for index in range(max(map(len, topics_of.values()), default=0)):
        for broker, topics in topics_of.items():
            if index < len(topics):
                yield broker, topics[index]


def _one_line(answer: Answer) -> str:
    return " ".join(f"{answer.error_type.rpartition('.')[2]}: {answer.error_message}".split())
