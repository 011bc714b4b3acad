"""`make demo` in containers: from an empty machine to the owners of each queue of a RocketMQ cluster with traffic."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.e2e_cluster.deployment import ROOT
from tests.e2e_cluster.images import LEDGER_IMAGE, postgres_image, rocketmq_image
from tests.real_cluster.processes import FreePorts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e_cluster.engine import Docker

pytestmark = [pytest.mark.e2e_cluster, pytest.mark.timeout(2400)]


def test_demo_prints_the_owners_of_each_queue(docker: Docker, tmp_path: Path) -> None:
    ports = FreePorts()
    environment = {
        **docker.environment,
        "COMPOSE_PROJECT_NAME": "ledger-e2e-demo",
        "BASE_IMAGE": docker.base_image,
        "LEDGER_IMAGE": LEDGER_IMAGE,
        "POSTGRES_IMAGE": postgres_image(docker),
        "ROCKETMQ_IMAGE": rocketmq_image(docker, tmp_path / "rocketmq"),
        "AIRFLOW_LISTEN": f"127.0.0.1:{ports.block(1)}",
        "SPARK_MASTER_LISTEN": f"127.0.0.1:{ports.block(1)}",
    }
    try:
        demo = make("demo", environment)
        assert demo.returncode == 0, f"{demo.stdout}\n{demo.stderr}"
        read = [line.split() for line in demo.stdout.splitlines() if "TopicTest" in line]
        assert {(broker, queue_id, ownership) for _, _, broker, queue_id, ownership, *_ in read} == {
            (broker, str(queue_id), "owned") for broker in ("broker-a", "broker-b") for queue_id in range(4)
        }, f"{demo.stdout}\n{export_errors(environment)}"
        assert sorted(Counter(owners for *_, owners, _ in read).values()) == [4, 4]
    finally:
        subprocess.run(
            ["docker", "compose", "--profile=*", "down", "--volumes", "--timeout=5"],
            cwd=ROOT / "deploy",
            env=environment,
            check=True,
            capture_output=True,
        )


def export_errors(environment: dict[str, str]) -> str:
    """Return what the export lacks, and why."""
    question = ("exec", "--no-TTY", "airflow-scheduler", "ledger", "ask", "export_errors", "--cluster=demo")
    answer = subprocess.run(
        ["docker", "compose", *question],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    return answer.stdout + answer.stderr


def make(target: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `make` as a user does, outside another `make`."""
    of_outer_make = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return subprocess.run(
        ["make", target],
        cwd=ROOT,
        env={name: value for name, value in environment.items() if name not in of_outer_make},
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
