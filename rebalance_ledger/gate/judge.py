"""Judge the metrics of a staged day with Great Expectations.

Belongs here: validation of the metrics in one small data frame. Does not belong here: measuring (`pipeline.gate_metrics`), publishing or
refusing (`warehouse`, `pipeline`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from expectations.suites.all_suites import SUITES
from rebalance_ledger.gate.evaluation import evaluate, idle_waivers
from rebalance_ledger.gate.pages.data_docs import gx_expectation, write_suite_page
from rebalance_ledger.gate.pages.first_page import write_first_page
from rebalance_ledger.gate.policy import GatePolicy
from rebalance_ledger.gate.quarantine import group_names
from rebalance_ledger.gate.verdict import (
    Verdict,
    idle_sentence,
    sentence_of,
    waiver_text,
)
from rebalance_ledger.settings import Approval, GateSettings
from rebalance_ledger.tables.vocabulary import GateVerdict, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.gate.evaluation import Evaluation


def judge(  # noqa: PLR0913  # what is judged, by which policy, and where the pages go
    metrics: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    cluster: str,
    ds: date,
    run_id: str,
    data_docs_dir: Path | None,
    settings: GateSettings | None = None,
    baseline_ds: date | None = None,
    quarantined: Sequence[dict[str, Any]] = (),
    approval: Approval | None = None,
) -> Verdict:
    """Judge one staged day of one cluster.

    Args:
        metrics: Rows of `measurement.METRIC_SCHEMA`: expectation_id, observed, examples, affected_subjects.
        cluster: Cluster name, for the Data Docs.
        ds: UTC day; waivers expire by it.
        run_id: Id of the computation, for `gate_result`.
        data_docs_dir: Dedicated directory for the HTML Data Docs; pages of the same cluster and day are overwritten. None
            writes no Data Docs.
        settings: Severities, limits and waivers of the cluster; None for the defaults.
        baseline_ds: Baseline day of the metrics; None if there is none.
        quarantined: Columns of `gold.quarantined_group`: the groups that the metrics exclude, and why.
        approval: A person's approval of this computation. It counts if it names every expectation that would refuse the day.

    Returns:
        The verdict. An expectation without a metric has failed.

    Raises:
        MetricError: A metric belongs to no expectation, or an expectation has two metrics.
    """
    policy = GatePolicy(settings or GateSettings(), ds)
    rows = (
        cast("list[dict[str, Any]]", metrics.to_dict("records"))
        if isinstance(metrics, pd.DataFrame)
        else metrics
    )
    evaluations = evaluate(rows, policy, baseline_ds=baseline_ds)
    is_success = _validate(evaluations, cluster, ds, data_docs_dir)
    results: list[dict[str, Any]] = []
    messages: dict[str, list[str]] = {"block": [], "warn": []}
    for evaluation in evaluations:
        # Fail closed: an expectation without a metric or without a validation result fails.
        is_passed = evaluation.is_passed and is_success.get(evaluation.expectation.expectation_id, False)
        result = _result(evaluation, run_id, baseline_ds, is_passed=is_passed)
        results.append(result)
        if result["outcome"] == Outcome.FAILED:
            messages[evaluation.severity].append(sentence_of(result, evaluation))
    refusing = [
        result for result in results if result["outcome"] == Outcome.FAILED and result["severity"] == "block"
    ]
    is_approved = approval is not None and _approve(refusing, approval)
    verdict = (
        GateVerdict.APPROVED
        if is_approved
        else GateVerdict.REFUSED
        if messages["block"]
        else GateVerdict.PASSED_WITH_QUARANTINE
        if quarantined
        else GateVerdict.PASSED_WITH_WARNINGS
        if messages["warn"]
        else GateVerdict.PASSED
    )
    excluded_groups = group_names(quarantined)
    idle = (
        waiver for waiver in idle_waivers(evaluations, policy) if waiver.consumer_group not in excluded_groups
    )
    judged = Verdict(
        verdict=verdict,
        results=results,
        quarantined=list(quarantined) if verdict is GateVerdict.PASSED_WITH_QUARANTINE else [],
        reasons=[] if is_approved else messages["block"],
        approved=messages["block"] if is_approved else [],
        warnings=messages["warn"],
        notes=list(map(idle_sentence, idle)),
        data_docs_index=None if data_docs_dir is None else str(data_docs_dir / "index.html"),
    )
    if data_docs_dir is not None:
        write_first_page(data_docs_dir, cluster, ds, judged)
    return judged


def _approve(refusing: Sequence[dict[str, Any]], approval: Approval) -> bool:
    """Mark the results that refuse the day as approved, if the approval names them all and each was measured."""
    if not refusing or any(
        result["observed"] is None or result["expectation_id"] not in approval.expectation_ids
        for result in refusing
    ):
        return False
    for result in refusing:
        result["outcome"] = Outcome.APPROVED.value
        result["approved_by"] = approval.approved_by
        result["approval_reason"] = approval.reason
    return True


def _validate(
    evaluations: Iterable[Evaluation], cluster: str, ds: date, data_docs_dir: Path | None
) -> dict[str, bool]:
    """Validate the metrics with Great Expectations and return success by expectation id."""
    # The caller of the gate reports progress; Great Expectations' own messages would duplicate it.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            # No site in a temporary folder and no progress bars on the terminal.
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            progress_bars=ProgressBarsConfig(globally=False),
        ),
    )
    judged = {
        evaluation.expectation.expectation_id: evaluation
        for evaluation in evaluations
        if evaluation.is_comparable
    }
    metrics = context.data_sources.add_pandas("staged").add_dataframe_asset("metrics")
    of_day = metrics.add_batch_definition_whole_dataframe("day")
    is_success: dict[str, bool] = {}
    for suite in SUITES:
        of_suite = [
            judged[expectation.expectation_id]
            for expectation in suite.expectations
            if expectation.expectation_id in judged
        ]
        if not of_suite:
            continue
        # Only the columns of the suite, because Great Expectations hashes all columns.
        frame = pd.DataFrame(
            {evaluation.expectation.expectation_id: [evaluation.remaining] for evaluation in of_suite},
            dtype="float64",
        )
        # Neither the suite nor the result is stored: each copy would be written and compared several times, and nothing reads it.
        result = of_day.get_batch({"dataframe": frame}).validate(
            gx.ExpectationSuite(name=suite.name, expectations=list(map(gx_expectation, of_suite)))
        )
        is_success |= {one.expectation_config.kwargs["column"]: bool(one.success) for one in result.results}
        if data_docs_dir is not None:
            write_suite_page(data_docs_dir, f"{suite.name} / {cluster} / {ds}", result)
    return is_success


def _result(
    evaluation: Evaluation, run_id: str, baseline_ds: date | None, *, is_passed: bool
) -> dict[str, Any]:
    """Return a row of `gold.gate_result` without the partition columns."""
    expectation = evaluation.expectation
    outcome = (
        Outcome.SKIPPED
        if not evaluation.is_comparable
        else Outcome.FAILED
        if not is_passed
        else Outcome.WAIVED
        if evaluation.excused
        else Outcome.PASSED
    )
    return {
        "run_id": run_id,
        "expectation_id": expectation.expectation_id,
        "table_name": expectation.table.qualified_name,
        "expectation": expectation.sentence,
        "severity": evaluation.severity,
        "is_success": outcome in {Outcome.PASSED, Outcome.SKIPPED},
        "observed": evaluation.observed,
        "threshold_min": evaluation.threshold_min,
        "threshold_max": evaluation.threshold_max,
        "examples": list(evaluation.examples),
        "waiver": waiver_text(evaluation),
        "outcome": outcome.value,
        "baseline_ds": baseline_ds if expectation.is_of_two_days else None,
        "approved_by": None,
        "approval_reason": None,
    }
