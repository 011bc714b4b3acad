"""One capture of a live cluster: whom to ask what, in which order, and how gently.

What belongs here: the plan of calls, pace, patience with servers that do not answer, and what becomes a line. What does not:
how a call is made (`admin`), how lines get onto the disk (`export_writer`), where settings and credentials come from.

The order, and why:

1. every name server for its topics and its brokers: nothing can be planned without them;
2. every broker for what it has once: its topics, its groups, its settings, its producers;
3. every name server for every topic's route, also for topics that only another one knows;
4. group by group: every broker for the group's members, at once each member for what it holds (of a broadcasting group
   also for the offsets that it has in memory), then the progress. Asked close together, so that a rebalance in between is
   rare;
5. every name server for the routes of topics that members subscribe to and no name server has listed: that there is none
   is an answer, and clients keep the queues of such a topic;
6. every broker for the offsets of each of its topics.

What grows with the cluster is the names of topics, groups and brokers. Payloads go to the disk as they come.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from topology.collect.admin import Answer, Question
from topology.collect.errors import CollectError, UnreachableError
from topology.contract import EnvelopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from settings.model import CollectSettings

_T = TypeVar("_T")

NO_ANSWER: Final = "ServerNotAnswering"
"""Error type of a line whose server was not called, because it had not answered for too long."""

_MASTER_ID: Final = "0"
_PAUSE_S: Final = 0.5  # Before the first retry; each later one doubles it.
_FEWEST_FAILURES: Final = 3
_MEMBER_ROUTES: Final = 2  # Brokers through which a member is asked, if the first cannot reach it.

_BROADCASTING: Final = b'"messageModel":"BROADCASTING"'
"""In a broker's list of members. No text of a client can feign it: inside of one, quotes have a backslash before them."""

_PASSED_ON: Final = frozenset({"consumer_running_info", "consumer_status"})
"""Kinds of questions that a broker passes on to a client."""

# Response codes: RemotingSysResponseCode.SYSTEM_BUSY, ResponseCode.CONSUME_MSG_TIMEOUT.
_SYSTEM_BUSY: Final = 2
_CLIENT_TIMED_OUT: Final = 207

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
        """Asks one question, once."""


class Writes(Protocol):
    """Who keeps the lines; `ExportWriter` does."""

    def payload(self, kind: str, captured_at: datetime, payload: str, **asked: str | int) -> None:
        """Writes what a source answered."""

    def error(
        self, kind: str, captured_at: datetime, error_type: str, message: str, **asked: str | int
    ) -> None:
        """Writes that a source was asked and failed."""

    def event(self, at: datetime, text: str) -> None:
        """Writes a sentence for people."""


class Progress(Protocol):
    """Who is told how far it is."""

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
    """

    line_counts: Counter[str] = field(default_factory=Counter)
    error_counts: Counter[str] = field(default_factory=Counter)
    silent: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def collect(
    client: Asks,
    writer: Writes,
    nameservers: Sequence[str],
    settings: CollectSettings,
    *,
    ds: date,
    progress: Progress,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Collected:
    """Asks a cluster everything and writes every answer, and every failure, as a line.

    Args:
        client: Makes the calls.
        writer: Keeps the lines.
        nameservers: Addresses; each is asked for itself.
        settings: How hard to ask.
        ds: The UTC day; it must be today, and stay so until the end.
        progress: Is told how far it is.
        now: The clock.

    Raises:
        AdminClientError: The client has ended.
        CollectError: The capture is not of today, or would run over midnight.
        ExportError: A line cannot be written.
        UnreachableError: No name server or no broker tells what there is to ask.
    """
    return _Capture(client, writer, settings, ds, progress, now).run(nameservers)


class _Server:
    """The pace that one address is called at, and whether it is still worth a call."""

    def __init__(self, calls_per_second: float, dead_after_s: float) -> None:
        self._interval_s = 1 / calls_per_second
        self._dead_after_s = dead_after_s
        self._lock = threading.Lock()
        self._next_turn = 0.0
        self._silent_since: float | None = None
        self._failure_count = 0
        self.given_up = ""

    def turn_in_s(self) -> float:
        """Takes the next turn; returns in how many seconds it comes."""
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
    ) -> None:
        self._client = client
        self._writer = writer
        self._settings = settings
        self._ds = ds
        self._progress = progress
        self._now = now
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._servers: dict[str, _Server] = {}
        self._collected = Collected()
        self._subscribed: set[str] = set()

    def run(self, nameservers: Sequence[str]) -> Collected:
        self._check_day()
        topics, brokers = self._ask_name_servers(nameservers)
        topics_of, groups = self._ask_brokers(brokers)
        self._check_time(nameservers, topics, groups, topics_of)
        self._ask_routes("routes", nameservers, topics)
        self._each("groups", len(groups), enumerate(groups), lambda group: self._ask_group(*group, brokers))
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
            address: server.given_up for address, server in self._servers.items() if server.given_up
        }
        return self._collected

    def _ask_name_servers(self, nameservers: Sequence[str]) -> tuple[list[str], list[Broker]]:
        """Asks for topics and brokers; returns all that any of them knows, sorted."""
        topics: set[str] = set()
        addresses: dict[str, set[tuple[int, str]]] = {}
        failures: list[str] = []

        def ask(nameserver: str) -> None:
            listed = self._record(Question(kind="nameserver_topic_list", nameserver=nameserver))
            known = self._record(Question(kind="nameserver_cluster_info", nameserver=nameserver)).names
            with self._lock:
                topics.update(listed.names)
                for name, broker_id, address in zip(known[::3], known[1::3], known[2::3], strict=True):
                    addresses.setdefault(name, set()).add((int(broker_id), address))
                if listed.payload is None:
                    failures.append(f"{nameserver}: {_one_line(listed)}")

        self._each("name servers", len(nameservers), nameservers, ask)
        if not topics or not addresses:
            why = "; ".join(sorted(failures)) or "they know no topic or no broker"
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

    def _ask_brokers(self, brokers: list[Broker]) -> tuple[dict[Broker, list[str]], list[str]]:
        """Asks each broker for what it has once; returns its topics, and the groups of all, sorted."""
        topics_of: dict[Broker, list[str]] = {broker: [] for broker in brokers}
        groups: set[str] = set()
        failures: list[str] = []

        def ask(broker: Broker) -> None:
            answers = {
                kind: self._record(Question(kind=kind, broker=broker.name, broker_addr=broker.address))
                for kind in _OF_A_BROKER
                if self._is_wanted(kind)
            }
            # Most brokers have most topics: the same names, kept once.
            topics_of[broker] = sorted(map(sys.intern, answers["broker_topic_config"].names))
            known = answers["broker_subscription_group"]
            with self._lock:
                groups.update(known.names)
                if known.payload is None:
                    failures.append(f"{broker.address}: {_one_line(known)}")

        self._each("brokers", len(brokers), brokers, ask)
        if not groups and failures:
            raise UnreachableError(
                f"No broker tells which consumer groups there are ({'; '.join(sorted(failures))}); check whether they can be "
                "reached from here, and the credentials."
            )
        if not groups:
            raise CollectError(
                "The cluster has no consumer group, so there is nothing that an export could tell of ownership; collect it "
                "when something consumes from it."
            )
        return topics_of, sorted(groups)

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

    def _ask_group(self, place: int, group: str, brokers: list[Broker]) -> None:
        """Asks for one group's members, what each holds, and the group's progress."""
        # Each group begins elsewhere, so that not all of them stand before one broker.
        first = place % len(brokers)
        in_turn = brokers[first:] + brokers[:first]
        seen_by: dict[str, list[Broker]] = {}
        subscribed: set[str] = set()
        is_broadcasting = False
        for broker in in_turn:
            answer = self._record(_of_group("consumer_connection", broker, group))
            client_ids, topics = _ids_and_topics(answer)
            subscribed.update(topics)
            is_broadcasting = is_broadcasting or _BROADCASTING in (answer.payload or b"")
            # A client id shared by two processes is there twice.
            for client_id in dict.fromkeys(client_ids):
                seen_by.setdefault(client_id, []).append(broker)
        with self._lock:
            self._subscribed.update(subscribed)
        for client_id in sorted(seen_by):
            way: Broker | None = seen_by[client_id][0]
            if self._is_wanted("consumer_running_info"):
                way = self._ask_member(group, client_id, seen_by[client_id])
            if is_broadcasting and way is not None and self._is_wanted("consumer_status"):
                for topic in sorted(subscribed):
                    self._ask_status(group, client_id, topic, way)
        if self._is_wanted("consume_stats"):
            for broker in in_turn:
                self._record(_of_group("consume_stats", broker, group))

    def _ask_member(self, group: str, client_id: str, seen_by: list[Broker]) -> Broker | None:
        """Asks one member, through another broker if the first cannot reach it; writes one line.

        Returns the broker through which it answered, if it did.
        """
        for broker in seen_by[:_MEMBER_ROUTES]:
            question = _of_group("consumer_running_info", broker, group, client_id)
            answer, at = self._ask(question)
            if answer.payload is not None or answer.response_code == _CLIENT_TIMED_OUT:
                break
        self._write(question, answer, at)
        return None if answer.payload is None else broker

    def _ask_status(self, group: str, client_id: str, topic: str, broker: Broker) -> None:
        """Asks one member for the offsets of a topic that it has in memory; nothing else is planned by the answer."""
        question = replace(_of_group("consumer_status", broker, group, client_id), topic=topic)
        self._write(question, *self._ask(question))

    def _record(self, question: Question) -> Answer:
        """Asks and writes the line."""
        answer, at = self._ask(question)
        self._write(question, answer, at)
        if answer.error_type and (answer.payload is not None or question.kind in _LOST_WITHOUT):
            who = f"{question.broker} at {question.address}" if question.broker else question.address
            whose = f" for group {question.group!r}" if question.group else ""
            if answer.payload is not None:
                what = "cannot be read by RocketMQ's client, so what only it names was not asked for"
            else:
                what = f"was an error, so {_LOST_WITHOUT[question.kind]}"
            self._remark(f"The answer of {who} to {question.kind}{whose} {what}.")
        return answer

    def _ask(self, question: Question) -> tuple[Answer, datetime]:
        """Asks, again where nobody answered; returns the last answer and when it came."""
        server = self._server(question.address)
        is_passed_on = question.kind in _PASSED_ON
        settings = self._settings
        timeout_ms = settings.client_timeout_ms if is_passed_on else settings.call_timeout_ms
        answer = None
        for attempt in range(1 + settings.retries):
            if server.given_up:
                break
            self._pause(server.turn_in_s())
            self._check_day()
            called_at = time.monotonic()
            answer = self._client.ask(question, timeout_ms)
            if answer.response_code is not None:
                server.answered()
                if answer.response_code != _SYSTEM_BUSY:
                    break
            else:
                server.failed(called_at, _one_line(answer))
            if is_passed_on and "Timeout" in answer.error_type:
                break  # That was long, and there may be another broker who knows the client.
            if attempt < settings.retries:
                self._pause(_PAUSE_S * 2**attempt)
        if answer is None:
            answer = Answer(error_type=NO_ANSWER, error_message=f"{question.address} was {server.given_up}")
        return answer, self._now()

    def _write(self, question: Question, answer: Answer, at: datetime) -> None:
        try:
            if answer.payload is None:
                self._writer.error(
                    question.kind, at, answer.error_type, answer.error_message, **question.asked
                )
            else:
                text = answer.payload.decode(errors="replace")
                self._writer.payload(question.kind, at, text, **question.asked)
        except EnvelopeError as error:
            asked = ", ".join(f"{name} {value!r}" for name, value in question.asked.items())
            self._remark(f"The answer to {question.kind} ({asked}) is not in this export: {error.reason}.")
            return
        with self._lock:
            self._collected.line_counts[question.kind] += 1
            self._collected.error_counts[question.kind] += answer.payload is None

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
                self._servers[address] = _Server(settings.calls_per_second, settings.dead_after_s)
            return self._servers[address]

    def _pause(self, seconds: float) -> None:
        if self._is_over.wait(max(0.0, seconds)):
            raise _OverError

    def _is_wanted(self, kind: str) -> bool:
        return kind not in self._settings.leave_out

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
        """Refuses at once a capture that cannot end before midnight at the pace that is allowed."""
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


class _End:
    """Says that nothing is left to do."""


_END: Final = _End()


class _OverError(Exception):
    """Ends a thread whose work another one's failure has made useless."""


def _of_group(kind: str, broker: Broker, group: str, client_id: str = "") -> Question:
    return Question(
        kind=kind, broker=broker.name, broker_addr=broker.address, group=group, client_id=client_id
    )


def _ids_and_topics(connections: Answer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Whom a connection list names, and what they subscribe to. Topics have names; an id may be any text, even none."""
    if not connections.names:
        return (), ()
    end = len(connections.names) - 1 - connections.names[::-1].index("")
    return connections.names[:end], connections.names[end + 1 :]


def _in_turn(topics_of: dict[Broker, list[str]]) -> Iterator[tuple[Broker, str]]:
    """The first topic of each broker, then the second of each, so that no broker gets all calls at once."""
    for place in range(max(map(len, topics_of.values()), default=0)):
        for broker, topics in topics_of.items():
            if place < len(topics):
                yield broker, topics[place]


def _one_line(answer: Answer) -> str:
    return " ".join(f"{answer.error_type.rpartition('.')[2]}: {answer.error_message}".split())
