"""What the files in deploy/ promise, as far as it can be seen without a Docker engine; tests/e2e_cluster runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from setup import airflow_home, deployment_secrets
from tests.e2e_cluster.compose_file import COMPOSE_FILE, required_variables, service, services

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = COMPOSE_FILE.parent
DEPLOY = ROOT / "deploy"
SERVICES = sorted(services())
ENDING = {"airflow-init", "rocketmq-producer"}
"""Services that do their work and end; they are never healthy, only done."""
CLIENTS = {"rocketmq-consumer"}
"""Services that nobody connects to."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_limits_and_says_what_happens_when_it_ends(name: str) -> None:
    found = service(name)
    assert re.fullmatch(r"\d+[mg]", found["mem_limit"])
    assert float(found["cpus"]) > 0
    assert found["restart"].startswith("on-failure" if name in ENDING else "unless-stopped")
    assert found["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ENDING - CLIENTS))
def test_a_service_says_whether_it_is_healthy(name: str) -> None:
    assert service(name)["healthcheck"]["test"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_after_what_it_needs_is_ready(name: str) -> None:
    for needed, wait in service(name).get("depends_on", {}).items():
        wanted = "service_completed_successfully" if needed in ENDING else "service_healthy"
        assert wait == {"condition": wanted}


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_pinned_by_version(name: str) -> None:
    image, _, tag = service(name)["image"].partition(":")
    assert image
    assert tag == "local" or re.search(r"\d+\.\d+", tag)


@pytest.mark.parametrize("name", SERVICES)
def test_a_page_is_open_to_this_machine_alone_unless_somebody_says_otherwise(name: str) -> None:
    for port in service(name).get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_no_secret_has_a_default_and_every_one_is_drawn() -> None:
    text = COMPOSE_FILE.read_text(encoding="utf-8")
    named = set(re.findall(r"\$\{(\w*(?:PASSWORD|SECRET|_KEY)\w*)", text))
    assert named <= required_variables()
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert set(re.findall(r"^(\w+)=$", example, re.MULTILINE)) == required_variables()


def test_what_the_example_shows_is_the_default() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    compose = COMPOSE_FILE.read_text(encoding="utf-8")
    shown = re.findall(r"^#(\w+)=(.+)$", example, re.MULTILINE)
    assert shown
    for name, value in shown:
        assert f"${{{name}:-{value}}}" in compose


def test_every_installation_draws_secrets_of_its_own_that_only_its_user_can_read(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        deployment_secrets.write(file)
        assert file.stat().st_mode & 0o077 == 0
    one, two = (dict(re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE)) for file in files)
    assert one.keys() == two.keys() == required_variables()
    assert all(len(value) >= 32 for value in one.values())
    assert not set(one.values()) & set(two.values())


def test_secrets_that_are_there_are_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "deployment.env"
    file.write_text("POSTGRES_PASSWORD=in use\n")
    with pytest.raises(FileExistsError):
        deployment_secrets.write(file)
    assert file.read_text() == "POSTGRES_PASSWORD=in use\n"


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
def test_a_part_is_well_only_if_the_page_says_so(expected: list[str], code: int) -> None:
    said = {"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}, "dag_processor": None}
    with page(said) as address:
        answer = look(address, *expected)
    assert answer.returncode == code
    assert bool(answer.stdout) == bool(code)


def test_a_part_that_does_not_answer_is_unhealthy() -> None:
    with page({}) as address:
        pass
    answer = look(address)
    assert answer.returncode == 1
    assert "refused" in answer.stdout


def look(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEPLOY / "is_healthy.py"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@contextmanager
def page(said: Any) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/health"
        server.shutdown()
        serving.join()


def test_a_shell_that_works_on_this_checkout_does_not_change_where_containers_look() -> None:
    # Compose takes a variable of the shell before the same one of .env.
    of_checkout = set(
        re.findall(r"^ *export (\w+)=", (DEPLOY.parent / "conf" / "environment.sh").read_text(), re.MULTILINE)
    )
    assert "LEDGER_EXPORTS" in of_checkout
    assert not of_checkout & set(re.findall(r"(?<!\$)\$\{(\w+)", COMPOSE_FILE.read_text(encoding="utf-8")))
