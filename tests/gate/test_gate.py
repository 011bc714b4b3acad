"""The gate evaluates metrics: out-of-range, missing or unknown values never pass, and names are treated as text."""

from __future__ import annotations

import math
import os
import re
from datetime import date
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.gate.evaluation import MetricError
from rebalance_ledger.gate.judge import judge
from rebalance_ledger.gate.verdict import explain
from rebalance_ledger.tables import GATE_RESULT

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.gate.verdict import Verdict

DS = date(2026, 11, 16)
ONE_OWNER = "queue_assignment.one_owner"
FEW_REJECTED = "rejected_record.count_within_limit"
ASKED_FOR = [name for name, expectation in EXPECTATIONS.items() if expectation.severity is not None]
Row = dict[str, Any]


def measures(**changed: Any) -> list[Row]:
    """Return metrics that pass every expectation, with some changed. In argument names, `__` stands for `.`."""
    rows = {
        expectation_id: {
            "expectation_id": expectation_id,
            "observed": expectation.threshold_min or 0.0,
            "examples": [],
        }
        for expectation_id, expectation in EXPECTATIONS.items()
        if not expectation.is_of_two_days
    }
    for name, change in changed.items():
        rows[name.replace("__", ".")].update(change)
    return list(rows.values())


def judged(rows: list[Row] | pd.DataFrame, cluster: str = "shop-prod", docs: Path | None = None) -> Verdict:
    return judge(rows, cluster=cluster, ds=DS, run_id="run-1", data_docs_dir=docs)


def result(verdict: Verdict, expectation_id: str) -> Row:
    return next(row for row in verdict.results if row["expectation_id"] == expectation_id)


def test_a_valid_day_passes() -> None:
    verdict = judged(measures())

    assert verdict.verdict == "passed"
    assert verdict.reasons == []
    assert verdict.warnings == []
    assert verdict.data_docs_index is None
    of_one_day = len([name for name in ASKED_FOR if not EXPECTATIONS[name].is_of_two_days])
    assert explain(verdict).splitlines() == [
        f"The gate passed: {of_one_day} of {of_one_day} expectations passed.",
        (f"- note: {len(ASKED_FOR) - of_one_day} expectations were skipped: there is no baseline day"),
    ]


def test_there_is_a_row_of_gate_result_for_each_expectation() -> None:
    verdict = judged(measures())

    assert [row["expectation_id"] for row in verdict.results] == ASKED_FOR
    assert {tuple(row) for row in verdict.results} == {tuple(column.name for column in GATE_RESULT.columns)}
    assert result(verdict, FEW_REJECTED) == {
        "run_id": "run-1",
        "expectation_id": FEW_REJECTED,
        "table_name": "silver.rejected_record",
        "expectation": "The share of unreadable export lines is within the limit.",
        "severity": "warn",
        "is_success": True,
        "observed": 0.0,
        "threshold_min": None,
        "threshold_max": 0.01,
        "examples": [],
        "waiver": None,
        "outcome": "passed",
        "baseline_ds": None,
        "approved_by": None,
        "approval_reason": None,
    }


def test_the_verdict_is_the_same_with_pages_and_without(tmp_path: Path) -> None:
    rows = measures(
        queue_assignment__one_owner={"observed": 2.0}, rejected_record__count_within_limit={"observed": 0.5}
    )

    without, with_pages = judged(rows), judged(rows, docs=tmp_path / "docs")

    assert (without.verdict, without.results) == (with_pages.verdict, with_pages.results)
    assert (len(without.reasons), len(without.warnings)) == (1, 1)


def test_a_violated_blocking_expectation_refuses_the_day_and_is_named_with_its_examples() -> None:
    verdict = judged(
        measures(queue_assignment__one_owner={"observed": 2.0, "examples": ["queue a/0", "queue a/1"]})
    )

    assert verdict.verdict == "refused"
    [reason] = verdict.reasons
    assert reason == (
        "gold.queue_assignment fails queue_assignment.one_owner (No strategy that guarantees one owner assigns a "
        "queue to two clients of one language with the same parameters; MACHINE_ROOM guarantees it from Java 4.8.0. "
        "Queues without a route were not assigned: clients keep them): found 2, allowed 0; for example: queue a/0 | queue a/1"
    )
    assert not result(verdict, ONE_OWNER)["is_success"]
    assert sum(not row["is_success"] for row in verdict.results) == 1


def test_a_violated_warning_is_reported_and_the_day_passes() -> None:
    verdict = judged(
        measures(
            rejected_record__count_within_limit={"observed": 0.25, "examples": ["file x, line 1: torn"]},
            group_presence__some_online={"observed": 0.0},
        )
    )

    assert verdict.verdict == "passed_with_warnings"
    assert verdict.reasons == []
    assert [warning.partition(": found ")[2] for warning in verdict.warnings] == [
        "0.25, allowed at most 0.01; for example: file x, line 1: torn",
        "0, allowed at least 1",
    ]


@pytest.mark.parametrize("expectation_id", [ONE_OWNER, "finding.one_row_per_key"])
def test_an_expectation_without_a_metric_has_failed(expectation_id: str) -> None:
    verdict = judged([row for row in measures() if row["expectation_id"] != expectation_id])

    assert verdict.verdict == "refused"
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].endswith("it was not measured")
    assert result(verdict, expectation_id)["observed"] is None


@pytest.mark.parametrize("number", [None, math.nan, math.inf, -math.inf])
def test_an_invalid_number_counts_as_not_measured(number: float | None) -> None:
    verdict = judged(measures(queue_assignment__one_owner={"observed": number}))

    assert verdict.verdict == "refused"
    assert result(verdict, ONE_OWNER)["observed"] is None


def test_nothing_measured_at_all_refuses_the_day() -> None:
    verdict = judged([])

    assert verdict.verdict == "refused"
    assert {row["outcome"] for row in verdict.results} == {"failed", "skipped"}


def test_a_metric_without_an_expectation_is_an_error() -> None:
    stray = {"expectation_id": "queue_assignment.made_up", "observed": 0.0, "examples": []}

    with pytest.raises(MetricError, match=r"^The metric queue_assignment\.made_up belongs to no expectation"):
        judged([*measures(), stray])


def test_two_metrics_of_one_expectation_are_an_error() -> None:
    with pytest.raises(MetricError, match=r"^The metric queue_assignment\.one_owner occurs twice"):
        judged([*measures(), {"expectation_id": ONE_OWNER, "observed": 0.0, "examples": []}])


def test_a_frame_read_from_a_table_is_evaluated_like_rows() -> None:
    rows = measures(
        queue_assignment__one_owner={"observed": 2.0, "examples": np.array(["queue a/0"], dtype=object)}
    )

    assert judged(pd.DataFrame(rows)) == judged(rows)


def test_an_example_is_one_line_without_control_characters() -> None:
    verdict = judged(
        measures(
            queue_assignment__one_owner={
                "observed": 1.0,
                "examples": ["two\nlines \x1b[31mred \u202eback", "é 队列"],
            }
        )
    )

    assert result(verdict, ONE_OWNER)["examples"] == ["two\\nlines \\x1b[31mred \\u202eback", "é 队列"]
    assert len(explain(verdict).splitlines()) == 3


def test_a_long_example_is_truncated() -> None:
    verdict = judged(measures(queue_assignment__one_owner={"observed": 1.0, "examples": ["x" * 10_000]}))

    assert result(verdict, ONE_OWNER)["examples"] == ["x" * 500 + "…"]


def test_great_expectations_analytics_are_disabled() -> None:
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"


class _Page(HTMLParser):
    """The visible text of a page, its scripts, and all attributes of its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.scripts: list[str] = []
        self.attributes: list[str] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts.append(data)
        else:
            self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser calls it so
        self.attributes += [f"{name}={value}" for name, value in attrs]


HOSTILE_NAMES = (
    "<script>alert('planted')</script>",
    '"><img src=planted onerror=alert(1)>',
    "$observed ${example_1} $$sentence $PARAMETER",
    "{{ planted }} {% planted %}",
    "[planted](javascript:alert(1)) **planted** <b>planted</b>",
    "<!-- planted",
    "&lt;planted&gt;",
)


def test_the_pages_load_no_resources_and_have_no_external_links(tmp_path: Path) -> None:
    judged(
        measures(queue_assignment__one_owner={"observed": 2.0, "examples": ["queue a/0"]}),
        docs=tmp_path / "docs",
    )

    pages = [path for path in (tmp_path / "docs").rglob("*") if path.is_file()]
    assert {path.suffix for path in pages} == {".html"}
    assert len(pages) > 1
    for path in pages:
        html = path.read_text(encoding="utf-8")
        assert "//" not in html.replace("<!DOCTYPE html>", ""), path
        assert "<script" not in html
        assert "@import" not in html
        assert "url(" not in html


def test_the_index_links_to_the_page_of_each_suite_and_shows_failures(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    judged(measures(queue_assignment__one_owner={"observed": 2.0, "examples": ["queue a/0"]}), docs=docs)

    index = _Page((docs / "index.html").read_text(encoding="utf-8"))
    linked = {
        docs / attribute.removeprefix("href=") for attribute in index.attributes if ".html" in attribute
    }
    assert linked == set(docs.rglob("*.html")) - {docs / "index.html"}
    assert re.findall(r"(\w+)\s*1 failed", index.text) == ["queue_assignment"]
    assert "queue a/0" in _Page((docs / "suites" / "queue_assignment.html").read_text(encoding="utf-8")).text
    for page in linked:
        links = {
            (page.parent / attribute.removeprefix("href=")).resolve()
            for attribute in _Page(page.read_text(encoding="utf-8")).attributes
            if attribute.startswith("href=")
        }
        assert links == {docs / "index.html"}, page


def test_the_first_page_of_a_refused_day_starts_with_the_failures_and_what_to_do(
    tmp_path: Path,
) -> None:
    judged(
        measures(
            queue_assignment__one_owner={"observed": 2.0, "examples": ["queue a/0"]},
            rejected_record__count_within_limit={"observed": 0.25, "examples": ["file x, line 1"]},
        ),
        cluster="shop's",
        docs=tmp_path,
    )

    text = " ".join(_Page((tmp_path / "index.html").read_text(encoding="utf-8")).text.split())
    output = [
        "Cluster shop's, day 2026-11-16",
        "Refused: the day is not published",
        "What failed",
        "No strategy that guarantees one owner",
        "found 2, allowed 0",
        "queue a/0",
        "What to do: The ledger may be wrong",
        "ledger run --cluster",
        "Warnings",
        "The share of unreadable export lines",
        "found 0.25, allowed at most 0.01",
        "What to do: Check the examples",
        "All expectations",
        "queue_assignment 1 failed 12 passed",
    ]
    places = [text.find(part) for part in output]
    assert -1 not in places, dict(zip(output, places, strict=True))
    assert places == sorted(places)


def test_the_first_page_of_a_valid_day_shows_numbers_and_how_to_list_findings(tmp_path: Path) -> None:
    judged(measures(rejected_record__count_within_limit={"observed": 0.001}), docs=tmp_path)

    text = " ".join(_Page((tmp_path / "index.html").read_text(encoding="utf-8")).text.split())
    assert "Passed: the day may be published" in text
    assert "What failed" not in text
    assert re.search(r"rejected_record\.count_within_limit\s*0\.001\s*at most 0\.01\s*passed", text)
    assert (
        "ledger sql \"SELECT severity, kind, evidence, advice FROM finding WHERE cluster = 'shop-prod' "
        "AND ds = '2026-11-16' AND parent_finding_id IS NULL\"" in text
    )
    assert "report.html" not in text


def test_hostile_names_are_escaped_in_data_docs(tmp_path: Path) -> None:
    verdict = judged(
        measures(queue_assignment__one_owner={"observed": 7.0, "examples": list(HOSTILE_NAMES)}),
        cluster="<script>harm()</script>/../..",
        docs=tmp_path / "docs",
    )

    assert verdict.data_docs_index == str(tmp_path / "docs" / "index.html")
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in (tmp_path / "docs").rglob("*.html")}
    shown = pages[tmp_path / "docs" / "suites" / "queue_assignment.html"]
    index = pages[tmp_path / "docs" / "index.html"]
    for name in HOSTILE_NAMES:
        assert name in shown.text
        assert name in index.text
    # Markup would have removed characters from the text above. Attributes and scripts could execute code.
    for page in pages.values():
        assert not [
            attribute for attribute in page.attributes if "planted" in attribute or "alert(" in attribute
        ]
        assert not [script for script in page.scripts if "planted" in script or "harm()" in script]
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


def test_data_docs_show_expected_and_observed_values(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    judged(measures(queue_assignment__one_owner={"observed": 2.0, "examples": ["queue a/0"]}), docs=docs)

    path = docs / "suites" / "queue_assignment.html"
    text = " ".join(_Page(path.read_text(encoding="utf-8")).text.split())
    assert EXPECTATIONS[ONE_OWNER].sentence in text
    assert "Allowed: 0. If it fails, the day is not published." in text
    assert "2queue a/0" in text  # two lines with a <br> between them


def test_a_second_evaluation_of_a_day_overwrites_the_first(tmp_path: Path) -> None:
    first = judged(measures(), docs=tmp_path)
    pages = sorted(tmp_path.rglob("*.html"))

    second = judged(measures(), docs=tmp_path)

    assert sorted(tmp_path.rglob("*.html")) == pages
    assert first == second
    assert explain(second) == explain(first)
