"""What the gate judges of a staged day: all of it, or what remains without groups that alone would refuse it.

What belongs here: putting measures of the stage and of two days together, and that choice. What does not: what is expected
(`expectations`), what becomes of the day (`steps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expectations.suites import day_over_day
from rebalance_ledger.gate.evaluation import evaluate, one_line
from rebalance_ledger.gate.policy import Rules
from rebalance_ledger.gate.quarantine import blocking, groups_at_fault, names
from rebalance_ledger.warehouse.day_comparison import compare
from rebalance_ledger.warehouse.staging import read_measures, read_rest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date

    from rebalance_ledger.settings import GateSettings
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GateInput:
    """The input of one gate evaluation.

    Attributes:
        measures: Rows of `expectations.measurement.METRIC_SCHEMA`.
        baseline_ds: The day that they are compared with; None without a baseline.
        quarantined: Rows with the own columns of `gold.quarantined_group`: the groups that the metrics exclude, and why.
        notes: Reasons, one sentence each, why no group is quarantined although the settings request it.
    """

    measures: list[Row]
    baseline_ds: date | None
    quarantined: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()


def read_gate_input(
    warehouse: Warehouse, cluster: str, ds: date, stage: StagingArea, settings: GateSettings
) -> GateInput:
    """Return the metrics of the whole day, or, if the settings request it and the day then passes, without some groups.

    Groups are quarantined only if they alone refuse the day, the build has computed the metrics without them, and none of
    those metrics refuses the day.

    Raises:
        QueryError: A published table cannot be read.
    """

    def with_comparison(measures: list[Row], excluded_groups: Collection[str]) -> GateInput:
        comparison = compare(
            warehouse,
            cluster,
            ds,
            stage,
            day_over_day.COMPARED_TABLES,
            day_over_day.STATEMENT,
            excluded_groups,
        )
        if comparison is None:
            return GateInput(measures, None)
        return GateInput(measures + day_over_day.measures(comparison.rows), comparison.baseline_ds)

    whole = with_comparison(read_measures(stage), ())
    if not settings.quarantine_groups:
        return whole
    rules = Rules(settings, ds)

    def refusing(day: GateInput) -> list[str]:
        evaluations = evaluate(day.measures, rules, baseline_ds=day.baseline_ds)
        return [evaluation.expectation.expectation_id for evaluation in blocking(evaluations)]

    at_fault = groups_at_fault(evaluate(whole.measures, rules, baseline_ds=whole.baseline_ds))
    if at_fault is None:
        return _noted(
            whole,
            "no group is quarantined, because some failed expectations of this day do not belong to a group",
        )
    if not at_fault:
        return whole
    groups = names(at_fault)
    rest = read_rest(stage)
    if rest is None or rest.excluded_groups != groups:
        return _noted(
            whole,
            f"the day was not measured without {_join_names(groups)}, which alone refuse it under the current settings: build it again",
        )
    remaining = with_comparison(rest.measures, groups)
    broken = refusing(remaining)
    if broken:
        return _noted(
            whole,
            f"no group is left out, because without {_join_names(groups)} the day fails {', '.join(broken)}",
        )
    return GateInput(remaining.measures, remaining.baseline_ds, quarantined=tuple(at_fault))


def _noted(whole: GateInput, note: str) -> GateInput:
    return GateInput(whole.measures, whole.baseline_ds, notes=(note,))


def _join_names(groups: Iterable[str]) -> str:
    return ", ".join(map(one_line, groups))
