"""Published days as metrics in the OpenMetrics text format, for Prometheus.

Belongs here: names, types and labels of metrics. Does not belong here: how they are counted (`sql/metrics`).

Source of the format: OpenMetrics 1.0.0; node_exporter's textfile collector reads it too, because lines that only OpenMetrics has are
comments in the older format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.report.queries import metric_queries
from rebalance_ledger.warehouse.query import open_tables
from rebalance_ledger.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Metric:
    """A gauge.

    Attributes:
        name: Name of the metric; its unit is the end of it.
        help: One sentence.
        query: Name of the query below `sql/metrics`.
        value: Column of the value; None for a metric that is 1 for what its labels say.
        labels: Columns of the labels.
        unit: Unit as OpenMetrics names it; empty without one.
    """

    name: str
    help: str
    query: str
    value: str | None
    labels: tuple[str, ...]
    unit: str = ""


METRICS: Final = (
    _Metric(
        "queue_ledger_published_day_timestamp_seconds",
        "First second of the newest published UTC day.",
        "published_days",
        "published_day_seconds",
        ("cluster",),
        "seconds",
    ),
    _Metric(
        "queue_ledger_gate_verdict",
        "1 for the verdict of the gate on the newest published day.",
        "published_days",
        None,
        ("cluster", "gate_verdict"),
    ),
    _Metric(
        "queue_ledger_refused_day_timestamp_seconds",
        "First second of the newest UTC day that the gate refused and that is not published.",
        "refused_days",
        "refused_day_seconds",
        ("cluster",),
        "seconds",
    ),
    _Metric(
        "queue_ledger_findings",
        "Findings of the newest published day that no other finding explains.",
        "findings",
        "findings",
        ("cluster", "severity", "kind"),
    ),
    _Metric(
        "queue_ledger_queues",
        "Queues of the newest published day by ownership state, counted once for each group that reads them.",
        "queues",
        "queues",
        ("cluster", "state"),
    ),
    _Metric(
        "queue_ledger_max_over_mean",
        "Most queues of a client divided by the mean; the 200 most uneven groups of a cluster.",
        "fairness",
        "max_over_mean",
        ("cluster", "consumer_group"),
    ),
    _Metric(
        "queue_ledger_max_over_mean_omitted_groups",
        "Uneven groups beyond the 200 most uneven ones.",
        "fairness",
        "omitted_group_count",
        ("cluster",),
    ),
)


def metrics_text(root: str) -> str:
    """Return the metrics of the newest published day of each cluster, ending with `# EOF`.

    Args:
        root: Root of the warehouse, a local path or a URI.

    Raises:
        QueryError: There is no warehouse, or it cannot be read.
    """
    queries = {query.name.rpartition("/")[2]: query.body for query in metric_queries()}
    with open_tables(root, list(queries.values())) as tables:
        rows = {name: tables.rows(text) for name, text in queries.items()}
    lines = [line for metric in METRICS for line in _lines(metric, rows[metric.query])]
    return "\n".join([*lines, "# EOF", ""])


def write_metrics(root: str, output: Path) -> None:
    """Write the metrics into a file, which appears whole or not at all.

    Raises:
        QueryError: As `metrics_text`.
        OSError: The file cannot be written.
    """
    text = metrics_text(root)
    # A textfile collector reads `*.prom`; the draft is none. Steps of several clusters may write at the same time.
    with whole_file(output) as draft:
        draft.write_text(text, encoding="utf-8")


def _lines(metric: _Metric, rows: Sequence[Row]) -> Iterator[str]:
    yield f"# TYPE {metric.name} gauge"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}"
    yield f"# HELP {metric.name} {metric.help}"
    # A query may have several rows for one set of labels: the metric is about the set.
    values = {
        tuple((label, row[label]) for label in metric.labels): 1
        if metric.value is None
        else row[metric.value]
        for row in rows
    }
    for labels, value in values.items():
        text = ",".join(f'{label}="{_escaped(str(content))}"' for label, content in labels)
        yield f"{metric.name}{{{text}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
