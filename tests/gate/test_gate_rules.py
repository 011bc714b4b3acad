"""Settings change limits and severities of the gate. Waivers apply only to the named subjects, and until they expire."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.gate.judge import judge
from rebalance_ledger.gate.verdict import explain
from rebalance_ledger.settings import GateSettings

if TYPE_CHECKING:
    from rebalance_ledger.gate.verdict import Verdict

DS = date(2026, 11, 16)
ONE_OWNER = "queue_assignment.one_owner"
UNOWNED = "finding.no_unowned"
EVEN = "assignment_fairness.even_enough"
Row = dict[str, Any]


def subject(
    group: str | None, amount: float = 1, topic: str | None = "orders", broker: str | None = None
) -> Row:
    names = {"consumer_group": group, "topic": topic, "broker_name": broker}
    return names | {"amount": float(amount), "examples": [f"group {group} of {topic}"]}


def measures(**affected_subjects: list[Row]) -> list[Row]:
    """Return metrics that all pass, except for those with affected subjects. In argument names, `__` stands for `.`."""
    rows = {
        name: {
            "expectation_id": name,
            "observed": expectation.threshold_min or 0.0,
            "examples": [],
            "affected_subjects": [],
        }
        for name, expectation in EXPECTATIONS.items()
        if not expectation.is_of_two_days
    }
    for name, given in affected_subjects.items():
        rows[name.replace("__", ".")] |= {
            "observed": sum(each["amount"] for each in given),
            "examples": [example for each in given for example in each["examples"]],
            "affected_subjects": given,
        }
    return list(rows.values())


def judged(rows: list[Row], **settings: Any) -> Verdict:
    gate = GateSettings.model_validate(settings)
    return judge(rows, cluster="shop", ds=DS, run_id="run-1", data_docs_dir=None, settings=gate)


def result(verdict: Verdict, expectation_id: str) -> Row:
    return next(row for row in verdict.results if row["expectation_id"] == expectation_id)


def waiver(expires_on: date = DS, **what: str) -> Row:
    return {"expires_on": expires_on, "approved_by": "ana", "reason": "ticket 7"} | what


TWO_OWNERS = measures(queue_assignment__one_owner=[subject("a", 2), subject("b", 3)])


# Severities and limits


def test_a_blocking_expectation_can_be_made_to_warn() -> None:
    verdict = judged(TWO_OWNERS, severities={ONE_OWNER: "warn"})

    assert verdict.verdict == "passed_with_warnings"
    assert result(verdict, ONE_OWNER)["severity"] == "warn"


def test_a_warning_can_be_made_to_block() -> None:
    rows = measures(rejected_record__count_within_limit=[subject(None, 0.5)])

    assert judged(rows).verdict == "passed_with_warnings"
    assert judged(rows, severities={"rejected_record.count_within_limit": "block"}).verdict == "refused"


def test_a_limit_replaces_the_default_one() -> None:
    rows = measures(rejected_record__count_within_limit=[subject(None, 0.04)])
    verdict = judged(rows, limits={"rejected_record.count_within_limit": 0.05})

    assert verdict.verdict == "passed"
    assert result(verdict, "rejected_record.count_within_limit")["threshold_max"] == 0.05
    assert judged(rows, limits={"rejected_record.count_within_limit": 0.03}).verdict == "passed_with_warnings"


def test_a_minimum_can_be_raised() -> None:
    verdict = judged(measures(), limits={"group_presence.some_online": 2.0})

    assert verdict.verdict == "passed_with_warnings"
    assert "found 1, allowed at least 2" in verdict.warnings[0]


def test_groups_that_only_warn_do_not_block_and_others_still_do() -> None:
    softer = {"groups": {"a*": {"severities": {ONE_OWNER: "warn"}}}}

    assert judged(TWO_OWNERS, **softer).verdict == "refused"
    assert (
        judged(measures(queue_assignment__one_owner=[subject("a")]), **softer).verdict
        == "passed_with_warnings"
    )


# Findings


FOUND = measures(finding__no_unowned=[subject("a"), subject("dev-b")])


def test_findings_do_not_affect_the_gate_by_default() -> None:
    assert UNOWNED not in {row["expectation_id"] for row in judged(FOUND).results}
    assert judged(FOUND).verdict == "passed"


@pytest.mark.parametrize(("severity", "verdict"), [("warn", "passed_with_warnings"), ("block", "refused")])
def test_a_kind_of_finding_can_be_raised(severity: str, verdict: str) -> None:
    raised = judged(FOUND, findings={"unowned": severity})

    assert raised.verdict == verdict
    assert result(raised, UNOWNED)["observed"] == 2
    assert result(raised, UNOWNED)["examples"] == ["group a of orders", "group dev-b of orders"]


def test_groups_can_be_excluded_from_a_raised_kind() -> None:
    verdict = judged(
        FOUND,
        findings={"unowned": "block"},
        groups={"dev-*": {"findings": {"unowned": "ignore"}}},
    )

    assert result(verdict, UNOWNED)["observed"] == 1
    assert result(verdict, UNOWNED)["examples"] == ["group a of orders"]


def test_a_kind_can_be_raised_for_some_groups_alone() -> None:
    rule = {"findings": {"unowned": "block"}}

    assert judged(FOUND, groups={"dev-*": rule}).verdict == "refused"
    assert judged(FOUND, groups={"x-*": rule}).verdict == "passed"


# Fairness


UNEVEN = measures(assignment_fairness__even_enough=[subject("a", 1.4), subject("b", 2.5), subject("c", 4)])


def test_uneven_groups_are_evaluated_only_with_limits_of_the_settings() -> None:
    assert EVEN not in {row["expectation_id"] for row in judged(UNEVEN).results}


def test_each_group_has_its_own_limit() -> None:
    verdict = judged(
        UNEVEN,
        max_over_mean={"warn": 2.0},
        groups={"c": {"max_over_mean": {"block": 5.0}}, "a": {"max_over_mean": {"warn": 1.2}}},
    )

    assert verdict.verdict == "passed_with_warnings"
    assert result(verdict, EVEN)["observed"] == 2
    assert result(verdict, EVEN)["examples"] == [
        "group a of orders: 1.40 times as many, allowed 1.2",
        "group b of orders: 2.50 times as many, allowed 2",
    ]


def test_a_group_above_its_second_limit_blocks() -> None:
    limits = {"max_over_mean": {"warn": 2.0, "block": 3.0}}

    assert judged(UNEVEN, **limits).verdict == "refused"
    assert (
        judged(UNEVEN, **limits, waivers=[waiver(expectation=EVEN, consumer_group="c")]).verdict
        == "passed_with_warnings"
    )


# Waivers


def test_a_waived_failure_is_reported_with_approver_expiry_and_reason_and_the_day_passes() -> None:
    verdict = judged(TWO_OWNERS, waivers=[waiver(expectation=ONE_OWNER)])

    assert verdict.verdict == "passed"
    row = result(verdict, ONE_OWNER)
    assert row["outcome"] == "waived"
    assert not row["is_success"]
    assert row["observed"] == 5
    assert row["waiver"] == "5 waived until 2026-11-16 by ana: ticket 7"
    assert row["waiver"] in explain(verdict)


def test_a_waiver_of_a_group_excuses_only_that_group() -> None:
    verdict = judged(TWO_OWNERS, waivers=[waiver(expectation=ONE_OWNER, consumer_group="a")])

    assert verdict.verdict == "refused"
    assert (
        "found 3, allowed 0; for example: group b of orders; in addition, 2 waived until"
        in verdict.reasons[0]
    )
    assert result(verdict, ONE_OWNER)["examples"] == ["group b of orders"]


def test_the_day_passes_if_all_violating_groups_have_a_waiver() -> None:
    waivers = [waiver(expectation=ONE_OWNER, consumer_group=group) for group in ("a", "b")]

    assert judged(TWO_OWNERS, waivers=waivers).verdict == "passed"


def test_a_waiver_can_name_topic_and_broker() -> None:
    rows = measures(ownership_drift__cause_given=[subject("a", broker="b1"), subject("a", broker="b2")])

    def excused(**subject: str) -> float:
        verdict = judged(rows, waivers=[waiver(expectation="ownership_drift.cause_given", **subject)])
        return (
            2 - float(verdict.reasons[0].partition("found ")[2].partition(",")[0]) if verdict.reasons else 2
        )

    assert excused(consumer_group="a", topic="orders", broker_name="b1") == 1
    assert excused(broker_name="b2") == 1
    assert excused(topic="orders") == 2
    assert excused(topic="payments") == 0


def test_a_waiver_of_a_finding_excuses_the_kind() -> None:
    verdict = judged(
        FOUND,
        findings={"unowned": "block"},
        waivers=[waiver(finding="unowned", consumer_group="a")],
    )

    assert "found 1, allowed 0; for example: group dev-b" in verdict.reasons[0]


def test_an_expired_waiver_has_no_effect_and_the_sentence_reports_the_expiry() -> None:
    verdict = judged(
        TWO_OWNERS, waivers=[waiver(expires_on=date(2026, 11, 15), expectation=ONE_OWNER, consumer_group="a")]
    )

    assert verdict.verdict == "refused"
    assert verdict.reasons[0].endswith("the waiver by ana expired on 2026-11-15 (ticket 7)")
    assert result(verdict, ONE_OWNER)["waiver"] is None


@pytest.mark.parametrize("until", [DS, date(2026, 11, 15)])
@pytest.mark.parametrize("rows", [measures(), measures(queue_assignment__one_owner=[subject("b")])])
def test_an_unused_waiver_is_reported(until: date, rows: list[Row]) -> None:
    verdict = judged(rows, waivers=[waiver(expires_on=until, expectation=ONE_OWNER, consumer_group="a")])

    [note] = verdict.notes
    assert note == (
        f"the waiver of queue_assignment.one_owner, group a by ana until {until} excuses nothing on this day; "
        "remove it from the settings if it is no longer needed"
    )
    assert verdict.notes[0] in explain(verdict)


def test_a_value_below_its_minimum_can_be_waived_only_as_a_whole() -> None:
    rows = [
        row | {"observed": 0.0} if row["expectation_id"] == "group_presence.some_online" else row
        for row in measures()
    ]

    assert judged(rows, waivers=[waiver(expectation="group_presence.some_online")]).verdict == "passed"
    assert judged(
        rows, waivers=[waiver(expectation="group_presence.some_online", consumer_group="a")]
    ).warnings


def test_a_missing_metric_cannot_be_waived() -> None:
    rows = [row for row in measures() if row["expectation_id"] != ONE_OWNER]

    assert judged(rows, waivers=[waiver(expectation=ONE_OWNER)]).verdict == "refused"


def test_violations_without_a_subject_remain_whatever_is_waived() -> None:
    rows = measures(queue_assignment__one_owner=[subject("a")])
    for row in rows:
        if row["expectation_id"] == ONE_OWNER:
            row["observed"] = 3.0

    verdict = judged(rows, waivers=[waiver(expectation=ONE_OWNER, consumer_group="a")])

    assert "found 2, allowed 0" in verdict.reasons[0]


def test_the_text_of_a_waiver_is_one_line() -> None:
    verdict = judged(TWO_OWNERS, waivers=[waiver(expectation=ONE_OWNER) | {"reason": "two\nlines\x1b[31m"}])

    assert result(verdict, ONE_OWNER)["waiver"].endswith("two\\nlines\\x1b[31m")
