"""A group is offline only with proof: the answers of brokers and proxies, and its offsets."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP
from tests.support.computed_days import newest, staged_rows
from tests.support.export_builder import DS, ExportBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.warehouse.layout import StagingArea
    from tests.support.small_days import SmallDays

pytestmark = pytest.mark.spark

Row = dict[str, Any]
DAY_AFTER = date(2026, 11, 17)
BROKERS = {broker: {"0": f"{broker}:10911"} for broker in "ab"}
NOT_REACHED = "connect to 10.0.0.1:10911 failed"
PROXIES = ("10.0.0.8:8080", "10.0.0.9:8080")


def states(stage: StagingArea) -> dict[str, tuple[str, str | None]]:
    """Return group -> its state and the reason, which are equal in all tables."""
    states: dict[str, set[tuple[str, str | None]]] = {}
    for table in ("assignment_fairness", "ownership_drift"):
        for row in staged_rows(stage, table):
            states.setdefault(row["consumer_group"], set()).add(
                (row["group_state"], row["group_state_reason"])
            )
    assert {group for group, of_group in states.items() if len(of_group) > 1} == set()
    return {group: next(iter(of_group)) for group, of_group in states.items()}


def findings(stage: StagingArea) -> dict[str, dict[str, Row]]:
    """Return group -> kind -> finding."""
    found: dict[str, dict[str, Row]] = {}
    for row in staged_rows(stage, "finding"):
        found.setdefault(row["consumer_group"] or "", {})[row["kind"]] = row
    return found


def write_without_proxies(exports: Path) -> list[tuple[str, date]]:
    """Write two days. Each group of the second day is a test case."""
    for ds in (DS, DAY_AFTER):
        _without_proxies(ds).seal(exports)
    return [("presence-test", DS), ("presence-test", DAY_AFTER)]


def _without_proxies(ds: date) -> ExportBuilder:
    export = ExportBuilder("presence-test", ds)
    is_second = ds == DAY_AFTER
    export.brokers("ns-1:9876", BROKERS)
    export.route("orders", {"a": 1, "b": 1})
    groups = ["gone", "moved", "lost-yesterday", "in-flight", "leased-forever", "pop_v1", "pop-v2", "pop"]
    groups += ["new-topic", "unreported-topic", "unread-topic", "half-asked", "elsewhere"]
    export.subscription_groups("a", *groups, "only-a", "cut-off")
    export.subscription_groups("b", *groups)
    for group in groups:
        for broker in "ab":
            export.no_members(broker, group) if group not in {"half-asked", "elsewhere"} else None
    # Maximum, committed and pulled offset of queue 0. All other groups have (50, 40, 40).
    offsets = {
        "moved": (50, 40 + is_second, 40 + is_second),
        "in-flight": (50, 40, 41 + is_second),
        "leased-forever": (50, 40, 44),
    }
    for group in groups:
        export.offsets("a", group, "orders", offsets.get(group, (50, 40, 40)))
    export.offsets("a", "only-a", "orders", (50, 40, 40))
    if is_second:
        export.offsets("a", "new-topic", "orders-of-today", (5, 5, 5))
        export.offsets("a", "unread-topic", "orders-of-today", (5, 0, 0))
    else:
        export.offsets("a", "unreported-topic", "orders-of-yesterday", (50, 40, 40))
    export.no_members("a", "only-a")
    # Before 5.1.1, a broker registers members of a group that it has no configuration of.
    export.offsets("a", "cut-off", "orders", (50, 40, 40))
    export.no_members("a", "cut-off")
    export.failure("consumer_connection", NOT_REACHED, broker="b", group="cut-off")
    export.configured(
        "a", {"orders": 1, "%RETRY%pop_v1_orders": 1, "%RETRY%pop-v2+orders": 1, "%RETRY%pop_v1": 1}
    )
    export.failure("consumer_connection", NOT_REACHED, broker="a", group="half-asked")
    export.no_members("b", "half-asked")
    export.route("payments", {"b": 1})
    export.members("a", "elsewhere", ["c1"], ["payments"])
    export.no_members("b", "elsewhere")
    return export


def write_with_proxies(exports: Path) -> list[tuple[str, date]]:
    """Write one day of a cluster with two proxies."""
    export = ExportBuilder("proxies-test")
    export.brokers("ns-1:9876", BROKERS)
    export.route("orders", {"a": 1, "b": 1})
    groups = ["behind", "gone", "not-all-asked", "popped"]
    export.configured("a", {"orders": 1, "%RETRY%popped_orders": 1})
    for broker in "ab":
        export.subscription_groups(broker, *groups, PROXY_HEARTBEAT_GROUP)
        export.members(
            broker,
            PROXY_HEARTBEAT_GROUP,
            ["10.0.0.8@1#1", "10.0.0.9@1#1"],
            ["DefaultHeartBeatSyncerTopic"],
            "BROADCASTING",
        )
        for group in groups:
            export.no_members(broker, group)
    for group in groups:
        export.offsets("a", group, "orders", (50, 40, 40))
    for proxy in PROXIES:
        export.proxy_members(proxy, "behind", ["host@7@0@abc", "host@8@0@abd"], ["orders"])
        export.no_members_at_proxy(proxy, "gone")
        export.no_members_at_proxy(proxy, "popped")
    for broker in "ab":
        export.members(broker, "half-known", ["c1"], ["orders"])
    export.client("half-known", "c1", ["orders"], owns=[("orders", "a", 0)])
    export.no_members_at_proxy(PROXIES[0], "half-known")
    # No broker and only one proxy was asked about this group.
    export.proxy_members(PROXIES[0], "at-one-proxy", ["c2"], ["orders"])
    export.client("at-one-proxy", "c2", ["orders"], owns=[("orders", "a", 0), ("orders", "b", 0)])
    export.no_members_at_proxy(PROXIES[0], "not-all-asked")
    export.failure("proxy_consumer_connection", "connect failed", proxy=PROXIES[1], group="not-all-asked")
    export.seal(exports)
    return [("proxies-test", DS)]


@pytest.mark.small_days.with_args(write_without_proxies)
class TestWithoutProxies:
    @pytest.fixture(scope="class")
    def stage(self, small_days: SmallDays) -> StagingArea:
        [_, day] = small_days.of(write_without_proxies)
        assert steps.gate(day).reasons == []
        return newest(day)

    def test_no_group_is_offline_without_proof(self, stage: StagingArea) -> None:
        assert states(stage) == {
            "gone": ("offline", None),
            "lost-yesterday": ("offline", None),
            "only-a": ("offline", None),
            "new-topic": ("offline", None),
            "unreported-topic": ("offline", None),
            "unread-topic": ("offline", None),
            "leased-forever": ("offline", None),
            # `%RETRY%pop_v1` is the retry topic of pop_v1 itself, and not evidence of a group pop.
            "pop": ("offline", None),
            "moved": ("unknown", "offsets_moved"),
            "in-flight": ("unknown", "messages_in_flight"),
            "pop_v1": ("unknown", "pop_retry_topic_exists"),
            "pop-v2": ("unknown", "pop_retry_topic_exists"),
            "half-asked": ("unknown", "broker_not_asked"),
            "cut-off": ("unknown", "broker_not_asked"),
            "elsewhere": ("unknown", "online_at_other_brokers"),
        }

    def test_deletion_is_advised_only_after_two_days_of_proof(self, stage: StagingArea) -> None:
        for group in ("gone", "unread-topic"):
            gone = findings(stage)[group]["group_offline"]
            assert "deleteSubGroup" in gone["advice"]
            assert "It was offline on 2026-11-16 too" in gone["evidence"]

    @pytest.mark.parametrize("group", ["new-topic", "unreported-topic"])
    def test_progress_of_one_day_only_is_no_proof_for_deletion(self, stage: StagingArea, group: str) -> None:
        row = findings(stage)[group]["group_offline"]

        assert "deleteSubGroup" not in row["advice"]
        assert "too" not in row["evidence"]

    def test_an_uncertain_state_is_a_finding_with_its_reason(self, stage: StagingArea) -> None:
        [(kind, row)] = findings(stage)["moved"].items()

        assert (kind, row["seen_values"]) == ("members_unknown", ["offsets_moved"])
        assert "its offsets have moved since the baseline day" in row["evidence"]
        assert "deleteSubGroup" not in row["advice"]


@pytest.mark.small_days.with_args(write_with_proxies)
class TestWithProxies:
    @pytest.fixture(scope="class")
    def stage(self, small_days: SmallDays) -> StagingArea:
        [day] = small_days.of(write_with_proxies)
        assert steps.gate(day).reasons == []
        return newest(day)

    def test_answers_of_brokers_alone_prove_nothing_if_there_are_proxies(self, stage: StagingArea) -> None:
        assert states(stage) == {
            "behind": ("online", None),
            "gone": ("offline", None),
            "popped": ("offline", None),
            "not-all-asked": ("unknown", "may_be_behind_a_proxy"),
            "half-known": ("online", None),
            "at-one-proxy": ("online", None),
        }

    @pytest.mark.parametrize(("group", "member"), [("half-known", "c1"), ("at-one-proxy", "c2")])
    def test_possible_members_behind_a_proxy_make_queues_unknown(
        self, group: str, member: str, stage: StagingArea
    ) -> None:
        rows = [row for row in staged_rows(stage, "ownership_drift") if row["consumer_group"] == group]

        assert {(row["state"], row["unknown_reason"]) for row in rows} == {
            ("unknown", "may_be_behind_a_proxy")
        }
        assert {tuple(row["expected_client_ids"]) for row in rows} == {(member,)}

    def test_its_members_are_those_of_the_proxies(self, stage: StagingArea) -> None:
        counts = {
            row["client_count"]
            for row in staged_rows(stage, "assignment_fairness")
            if row["consumer_group"] == "behind"
        }

        assert counts == {2}

    def test_the_group_of_the_proxies_is_a_system_group(self, stage: StagingArea) -> None:
        tables = ("queue_assignment", "assignment_fairness", "ownership_drift", "finding")
        groups = {row["consumer_group"] for table in tables for row in staged_rows(stage, table)}

        assert PROXY_HEARTBEAT_GROUP not in groups
        assert staged_rows(stage, "broadcast_offset_file") == []
        assert any(
            row["consumer_group"] == PROXY_HEARTBEAT_GROUP
            for row in staged_rows(stage, "consumer_connection")
        )

    def test_deletion_is_not_advised_after_one_day(self, stage: StagingArea) -> None:
        assert "delete" not in findings(stage)["gone"]["group_offline"]["advice"]
