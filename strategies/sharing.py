"""Expected readers of each queue of a topic that members pop, by the broker's rule and by the proxy's.

Belongs here: the readers of all queues at once. Does not belong here: the broker's answer to one client (`pop`).

Source: `QueryAssignmentProcessor.allocate4Pop`; the proxy's `RouteActivity.queryAssignment` and
`ReceiveMessageActivity`, which pops by the name of a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.errors import RocketMQError
from rebalance_ledger.rocketmq.message_queue import sort_client_ids, sort_queues
from strategies.pop import ALL_QUEUES_ID, STRATEGY_NAMES, allocate_for_pop
from strategies.registry import get_strategy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rebalance_ledger.rocketmq.message_queue import MessageQueue


def expected_readers(
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    strategy_of_popper: Mapping[str, str],
    pop_share_queue_num: int,
    readers_of_all: Collection[str] = (),
    *,
    server_load_balancer_enable: bool = True,
) -> list[list[str]] | None:
    """Return the clients that may read each queue, in the order of `queues`; the clients are in Java's order.

    Args:
        queues: the topic's queues, in any order.
        client_ids: the members that the broker lists, popping or not, an id once for each connection.
        strategy_of_popper: those of them that ask the broker and pop, with the name of their strategy.
        pop_share_queue_num: see `pop.RequestSetting`.
        readers_of_all: the members that pop every queue whatever the broker says: clients of a proxy.
        server_load_balancer_enable: the broker's setting; without it every client is given every queue.

    Returns:
        One list for each queue; None where the broker answers one of these clients nothing.
    """
    readers: dict[MessageQueue, set[str]] = {queue: set(readers_of_all) for queue in queues}
    mq_all, cid_all = sort_queues(set(queues)), sort_client_ids(client_ids)
    for client_id, name in strategy_of_popper.items():
        if not server_load_balancer_enable:
            taken = list(mq_all)
        elif name not in STRATEGY_NAMES:
            return None
        else:
            try:
                taken = allocate_for_pop(
                    get_strategy(name), "", client_id, mq_all, cid_all, pop_share_queue_num
                )
            except RocketMQError:
                return None
        brokers_of_all = {queue.broker_name for queue in taken if queue.queue_id == ALL_QUEUES_ID}
        own = set(taken)
        for queue, of_queue in readers.items():
            if queue in own or queue.broker_name in brokers_of_all:
                of_queue.add(client_id)
    return [sort_client_ids(readers[queue]) for queue in queues]
