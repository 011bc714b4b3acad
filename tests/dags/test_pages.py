"""Day pages in Airflow: served to users with permission to read the DAG's runs, and no other file is served."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e_cluster.compose_file import COMPOSE_FILE, service
from tests.support.served_pages import PASSWORD, PageServer, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = "/queue-ledger/prod%252Feu%3Cb%3E%25E2%2580%25AE/2026-11-16"
AUTH_MANAGER = "AIRFLOW__CORE__AUTH_MANAGER"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "warehouse"
    for day, title in (("2026-11-16", "Passed: c, 2026-11-16"), ("2026-11-17", "Refused: c, 2026-11-17")):
        pages = folder / "data_docs" / "prod%2Feu<b>%E2%80%AE" / day
        pages.mkdir(parents=True)
        (pages / "index.html").write_text(f"<title>{title}</title>Data Docs of {day}")
    (folder / "data_docs" / "prod%2Feu<b>%E2%80%AE" / "2026-11-16" / "report.html").write_text("the report")
    (folder / "data_docs" / "prod%2Feu<b>%E2%80%AE" / "2026-11-16" / "verdict.json").write_text("{}")
    (folder / "secret.html").write_text("not a page")
    return folder


@pytest.fixture(scope="module")
def server(
    airflow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageServer]:
    """Yield Airflow's API server, configured by the variables of each test."""
    with closing(PageServer(airflow_environment, tmp_path_factory.mktemp("server"))) as started:
        yield started


def test_pages_are_served_to_users_who_are_logged_in(server: PageServer, warehouse: Path) -> None:
    days, data_docs, report, refused, browser, program, outside, encoded, other_type, missing = server.send(
        Request("/queue-ledger/"),
        Request(f"{DAY}/index.html"),
        Request(f"{DAY}/report.html"),
        Request("/queue-ledger/prod%252Feu%3Cb%3E%25E2%2580%25AE/2026-11-17/index.html"),
        Request(f"{DAY}/index.html", is_logged_in=False),
        Request(f"{DAY}/index.html", is_logged_in=False, accept="application/json"),
        Request("/queue-ledger/../secret.html"),
        Request(f"{DAY}/..%2F..%2F..%2Fsecret.html"),
        Request(f"{DAY}/verdict.json"),
        Request(f"{DAY}/nothing.html"),
        LEDGER_WAREHOUSE=str(warehouse),
    ).answers

    assert data_docs["status"] == 200
    assert data_docs["text"].endswith("Data Docs of 2026-11-16")
    assert data_docs["headers"]["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in data_docs["headers"]["content-security-policy"]
    assert (report["status"], report["text"]) == (200, "the report")
    assert refused["text"].endswith("Data Docs of 2026-11-17")
    assert browser["status"] in {302, 303, 307}
    assert "/auth/login" in browser["headers"]["location"]
    assert program["status"] == 401
    assert [answer["status"] for answer in (other_type, missing)] == [404, 404]
    assert all("not a page" not in answer["text"] for answer in (outside, encoded))
    assert encoded["status"] == 404

    text = days["text"]
    assert "<h2>prod/eu&lt;b&gt;\\u202e</h2>" in text
    assert text.index("2026-11-17") < text.index("2026-11-16")
    assert (
        '<a href="prod%252Feu%3Cb%3E%25E2%2580%25AE/2026-11-17/index.html">Refused</a></td><td>none</td>'
        in text
    )
    assert '<a href="prod%252Feu%3Cb%3E%25E2%2580%25AE/2026-11-16/report.html">report</a>' in text


def test_a_server_without_pages_shows_the_reason(server: PageServer) -> None:
    (days,) = server.send(Request("/queue-ledger/"), LEDGER_WAREHOUSE="").answers

    assert days["status"] == 200
    assert "LEDGER_WAREHOUSE is not set" in days["text"]


def test_the_error_for_an_unreachable_store_hides_its_address_and_keys(
    server: PageServer,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    served = server.send(
        Request("/queue-ledger/"),
        Request(f"{DAY}/index.html"),
        LEDGER_WAREHOUSE="s3a://lake/warehouse",
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_ACCESS_KEY_ID="key-id-of-the-test",
        AWS_SECRET_ACCESS_KEY="secret-of-the-test",  # noqa: S106
    )

    assert [answer["status"] for answer in served.answers] == [503, 503]
    for answer in served.answers:
        assert (
            answer["text"] == "The pages cannot be read now; the log of Airflow's API server has the reason."
        )
    assert "The pages of days cannot be read" in served.output
    assert "of-the-test" not in served.output


@pytest.mark.e2e
def test_pages_of_the_deployment_are_for_users_with_a_role_that_reads_runs(
    airflow_environment: dict[str, str], warehouse: Path, tmp_path: Path
) -> None:
    deployed = service("airflow-init")["environment"]
    manager = {name: deployed[name] for name in (AUTH_MANAGER, "AIRFLOW_WORKERS", "AIRFLOW_WORKER_SLOTS")}
    programs = Path(sys.executable).parent
    environment = {
        **airflow_environment,
        **manager,
        "PATH": f"{programs}{os.pathsep}{airflow_environment['PATH']}",
    }
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    init = [sys.executable, COMPOSE_FILE.parent / "deploy" / "airflow_init.py", password]
    subprocess.run(init, env=environment, check=True, capture_output=True)
    user = [
        "--username",
        "u",
        "--firstname",
        "U",
        "--lastname",
        "U",
        "--email",
        "u@localhost",
        "--role",
        "Public",
    ]
    subprocess.run(
        [programs / "airflow", "users", "create", "--password", PASSWORD, *user],
        env=environment,
        check=True,
        capture_output=True,
    )

    page = f"{DAY}/report.html"
    of_manager = airflow_environment | manager | {"LEDGER_WAREHOUSE": str(warehouse)}
    with closing(PageServer(of_manager, tmp_path)) as server:
        report, browser, program = server.send(
            Request(page),
            Request(page, is_logged_in=False),
            Request(page, is_logged_in=False, accept="application/json"),
        ).answers
        (forbidden,) = server.send(Request(page), user="u").answers
    assert (report["status"], report["text"]) == (200, "the report")
    assert browser["status"] in {302, 303, 307}
    assert "/auth/login" in browser["headers"]["location"]
    assert program["status"] == 401
    assert forbidden["status"] == 403
