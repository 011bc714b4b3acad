"""The gate: numbers that Spark measured on the staged tables go in, a verdict comes out.

What belongs here: the evaluation, by Great Expectations over one small frame. What does not: measuring (`measures`),
publishing or refusing (`warehouse`, `ledger`).
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, cast

import great_expectations as gx
import pandas as pd
from great_expectations.checkpoint import UpdateDataDocsAction
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from expectations.data_docs import add_site, drop_unused_files, gx_expectation
from expectations.evaluation import evaluate, idle_waivers
from expectations.first_page import write_first_page
from expectations.policy import Rules
from expectations.quarantine import names
from expectations.suites import SUITES
from expectations.verdict import Outcome, Verdict, VerdictName, idle_sentence, sentence_of, waiver_text
from rebalance_ledger.settings import GateSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from great_expectations.core import ExpectationSuiteValidationResult

    from expectations.evaluation import Evaluation


def judge(
    measures: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    cluster: str,
    ds: date,
    run_id: str,
    data_docs_dir: Path | None,
    settings: GateSettings | None = None,
    baseline_ds: date | None = None,
    quarantined: Sequence[dict[str, Any]] = (),
) -> Verdict:
    """Judges one staged day of one cluster.

    Args:
        measures: rows of `measures.METRIC_SCHEMA`: expectation_id, observed, examples, offenders.
        cluster: the cluster's name, for the Data Docs.
        ds: the UTC day, by which waivers end.
        run_id: the computation's identity, for `gate_result`.
        data_docs_dir: where to write Data Docs as HTML, a directory of its own; pages of the same cluster and day
            are written over. None writes none.
        settings: severities, limits and waivers of the cluster; None for the gate's own.
        baseline_ds: the earlier day that the measures compare with; None if there is none.
        quarantined: own columns of `gold.quarantined_group`: whom the measures are without, and why.

    Returns:
        The verdict. An expectation without a measure has failed.

    Raises:
        MeasureError: a measure that no expectation declares, or two for one expectation.
    """
    rules = Rules(settings or GateSettings(), ds)
    rows = (
        cast("list[dict[str, Any]]", measures.to_dict("records"))
        if isinstance(measures, pd.DataFrame)
        else measures
    )
    evaluations = evaluate(rows, rules, baseline_ds=baseline_ds)
    is_success = _validate(evaluations, cluster, ds, data_docs_dir)
    results: list[dict[str, Any]] = []
    told: dict[str, list[str]] = {"block": [], "warn": []}
    for evaluation in evaluations:
        # Twice sure: what was not measured, or not judged, does not hold.
        is_held = evaluation.is_held and is_success.get(evaluation.expectation.expectation_id, False)
        result = _result(evaluation, run_id, baseline_ds, is_held=is_held)
        results.append(result)
        if result["outcome"] == "failed":
            told[evaluation.severity].append(sentence_of(result, evaluation))
    verdict: VerdictName = (
        "refused"
        if told["block"]
        else "passed_with_quarantine"
        if quarantined
        else "passed_with_warnings"
        if told["warn"]
        else "passed"
    )
    excluded_groups = names(quarantined)
    idle = (
        waiver for waiver in idle_waivers(evaluations, rules) if waiver.consumer_group not in excluded_groups
    )
    judged = Verdict(
        verdict=verdict,
        results=results,
        quarantined=list(quarantined) if verdict == "passed_with_quarantine" else [],
        reasons=told["block"],
        warnings=told["warn"],
        notes=list(map(idle_sentence, idle)),
        data_docs_index=None if data_docs_dir is None else data_docs_dir / "index.html",
    )
    if data_docs_dir is not None:
        write_first_page(data_docs_dir, cluster, ds, judged)
    return judged


def _validate(
    evaluations: Iterable[Evaluation], cluster: str, ds: date, data_docs_dir: Path | None
) -> dict[str, bool]:
    """Lets Great Expectations judge, and gives what held by expectation id."""
    # It reports its own progress; ours is told by whoever runs the gate.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            # Nothing is kept but what is asked for: no site in a temporary folder, no bars on the terminal.
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            progress_bars=ProgressBarsConfig(globally=False),
        ),
    )
    judged = {
        evaluation.expectation.expectation_id: evaluation
        for evaluation in evaluations
        if evaluation.is_comparable
    }
    frame = pd.DataFrame(
        {expectation_id: [evaluation.remaining] for expectation_id, evaluation in judged.items()},
        dtype="float64",
    )
    source = context.data_sources.add_pandas("staged")
    if data_docs_dir is None:
        # A checkpoint stores every suite, and compares what it stored several times over, for pages that nobody wants.
        batch = source.add_dataframe_asset("day").add_batch_definition_whole_dataframe("day")
        suite = gx.ExpectationSuite(name="day", expectations=list(map(gx_expectation, judged.values())))
        return _held([batch.get_batch({"dataframe": frame}).validate(suite)])
    definitions = []
    for suite in SUITES:
        of_suite = [
            judged[expectation.expectation_id]
            for expectation in suite.expectations
            if expectation.expectation_id in judged
        ]
        if not of_suite:
            continue
        batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("day")
        # Whole suites: adding expectations to a stored suite one by one would store it as often.
        gx_suite = context.suites.add(
            gx.ExpectationSuite(
                name=suite.name,
                expectations=[gx_expectation(evaluation) for evaluation in of_suite],
            )
        )
        definitions.append(
            context.validation_definitions.add(
                gx.ValidationDefinition(name=suite.name, data=batch, suite=gx_suite)
            )
        )
    pages = UpdateDataDocsAction(name="data_docs", site_names=[add_site(context, str(data_docs_dir))])
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(name="gate", validation_definitions=definitions, actions=[pages])
    )
    outcome = checkpoint.run(
        batch_parameters={"dataframe": frame},
        # Pages are named by these: the day itself instead of the clock lets a rerun write over its own.
        run_id=gx.RunIdentifier(run_name=_page_name(cluster, ds), run_time=datetime.combine(ds, time(), UTC)),
    )
    drop_unused_files(data_docs_dir)
    return _held(outcome.run_results.values())


def _held(validations: Iterable[ExpectationSuiteValidationResult]) -> dict[str, bool]:
    """What Great Expectations says of each expectation, by its id."""
    return {
        result.expectation_config.kwargs["column"]: bool(result.success)
        for validation in validations
        for result in validation.results
    }


def _page_name(cluster: str, ds: date) -> str:
    """A name for the day's pages that means nothing to a browser or a file system, whatever the cluster is called."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', cluster)}-{ds.isoformat()}"


def _result(
    evaluation: Evaluation, run_id: str, baseline_ds: date | None, *, is_held: bool
) -> dict[str, Any]:
    """The own columns of a row of `gold.gate_result`."""
    expectation = evaluation.expectation
    outcome: Outcome = (
        "skipped"
        if not evaluation.is_comparable
        else "failed"
        if not is_held
        else "waived"
        if evaluation.excused
        else "passed"
    )
    return {
        "run_id": run_id,
        "expectation_id": expectation.expectation_id,
        "table_name": expectation.table.qualified_name,
        "expectation": expectation.sentence,
        "severity": evaluation.severity,
        "is_success": outcome in {"passed", "skipped"},
        "observed": evaluation.observed,
        "threshold_min": evaluation.threshold_min,
        "threshold_max": evaluation.threshold_max,
        "examples": list(evaluation.examples),
        "waiver": waiver_text(evaluation),
        "outcome": outcome,
        "baseline_ds": baseline_ds if expectation.is_of_two_days else None,
    }
