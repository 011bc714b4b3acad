"""A fresh clone as a new user starts it: `docker compose up --wait`, a day of the sample, its report after a login, and a stop during a build.

Then, the same installation as older releases left it: its secrets in `.env`.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By

from tests.e2e_cluster.deployment import ROOT
from tests.e2e_cluster.images import postgres_image
from tests.real_cluster.processes import FreePorts, wait_until
from tools.browser import browser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.e2e_cluster.engine import Docker

pytestmark = [pytest.mark.e2e_cluster, pytest.mark.timeout(2400)]

_IMAGE = "ledger-e2e-clone:local"
_DAY = "2026-11-16"
_REPORT = f"/queue-ledger/shop-prod/{_DAY}/report.html"
_DAY_AFTER = "2026-11-17"
_DAY_SECONDS = 600
_PROJECT = "ledger-e2e-clone"
_SECRETS_IN_ENV = {
    "POSTGRES_PASSWORD": "metadata/password",
    "AIRFLOW_ADMIN_PASSWORD": "admin/password",
    "AIRFLOW_FERNET_KEY": "fernet/key",
    "AIRFLOW_SECRET_KEY": "api/secret-key",
    "AIRFLOW_JWT_SECRET": "jwt/secret",
}
"""Variables of older releases, and the files below `/run/ledger-secrets`."""
_TASKS = """
import json, sys
from airflow.models import DagRun, TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select
with create_session() as session:
    run_ids = [run.run_id for run in session.scalars(select(DagRun)) if run.conf.get("ds") == sys.argv[1]]
    columns = (TaskInstance.task_id, TaskInstance.state, TaskInstance.try_number)
    rows = session.execute(select(*columns).where(TaskInstance.run_id.in_(run_ids)))
    print(json.dumps({task_id: [state, try_number] for task_id, state, try_number in rows}))
"""


class FreshClone:
    """A clone of the last commit, and the Compose project in it.

    Args:
        docker: The engine.
        folder: The folder for the clone; it does not exist yet.
    """

    def __init__(self, docker: Docker, folder: Path) -> None:
        ports = FreePorts()
        listen = f"127.0.0.1:{ports.block(1)}"
        self.url = f"http://{listen}"
        self._docker = docker
        self._folder = folder
        self._environment = {
            "COMPOSE_PROJECT_NAME": _PROJECT,
            "BASE_IMAGE": docker.base_image,
            "LEDGER_IMAGE": _IMAGE,
            "POSTGRES_IMAGE": postgres_image(docker),
            "AIRFLOW_LISTEN": listen,
            "AIRFLOW_BASE_URL": self.url,
            "SPARK_MASTER_LISTEN": f"127.0.0.1:{ports.block(1)}",
        }
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)

    def compose(self, *words: str) -> str:
        """Run `docker compose` on the clone's project, and return its output."""
        file = f"--file={self._folder / 'docker-compose.yml'}"
        return self._docker.run("compose", file, *words, **self._environment)

    def set(self, variable: str, value: str) -> None:
        """Add a variable to `.env`."""
        with (self._folder / ".env").open("a", encoding="utf-8") as file:
            file.write(f"{variable}={value}\n")

    def secret(self, path: str) -> str:
        """Return a secret of the installation."""
        return self.compose("run", "--rm", "secrets-init", "cat", f"/run/ledger-secrets/{path}").strip()

    def remove_volumes_of_secrets(self) -> None:
        """Remove the volumes with secrets of an installation that is down."""
        names = self._docker.run("volume", "ls", "--quiet", f"--filter=name={_PROJECT}_secret-").split()
        self._docker.run("volume", "rm", *names)

    def run_day(self, ds: str, *options: str) -> str:
        """Run `cluster_ledger` for a day of the sample with options of `docker compose exec`, and return what `run_dag.py` prints."""
        conf = json.dumps({"cluster": "shop-prod", "ds": ds})
        return self._run_dag("cluster_ledger", conf, options=options)

    def run_flow(self, ds: str) -> None:
        """Run `cluster_export` for a day of the sample, and wait for the run of `cluster_ledger` that its event starts."""
        conf = json.dumps({"clusters": ["shop-prod"], "ds": ds})
        self._run_dag("cluster_export", conf, "--then", "cluster_ledger", f"shop-prod|{ds}")

    def _run_dag(self, *arguments: str, options: Sequence[str] = ()) -> str:
        program = ("python", "/opt/rebalance-ledger/deploy/run_dag.py", *arguments)
        return self.compose("exec", "--no-TTY", *options, "airflow-scheduler", *program)

    def tasks(self, ds: str) -> dict[str, list[str | int | None]]:
        """Return state and try number of each task of a day's run."""
        answer = self.compose("exec", "--no-TTY", "airflow-scheduler", "python", "-c", _TASKS, ds)
        of_run: dict[str, list[str | int | None]] = json.loads(answer.splitlines()[-1])
        return of_run


@pytest.fixture(scope="module")
def clone(docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshClone]:
    """Yield a clone that is up; remove containers, volumes and image afterwards."""
    fresh = FreshClone(docker, tmp_path_factory.mktemp("fresh") / "clone")
    try:
        fresh.compose("config", "--quiet")
        fresh.compose("up", "--wait")
        fresh.set("LEDGER_EXPORTS_FROM", "./samples/exports")
        fresh.compose("up", "--wait")
        yield fresh
    finally:
        fresh.compose("down", "--volumes", "--timeout=5")
        docker.succeeds("image", "rm", _IMAGE)  # there is none if it could not be built


def test_a_day_of_the_sample_is_published_and_its_report_is_shown_after_a_login(
    clone: FreshClone, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"verify_export: .*/shop-prod/2026-01-01 is not an export"):
        clone.run_day("2026-01-01")
    clone.run_flow(_DAY)
    password = clone.secret("admin/password")

    with browser(tmp_path / "profile") as window:
        window.open(clone.url + _REPORT)
        assert _DAY not in window.driver.title
        window.open(clone.url)
        window.wait_for("input[name=username]").send_keys("admin")
        window.wait_for("input[name=password]").send_keys(password)
        window.driver.find_element(By.CSS_SELECTOR, "[type=submit]").click()
        window.wait_for_url(f"{clone.url}/")
        window.open(clone.url + _REPORT)
        window.wait_for_title(f"shop-prod, {_DAY}")
        assert window.console_errors() == []


def test_a_stop_waits_for_a_running_build_and_the_run_continues_afterwards(clone: FreshClone) -> None:
    def not_yet(task_id: str, *states: str) -> str | None:
        tasks = clone.tasks(_DAY_AFTER)
        return None if task_id in tasks and tasks[task_id][0] in states else f"the tasks are {tasks}"

    clone.run_day(_DAY_AFTER, "--detach")
    wait_until(lambda: not_yet("build", "running"), _DAY_SECONDS, between_looks_s=1)
    clone.compose("stop")
    clone.compose("up", "--wait")
    assert clone.tasks(_DAY_AFTER)["build"] == ["success", 1]
    wait_until(lambda: not_yet("publish", "success", "failed"), _DAY_SECONDS, between_looks_s=1)

    assert clone.tasks(_DAY_AFTER)["publish"] == ["success", 1]


def test_an_installation_with_its_secrets_in_env_keeps_them_and_its_runs(clone: FreshClone) -> None:
    secrets = {variable: clone.secret(path) for variable, path in _SECRETS_IN_ENV.items()}
    clone.compose("down")
    clone.remove_volumes_of_secrets()
    for variable, value in secrets.items():
        clone.set(variable, value)

    clone.compose("up", "--wait")

    # PostgreSQL has accepted the password that its volume was created with.
    assert clone.tasks(_DAY_AFTER)["publish"] == ["success", 1]
    assert {variable: clone.secret(path) for variable, path in _SECRETS_IN_ENV.items()} == secrets
