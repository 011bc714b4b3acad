"""Groups are quarantined only if all violations are theirs, and are listed with the violated expectations."""

from __future__ import annotations

from datetime import date
from typing import Any

from test_gate_rules import DS, Row, measures, subject, waiver

from rebalance_ledger.gate.evaluation import evaluate
from rebalance_ledger.gate.judge import judge
from rebalance_ledger.gate.policy import GatePolicy
from rebalance_ledger.gate.quarantine import group_names, groups_to_quarantine
from rebalance_ledger.gate.verdict import explain
from rebalance_ledger.settings import GateSettings

ONE_OWNER = "queue_assignment.one_owner"


def quarantined_rows(rows: list[Row], **settings: Any) -> list[Row] | None:
    policy = GatePolicy(GateSettings.model_validate(settings), DS)
    return groups_to_quarantine(evaluate(rows, policy, baseline_ds=None))


def test_each_group_is_listed_with_each_expectation_that_it_violates() -> None:
    rows = measures(
        queue_assignment__one_owner=[subject("b", 2), subject("a", 3), subject("b", 4, topic="pay")],
        finding__text_fields_not_empty=[subject("b", broker="broker-a")],
    )

    found = quarantined_rows(rows)

    assert found is not None
    assert [(row["consumer_group"], row["expectation_id"], row["observed"]) for row in found] == [
        ("a", ONE_OWNER, 3),
        ("b", "finding.text_fields_not_empty", 1),
        ("b", ONE_OWNER, 6),
    ]
    assert found[2]["examples"] == ["group b of orders", "group b of pay"]
    assert found[0]["table_name"] == "gold.queue_assignment"
    assert group_names(found) == ("a", "b")


def test_no_group_is_quarantined_on_a_valid_day_or_a_day_with_warnings_only() -> None:
    assert quarantined_rows(measures()) == []
    assert (
        quarantined_rows(measures(queue_assignment__one_owner=[subject("a")]), severities={ONE_OWNER: "warn"})
        == []
    )


def test_one_violation_without_a_group_prevents_any_quarantine() -> None:
    of_a = {"queue_assignment__one_owner": [subject("a")]}

    assert quarantined_rows(measures(**of_a, producer_spread__shares_add_up=[subject(None)])) is None
    assert (
        quarantined_rows(measures(**of_a, finding__text_fields_not_empty=[subject("b"), subject(None)]))
        is None
    )


def test_a_metric_without_a_subject_or_a_missing_metric_belongs_to_no_group() -> None:
    measured_in_part = measures(queue_assignment__one_owner=[subject("a")])
    next(row for row in measured_in_part if row["expectation_id"] == ONE_OWNER)["observed"] = 2.0

    assert quarantined_rows(measured_in_part) is None
    assert quarantined_rows([row for row in measures() if row["expectation_id"] != ONE_OWNER]) is None


def test_groups_with_a_waiver_or_only_warnings_are_not_quarantined() -> None:
    rows = measures(queue_assignment__one_owner=[subject("a"), subject("dev-b"), subject("c")])

    found = quarantined_rows(
        rows,
        waivers=[waiver(expectation=ONE_OWNER, consumer_group="a")],
        groups={"dev-*": {"severities": {ONE_OWNER: "warn"}}},
    )

    assert found is not None
    assert group_names(found) == ("c",)


def test_a_group_that_exceeds_a_limit_of_the_settings_is_quarantined() -> None:
    uneven = measures(assignment_fairness__even_enough=[subject("a", 4), subject("b", 1.5)])

    found = quarantined_rows(uneven, max_over_mean={"warn": 1.2, "block": 2})

    assert found is not None
    assert group_names(found) == ("a",)
    assert found[0]["observed"] == 1


def test_a_day_that_passes_without_groups_reports_it_with_or_without_warnings() -> None:
    found = quarantined_rows(measures(queue_assignment__one_owner=[subject("a\x1b[31m", 2)]))
    assert found is not None

    verdict = judge(
        measures(rejected_record__count_within_limit=[subject(None, 0.5)]),
        cluster="shop",
        ds=date(2026, 11, 16),
        run_id="run-1",
        data_docs_dir=None,
        quarantined=found,
    )

    assert verdict.verdict == "passed_with_quarantine"
    assert verdict.quarantined == found
    assert len(verdict.warnings) == 1
    headline, excluded_groups, *_ = explain(verdict).splitlines()
    assert headline.startswith("The gate passed, without some groups: ")
    assert excluded_groups.startswith(
        "- quarantined: group a\\x1b[31m: gold.queue_assignment fails queue_assignment.one_owner ("
    )
    assert excluded_groups.endswith("found 2 of this group; for example: group a\\x1b[31m of orders")


def test_a_day_that_is_still_refused_without_groups_quarantines_none() -> None:
    found = quarantined_rows(measures(queue_assignment__one_owner=[subject("a")]))
    assert found is not None
    rest = measures(producer_spread__shares_add_up=[subject(None)])

    verdict = judge(rest, cluster="shop", ds=DS, run_id="r", data_docs_dir=None, quarantined=found)

    assert verdict.verdict == "refused"
    assert verdict.quarantined == []


def test_a_waiver_of_a_quarantined_group_is_not_reported_as_unused() -> None:
    rows = measures(queue_assignment__one_owner=[subject("a")], finding__text_fields_not_empty=[subject("a")])
    settings = GateSettings.model_validate({"waivers": [waiver(expectation=ONE_OWNER, consumer_group="a")]})
    found = groups_to_quarantine(evaluate(rows, GatePolicy(settings, DS), baseline_ds=None))
    assert found is not None

    verdict = judge(
        measures(),
        cluster="shop",
        ds=DS,
        run_id="r",
        data_docs_dir=None,
        settings=settings,
        quarantined=found,
    )

    assert verdict.notes == []
