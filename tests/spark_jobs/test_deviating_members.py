"""Parameters that explain the queues of a member, and cases without an explanation."""

from __future__ import annotations

import pytest

from spark_jobs.gold.deviating_members import Deviation, Queue, deviation
from strategies import MessageQueue, get_strategy

JAVA = ("JAVA", "5.3.3")
TWO_ROOMS = [(broker, queue_id) for broker in ("hz@a", "sh@b") for queue_id in range(6)]
MEMBERS = ["c1", "c2", "c3"]


def share(
    strategy: str, client_id: str, queues: list[Queue], members: list[str], **parameters: object
) -> frozenset[Queue]:
    own = get_strategy(strategy, **parameters).allocate(
        "g", client_id, [MessageQueue("t", *queue) for queue in queues], members
    )
    return frozenset((str(queue.broker_name), queue.queue_id) for queue in own or ())


def of_rooms(held: frozenset[Queue], queues: list[Queue] = TWO_ROOMS) -> Deviation | None:
    expected = share("MACHINE_ROOM", "c3", queues, MEMBERS, consumer_idcs={"hz"})
    return deviation("MACHINE_ROOM", "c3", JAVA, "t", queues, MEMBERS, expected, held)


def test_a_member_that_serves_another_room_is_explained_by_that_room() -> None:
    held = share("MACHINE_ROOM", "c3", TWO_ROOMS, MEMBERS, consumer_idcs={"sh"})

    assert of_rooms(held) == Deviation("c3", "consumeridcs = sh")


@pytest.mark.parametrize(
    "held",
    [
        frozenset(),
        frozenset({("hz@a", 4)}),
        frozenset({("sh@b", 4)}),
        frozenset({("hz@a", 0), ("sh@b", 0)}),
    ],
    ids=["nothing", "a part of its share", "a part of the other room", "no share of any room"],
)
def test_queues_that_no_parameters_produce_are_not_explained(held: frozenset[Queue]) -> None:
    assert of_rooms(held) is None


def test_an_equally_good_explanation_by_an_outdated_list_prevents_a_statement() -> None:
    """By a list without c1, c3 owns the second half of its room. No rooms produce these queues by the full list."""
    held = share("MACHINE_ROOM", "c3", TWO_ROOMS, ["c2", "c3"], consumer_idcs={"hz"})

    assert of_rooms(held) is None


def test_too_few_queues_give_no_explanation() -> None:
    """Two of four queues have six pairs, and the tried numbers of virtual nodes produce most of them."""
    queues = [("a", queue_id) for queue_id in range(4)]
    members = ["c1", "c2"]
    expected = share("CONSISTENT_HASH", "c1", queues, members, virtual_node_count=10)
    shares = {
        share("CONSISTENT_HASH", "c1", queues, members, virtual_node_count=count)
        for count in (1, 2, 3, 5, 20, 50, 100, 1000)
    } - {expected, frozenset()}

    assert shares
    assert {
        deviation("CONSISTENT_HASH", "c1", JAVA, "t", queues, members, expected, held) for held in shares
    } == {None}


def test_other_virtual_nodes_are_found_among_many_queues() -> None:
    queues = [(broker, queue_id) for broker in ("a", "b") for queue_id in range(16)]
    expected = share("CONSISTENT_HASH", "c2", queues, MEMBERS, virtual_node_count=10)
    held = share("CONSISTENT_HASH", "c2", queues, MEMBERS, virtual_node_count=200)

    found = deviation("CONSISTENT_HASH", "c2", JAVA, "t", queues, MEMBERS, expected, held)

    assert found is not None
    assert found.client_id == "c2"
    assert "virtualNodeCnt" in found.parameters
