"""A client's state if sources differ, and unknown values if sources fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.dataset as pads
import pytest

from rebalance_ledger.pipeline import steps
from tests.support.computed_days import newest, staged_rows
from tests.support.staged_day import NUMBERS_OF_OWNERS

if TYPE_CHECKING:
    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.warehouse.layout import StagingArea

pytestmark = pytest.mark.spark

Row = dict[str, Any]


@pytest.fixture(scope="module")
def stage(staged_odd_day: Day) -> StagingArea:
    return newest(staged_odd_day)


@pytest.fixture(scope="module")
def subscription_of(stage: StagingArea) -> dict[tuple[str, str], Row]:
    """Return group and topic -> the input row of the strategies."""
    rows = pads.dataset(stage.work("subscription"), format="parquet").to_table().to_pylist()
    return {(row["consumer_group"], row["topic"]): row for row in rows}


def queues(row: Row) -> dict[str, int]:
    return {broker["broker_name"]: broker["queue_count"] for broker in row["brokers"]}


def owners(stage: StagingArea, group: str, *, is_effective: bool = True) -> dict[tuple[str, int], Any]:
    """Return queue -> its owner, or the reason why it has none."""
    return {
        (row["broker_name"], row["queue_id"]): row["client_id"] or row["reason"]
        for row in staged_rows(stage, "queue_assignment")
        if row["consumer_group"] == group and row["is_effective"] == is_effective
    }


def fairness(stage: StagingArea, group: str) -> list[Row]:
    return [row for row in staged_rows(stage, "assignment_fairness") if row["consumer_group"] == group]


def findings(stage: StagingArea, **subject: str) -> set[str]:
    rows = staged_rows(stage, "finding")
    return {row["kind"] for row in rows if all(row[key] == value for key, value in subject.items())}


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("most-votes", {"a": 2, "b": 2}),
        ("votes-before-size", {"a": 2}),
        ("tie-to-the-larger", {"a": 4}),
        ("tie-to-the-first-address", {"a": 2}),
    ],
)
def test_one_of_several_different_name_servers_is_chosen_and_the_others_are_a_finding(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea, topic: str, expected: dict[str, int]
) -> None:
    row = subscription_of[f"g-{topic}", topic]

    assert (row["route_state"], queues(row), row["queue_set_count"]) == ("known", expected, 2)
    assert findings(stage, topic=topic) >= {"route_differs"}


def test_one_name_server_without_the_route_does_not_hide_the_other(
    subscription_of: dict[tuple[str, str], Row],
) -> None:
    row = subscription_of["g-one-knows-no-route", "one-knows-no-route"]

    assert (row["route_state"], queues(row)) == ("known", {"a": 3})


@pytest.mark.parametrize("topic", ["no-route", "half-failed", "write-only"])
def test_clients_keep_the_queues_of_a_topic_that_is_known_to_have_none_to_read(
    stage: StagingArea, topic: str
) -> None:
    kept = [row for row in staged_rows(stage, "queue_assignment") if row["topic"] == topic]

    assert {(row["queue_id"], row["client_id"], row["reason"]) for row in kept} == {
        (0, "c1", "route_missing"),
        (1, "c1", "route_missing"),
    }


def test_a_topic_without_a_route_has_no_fairness_numbers_and_no_owner_of_a_dropped_queue(
    stage: StagingArea,
) -> None:
    """One of the two holders is not in the elected member list, so numbers per member would be wrong."""
    [row] = fairness(stage, "g-lost-route")

    assert owners(stage, "g-lost-route") == {("c", 0): "c1", ("c", 2): "c2"}
    assert (row["strategy"], row["client_count"], row["queue_count"]) == ("AVG", 1, None)
    assert {row[name] for name in NUMBERS_OF_OWNERS} == {None}


@pytest.mark.parametrize("topic", ["all-failed", "never-asked", "no-read-count"])
def test_a_route_without_an_answer_is_unknown_and_gives_no_number(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea, topic: str
) -> None:
    assert subscription_of[f"g-{topic}", topic]["route_state"] == "unknown"
    assert [row for row in staged_rows(stage, "queue_assignment") if row["topic"] == topic] == []
    [row] = fairness(stage, f"g-{topic}")
    assert row["client_count"] == 1
    numbers = (
        "queue_count",
        "min_queues_per_client",
        "max_over_mean",
        "idle_client_count",
        "unowned_queue_count",
    )
    assert [row[name] for name in numbers] == [None] * len(numbers)
    assert "route_missing" not in findings(stage, topic=topic)


@pytest.mark.parametrize(
    ("topic", "members", "list_count"),
    [
        ("most-brokers", ["c1", "c2"], 2),
        ("tie-to-the-longer-list", ["c1", "c2"], 2),
        ("tie-to-the-first-broker", ["c1"], 2),
        ("one-broker-knows-nobody", ["c1"], 1),
    ],
)
def test_one_of_several_different_member_lists_is_chosen_and_the_others_are_a_finding(
    subscription_of: dict[tuple[str, str], Row],
    stage: StagingArea,
    topic: str,
    members: list[str],
    list_count: int,
) -> None:
    row = subscription_of[f"g-{topic}", topic]

    assert (row["group_state"], row["member_ids"], row["member_list_count"]) == (
        "online",
        members,
        list_count,
    )
    assert ("member_lists_differ" in findings(stage, consumer_group=f"g-{topic}")) == (list_count > 1)


def test_brokers_outside_the_route_are_ignored(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea
) -> None:
    row = subscription_of["g-off-route", "off-route"]

    assert (row["member_ids"], row["member_list_count"]) == (["c1"], 1)
    assert owners(stage, "g-off-route") == {("a", 0): "c1", ("a", 1): "c1"}


def test_an_unnamed_broker_may_be_one_of_the_route(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea
) -> None:
    row = subscription_of["g-unnamed-broker", "unnamed-broker"]

    assert (row["group_state"], row["member_ids"], row["member_list_count"]) == ("online", ["c1"], 1)
    assert owners(stage, "g-unnamed-broker") == {("b", 0): "c1", ("b", 1): "c1"}


@pytest.mark.parametrize("topic", ["route-failed", "half-offline", "torn-members", "unasked-route"])
def test_members_are_unknown_and_not_absent_if_a_broker_of_the_route_did_not_answer(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea, topic: str
) -> None:
    group = f"g-{topic}"
    row = subscription_of[group, topic]

    assert (row["group_state"], row["member_ids"]) == ("unknown", None)
    assert owners(stage, group) == {}
    assert set(owners(stage, group, is_effective=False).values()) == {"members_unknown"}
    shown = [row for row in fairness(stage, group) if row["topic"] == topic]
    assert shown
    for name in ("client_count", "unowned_queue_count", "idle_client_count", "multiple_owner_queue_count"):
        assert {row[name] for row in shown} == {None}
    assert "members_unknown" in findings(stage, consumer_group=group)
    assert "group_offline" not in findings(stage, consumer_group=group)


def test_a_group_is_offline_if_every_broker_reports_it(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea
) -> None:
    assert subscription_of["g-all-offline", "all-offline"]["group_state"] == "offline"
    assert set(owners(stage, "g-all-offline", is_effective=False).values()) == {"group_offline"}
    assert findings(stage, consumer_group="g-all-offline") == {"group_offline"}


def test_members_are_in_java_string_order(subscription_of: dict[tuple[str, str], Row]) -> None:
    """In UTF-16 order an emoji, which is a surrogate pair, precedes U+FFFF, and 10 precedes 2."""
    assert subscription_of["g-order", "orders"]["member_ids"] == ["c10", "c2", "c\U0001f600", "c\uffff"]


def test_a_client_id_of_two_processes_is_listed_twice(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea
) -> None:
    row = subscription_of["g-twins", "orders"]

    assert row["member_ids"] == ["c1", "c1", "c2"]
    assert [variant["connection_count"] for variant in row["variants"]] == [2, 2, 1]
    assert {row["client_count"] for row in fairness(stage, "g-twins")} == {2}
    assert findings(stage, consumer_group="g-twins") >= {"duplicate_client_id", "unowned"}


def test_every_member_of_a_broadcasting_group_reads_every_queue(stage: StagingArea) -> None:
    rows = [row for row in staged_rows(stage, "queue_assignment") if row["consumer_group"] == "g-broadcast"]

    assert {row["strategy"] for row in rows} == {"BROADCASTING"}
    assert len(rows) == 6 * 2


def test_of_two_programs_with_one_group_name_the_broadcasting_one_reads_the_topic_that_it_broadcasts(
    subscription_of: dict[tuple[str, str], Row], stage: StagingArea
) -> None:
    row = subscription_of["g-two-models", "orders"]

    assert (row["group_state"], row["member_ids"]) == ("broadcasting", ["m1"])
    assert set(owners(stage, "g-two-models").values()) == {"m1"}


@pytest.mark.parametrize("group", ["g-broadcast-elsewhere", "g-unlisted-reader"])
def test_a_client_that_no_broker_lists_is_no_reader_of_its_topic(stage: StagingArea, group: str) -> None:
    of_topic = [row for row in fairness(stage, group) if row["topic"] == "orders"]

    assert {row["client_count"] for row in of_topic} == {0}
    assert not {"c1", "c2", "c3"} & {
        row["client_id"]
        for row in staged_rows(stage, "queue_assignment")
        if row["consumer_group"] == group and row["topic"] == "orders"
    }


@pytest.mark.parametrize(("group", "strategy"), [("g-one-silent", "AVG_BY_CIRCLE"), ("g-torn-client", "AVG")])
def test_a_member_that_could_not_be_asked_is_counted_and_assumed_to_be_like_the_others(
    stage: StagingArea, group: str, strategy: str
) -> None:
    [row] = [row for row in fairness(stage, group) if row["is_effective"]]

    assert (row["strategy"], row["client_count"], row["reporting_client_count"]) == (strategy, 2, 1)
    assert set(owners(stage, group).values()) == {"c1", "c2"}


def test_a_member_that_does_not_subscribe_leaves_its_share_unread(stage: StagingArea) -> None:
    assert set(owners(stage, "g-one-elsewhere").values()) == {"c1", "owner_not_subscribed"}
    [row] = [
        row for row in fairness(stage, "g-one-elsewhere") if row["is_effective"] and row["topic"] == "orders"
    ]
    assert (row["client_count"], row["unowned_queue_count"]) == (1, 3)


def test_the_gate_passes_such_a_day_with_a_warning(staged_odd_day: Day) -> None:
    """The cluster has these defects, but the ledger describes them correctly."""
    verdict = steps.gate(staged_odd_day)

    assert verdict.reasons == []
    assert [warning.split(" (")[0] for warning in verdict.warnings] == [
        "silver.rejected_record fails rejected_record.count_within_limit"
    ]
