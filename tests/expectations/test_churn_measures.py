"""Each fault injected into churn violates its own expectation, and a valid day violates none."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from expectations.suites import assignment_churn, metrics
from tests.support.staged_churn import add_churn
from tests.support.staged_day import Row, StagedDay
from tests.support.staged_drift import add_drift

if TYPE_CHECKING:
    from collections.abc import Callable


STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if "'assignment_churn.state_follows_days'" in text]
BEFORE = date(2026, 11, 14)
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, {f"assignment_churn.{rule}" for rule in expected})
        return plant

    return register


def add_before(day: StagedDay, group: str, clients: tuple[str, ...], **changed: Any) -> list[Row]:
    """Add the group with these clients to the baseline day; return its assignment rows."""
    other = StagedDay()
    other.add_topic("orders", queues_per_broker=changed.pop("queues_per_broker", 4))
    other.add_group(group, "orders", clients=clients, **changed)
    for name in ("queue_assignment", "consumer_connection"):
        day.before[name].extend(row | {"ds": BEFORE.isoformat()} for row in other.rows[name])
    return [row for row in day.before["queue_assignment"] if row["consumer_group"] == group]


def add_churned(day: StagedDay, group: str) -> Row:
    """Add a group that one client has left and two have joined; return its row of the effective strategy."""
    add_before(day, group, ("c1", "c2", "c3"))
    day.add_group(group, "orders", clients=("c0", "c2", "c3", "c4"))
    add_churn(day)
    [row] = day.of("assignment_churn", consumer_group=group, is_effective=True)
    return row


def add_observed(day: StagedDay, group: str) -> Row:
    """Add a group that changed its strategy, with observed owners on both days; return its effective row."""
    other = StagedDay()
    other.add_topic("orders")
    other.add_group(group, "orders", clients=("c1", "c2"), strategies=("AVG_BY_CIRCLE", "AVG"))
    add_drift(other, group)
    for name in ("queue_assignment", "consumer_connection", "ownership_drift"):
        day.before[name].extend(row | {"ds": BEFORE.isoformat()} for row in other.rows[name])
    day.add_group(group, "orders", clients=("c1", "c2"), strategies=("AVG",))
    for row in add_drift(day, group):
        row["unasked_client_count"] = 0
    add_churn(day)
    [row] = day.of("assignment_churn", consumer_group=group, is_effective=True)
    return row


@fault("observed_moves_equal_days")
def observed_move_that_is_hidden(day: StagedDay, group: str) -> None:
    row = add_observed(day, group)
    assert row["observed_moved_queue_count"]
    row["observed_moved_queue_count"] = 0


@fault("observed_moves_equal_days")
def queues_of_readers_that_cannot_be_observed(day: StagedDay, group: str) -> None:
    row = add_observed(day, group)
    shared = day.of("ownership_drift", consumer_group=group)
    for seen in shared:
        seen.update(state="shared", observed_client_ids=[])
    row.update(observed_queue_count=len(shared), observed_moved_queue_count=len(shared))


@fault("observed_moves_equal_days")
def change_of_strategy_that_is_hidden(day: StagedDay, group: str) -> None:
    add_observed(day, group)["baseline_effective_strategy"] = "AVG"


@fault("observed_moves_equal_days")
def observed_move_without_an_earlier_day(day: StagedDay, group: str) -> None:
    add_churned(day, group)["observed_moved_queue_count"] = 0


@fault("rows_equal_fairness")
def dropped_row(day: StagedDay, group: str) -> None:
    row = add_churned(day, group)
    day.rows["assignment_churn"].remove(row)
    day.without_churn.add((group, "orders", row["strategy"]))


@fault("rows_equal_fairness")
def invented_strategy(day: StagedDay, group: str) -> None:
    day.rows["assignment_churn"].append(add_churned(day, group) | {"strategy": "CONFIG"})


@fault("rows_equal_fairness")
def another_source(day: StagedDay, group: str) -> None:
    add_churned(day, group)["strategy_source"] = "configured"


@fault("state_follows_days")
def another_day(day: StagedDay, group: str) -> None:
    add_churned(day, group)["baseline_ds"] = "2026-11-15"


@fault("state_follows_days", "counts_equal_days", "least_moves_recomputed", "changes_follow_counts")
def day_that_was_not_looked_at(day: StagedDay, group: str) -> None:
    row = add_churned(day, group)
    numbers = [name for name, value in row.items() if name.endswith("_count") and value is not None]
    row.update(
        dict.fromkeys((*numbers, "baseline_strategy", "changes")), state="no_baseline", baseline_ds=None
    )


@fault("state_follows_days", "changes_follow_counts")
def another_strategy_before(day: StagedDay, group: str) -> None:
    add_churned(day, group)["baseline_strategy"] = "CONFIG"


@fault("counts_equal_days")
def one_moved_queue_too_many(day: StagedDay, group: str) -> None:
    add_churned(day, group)["moved_queue_count"] += 1


@fault("counts_equal_days", "changes_follow_counts")
def client_that_did_not_leave(day: StagedDay, group: str) -> None:
    add_churned(day, group)["left_client_count"] = 0


@fault("counts_equal_days", "changes_follow_counts")
def invented_queue(day: StagedDay, group: str) -> None:
    add_churned(day, group)["added_queue_count"] = 1


@fault("counts_equal_days", "least_moves_recomputed")
def zero_where_owners_are_unknown(day: StagedDay, group: str) -> None:
    add_before(day, group, ("c1", "c2", "c3"))
    day.add_silent_group(group, "orders", "unknown", "members_unknown")
    add_churn(day)
    day.of("assignment_churn", consumer_group=group)[0].update(moved_queue_count=0, least_move_count=0)


@fault("least_moves_recomputed")
def fewer_moves_than_can_do(day: StagedDay, group: str) -> None:
    add_churned(day, group)["least_move_count"] -= 1


@fault("least_moves_recomputed")
def more_moves_than_there_were(day: StagedDay, group: str) -> None:
    row = add_churned(day, group)
    row["least_move_count"] = row["moved_queue_count"] + 1


@fault("least_moves_recomputed")
def least_moves_of_a_broadcast(day: StagedDay, group: str) -> None:
    add_before(day, group, ("c1",), strategies=("BROADCASTING",))
    day.add_group(group, "orders", clients=("c1",), strategies=("BROADCASTING",))
    add_churn(day)
    day.of("assignment_churn", consumer_group=group)[0]["least_move_count"] = 0


@fault("changes_follow_counts")
def change_that_is_not_named(day: StagedDay, group: str) -> None:
    add_churned(day, group)["changes"] = ["clients_joined"]


def consistent_day() -> StagedDay:
    """Return a day with every state of churn and every change."""
    day = StagedDay()
    day.baseline_ds = BEFORE
    day.add_topic("orders")
    day.add_group("new", "orders")
    for group, clients in {
        "quiet": ("c1", "c2", "c3"),
        "joined": ("c1",),
        "left": ("c1", "c2", "c3", "c4", "c5"),
        "others": ("d1", "d2"),
    }.items():
        add_before(day, group, clients)
        day.add_group(group, "orders")
    add_before(day, "circle", ("c1", "c2", "c3"), strategies=("AVG_BY_CIRCLE", "AVG"))
    day.add_group("circle", "orders")
    add_before(day, "shrunk", ("c1", "c2", "c3"), queues_per_broker=6)
    add_before(day, "grown", ("c1", "c2", "c3"), queues_per_broker=2)
    day.add_group("shrunk", "orders")
    day.add_group("grown", "orders", clients=("c2", "c3"))
    add_before(day, "listeners", ("c1", "c2"), strategies=("BROADCASTING",))
    day.add_group("listeners", "orders", strategies=("BROADCASTING",), message_model="BROADCASTING")
    for row in add_before(day, "awake", ("c1",), strategies=("AVG",)):
        row.update(client_id=None, reason="group_offline", is_effective=False)
    day.before["consumer_connection"] = [
        row for row in day.before["consumer_connection"] if row["consumer_group"] != "awake"
    ]
    day.add_group("awake", "orders", strategies=("AVG_BY_CIRCLE", "AVG"))
    for row in add_before(day, "was-silent", ("c1",)):
        row.update(client_id=None, reason="members_unknown")
    day.add_group("was-silent", "orders")
    day.before["quarantined_group"].append({"consumer_group": "was-left-out"})
    day.add_group("was-left-out", "orders")
    add_before(day, "is-silent", ("c1",))
    day.add_silent_group("is-silent", "orders", "unknown", "members_unknown")
    add_observed(day, "seen")
    add_before(day, "idle", ("c1", "c2"), queues_per_broker=1)
    day.add_topic("narrow", queues_per_broker=1)
    day.add_group("idle", "narrow", clients=("c0", "c1", "c2", "c3"))
    for row in day.before["queue_assignment"]:
        if row["consumer_group"] == "idle":
            row["topic"] = "narrow"
    return day


def measured(day: StagedDay) -> dict[str, Row]:
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


def test_a_valid_day_violates_nothing_whatever_changed() -> None:
    day = consistent_day()

    found = measured(day)

    assert {name: row["examples"] for name, row in found.items() if row["observed"]} == {}
    assert found.keys() == {expectation.expectation_id for expectation in assignment_churn.SUITE.expectations}
    assert {row["state"] for row in day.rows["assignment_churn"]} == {
        "compared",
        "absent_on_baseline",
        "unknown_now",
        "unknown_on_baseline",
    }
    assert {name for row in day.rows["assignment_churn"] for name in row["changes"] or ()} == {
        "clients_joined",
        "clients_left",
        "queues_added",
        "queues_removed",
        "strategy_changed",
    }


def test_a_first_day_violates_nothing() -> None:
    day = StagedDay()
    day.add_topic("orders")
    day.add_group("new", "orders")

    assert {row["observed"] for row in measured(day).values()} == {0}


def test_each_fault_violates_its_own_expectations_only() -> None:
    day = consistent_day()
    for name, (plant, _) in FAULTS.items():
        plant(day, name)

    found = measured(day)

    for expectation_id, row in found.items():
        meant = {name for name, (_, expected) in FAULTS.items() if expectation_id in expected}
        seen = {example.split(",")[0].removeprefix("group ") for example in row["examples"]}
        assert seen == meant, expectation_id
