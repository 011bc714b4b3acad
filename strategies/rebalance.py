"""One round of rebalancing: how a client applies its strategy's result for a topic.

Belongs here: the outcome of a round (applied, dropped or kept) and its reason.
Does not belong here: the strategies; locks, start offsets and expired pulls, which can delay a single queue
but do not change the assignment (here every removal and every start offset succeeds).

Source: `RebalanceImpl.rebalanceByTopic`, `updateProcessQueueTableInRebalance` and
`truncateMessageQueueNotMyTopic` (Java; 5.0.0 and 5.5.0 changed them), `defaultConsumer.doBalance` (Go 2.x),
`Rebalance::doRebalance` (C++ 2.x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.errors import RocketMQError
from rebalance_ledger.rocketmq.message_queue import sort_client_ids, sort_queues
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE, DEFAULT_VERSION, Client, Language

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from strategies.strategy import Strategy


def retry_topic(consumer_group: str) -> str:
    """Return the topic to which a push consumer of this group in CLUSTERING mode also subscribes."""
    return f"{RETRY_PREFIX}{consumer_group}"


class MessageModel(Enum):
    """How the clients of a group share messages."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class Effect(Enum):
    """How a round changed the client's assignment for the topic."""

    APPLIED = "applied"
    DROPPED = "dropped"
    KEPT = "kept"


class Reason(Enum):
    """The reason for an effect."""

    STRATEGY_ANSWERED = "the strategy answered"
    EVERY_QUEUE = "a broadcasting client takes every queue"
    NO_SHARE = "the strategy left nothing for this client"
    OWN_ID_MISSING = "the client's own id is not among the ids of the group"
    STRATEGY_RETURNED_NULL = "the strategy returned null"
    STRATEGY_FAILED = "the strategy threw an error"
    QUEUES_UNKNOWN = "no route of the topic is known"
    QUEUES_EMPTY = "the topic has no readable queue"
    CLIENTS_UNKNOWN = "the broker did not answer with the ids of the group"
    CLIENTS_EMPTY = "the broker answered with no ids"
    NAMES_UNSORTABLE = "a null name cannot be sorted"


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """Result of one round for one topic on one client.

    Attributes:
        effect: `APPLIED` if the client now holds its assignment, `DROPPED` if the assignment is empty,
            `KEPT` if there is no assignment and the client keeps its queues.
        reason: Reason for the effect.
        sorted_queues: The topic's queues as the client sorts them; `None` if it knows no route.
        sorted_client_ids: The group's ids as the client sorts them; `None` if the broker did not answer.
        assigned: Its assignment, sorted, each queue once; `None` if `KEPT`.
        table: All queues that it holds after the round, sorted.
        listener_calls: The calls of `MessageQueueListener.messageQueueChanged`, as (number of queues of the
            topic, number of queues assigned).
        balanced: What `doRebalance` returns from 5.0.0 on: false makes 5.2.0 and later try again after
            1 s instead of 20 s. `None` for clients that return nothing.
        ends_round: Whether the client leaves its remaining topics for the next round; only in C++.
        error: The error that the strategy, or the sort before it, threw.
    """

    effect: Effect
    reason: Reason
    sorted_queues: tuple[MessageQueue, ...] | None
    sorted_client_ids: tuple[str, ...] | None
    assigned: tuple[MessageQueue, ...] | None
    table: tuple[MessageQueue, ...]
    listener_calls: tuple[tuple[int, int], ...]
    balanced: bool | None
    ends_round: bool
    error: RocketMQError | None


@dataclass(frozen=True, slots=True)
class ClientView:
    """One client's view of one topic at the beginning of a round.

    Attributes:
        consumer_group: The group.
        client_id: The client's own id.
        topic: A topic that the client subscribes to; its retry topic is one of them.
        queues: The readable queues that the client's route of the topic has; `None` without a route.
        client_ids: The broker's answer, in any order, possibly with duplicates; `None` if it did not answer.
        held: The queues of all topics that the client holds before the round.
        message_model: CLUSTERING or BROADCASTING.
        other_topics: Other topics that the client subscribes to; it drops the queues of any further topic.
    """

    consumer_group: str
    client_id: str
    topic: str
    queues: Collection[MessageQueue] | None
    client_ids: Collection[str] | None
    held: Collection[MessageQueue] = ()
    message_model: MessageModel = MessageModel.CLUSTERING
    other_topics: Collection[str] = ()


def rebalance_by_topic(
    strategy: Strategy,
    view: ClientView,
    *,
    client_language: str = DEFAULT_LANGUAGE,
    client_version: str = DEFAULT_VERSION,
) -> Rebalanced:
    """Run one round for one topic, on one client that balances for itself and does not consume in order.

    Args:
        strategy: The client's strategy.
        view: What the client sees.
        client_language: `JAVA`, `GO` or `CPP`.
        client_version: A RocketMQ release number; ignored for `GO` and `CPP`, see `Client`.

    Raises:
        UnknownNameError: There are no rules for the language or version.
    """
    round_ = _Round(Client.parse(client_language, client_version), view)
    try:
        if view.queues is not None:
            round_.sorted_queues = sort_queues(dict.fromkeys(view.queues), client_language)
        if view.client_ids is not None:
            round_.sorted_client_ids = sort_client_ids(view.client_ids, client_language)
    except RocketMQError as error:
        return round_.keep(Reason.NAMES_UNSORTABLE, balanced=False, error=error)
    if view.message_model is MessageModel.BROADCASTING:
        return _broadcasting(round_)
    return _clustering(round_, strategy)


def _broadcasting(round_: _Round) -> Rebalanced:
    if round_.sorted_queues is None:
        calls_listener = round_.client.language is Language.JAVA and not round_.client.before(5, 0, 0)
        return round_.keep(Reason.QUEUES_UNKNOWN, listener_calls=((0, 0),) if calls_listener else ())
    if not round_.sorted_queues and round_.throws_without_queues():
        return round_.keep(Reason.QUEUES_EMPTY, ends_round=True)
    return round_.apply(Reason.EVERY_QUEUE, round_.sorted_queues)


def _clustering(round_: _Round, strategy: Strategy) -> Rebalanced:
    client, queues, client_ids = round_.client, round_.sorted_queues, round_.sorted_client_ids
    is_java, is_cpp = client.language is Language.JAVA, client.language is Language.CPP
    # 5.5.0 is the first release that checks for empty lists before it calls the strategy.
    checks_first = is_java and not client.before(5, 5, 0)
    if queues is None or (not queues and checks_first):
        is_retry_topic = round_.view.topic.startswith(RETRY_PREFIX)
        calls_listener = is_java and not client.before(5, 0, 0) and not is_retry_topic
        reason = Reason.QUEUES_UNKNOWN if queues is None else Reason.QUEUES_EMPTY
        return round_.keep(reason, listener_calls=((0, 0),) if calls_listener else ())
    if not queues and round_.throws_without_queues():
        return round_.keep(Reason.QUEUES_EMPTY, ends_round=True)
    if client_ids is None or (not client_ids and (checks_first or is_cpp)):
        reason = Reason.CLIENTS_UNKNOWN if client_ids is None else Reason.CLIENTS_EMPTY
        return round_.keep(reason, ends_round=is_cpp)
    try:
        answer = strategy.allocate(round_.view.consumer_group, round_.view.client_id, queues, client_ids)
    except RocketMQError as error:
        reason = Reason.STRATEGY_FAILED
        if not queues or not client_ids:
            reason = Reason.CLIENTS_EMPTY if queues else Reason.QUEUES_EMPTY
        return round_.keep(reason, balanced=False, ends_round=is_cpp, error=error)
    if answer is None:
        return round_.apply(Reason.STRATEGY_RETURNED_NULL, ())
    if answer:
        return round_.apply(Reason.STRATEGY_ANSWERED, answer)
    if not queues or not client_ids:
        return round_.apply(Reason.CLIENTS_EMPTY if queues else Reason.QUEUES_EMPTY, ())
    return round_.apply(Reason.NO_SHARE if round_.view.client_id in client_ids else Reason.OWN_ID_MISSING, ())


class _Round:
    """State of a round, and its two possible ends: `keep` and `apply`."""

    def __init__(self, client: Client, view: ClientView) -> None:
        self.client = client
        self.view = view
        self.sorted_queues: list[MessageQueue] | None = None
        self.sorted_client_ids: list[str] | None = None

    def throws_without_queues(self) -> bool:
        return self.client.language is Language.CPP and not self.view.topic.startswith(RETRY_PREFIX)

    def keep(
        self,
        reason: Reason,
        *,
        listener_calls: tuple[tuple[int, int], ...] = (),
        balanced: bool = True,
        ends_round: bool = False,
        error: RocketMQError | None = None,
    ) -> Rebalanced:
        ended = self._end(Effect.KEPT, reason, frozenset(self.view.held), balanced=balanced)
        return replace(ended, listener_calls=listener_calls, ends_round=ends_round, error=error)

    def apply(self, reason: Reason, answer: Iterable[MessageQueue]) -> Rebalanced:
        listed, topic, held = list(answer), self.view.topic, frozenset(self.view.held)
        assigned = frozenset(listed)
        # Only this topic's queues are removed, but all queues that the strategy returned are added.
        table = frozenset(queue for queue in held if queue.topic != topic) | assigned
        ended = self._end(
            Effect.APPLIED if assigned else Effect.DROPPED,
            reason,
            table,
            balanced=assigned == {queue for queue in table if queue.topic == topic},
        )
        counted = len(assigned) if self.client.language is Language.JAVA else len(listed)
        calls = () if table == held else ((len(self.sorted_queues or ()), counted),)
        return replace(ended, assigned=_in_order(assigned), listener_calls=calls)

    def _end(
        self, effect: Effect, reason: Reason, table: frozenset[MessageQueue], *, balanced: bool
    ) -> Rebalanced:
        # The C++ client keeps the queues of topics that it does not subscribe to.
        if self.client.language is not Language.CPP:
            subscribed = {self.view.topic, *self.view.other_topics}
            table = frozenset(queue for queue in table if queue.topic in subscribed)
        returns_balance = self.client.language is Language.JAVA and not self.client.before(5, 0, 0)
        return Rebalanced(
            effect=effect,
            reason=reason,
            sorted_queues=None if self.sorted_queues is None else tuple(self.sorted_queues),
            sorted_client_ids=None if self.sorted_client_ids is None else tuple(self.sorted_client_ids),
            assigned=None,
            table=_in_order(table),
            listener_calls=(),
            balanced=balanced if returns_balance else None,
            ends_round=False,
            error=None,
        )


def _in_order(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    return tuple(sort_queues(queues))
