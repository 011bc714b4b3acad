"""The gate: numbers that Spark measured on the staged tables go in, a verdict comes out.

What belongs here: the judgement, by Great Expectations over one small frame. What does not: measuring (`measures`),
publishing or refusing (`warehouse`, `ledger`).
"""

from __future__ import annotations

import logging
import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, Final, cast

import great_expectations as gx
import pandas as pd
from great_expectations.checkpoint import UpdateDataDocsAction
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from expectations.data_docs import add_site, allowed, gx_expectation
from expectations.suites import EXPECTATIONS, SUITES
from expectations.thresholds import MOST_EXAMPLES
from expectations.verdict import Verdict, VerdictName, sentence_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date
    from pathlib import Path

    from expectations.model import Expectation

_MOST_EXAMPLE_CHARACTERS: Final = 500


class MeasureError(ValueError):
    """The measures are not what the gate declares, so nothing can be judged by them."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """What was measured for one expectation; `observed` is None if nothing was."""

    observed: float | None = None
    examples: tuple[str, ...] = ()


def judge(
    measures: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    cluster: str,
    ds: date,
    run_id: str,
    data_docs_dir: Path | None,
) -> Verdict:
    """Judges one staged day of one cluster.

    Args:
        measures: rows of `measures.MEASURE_SCHEMA`: expectation_id, observed, examples.
        cluster: the cluster's name, for the Data Docs.
        ds: the UTC day, for the Data Docs.
        run_id: the computation's identity, for `gate_result`.
        data_docs_dir: where to write Data Docs as HTML, a directory of its own; pages of the same cluster and day
            are written over. None writes none.

    Returns:
        The verdict. An expectation without a measure has failed.

    Raises:
        MeasureError: a measure that no expectation declares, or two for one expectation.
    """
    measured = _by_expectation(measures)
    is_success = _validate(measured, cluster, ds, data_docs_dir)
    results: list[dict[str, Any]] = []
    told: dict[str, list[str]] = {"block": [], "warn": []}
    for expectation in EXPECTATIONS.values():
        result = _result(expectation, measured[expectation.expectation_id], run_id, is_success=is_success)
        results.append(result)
        if not result["is_success"]:
            told[expectation.severity].append(sentence_of(result, allowed(expectation)))
    verdict: VerdictName = (
        "refused" if told["block"] else "passed_with_warnings" if told["warn"] else "passed"
    )
    return Verdict(
        verdict=verdict,
        results=results,
        reasons=told["block"],
        warnings=told["warn"],
        data_docs_index=None if data_docs_dir is None else data_docs_dir / "index.html",
    )


def _by_expectation(measures: pd.DataFrame | Iterable[Mapping[str, Any]]) -> dict[str, _Measure]:
    """The measure of every declared expectation, an empty one for those that were not measured."""
    rows = (
        cast("list[dict[str, Any]]", measures.to_dict("records"))
        if isinstance(measures, pd.DataFrame)
        else measures
    )
    measured: dict[str, _Measure] = {}
    for row in rows:
        expectation_id = row["expectation_id"]
        if expectation_id not in EXPECTATIONS:
            raise MeasureError(
                f"The measure {expectation_id} belongs to no expectation: "
                "declare it in a suite of expectations/, or stop measuring it."
            )
        if expectation_id in measured:
            raise MeasureError(
                f"The measure {expectation_id} is there twice: let one statement of expectations/measures.py give it."
            )
        observed = row["observed"]
        examples = row["examples"]
        measured[expectation_id] = _Measure(
            # A number that is none was not measured; a range would let an infinity pass on one side.
            observed=float(observed) if observed is not None and math.isfinite(observed) else None,
            examples=tuple(_one_line(example) for example in examples[:MOST_EXAMPLES])
            if examples is not None
            else (),
        )
    return {expectation_id: measured.get(expectation_id, _Measure()) for expectation_id in EXPECTATIONS}


def _one_line(text: str) -> str:
    """A text with what would break a line, move a cursor or turn the direction of writing spelt out."""
    shown = "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character
        for character in text
    )
    return shown if len(shown) <= _MOST_EXAMPLE_CHARACTERS else f"{shown[:_MOST_EXAMPLE_CHARACTERS]}…"


def _validate(
    measured: Mapping[str, _Measure], cluster: str, ds: date, data_docs_dir: Path | None
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
    frame = pd.DataFrame(
        {expectation_id: [measure.observed] for expectation_id, measure in measured.items()}, dtype="float64"
    )
    source = context.data_sources.add_pandas("staged")
    definitions = []
    for suite in SUITES:
        batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("day")
        # Whole suites: adding expectations to a stored suite one by one would store it as often.
        gx_suite = context.suites.add(
            gx.ExpectationSuite(
                name=suite.name,
                expectations=[
                    gx_expectation(expectation, measure.observed, list(measure.examples))
                    for expectation in suite.expectations
                    for measure in [measured[expectation.expectation_id]]
                ],
            )
        )
        definitions.append(
            context.validation_definitions.add(
                gx.ValidationDefinition(name=suite.name, data=batch, suite=gx_suite)
            )
        )
    actions = []
    if data_docs_dir is not None:
        site = add_site(context, str(data_docs_dir))
        actions.append(UpdateDataDocsAction(name="data_docs", site_names=[site]))
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(name="gate", validation_definitions=definitions, actions=actions)
    )
    outcome = checkpoint.run(
        batch_parameters={"dataframe": frame},
        # Pages are named by these: the day itself instead of the clock lets a rerun write over its own.
        run_id=gx.RunIdentifier(run_name=_page_name(cluster, ds), run_time=datetime.combine(ds, time(), UTC)),
    )
    return {
        result.expectation_config.kwargs["column"]: bool(result.success)
        for suite_result in outcome.run_results.values()
        for result in suite_result.results
    }


def _page_name(cluster: str, ds: date) -> str:
    """A name for the day's pages that means nothing to a browser or a file system, whatever the cluster is called."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', cluster)}-{ds.isoformat()}"


def _result(
    expectation: Expectation, measure: _Measure, run_id: str, *, is_success: Mapping[str, bool]
) -> dict[str, Any]:
    """The own columns of a row of `gold.gate_result`."""
    return {
        "run_id": run_id,
        "expectation_id": expectation.expectation_id,
        "table_name": expectation.table.qualified_name,
        "expectation": expectation.sentence,
        "severity": expectation.severity,
        # Twice sure: what was not measured, or not judged, does not hold.
        "is_success": measure.observed is not None and is_success.get(expectation.expectation_id, False),
        "observed": measure.observed,
        "threshold_min": expectation.threshold_min,
        "threshold_max": expectation.threshold_max,
        "examples": list(measure.examples),
        "waiver": None,
    }
