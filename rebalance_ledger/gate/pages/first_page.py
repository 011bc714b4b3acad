"""The first page of Data Docs: verdict, failures with advice, and every suite with its numbers.

Belongs here: the content of that page. Does not belong here: the pages behind it (`data_docs`), the verdict (`gate`).
"""

# ruff: noqa: S608 - the SQL is displayed, not executed.
from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, select_autoescape

from expectations.suites.all_suites import SUITES
from rebalance_ledger.gate.advice import advice_on
from rebalance_ledger.gate.evaluation import one_line
from rebalance_ledger.gate.verdict import allowed_range, approval_text
from rebalance_ledger.tables.vocabulary import GateVerdict, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from rebalance_ledger.gate.verdict import Verdict

_TEMPLATES: Final = Path(__file__).parent

_HEADLINE: Final[dict[GateVerdict, str]] = {
    GateVerdict.PASSED: "Passed: the day may be published",
    GateVerdict.PASSED_WITH_WARNINGS: "Passed with warnings: the day may be published",
    GateVerdict.PASSED_WITH_QUARANTINE: "Passed without some groups: the day may be published without them",
    GateVerdict.APPROVED: "Refused and approved by a person: the day may be published",
    GateVerdict.REFUSED: "Refused: the day is not published",
}
_OUTCOMES: Final = (Outcome.FAILED, Outcome.APPROVED, Outcome.WAIVED, Outcome.SKIPPED, Outcome.PASSED)


@dataclass(frozen=True, slots=True)
class _Row:
    """One expectation on the page."""

    expectation_id: str
    table_name: str
    sentence: str
    outcome: Outcome
    severity: str
    observed: str
    allowed: str
    examples: tuple[str, ...]
    waiver: str | None
    approval: str | None
    baseline_ds: date | None
    advice: str

    @classmethod
    def of(cls, result: dict[str, Any]) -> _Row:
        """Return the page row for a row of `gate_result`."""
        observed = result["observed"]
        return cls(
            expectation_id=result["expectation_id"],
            table_name=result["table_name"],
            sentence=result["expectation"],
            outcome=Outcome(result["outcome"]),
            severity=result["severity"],
            observed="not measured" if observed is None else f"{observed:g}",
            allowed=allowed_range(result["threshold_min"], result["threshold_max"]),
            examples=tuple(result["examples"]),
            waiver=result["waiver"],
            approval=approval_text(result) if result["outcome"] == Outcome.APPROVED else None,
            baseline_ds=result["baseline_ds"],
            advice=advice_on(result),
        )


@dataclass(frozen=True, slots=True)
class _SuiteOfDay:
    """A suite on the page, with a link to the page of Great Expectations; None if there is none, because nothing was validated."""

    name: str
    counts: dict[Outcome, int]
    rows: tuple[_Row, ...]
    results_page: str | None


def write_first_page(directory: Path, cluster: str, ds: date, verdict: Verdict) -> None:
    """Write `index.html`, which links the pages of the suites.

    The page loads nothing, and its content security policy enforces that. It links the day's report, which is written beside it once the day is published.

    Args:
        directory: Data Docs of one cluster and day, with the pages of the suites.
        cluster: Cluster name.
        ds: UTC day.
        verdict: Verdict of the gate.
    """
    rows = [_Row.of(result) for result in verdict.results]
    failed = [row for row in rows if row.outcome is Outcome.FAILED]
    name = one_line(cluster).replace("'", "''")
    query = (
        "SELECT severity, kind, evidence, advice FROM finding "
        f"WHERE cluster = '{name}' AND ds = '{ds.isoformat()}' AND parent_finding_id IS NULL"
    )
    arguments = f"--cluster {shlex.quote(one_line(cluster))} --ds {ds.isoformat()}"
    pages = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
    )
    text = pages.get_template("first_page.html.j2").render(
        cluster=one_line(cluster),
        ds=ds.isoformat(),
        verdict=verdict,
        headline=_HEADLINE[verdict.verdict],
        judged_count=sum(row.outcome is not Outcome.SKIPPED for row in rows),
        skipped_count=sum(row.outcome is Outcome.SKIPPED for row in rows),
        passed_count=sum(row.outcome is Outcome.PASSED for row in rows),
        blocking=[row for row in failed if row.severity == "block"],
        approved=[row for row in rows if row.outcome is Outcome.APPROVED],
        warning=[row for row in failed if row.severity == "warn"],
        waived=[row for row in rows if row.outcome is Outcome.WAIVED],
        quarantined=[
            row
            | {
                "consumer_group": one_line(row["consumer_group"]),
                "advice": advice_on(row | {"outcome": "quarantined"}),
            }
            for row in verdict.quarantined
        ],
        suites=list(_suites(directory, rows)),
        outcomes=_OUTCOMES,
        arguments=arguments,
        # Names without shell metacharacters get the more readable double quotes.
        query=f'"{query}"' if shlex.quote(name) == name else shlex.quote(query),
        has_report=verdict.verdict is not GateVerdict.REFUSED,
    )
    (directory / "index.html").write_text(text, encoding="utf-8")


def _suites(directory: Path, rows: Iterable[_Row]) -> Iterable[_SuiteOfDay]:
    by_id = {row.expectation_id: row for row in rows}
    for suite in SUITES:
        of_suite = tuple(
            by_id[expectation.expectation_id]
            for expectation in suite.expectations
            if expectation.expectation_id in by_id
        )
        if not of_suite:
            continue
        page = Path("suites", f"{suite.name}.html")
        yield _SuiteOfDay(
            name=suite.name,
            counts={outcome: sum(row.outcome is outcome for row in of_suite) for outcome in _OUTCOMES},
            rows=of_suite,
            results_page=page.as_posix() if (directory / page).is_file() else None,
        )
