"""Hypothesis generators of queues, clients and groups, with names that break string handling."""

from __future__ import annotations

from hypothesis import strategies as st

from strategies import (
    MessageQueue,
    Owners,
    RocketMQError,
    Strategy,
    sort_client_ids,
    sort_queues,
)

Subscription = tuple[list[MessageQueue], list[str]]

BROKERS = [
    "broker-a",
    "broker-10",
    "broker-2",
    "room1@broker-a",
    "room2@broker-b",
    "room1@b@",
    "@b",
    "@",
    "\uff21\U0001f600",
]
ROOMS = ["room1", "room2", "room3"]

client_ids = st.one_of(
    st.builds("10.0.0.{0}@{0}".format, st.integers(0, 12)),
    st.builds("{}-c{}".format, st.sampled_from(ROOMS), st.integers(0, 3)),
    st.text(st.characters(), min_size=1, max_size=4),
)
client_lists = st.lists(client_ids, max_size=12).map(sort_client_ids)


@st.composite
def queue_lists(draw: st.DrawFn, topic: str | None = None) -> list[MessageQueue]:
    """Draw the sorted queues of one topic: some brokers with 0 to 6 queues each."""
    name = topic or draw(st.sampled_from(["TopicTest", "%RETRY%G"]))
    counts = draw(st.dictionaries(st.sampled_from(BROKERS), st.integers(0, 6), max_size=5))
    return sort_queues(
        MessageQueue(name, broker, number) for broker, count in counts.items() for number in range(count)
    )


subscriptions = st.tuples(queue_lists(), client_lists)
batches = st.lists(subscriptions, max_size=6)
"""Several subscriptions, including empty ones and ones with the same clients."""


def owner_pairs(owners: Owners) -> list[tuple[int, int, int]]:
    """Return the (subscription, queue, client) triples of a batch's result."""
    columns = (owners.subscription_index, owners.queue_index, owners.client_index)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def ask_client_by_client(
    strategy: Strategy, asked: list[Subscription]
) -> tuple[list[tuple[int, int, int]], dict[int, str]]:
    """Return the expected result of a batch, computed with one call per client as in RocketMQ: the triples, and the errors."""
    triples: set[tuple[int, int, int]] = set()
    refused: dict[int, str] = {}
    for number, (queues, ids) in enumerate(asked):
        if not queues or not ids:
            continue
        try:
            triples.update(
                (number, queues.index(queue), ids.index(client_id))
                for client_id in ids
                for queue in strategy.allocate("G", client_id, queues, ids) or []
                if queue in queues
            )
        except RocketMQError as error:
            refused[number] = str(error)
    return sorted(triple for triple in triples if triple[0] not in refused), refused
