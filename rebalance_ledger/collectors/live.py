"""One capture of a live cluster: whom to ask what, in which order, and how gently.

What belongs here: the plan of calls, pace, patience with servers that do not answer, and what becomes a line. What does not:
how a call is made (`admin`), how lines get onto the disk (`export_writer`), where settings and credentials come from.

The order, and why:

1. every name server for its topics and its brokers: nothing can be planned without them;
2. every broker for its release, which decides what else it can be asked, then for what it has once: its topics, its groups,
   its settings, its producers;
3. the brokers that know the group of the proxies for its members: that is how proxies are found;
4. every name server for every topic's route, also for topics that only another one knows;
5. group by group: every broker and every proxy for the group's members, at once each member for what it holds (of a
   broadcasting group also for the offsets that it has in memory), several members at a time, then the progress. Asked close
   together, so that a rebalance in between is rare;
6. every name server for the routes of topics that members subscribe to and no name server has listed: that there is none
   is an answer, and clients keep the queues of such a topic;
7. every broker for the offsets of each of its topics.

A second attempt at a day is given the answers of the first: what was answered then is not asked again, except where a
failed question is of the same group, because the members of one group are asked close together or not at all.

What grows with the cluster is the names of topics, groups and brokers. Payloads go to the disk as they come.
"""

from __future__ import annotations

import re
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
from rebalance_ledger.collectors.tally import PASSED_ON, SYSTEM_BUSY, Tally, is_failure
from rebalance_ledger.exports.contract import NOT_ASKED, EnvelopeError
from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from rebalance_ledger.collectors.earlier_answers import EarlierAnswers
    from rebalance_ledger.settings.model import CollectSettings

_T = TypeVar("_T")
_U = TypeVar("_U")

NO_ANSWER: Final = "ServerNotAnswering"
"""Error type of a line whose server was not called, because it had not answered for too long."""

_PAUSE_S: Final = 0.5  # Before the first retry; each later one doubles it.
_FEWEST_FAILURES: Final = 3
_MEMBER_ROUTES: Final = 2  # Brokers through which a member is asked, if the first cannot reach it.

_PASSED_ON_AT_ONCE: Final = 8
"""Questions that one broker passes on to clients at a time: half of its threads for such requests, which wait meanwhile."""

_CLIENT_TIMED_OUT: Final = 207
"""`ResponseCode.CONSUME_MSG_TIMEOUT`."""

_KNOWN_SINCE: Final = {"broker_producer_table": (4, 9, 4), "broker_message_request_mode": (5, 0, 0)}
"""The first release whose brokers know a question, where that is not every release. Before 4.9.1 a broker does not respond at
all to a question that it does not know."""

_GRPC_CLIENT_ID: Final = re.compile(r"[^@]+@[0-9]+@[0-9]+@[0-9a-z]+")
"""Host, process id, number and time in base 36, as the gRPC clients of RocketMQ 5 name themselves; those of the remoting
protocol have `address@instance`."""

# What a broker has once, in the order in which it is asked.
_OF_A_BROKER: Final = (
    "broker_topic_config",
    "broker_subscription_group",
    "broker_config",
    "broker_message_request_mode",
    "broker_producer_table",
)

# What a failure costs beyond its own line.
_LOST_WITHOUT: Final = {
    "nameserver_topic_list": "topics that only it knows were not asked for",
    "nameserver_cluster_info": "brokers that only it knows were not asked",
    "broker_topic_config": "it was not asked for the offsets of its topics",
    "broker_subscription_group": "groups that only it knows were not asked for",
}


class Asks(Protocol):
    """Who makes the calls; `AdminClient` does."""

    def ask(self, question: Question, timeout_ms: int) -> Answer:
        """Ask one question, once."""


class Writes(Protocol):
    """Who keeps the lines; `ExportWriter` does."""

    def payload(self, kind: str, captured_at: datetime, payload: str, **asked: str | int) -> None:
        """Write what a source answered."""

    def error(
        self, kind: str, captured_at: datetime, error_type: str, message: str, **asked: str | int
    ) -> None:
        """Write that a source was asked and failed."""

    def event(self, at: datetime, text: str) -> None:
        """Write a sentence for people."""


class Progress(Protocol):
    """A listener for the progress of a capture."""

    def begin(self, what: str, total: int) -> None:
        """A part begins that has so many steps."""

    def advance(self) -> None:
        """One step is done."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that is asked: the master, or the slave with the lowest id where no name server knows a master."""

    name: str
    address: str


@dataclass(slots=True)
class Collected:
    """What came of a capture.

    Attributes:
        line_counts: Lines by kind.
        error_counts: How many of them are errors, by kind.
        silent: Servers that were given up, with the reason.
        remarks: What could not be planned, as sentences; they are in the export too.
        tally: How much of it failed.
    """

    line_counts: Counter[str] = field(default_factory=Counter)
    error_counts: Counter[str] = field(default_factory=Counter)
    silent: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=lambda: Tally(counts_proxies=True))


def collect(  # noqa: PLR0913  # each is a part of a capture that a test replaces
    client: Asks,
    writer: Writes,
    nameservers: Sequence[str],
    settings: CollectSettings,
    *,
    ds: date,
    progress: Progress,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    earlier: EarlierAnswers | None = None,
    cause_of_silence: Callable[[str], str] = lambda _: "",
) -> Collected:
    """Ask a cluster everything and write every answer, and every failure, as a line.

    Args:
        client: Makes the calls.
        writer: Keeps the lines.
        nameservers: Addresses; each is asked for itself.
        settings: How hard to ask.
        ds: The UTC day; it must be today, and stay so until the end.
        progress: Receives the progress.
        now: The clock.
        earlier: The answers of the day's earlier attempts, if there are any.
        cause_of_silence: Finds out why a server does not answer: a clause, empty if it does not know.

    Raises:
        AdminClientError: The client has ended.
        CollectError: The capture is not of today, or would run over midnight.
        ExportError: A line cannot be written.
        UnreachableError: No name server or no broker tells what there is to ask.
    """
    return _Capture(client, writer, settings, ds, progress, now, earlier, cause_of_silence).run(nameservers)


class _Server:
    """The pace that one address is called at, and whether it is still worth a call."""

    def __init__(self, calls_per_second: float, unresponsive_after_s: float) -> None:
        self._interval_s = 1 / calls_per_second
        self._dead_after_s = unresponsive_after_s
        self._lock = threading.Lock()
        self._next_turn = 0.0
        self._silent_since: float | None = None
        self._failure_count = 0
        self.given_up = ""
        self.passed_on = threading.Semaphore(_PASSED_ON_AT_ONCE)

    def turn_in_s(self) -> float:
        """Take the next turn; return in how many seconds it comes."""
        with self._lock:
            turn = max(self._next_turn, time.monotonic())
            self._next_turn = turn + self._interval_s
            return turn - time.monotonic()

    def answered(self) -> None:
        """It lives."""
        with self._lock:
            self._silent_since, self._failure_count = None, 0

    def failed(self, called_at: float, said: str) -> None:
        """A call, begun at this monotonic time, came to nothing."""
        with self._lock:
            self._failure_count += 1
            self._silent_since = called_at if self._silent_since is None else self._silent_since
            silent_s = time.monotonic() - self._silent_since
            if self._failure_count >= _FEWEST_FAILURES and silent_s >= self._dead_after_s:
                self.given_up = self.given_up or (
                    f"not called any more in this run, after {self._failure_count} calls in {silent_s:.0f} s to which "
                    f"nobody answered; the last one said: {said}"
                )


class _Capture:
    """One run of `collect`."""

    def __init__(
        self,
        client: Asks,
        writer: Writes,
        settings: CollectSettings,
        ds: date,
        progress: Progress,
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
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._servers: dict[str, _Server] = {}
        self._collected = Collected(tally=Tally(counts_proxies=bool(settings.proxies)))
        self._subscribed: set[str] = set()
        self._earlier = earlier
        self._attempt = earlier.attempt_count + 1 if earlier is not None else None
        self._releases: dict[str, tuple[int, int, int]] = {}
        self._proxies: list[str] = []
        # Members are asked beside the threads that have the groups; this holds both to the same limit.
        self._under_way = threading.Semaphore(settings.parallelism)

    def run(self, nameservers: Sequence[str]) -> Collected:
        self._check_day()
        topics, brokers = self._ask_name_servers(nameservers)
        topics_of, groups = self._ask_brokers(topics, brokers)
        self._check_time(nameservers, topics, groups, topics_of)
        self._ask_routes("routes", nameservers, topics)
        with ThreadPoolExecutor(self._settings.parallelism, thread_name_prefix="members") as members:
            self._each(
                "groups",
                len(groups),
                enumerate(groups),
                lambda group: self._ask_group(*group, brokers, members),
            )
        self._ask_routes("routes of unlisted topics", nameservers, sorted(self._subscribed - set(topics)))
        if self._is_wanted("broker_topic_stats"):
            self._each(
                "topic offsets",
                sum(map(len, topics_of.values())),
                _in_turn(topics_of),
                lambda of: self._record(
                    Question(
                        kind="broker_topic_stats", broker=of[0].name, broker_addr=of[0].address, topic=of[1]
                    )
                ),
            )
        self._collected.silent = {
            address: server.given_up + self._tls_clause(address)
            for address, server in self._servers.items()
            if server.given_up
        }
        for sentence in refusal_sentences(self._collected.tally.refused, self._collected.line_counts):
            self._remark(sentence)
        self._remark_silent_proxies()
        return self._collected

    def _ask_name_servers(self, nameservers: Sequence[str]) -> tuple[list[str], list[Broker]]:
        """Ask for topics and brokers; return all that any of them knows, sorted."""
        topics: set[str] = set()
        addresses: dict[str, set[tuple[int, str]]] = {}
        failures: list[str] = []

        def ask(nameserver: str) -> None:
            listed = self._record(Question(kind="nameserver_topic_list", nameserver=nameserver))
            known = self._record(Question(kind="nameserver_cluster_info", nameserver=nameserver))
            named_topics = self._names(listed, topics_of_list, ())
            named_brokers = self._names(known, brokers_of_cluster, ())
            with self._lock:
                topics.update(named_topics)
                for name, broker_id, address in named_brokers:
                    addresses.setdefault(name, set()).add((broker_id, address))
                if listed.answer.payload is None:
                    failures.append(f"{nameserver}: {_one_line(listed.answer)}")

        self._each("name servers", len(nameservers), nameservers, ask)
        if not topics or not addresses:
            why = "; ".join(failure + self._tls_clause(failure) for failure in sorted(failures))
            why = why or "they know no topic or no broker"
            raise UnreachableError(
                f"None of the name servers ({', '.join(nameservers)}) tells what there is to collect ({why}); "
                "check the addresses, the credentials, and whether they run."
            )
        brokers = []
        for name in sorted(addresses):
            lowest = min(addresses[name])[0]
            # After a change of masters, name servers may know different ones.
            brokers += [Broker(name, address) for id_, address in sorted(addresses[name]) if id_ == lowest]
        return sorted(topics), brokers

    def _ask_brokers(
        self, topics: list[str], brokers: list[Broker]
    ) -> tuple[dict[Broker, list[str]], list[str]]:
        """Ask each broker for what it has once; return its topics, and the groups of all, sorted."""
        topics_of: dict[Broker, list[str]] = {broker: [] for broker in brokers}
        groups: set[str] = set()
        failures: list[str] = []
        proxied: list[Broker] = []

        def ask(broker: Broker) -> None:
            self._learn_release(broker)
            heard = {
                kind: self._record(Question(kind=kind, broker=broker.name, broker_addr=broker.address))
                for kind in _OF_A_BROKER
                if self._is_wanted(kind)
            }
            # Most brokers have most topics: the same names, kept once.
            own = self._names(heard["broker_topic_config"], topics_of_broker, ())
            topics_of[broker] = sorted(map(sys.intern, own))
            known = heard["broker_subscription_group"]
            named = self._names(known, groups_of_broker, None)
            with self._lock:
                groups.update(named or ())
                if named is None:
                    failures.append(f"{broker.address}: {_one_line(known.answer)}")
                if PROXY_HEARTBEAT_GROUP in (named or ()) or HEARTBEAT_SYNCER in own:
                    proxied.append(broker)

        self._each("brokers", len(brokers), brokers, ask)
        if failures:
            # Topics say which groups there are where a broker does not; elsewhere they may be of groups that are gone.
            all_topics = set(topics).union(*topics_of.values())
            groups.update(filter(None, (group_of_retry_topic(topic, all_topics) for topic in all_topics)))
        users = sorted(group for group in groups if not is_system_group(group))
        if not users and failures:
            raise UnreachableError(
                f"No broker tells which consumer groups there are ({'; '.join(each + self._tls_clause(each) for each in sorted(failures))}); check whether they can be "
                "reached from here, and the credentials."
            )
        if not users:
            raise CollectError(
                "The cluster has no consumer group, so there is nothing that an export could tell of ownership; collect it "
                "when something consumes from it."
            )
        self._find_proxies(sorted(proxied, key=lambda broker: (broker.name, broker.address)))
        return topics_of, users

    def _tls_clause(self, failure: str) -> str:
        """Say of a failure that begins with a server's address whether TLS is its cause."""
        cause = self._cause_of_silence(failure.partition(": ")[0])
        return f": {cause}" if cause else ""

    def _learn_release(self, broker: Broker) -> None:
        """Ask which release a broker is of: it decides what else the broker can be asked."""
        heard = self._record(
            Question(kind="broker_runtime_info", broker=broker.name, broker_addr=broker.address)
        )
        release = self._names(heard, release_of_broker, None)
        if release is not None:
            with self._lock:
                self._releases[broker.address] = release

    def _find_proxies(self, brokers: list[Broker]) -> None:
        """Learns the proxies' addresses: those of the settings, or else the hosts that are connected as proxies are."""
        hosts: set[str] = set()
        for broker in brokers:
            heard = self._record(_of_group("consumer_connection", broker, PROXY_HEARTBEAT_GROUP))
            hosts.update(filter(None, self._names(heard, connections_of, Connections()).hosts))
        found = sorted(f"{host}:{self._settings.proxy_port}" for host in hosts)
        self._proxies = self._settings.proxies or found
        if self._settings.proxies and len(hosts) > len(self._settings.proxies):
            self._remark(
                f"Proxies are connected from {len(hosts)} hosts ({', '.join(sorted(hosts))}), and the settings name "
                f"{len(self._settings.proxies)}; add the others to collect.proxies, so that their clients are known."
            )

    def _ask_routes(self, what: str, nameservers: Sequence[str], topics: list[str]) -> None:
        self._each(
            what,
            len(nameservers) * len(topics),
            (
                Question(kind="nameserver_route", nameserver=nameserver, topic=topic)
                for topic in topics
                for nameserver in nameservers
            ),
            self._record,
        )

    def _ask_group(self, place: int, group: str, brokers: list[Broker], members: ThreadPoolExecutor) -> None:
        """Ask for one group's members, what each holds, and the group's progress."""
        # Each group begins elsewhere, so that not all of them stand before one broker.
        first = place % len(brokers)
        in_turn = brokers[first:] + brokers[:first]
        seen = _Seen()
        for broker in in_turn:
            heard = self._record(_of_group("consumer_connection", broker, group))
            seen.add(broker, self._names(heard, connections_of, Connections()))
        for proxy in self._proxies:
            self._record(Question(kind="proxy_consumer_connection", proxy=proxy, group=group))
        with self._lock:
            self._subscribed.update(seen.topics)
        asked = [
            members.submit(self._ask_about_member, group, number, client_id, seen)
            for number, client_id in enumerate(sorted(seen.brokers))
        ]
        wait(asked, return_when=FIRST_EXCEPTION)
        failures = [error for each in asked if each.done() and (error := each.exception()) is not None]
        if failures:
            self._is_over.set()
            raise min(failures, key=lambda error: isinstance(error, _OverError))
        if self._is_wanted("consume_stats"):
            for broker in in_turn:
                self._record(_of_group("consume_stats", broker, group))

    def _ask_about_member(self, group: str, number: int, client_id: str, seen: _Seen) -> None:
        """Ask one member for what it holds, and in a broadcasting group for the offsets that it has in memory."""
        if self._is_over.is_set():
            raise _OverError
        # Members begin at different brokers, each at one that sees it.
        brokers = seen.brokers[client_id]
        first = number % len(brokers)
        ways = brokers[first:] + brokers[:first]
        way: Broker | None = ways[0]
        if self._is_wanted("consumer_running_info"):
            way = self._ask_member(group, client_id, ways, is_doubled=client_id in seen.doubled)
        if seen.is_broadcasting and way is not None and self._is_wanted("consumer_status"):
            for topic in sorted(seen.topics):
                self._ask_status(group, client_id, topic, way)

    def _ask_member(
        self, group: str, client_id: str, ways: list[Broker], *, is_doubled: bool
    ) -> Broker | None:
        """Ask one member, through another broker if the first cannot reach it; write one line.

        An id that a broker lists twice may be of several processes, and each broker passes a question on to the one that it
        finds first: so each is asked, and processes that differ are distinguished by when they started.

        Returns the broker through which it answered, if it did.
        """
        question = _of_group("consumer_running_info", ways[0], group, client_id)
        if _GRPC_CLIENT_ID.fullmatch(client_id):
            why = "its id is that of a gRPC client, and such a client has no running info"
            self._write(question, self._not_asked(why, question))
            return None
        answered: list[tuple[Question, Line]] = []
        for place, broker in enumerate(ways):
            if place >= _MEMBER_ROUTES and not is_doubled:
                break
            question = _of_group("consumer_running_info", broker, group, client_id)
            heard = self._ask(question)
            if heard.answer.payload is not None:
                answered.append((question, heard))
            if not is_doubled and (answered or heard.answer.response_code == _CLIENT_TIMED_OUT):
                break
        if not answered:
            self._write(question, heard)
            return None
        self._write(*answered[0])
        if is_doubled:
            self._write_processes(answered)
        way = answered[0][1].question
        return Broker(way.broker, way.broker_addr)

    def _write_processes(self, answered: list[tuple[Question, Line]]) -> None:
        """Write what each of several processes with one client id holds, if the answers prove that there are several."""
        processes: dict[str, tuple[Question, Line]] = {}
        for question, heard in answered:
            start = self._names(heard, start_of_process, None)
            if start is not None:
                processes.setdefault(start, (question, heard))
        if len(processes) > 1:
            for start, (question, heard) in sorted(processes.items()):
                self._write(replace(question, kind="process_assignment"), heard, process=f"started {start}")

    def _ask_status(self, group: str, client_id: str, topic: str, broker: Broker) -> None:
        """Ask one member for the offsets of a topic that it has in memory; nothing else is planned by the answer."""
        question = replace(_of_group("consumer_status", broker, group, client_id), topic=topic)
        self._write(question, self._ask(question))

    def _record(self, question: Question) -> Line:
        """Ask and write the line."""
        heard = self._ask(question)
        self._write(question, heard)
        answer = heard.answer
        if answer.error_type and question.kind in _LOST_WITHOUT:
            who = f"{question.broker} at {question.address}" if question.broker else question.address
            self._remark(
                f"The answer of {who} to {question.kind} was an error, so {_LOST_WITHOUT[question.kind]}."
            )
        return heard

    def _names(self, heard: Line, read: Callable[[bytes], _T], otherwise: _U) -> _T | _U:
        """Return what an answer names; a payload that cannot be read is kept, and names nothing."""
        if heard.answer.payload is None:
            return otherwise
        try:
            return read(heard.answer.payload)
        except NamesError as error:
            question = heard.question
            who = f"{question.broker} at {question.address}" if question.broker else question.address
            whose = f" for group {question.group!r}" if question.group else ""
            self._remark(
                f"The answer of {who} to {question.kind}{whose} cannot be read ({error}), so what only it names was not asked for."
            )
            return otherwise

    def _ask(self, question: Question) -> Line:
        """Ask, again where nobody answered; return the last answer, or that of an earlier attempt where this one failed."""
        if self._earlier is None:
            return self._ask_now(question)
        earlier = self._earlier.find(question)
        if earlier is not None and not self._earlier.is_asked_again(question):
            return earlier
        heard = self._ask_now(question)
        if earlier is None or not is_failure(question.kind, heard.answer):
            return heard
        return heard if is_failure(question.kind, earlier.answer) else earlier

    def _ask_now(self, question: Question) -> Line:
        since = _KNOWN_SINCE.get(question.kind)
        release = self._releases.get(question.address)
        if since is not None and release is not None and release < since:
            why = f"release {'.'.join(map(str, release))} does not know this question"
            return self._not_asked(why, question)
        # Without the release, silence may only mean that the question is not known: it is no sign of a dead server.
        may_be_unknown = since is not None and release is None
        answer = self._call(question, may_be_unknown=may_be_unknown)
        if answer is None:
            given_up = self._server(question.address).given_up
            answer = Answer(error_type=NO_ANSWER, error_message=f"{question.address} was {given_up}")
        elif may_be_unknown and answer.response_code is None:
            why = "the broker's release is not known, and releases before 4.9.1 do not respond to a question that they do not know"
            answer = replace(answer, error_message=f"{answer.error_message} ({why})")
        return Line(question, answer, self._now(), self._attempt)

    def _call(self, question: Question, *, may_be_unknown: bool) -> Answer | None:
        """Call a server, again where it did not respond; None if it has been given up."""
        server = self._server(question.address)
        is_passed_on = question.kind in PASSED_ON
        settings = self._settings
        timeout_ms = settings.client_timeout_ms if is_passed_on else settings.call_timeout_ms
        retries = 0 if may_be_unknown else settings.retries
        answer = None
        for attempt in range(1 + retries):
            if server.given_up:
                break
            with _all_of(server.passed_on if is_passed_on else None, self._under_way):
                self._pause(server.turn_in_s())
                self._check_day()
                called_at = time.monotonic()
                answer = self._client.ask(question, timeout_ms)
            if answer.response_code is not None:
                server.answered()
                if answer.response_code != SYSTEM_BUSY:
                    break
            elif not may_be_unknown:
                server.failed(called_at, _one_line(answer))
            if is_passed_on and "Timeout" in answer.error_type:
                break  # That was long, and there may be another broker who knows the client.
            if attempt < retries:
                self._pause(_PAUSE_S * 2**attempt)
        return answer

    def _not_asked(self, why: str, question: Question) -> Line:
        answer = Answer(error_type=NOT_ASKED, error_message=f"not asked: {why}")
        return Line(question, answer, self._now(), self._attempt)

    def _write(self, question: Question, heard: Line, **beside: str) -> None:
        # What an earlier attempt has brought may have come through another broker.
        asked = heard.question.asked | beside
        if heard.attempt is not None:
            asked["attempt"] = heard.attempt
        answer = heard.answer
        try:
            if answer.payload is None:
                self._writer.error(question.kind, heard.at, answer.error_type, answer.error_message, **asked)
            else:
                text = answer.payload.decode(errors="replace")
                self._writer.payload(question.kind, heard.at, text, **asked)
        except EnvelopeError as error:
            described = ", ".join(f"{name} {value!r}" for name, value in question.asked.items())
            self._remark(
                f"The answer to {question.kind} ({described}) is not in this export: {error.reason}."
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
        """Say of each proxy that was given up, or refuses all, what to do."""
        for proxy in self._proxies:
            if proxy in self._collected.silent:
                self._remark(
                    f"The proxy at {proxy} does not answer, so whether groups have clients there is unknown; let this machine "
                    "reach its remotingListenPort, or set collect.proxies or collect.proxy_port."
                )

    def _remark(self, sentence: str) -> None:
        with self._lock:
            self._collected.remarks.append(sentence)
        self._writer.event(self._now(), sentence)

    def _each(self, what: str, total: int, items: Iterable[_T], do: Callable[[_T], object]) -> None:
        """Does something for each item, several at a time; the first failure ends all."""
        self._progress.begin(what, total)
        waiting = iter(items)

        def work() -> None:
            try:
                while not self._is_over.is_set():
                    with self._lock:
                        item = next(waiting, _END)
                    if isinstance(item, _End):
                        return
                    do(item)
                    self._progress.advance()
            except BaseException:
                self._is_over.set()
                raise

        count = min(self._settings.parallelism, max(total, 1))
        with ThreadPoolExecutor(count, thread_name_prefix="collect") as pool:
            try:
                done, _ = wait([pool.submit(work) for _ in range(count)], return_when=FIRST_EXCEPTION)
            except BaseException:
                self._is_over.set()
                raise
        failures = [error for each in done if (error := each.exception()) is not None]
        if failures:
            # Those who only saw that it is over say so; the cause comes first.
            raise min(failures, key=lambda error: isinstance(error, _OverError))

    def _server(self, address: str) -> _Server:
        with self._lock:
            if address not in self._servers:
                settings = self._settings
                self._servers[address] = _Server(settings.calls_per_second, settings.unresponsive_after_s)
            return self._servers[address]

    def _pause(self, seconds: float) -> None:
        if self._is_over.wait(max(0.0, seconds)):
            raise _OverError

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
            f"{self._ds} is not today ({today}, UTC), and a live cluster only tells of now; use the export that was "
            "landed on that day."
        )

    def _check_time(
        self,
        nameservers: Sequence[str],
        topics: list[str],
        groups: list[str],
        topics_of: dict[Broker, list[str]],
    ) -> None:
        """Refuse at once a capture that cannot end before midnight at the pace that is allowed."""
        of_group = 1 + self._is_wanted("consume_stats")
        offsets = self._is_wanted("broker_topic_stats")
        slowest = max(
            len(topics) if nameservers else 0,
            *(len(groups) * of_group + offsets * len(of_broker) for of_broker in topics_of.values()),
        )
        at_least = timedelta(seconds=slowest / self._settings.calls_per_second)
        if (self._now() + at_least).date() != self._ds:
            raise CollectError(
                f"The capture takes at least {at_least.total_seconds() / 60:.0f} minutes at "
                f"{self._settings.calls_per_second:g} calls a second for each server, and {self._ds} (UTC) does not last so "
                "long; start it earlier, or raise calls_per_second."
            )


@dataclass(slots=True)
class _Seen:
    """The members of a group, as the brokers list them.

    Attributes:
        brokers: Those that list a client id.
        doubled: The client ids that a broker lists more than once.
        topics: What the group subscribes to.
        is_broadcasting: Whether its members take every queue.
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


@contextmanager
def _all_of(*semaphores: threading.Semaphore | None) -> Iterator[None]:
    with ExitStack() as held:
        for semaphore in filter(None, semaphores):
            held.enter_context(semaphore)
        yield


class _End:
    """Says that nothing is left to do."""


_END: Final = _End()


class _OverError(Exception):
    """Ends a thread whose work another one's failure has made useless."""


def _of_group(kind: str, broker: Broker, group: str, client_id: str = "") -> Question:
    return Question(
        kind=kind, broker=broker.name, broker_addr=broker.address, group=group, client_id=client_id
    )


def _in_turn(topics_of: dict[Broker, list[str]]) -> Iterator[tuple[Broker, str]]:
    """Yield the first topic of each broker, then the second of each, so that no broker gets all calls at once."""
    for place in range(max(map(len, topics_of.values()), default=0)):
        for broker, topics in topics_of.items():
            if place < len(topics):
                yield broker, topics[place]


def _one_line(answer: Answer) -> str:
    return " ".join(f"{answer.error_type.rpartition('.')[2]}: {answer.error_message}".split())
