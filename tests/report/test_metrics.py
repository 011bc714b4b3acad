"""`ledger metrics`: OpenMetrics text of the newest published days, and the alerts and dashboard that use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalance_ledger.report.metrics import METRICS, metrics_text, write_metrics
from rebalance_ledger.warehouse.errors import QueryError
from tests.support.published_sample import Publisher, publish_shop_days

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+)\} (?P<value>-?[0-9.]+)'
)
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Read OpenMetrics text strictly: each metric is declared before its samples, and the text ends with EOF."""
    lines = text.splitlines()
    assert lines[-1] == "# EOF"
    read: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    declared = ""
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            declared = line.split()[2]
            read[declared] = {}
        elif not line.startswith("# "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] == declared
            labels = tuple((name, json.loads(f'"{value}"')) for name, value in LABEL.findall(match["labels"]))
            assert labels not in read[declared], line
            read[declared][labels] = float(match["value"])
    return read


@pytest.fixture(scope="module")
def shop_warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return publish_shop_days(tmp_path_factory.mktemp("shop") / "warehouse")


def test_each_cluster_has_the_numbers_of_its_newest_published_day(shop_warehouse: str) -> None:
    read = samples(metrics_text(shop_warehouse))

    days = read["queue_ledger_published_day_timestamp_seconds"]
    assert days == {(("cluster", "pay-prod"),): 1_794_873_600, (("cluster", "shop-prod"),): 1_794_960_000}
    queues = read["queue_ledger_queues"]
    states = {
        dict(labels)["state"]: count for labels, count in queues.items() if ("cluster", "shop-prod") in labels
    }
    assert states == {
        "match": 7,
        "multiple_owners": 1,
        "unowned": 2,
        "unexpected_owner": 1,
        "unknown": 1,
        "shared": 0,
    }
    assert (
        read["queue_ledger_max_over_mean"][("cluster", "shop-prod"), ("consumer_group", "member-sync")]
        == 1.875
    )


def test_a_refused_day_is_a_metric_until_it_is_published(shop_warehouse: str, tmp_path: Path) -> None:
    refused = samples(metrics_text(shop_warehouse))["queue_ledger_refused_day_timestamp_seconds"]
    assert refused == {(("cluster", "shop-prod"),): 1_795_046_400}

    publisher = Publisher(tmp_path / "warehouse")
    publisher.quarantine("c", "2026-11-18", [{"expectation_id": "x"}])
    publisher.publish("c", "2026-11-18", finding=[])
    assert samples(metrics_text(publisher.root))["queue_ledger_refused_day_timestamp_seconds"] == {}


def test_names_from_the_cluster_stay_inside_their_label(tmp_path: Path) -> None:
    name = 'a"} 1\nqueue_ledger_findings{x="\\'
    publisher = Publisher(tmp_path / "warehouse")
    row: dict[str, Any] = {"consumer_group": name, "topic": "t", "strategy": "AVG", "is_effective": True}
    publisher.publish(
        "c",
        "2026-11-18",
        assignment_fairness=[
            row | {"min_queues_per_client": 0, "max_queues_per_client": 4, "max_over_mean": 2.0}
        ],
    )

    read = samples(metrics_text(publisher.root))

    assert list(read["queue_ledger_max_over_mean"]) == [(("cluster", "c"), ("consumer_group", name))]
    assert read["queue_ledger_findings"] == {}


def test_the_number_of_series_is_bounded_and_omitted_ones_are_counted(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c",
        "2026-11-18",
        assignment_fairness=[
            {
                "consumer_group": f"g{number}",
                "topic": "t",
                "strategy": "AVG",
                "is_effective": True,
                "min_queues_per_client": 0,
                "max_queues_per_client": 4,
                "max_over_mean": 1.0 + number,
            }
            for number in range(250)
        ],
    )

    read = samples(metrics_text(publisher.root))

    assert len(read["queue_ledger_max_over_mean"]) == 200
    assert min(read["queue_ledger_max_over_mean"].values()) == 51.0
    assert read["queue_ledger_max_over_mean_omitted_groups"] == {(("cluster", "c"),): 50}


def test_a_file_that_cannot_be_replaced_keeps_its_content(tmp_path: Path) -> None:
    output = tmp_path / "ledger.prom"
    output.write_text("before")

    with pytest.raises(QueryError):
        write_metrics(str(tmp_path / "no-warehouse"), output)

    assert output.read_text() == "before"
    assert list(tmp_path.iterdir()) == [output]


def test_alerts_and_dashboard_use_only_metrics_and_labels_that_exist() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "queue-ledger-alerts.yaml").read_text())
    dashboard = json.loads((DEPLOY / "grafana" / "queue-ledger.json").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    labels = {metric.name: set(metric.labels) for metric in METRICS}
    used = {name for text in expressions for name in re.findall(r"queue_ledger_\w+", text)}
    assert used <= labels.keys()
    for text in expressions:
        for name, selector in re.findall(r"(queue_ledger_\w+)\{([^}]*)\}", text):
            assert set(re.findall(r"(\w+)(?:=|!)", selector)) <= labels[name], text
