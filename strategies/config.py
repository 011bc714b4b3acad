"""CONFIG: every client takes the queues that its own settings list, whatever the group is.

Source: `AllocateMessageQueueByConfig` (Java, the same from 4.1.0 to 5.5.0), `AllocateByConfig` (Go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import (
    expand,
    owner_of_each,
    owners_from_pairs,
    position_in_run,
    queue_key,
    queue_keys,
    topic_numbers,
)
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from strategies.batch import Owners, SubscriptionBatch
    from strategies.message_queue import MessageQueue
    from strategies.versions import Client


class Config(Strategy):
    """The configured list as it is: it may be null, hold repeats, or name queues that do not exist.

    No argument is checked, and nothing keeps two clients from listing the same queue. The batch assumes
    that all clients of a group are configured alike.
    """

    name = "CONFIG"
    only_given_queues = False

    def __init__(self, client: Client, *, message_queues: Iterable[MessageQueue] | None) -> None:
        self._client = client
        self._queues = None if message_queues is None else list(message_queues)

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  not looked at
        current_cid: str | None,  # noqa: ARG002  not looked at
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,  # noqa: ARG002  not looked at
    ) -> list[MessageQueue] | None:
        """The configured list, `None` if it is null; see `Strategy.allocate`."""
        if self._queues is None:
            return None
        given = {queue: queue for queue in mq_all or ()}
        return [given.get(queue, queue) for queue in self._queues]

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Every configured queue that the topic has, with every client; see `Strategy.allocate_batch`."""
        topics = topic_numbers(batch)
        brokers = {name: code for code, name in enumerate(batch.broker_names)}
        wanted = [
            (topics[queue.topic], brokers[queue.broker_name], queue.queue_id)
            for queue in self._queues or ()
            if queue.topic in topics and queue.broker_name in brokers
        ]
        columns = np.array(wanted, dtype=np.int64).reshape(-1, 3).T
        configured = queue_key(columns[0], columns[1], columns[2], len(brokers))
        rows = np.flatnonzero(np.isin(queue_keys(batch, topics), configured))
        counts = batch.queue_counts()
        subscription = owner_of_each(counts)[rows]
        clients = batch.client_counts()[subscription]
        return owners_from_pairs(
            batch,
            np.repeat(subscription, clients),
            np.repeat(position_in_run(counts)[rows], clients),
            expand(np.zeros(len(clients), dtype=np.int64), clients),
        )
