"""Assignment by the broker (QUERY_ASSIGNMENT) for clients that do not rebalance themselves, including POP.

Belongs here: the broker's answer to one client. Does not belong here: rebalancing on the client (see
`rebalance`), and the proxy of gRPC clients, which gives every client every queue.

Source: `QueryAssignmentProcessor` (5.0.0 and later; the same in 5.3.3 and 5.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, illegal_argument, null_pointer
from rebalance_ledger.rocketmq.message_queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from strategies.rebalance import ClientView, MessageModel
from strategies.registry import get_strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strategies.strategy import Strategy

ALL_QUEUES_ID: Final = -1
"""The queue id by which a POP client asks for messages of any queue of a broker."""

STRATEGY_NAMES: Final = ("AVG", "AVG_BY_CIRCLE")
"""The strategies that a broker knows; for any other name it returns no assignment."""

_LMQ_PREFIX: Final = "%LMQ%"
_LMQ_QUEUE_ID: Final = 0


class RequestMode(Enum):
    """How the clients of a group fetch messages of a topic."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True)
class RequestSetting:
    """A group's entry for a topic in `messageRequestMode.json`, or the broker's default.

    Attributes:
        mode: PULL or POP.
        pop_share_queue_num: With POP, number of following clients whose queues a client takes in addition to its own;
            0 or less, or nearly as many as there are clients, means all queues.
    """

    mode: RequestMode = RequestMode.PULL
    pop_share_queue_num: int = -1


def effective_setting(
    topic: str, configured: RequestSetting | None, default: RequestSetting
) -> RequestSetting:
    """Return the effective setting of a topic: a retry topic without an entry is always pulled."""
    if configured is not None:
        return configured
    return RequestSetting() if topic.startswith(RETRY_PREFIX) else default


def allocate_for_pop(
    strategy: Strategy,
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str] | None,
    pop_share_queue_num: int,
) -> list[MessageQueue]:
    """Return the queues that a POP client may take messages from (`allocate4Pop`), possibly with duplicates.

    Args:
        strategy: AVG or AVG_BY_CIRCLE.
        consumer_group: The group's name.
        current_cid: The id of the client; ignored if every client shares every queue.
        mq_all: The topic's queues, sorted.
        cid_all: The group's client ids, sorted.
        pop_share_queue_num: See `RequestSetting`.

    Returns:
        Queues of `mq_all`; if every queue is shared, each of them with the id -1.

    Raises:
        RocketMQError: The strategy throws, or a list is null.
    """
    if pop_share_queue_num > 0 and cid_all is None:
        raise null_pointer("cidAll is null")
    if pop_share_queue_num <= 0 or pop_share_queue_num >= len(cid_all or ()) - 1:
        if mq_all is None:
            raise null_pointer("mqAll is null")
        return [MessageQueue(queue.topic, queue.broker_name, ALL_QUEUES_ID) for queue in mq_all]
    if mq_all is None:
        raise null_pointer("mqAll is null")
    client_ids = cid_all or ()
    if len(client_ids) > len(mq_all):
        return _one_queue_each(current_cid, mq_all, client_ids)
    shared = list(strategy.allocate(consumer_group, current_cid, mq_all, client_ids) or ())
    if current_cid is not None and current_cid in client_ids:
        own = client_ids.index(current_cid)
        for step in range(1, pop_share_queue_num + 1):
            following = client_ids[(own + step) % len(client_ids)]
            shared.extend(strategy.allocate(consumer_group, following, mq_all, client_ids) or ())
    return shared


def query_assignment(
    strategy_name: str,
    view: ClientView,
    setting: RequestSetting,
    *,
    broker_name: str,
    server_load_balancer_enable: bool = True,
) -> frozenset[MessageQueue] | None:
    """Return the broker's answer to a client that asks what it should take.

    Args:
        strategy_name: The name of the client's strategy.
        view: What the broker knows of the group and the topic, and who asks; what the client holds does not
            matter.
        setting: See `effective_setting`.
        broker_name: The broker that answers, for light message queues (`%LMQ%...`), which have one queue.
        server_load_balancer_enable: The broker's setting; without it every client is given every queue.

    Returns:
        The queues, or `None` for "no answer": the client then keeps what it has.
    """
    queues = view.queues
    is_broadcasting = view.message_model is MessageModel.BROADCASTING
    if view.topic.startswith(_LMQ_PREFIX) and not is_broadcasting:
        queues = [MessageQueue(view.topic, broker_name, _LMQ_QUEUE_ID)]
    if queues is None:
        return None
    if is_broadcasting or not server_load_balancer_enable:
        return frozenset(queues)
    if view.client_ids is None or strategy_name not in STRATEGY_NAMES:
        return None
    strategy = get_strategy(strategy_name)
    try:
        mq_all, cid_all = sort_queues(set(queues)), sort_client_ids(view.client_ids)
        if setting.mode is RequestMode.POP:
            share = setting.pop_share_queue_num
            return frozenset(
                allocate_for_pop(strategy, view.consumer_group, view.client_id, mq_all, cid_all, share)
            )
        return frozenset(strategy.allocate(view.consumer_group, view.client_id, mq_all, cid_all) or ())
    except RocketMQError:
        return None


def _one_queue_each(
    current_cid: str | None, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]
) -> list[MessageQueue]:
    """Return the client's one queue; if there are more clients than queues, clients share queues so that none is idle."""
    if current_cid is None or java.is_blank(current_cid):
        raise illegal_argument("currentCID is empty")
    if not mq_all:
        raise illegal_argument("mqAll is null or mqAll empty")
    if current_cid not in cid_all:
        return []
    return [mq_all[cid_all.index(current_cid) % len(mq_all)]]
