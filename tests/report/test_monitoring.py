"""The metrics, alert rules and dashboard in a running Prometheus: every expression gives an answer."""

from __future__ import annotations

import json
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest
import yaml

from rebalance_ledger.pipeline.airflow_server import free_port
from rebalance_ledger.report.metrics import metrics_text
from tests.e2e.conftest import ROOT
from tests.real_cluster.processes import Processes, wait_until
from tests.support.debian_program import debian_program
from tests.support.published_sample import publish_shop_days

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

RULES = ROOT / "deploy" / "prometheus" / "queue-ledger-alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "queue-ledger.json"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("package")
    return {name: debian_program("prometheus", name, folder) for name in ("prometheus", "promtool")}


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    return metrics_text(publish_shop_days(tmp_path_factory.mktemp("shop") / "warehouse"))


@pytest.fixture(scope="module")
def prometheus(
    programs: dict[str, Path], metrics: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the address of a Prometheus that scrapes the metrics and evaluates the rules, once it has an answer."""

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
            self.end_headers()
            self.wfile.write(metrics.encode())

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    folder = tmp_path_factory.mktemp("prometheus")
    exporter = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    Thread(target=exporter.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{exporter.server_port}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "ledger", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    processes = Processes()
    try:
        processes.start(
            [
                programs["prometheus"],
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            folder,
        )
        wait_until(
            lambda: None if _has_answer(address, "queue_ledger_queues") else "nothing is scraped yet", 60
        )
        yield address
    finally:
        processes.close()
        exporter.shutdown()
        exporter.server_close()


def _ask(address: str, path: str) -> Any:
    with build_opener(ProxyHandler({})).open(f"http://{address}/api/v1/{path}") as answer:
        return json.loads(answer.read())["data"]


def _has_answer(address: str, expression: str) -> bool:
    try:
        return bool(_ask(address, f"query?{urlencode({'query': expression})}")["result"])
    except OSError:
        return False


def test_promtool_accepts_rules_and_metrics(programs: dict[str, Path], metrics: str) -> None:
    rules = subprocess.run(
        [programs["promtool"], "check", "rules", RULES], check=False, capture_output=True, text=True
    )
    assert rules.returncode == 0, rules.stderr
    # It reads Prometheus' older format, in which the last line is a comment.
    text = subprocess.run(
        [programs["promtool"], "check", "metrics"],
        input=metrics,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (text.returncode, text.stdout, text.stderr) == (0, "", "")


def test_every_expression_of_the_dashboard_has_an_answer(prometheus: str) -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) >= 7
    for expression in expressions:
        assert _has_answer(prometheus, expression.replace("$cluster", ".*")), expression


def test_the_alerts_fire_for_a_refused_day_and_for_critical_findings(prometheus: str) -> None:
    def missing() -> str | None:
        names = {alert["labels"]["alertname"] for alert in _ask(prometheus, "alerts")["alerts"]}
        expected = {"QueueLedgerDayRefused", "QueueLedgerCriticalFinding"}
        return None if expected <= names else f"alerts so far: {sorted(names)}"

    wait_until(missing, 60)
    alerts = _ask(prometheus, "alerts")["alerts"]
    refused = [alert for alert in alerts if alert["labels"]["alertname"] == "QueueLedgerDayRefused"]
    assert [alert["labels"]["cluster"] for alert in refused] == ["shop-prod"]
    assert all("<no value>" not in text for alert in alerts for text in alert["annotations"].values())


def test_promtool_refuses_a_rule_that_is_no_expression(programs: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "rules.yaml"
    broken.write_text(RULES.read_text(encoding="utf-8").replace("> 0", "> >"))
    answer = subprocess.run(
        [programs["promtool"], "check", "rules", broken], check=False, capture_output=True
    )
    assert answer.returncode != 0
