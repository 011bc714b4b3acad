"""Properties of the files in deploy/ that can be checked without a Docker engine; tests/e2e_cluster runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from setup import airflow_home
from tests.e2e_cluster.compose_file import COMPOSE_FILE, required_variables, service, services

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = COMPOSE_FILE.parent
DEPLOY = ROOT / "deploy"
SERVICES = sorted(services())
ENDING = {"secrets-init", "airflow-init", "rocketmq-topic", "rocketmq-producer"}
"""Services that do their work and end; they are never healthy, only done."""
CLIENTS = {"rocketmq-consumer"}
"""Services that nobody connects to."""
SECRETS = {
    "secrets-init": {"metadata", "admin", "fernet", "api", "jwt", "spark", "object-store"},
    "postgres": {"metadata"},
    "airflow-init": {"metadata", "admin"},
    "airflow-api-server": {"metadata", "fernet", "api", "jwt", "object-store"},
    "airflow-scheduler": {"metadata", "fernet", "api", "jwt", "object-store"},
    "airflow-worker": {"jwt", "spark", "object-store"},
    "airflow-dag-processor": {"metadata", "fernet"},
    "airflow-triggerer": {"metadata", "fernet", "api"},
    "airflow-retention": {"metadata"},
    "spark-master": {"spark"},
    "spark-worker": {"spark"},
    "object-store": {"object-store"},
}
"""Who reads which secrets; a service that is not named reads none."""
NETWORKS = {
    "secrets-init": set(),
    "postgres": {"metadata"},
    "airflow-init": {"metadata"},
    "airflow-api-server": {"metadata", "airflow", "data"},
    "airflow-scheduler": {"metadata", "airflow", "data", "rocketmq"},
    "airflow-worker": {"airflow", "data", "spark"},
    "airflow-dag-processor": {"metadata", "airflow"},
    "airflow-triggerer": {"metadata", "airflow"},
    "airflow-retention": {"metadata"},
    "spark-master": {"spark"},
    "spark-worker": {"spark", "data"},
    "spark-history": {"history"},
    "object-store": {"data"},
}
"""Who is on which networks; a service of RocketMQ is on its own."""
SECONDS = {"s": 1, "m": 60, "h": 3600}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_resource_limits_and_a_restart_policy(name: str) -> None:
    found = service(name)
    assert re.fullmatch(r"\d+[mg]", found["mem_limit"])
    assert float(found["cpus"]) > 0
    assert found["restart"].startswith("on-failure" if name in ENDING else "unless-stopped")
    assert int(found["pids_limit"]) > 0
    assert seconds(found["stop_grace_period"]) > 10  # Compose's default


def seconds(duration: str) -> int:
    return int(duration[:-1]) * SECONDS[duration[-1]]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_capabilities_and_a_read_only_image(name: str) -> None:
    found = service(name)
    assert found["cap_drop"] == ["ALL"]
    assert "cap_add" not in found
    assert "privileged" not in found
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert found["read_only"] == "True"
    assert found["tmpfs"]


def test_a_worker_waits_longer_than_a_build_and_stops_before_services_that_a_build_needs() -> None:
    dag = (ROOT / "dags" / "cluster_ledger.py").read_text(encoding="utf-8")
    limit = re.search(r'task_id="build",.*?execution_timeout=timedelta\(hours=(\d+)\)', dag, re.DOTALL)
    assert limit
    worker = service("airflow-worker")
    assert worker["stop_signal"] == "SIGINT"  # takes no further task; by SIGTERM it would end those that run
    assert seconds(worker["stop_grace_period"]) > int(limit[1]) * 3600
    # Compose stops a service before those that it depends on.
    needed = {"airflow-api-server", "spark-master", "spark-worker", "object-store"}
    assert needed <= set(worker["depends_on"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_reads_only_the_secrets_that_it_is_given(name: str) -> None:
    found = service(name)
    mounts = [re.fullmatch(r"secret-([\w-]+):(/[^:]+)(:ro)?", text) for text in found.get("volumes", [])]
    mounted = {match[1] for match in mounts if match}
    assert mounted == SECRETS.get(name, set())
    for match in filter(None, mounts):
        assert match[2] == f"/run/ledger-secrets/{match[1]}"
        assert bool(match[3]) == (name != "secrets-init")
    if name != "secrets-init":
        used = json.dumps([found.get(part) for part in ("environment", "command", "entrypoint")])
        assert set(re.findall(r"/run/ledger-secrets/([\w-]+)/", used)) == mounted


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_on_the_networks_that_it_needs(name: str) -> None:
    found = service(name)
    expected = {"rocketmq"} if name.startswith("rocketmq") else NETWORKS[name]
    assert set(found.get("networks", [])) == expected
    assert expected or found["network_mode"] == "none"


def test_a_service_that_waits_for_another_one_shares_a_network_with_it() -> None:
    for name in SERVICES:
        for needed, wait in service(name).get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert set(service(name)["networks"]) & set(service(needed)["networks"]), (name, needed)


def test_another_user_can_read_a_secret_through_its_group() -> None:
    for name in ("postgres", "object-store"):
        assert service(name)["group_add"] == ["50000"]


def test_an_address_switches_metrics_and_lineage_on() -> None:
    text = COMPOSE_FILE.read_text(encoding="utf-8")
    environment = service("airflow-scheduler")["environment"]
    assert environment["AIRFLOW__METRICS__OTEL_ON"] == "False"
    assert environment["OPENLINEAGE_URL"] == ""
    assert '"${OTEL_EXPORTER_OTLP_ENDPOINT:+True#}False"' in text


def test_the_name_of_the_project_and_its_volumes_is_fixed() -> None:
    text = COMPOSE_FILE.read_text(encoding="utf-8")
    assert re.search(r"^name: rebalance-ledger$", text, re.MULTILINE)
    volumes = text[text.index("\nvolumes:\n") : text.index("\nnetworks:\n")]
    kept = {"metadata", "airflow-logs", "exports", "warehouse", "spark-events", "objects"}
    assert kept <= set(re.findall(r"^  ([\w-]+):$", volumes, re.MULTILINE))
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for secret in SECRETS["secrets-init"]:
        assert f"/run/ledger-secrets/{secret}" in dockerfile


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ENDING - CLIENTS))
def test_a_service_has_a_health_check(name: str) -> None:
    assert service(name)["healthcheck"]["test"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_after_its_dependencies_are_ready(name: str) -> None:
    for needed, wait in service(name).get("depends_on", {}).items():
        wanted = "service_completed_successfully" if needed in ENDING else "service_healthy"
        assert wait["condition"] == wanted
        if wait.get("required") == "False":
            assert service(needed)["profiles"]


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_pinned_by_version(name: str) -> None:
    image, _, tag = service(name)["image"].partition(":")
    assert image
    assert tag == "local" or re.search(r"\d+\.\d+", tag)


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_by_default(name: str) -> None:
    for port in service(name).get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_no_variable_must_be_set() -> None:
    assert required_variables() == set()


def test_a_secret_of_an_older_env_file_reaches_only_the_service_that_migrates_it() -> None:
    named = r"\$\{(\w*(?:PASSWORD|SECRET|_KEY)\w*)(.*?)\}"
    taken = service("secrets-init")["environment"]
    assert set(taken.values()) == {""}
    assert re.findall(named, COMPOSE_FILE.read_text(encoding="utf-8")) == [(name, ":-") for name in taken]


def test_the_example_env_file_shows_the_defaults() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    compose = COMPOSE_FILE.read_text(encoding="utf-8")
    shown = re.findall(r"^#(\w+)=(.+)$", example, re.MULTILINE)
    assert shown
    for name, value in shown:
        assert f"${{{name}:-{value}}}" in compose


def test_the_deployment_has_every_pool_and_one_publisher() -> None:
    pools = json.loads((DEPLOY / "airflow-pools.json").read_text(encoding="utf-8"))
    assert sorted(pools) == sorted(name for name, *_ in airflow_home.POOLS)
    assert pools["ledger_publish"]["slots"] == 1


def test_spark_on_a_cluster_reads_and_writes_as_on_one_machine() -> None:
    one_machine = spark_settings(DEPLOY.parent / "conf" / "spark" / "spark-defaults.conf")
    cluster = spark_settings(DEPLOY / "spark" / "spark-defaults.conf")
    for name in (
        "spark.jars",
        "spark.sql.extensions",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.session.timeZone",
        "spark.sql.sources.fileCompressionFactor",
    ):
        assert cluster[name] == one_machine[name]
    assert not {"spark.master", "spark.driver.host", "spark.driver.bindAddress"} & set(cluster)


def test_spark_event_logs_redact_the_object_store_keys_and_the_rpc_secret() -> None:
    hidden = re.compile(
        spark_settings(DEPLOY / "spark" / "spark-defaults.conf")["spark.redaction.regex"].removeprefix(
            "(?i)"
        ),
        re.IGNORECASE,
    )
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "spark.authenticate.secret",
    ):
        assert hidden.search(name)


def spark_settings(file: Path) -> dict[str, str]:
    lines = (line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines())
    return {words[0]: words[1] for words in lines if words and not words[0].startswith("#")}


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        ([], 0),
        (["scheduler.status=healthy"], 0),
        (["triggerer.status=healthy"], 1),
        (["dag_processor.status=healthy"], 1),
    ],
)
def test_a_component_is_healthy_only_if_its_health_page_confirms_it(expected: list[str], code: int) -> None:
    health = {"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}, "dag_processor": None}
    with page(health) as address:
        answer = look(address, *expected)
    assert answer.returncode == code
    assert bool(answer.stdout) == bool(code)


def test_a_component_that_does_not_answer_is_unhealthy() -> None:
    with page({}) as address:
        pass
    answer = look(address)
    assert answer.returncode == 1
    assert "refused" in answer.stdout


def look(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEPLOY / "is_healthy.py"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@contextmanager
def page(health: Any) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(health).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/health"
        server.shutdown()
        serving.join()


def test_environment_variables_of_the_developers_shell_do_not_change_container_paths() -> None:
    # Compose takes a variable of the shell before the same one of .env.
    of_checkout = set(
        re.findall(r"^ *export (\w+)=", (DEPLOY.parent / "conf" / "environment.sh").read_text(), re.MULTILINE)
    )
    assert "LEDGER_EXPORTS" in of_checkout
    assert not of_checkout & set(re.findall(r"(?<!\$)\$\{(\w+)", COMPOSE_FILE.read_text(encoding="utf-8")))


def test_the_image_has_the_pages_of_findings() -> None:
    """The report of a day contains them. The image has the folders that .dockerignore names, and no others."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    in_image = {line.removeprefix("!") for line in lines if line.startswith("!")}
    pages = Path("docs/findings")
    assert list((ROOT / pages).glob("*.md"))
    assert in_image & {str(pages), *map(str, pages.parents)}
