"""A generated cluster: the rows that every allocation starts from, of any number of groups, and settings for them.

Belongs here: names, sizes and orders that look like a real cluster's, all from one seed. Does not belong here: measuring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_ledger.settings import (
    ClusterSettings,
    ConfigStrategy,
    ConfiguredQueues,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    PlainStrategy,
    RoomRule,
)
from strategies.batch import expand, offsets, owner_of_each, position_in_run
from tools.simulated_cluster.layout import DOMAINS, EVENTS, ROOMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]

SEED: Final = 20261120

TOPICS_OF_GROUP: Final = 6
BROKERS_OF_TOPIC: Final = 8
QUEUES_ON_BROKER: Final = 4
QUEUES_OF_TOPIC: Final = BROKERS_OF_TOPIC * QUEUES_ON_BROKER

_GROUPS_OF_TOPIC: Final = 10
"""How many groups read a topic, on average."""

_FEWEST_CLIENTS: Final = 4
_MOST_CLIENTS: Final = 12
_SHARE_OF_CIRCLE: Final = 0.1
_BROKERS: Final = tuple(f"{room}@broker-{number:02}" for room in ROOMS for number in range(16))
_GROUPS_OF_FILE: Final = 5_000


@dataclass(frozen=True, slots=True)
class GeneratedCluster:
    """A cluster where every group reads six topics of 32 queues and has four to twelve clients, eight on average.

    A group's rows stand apart, its clients and a topic's brokers in no order. Client ids are address, process and start
    time, as RocketMQ 5 makes them; brokers and clients are in three machine rooms. Every group is online, and its clients
    report AVG or AVG_BY_CIRCLE.

    Attributes:
        group_count: the number of consumer groups.
    """

    group_count: int

    @property
    def subscription_count(self) -> int:
        """The number of working rows."""
        return self.group_count * TOPICS_OF_GROUP

    def write(self, folder: Path) -> None:
        """Write the working rows, as `spark_jobs.assignment.subscriptions` gives them, to Parquet files of some megabytes."""
        folder.mkdir(parents=True)
        for start in range(0, self.group_count, _GROUPS_OF_FILE):
            rows = self._rows(start, min(start + _GROUPS_OF_FILE, self.group_count))
            pq.write_table(rows, folder / f"part-{start:08}.parquet")

    def settings(self) -> ClusterSettings:
        """Return the parameters of all six strategies; for CONFIG a list for each client, with each queue in one of the lists."""
        prefixes = {f"10.{number}.": room for number, room in enumerate(ROOMS)}
        return ClusterSettings(
            hypothetical=[
                MachineRoomStrategy(strategy="MACHINE_ROOM", consumer_idcs=list(ROOMS[:2])),
                MachineRoomNearbyStrategy(
                    strategy="MACHINE_ROOM_NEARBY",
                    inner=PlainStrategy(strategy="AVG"),
                    broker_room=RoomRule(separator="@"),
                    consumer_room=RoomRule(prefixes=prefixes),
                ),
                ConfigStrategy(strategy="CONFIG", clients=dict(self._lists())),
            ]
        )

    def _lists(self) -> Iterator[tuple[str, list[ConfiguredQueues]]]:
        queue_ids = list(range(QUEUES_ON_BROKER))
        for start in range(0, self.group_count, _GROUPS_OF_FILE):
            stop = min(start + _GROUPS_OF_FILE, self.group_count)
            counts, client_ids = _clients(start, stop)
            for group, first, count in zip(
                range(start, stop), offsets(counts).tolist(), counts.tolist(), strict=False
            ):
                for slot in range(count):
                    yield (
                        client_ids[first + slot],
                        [
                            ConfiguredQueues(
                                topic=_topic(topic), broker_name=_BROKERS[broker], queue_ids=queue_ids
                            )
                            for topic in self._topics(np.array([group]))[0].tolist()
                            for broker in _brokers(np.array([topic]))[0, slot::count].tolist()
                        ],
                    )

    def _topics(self, groups: IntArray) -> IntArray:
        """Return the topics that each group reads, as numbers: int64[groups, TOPICS_OF_GROUP]."""
        topic_count = max(TOPICS_OF_GROUP, self.group_count * TOPICS_OF_GROUP // _GROUPS_OF_TOPIC)
        # Groups with neighbouring numbers read topics far apart.
        return (groups[:, None] * 7919 + np.arange(TOPICS_OF_GROUP)) % topic_count

    def _rows(self, start: int, stop: int) -> pa.Table:
        chooser = np.random.default_rng([SEED, start])
        groups = np.arange(start, stop)
        group = np.repeat(groups, TOPICS_OF_GROUP)
        order = chooser.permutation(len(group))
        group, topic = group[order], self._topics(groups).ravel()[order]
        client_counts, client_ids = _clients(start, stop)
        slots = client_counts[group - start]
        member = expand(offsets(client_counts)[:-1][group - start], slots)
        broker = _brokers(topic).ravel()
        is_circle = chooser.random(stop - start) < _SHARE_OF_CIRCLE
        strategies = np.where(is_circle, "AVG_BY_CIRCLE", "AVG")[group - start]
        return pa.table(
            {
                "consumer_group": [
                    f"{_word(DOMAINS, number)}-group-{number:06}" for number in group.tolist()
                ],
                "topic": [_topic(number) for number in topic.tolist()],
                "route_state": ["known"] * len(group),
                "brokers": _lists_of(
                    np.full(len(group), BROKERS_OF_TOPIC),
                    broker_name=pa.array(_BROKERS).take(pa.array(broker)),
                    queue_count=pa.array(np.full(len(broker), QUEUES_ON_BROKER, dtype=np.int32)),
                ),
                "group_state": ["online"] * len(group),
                "group_state_reason": pa.nulls(len(group), pa.string()),
                "division_reason": pa.nulls(len(group), pa.string()),
                "member_ids": _list_of(slots, pa.array(client_ids).take(pa.array(member))),
                "variants": _lists_of(
                    slots,
                    slot=pa.array(position_in_run(slots).astype(np.int32)),
                    strategy=pa.array(strategies[owner_of_each(slots)]),
                    client_language=pa.array(["JAVA"] * len(member)),
                    client_version=pa.array(["5.3.3"] * len(member)),
                    is_subscribed=pa.array(np.ones(len(member), dtype=np.bool_)),
                    connection_count=pa.array(np.ones(len(member), dtype=np.int32)),
                ),
            }
        )


def _clients(start: int, stop: int) -> tuple[IntArray, list[str]]:
    """Return how many clients each of some groups has, as int64[groups], and their ids laid end to end."""
    chooser = np.random.default_rng([SEED, start, stop])
    counts = chooser.integers(_FEWEST_CLIENTS, _MOST_CLIENTS, stop - start, endpoint=True)
    least, most = (0, 0, 1, 1, 10**14), (len(ROOMS), 250, 250, 400, 10**15)
    parts = chooser.integers(least, most, (int(counts.sum()), len(least)))
    ids = [f"10.{room}.{block}.{host}@{pid}#{time_ns}" for room, block, host, pid, time_ns in parts.tolist()]
    return counts, ids


def _brokers(topics: IntArray) -> IntArray:
    """Return the brokers of each topic, as numbers, in all rooms and in no order: int64[topics, BROKERS_OF_TOPIC]."""
    # Five and the number of brokers have no common divisor, so none comes twice.
    return (topics[:, None] + np.arange(BROKERS_OF_TOPIC) * 5) % len(_BROKERS)


def _topic(number: int) -> str:
    return f"{_word(EVENTS, number)}-topic-{number:06}"


def _word(words: Sequence[str], number: int) -> str:
    return words[number % len(words)]


def _list_of(counts: IntArray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets(counts), pa.int32()), values)


def _lists_of(counts: IntArray, **fields: pa.Array) -> pa.ListArray:
    return _list_of(counts, pa.StructArray.from_arrays(list(fields.values()), names=list(fields)))
