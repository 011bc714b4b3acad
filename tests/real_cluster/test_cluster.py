"""The real clusters that other tests use are reachable only on loopback, and leave nothing behind after the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .cluster import Queue, RealCluster
from .processes import wait_until
from .releases import each_release

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

_TO_BE_KILLED = """
import json, signal, sys
from pathlib import Path
from tests.real_cluster import RealCluster
with RealCluster("5.3.3", Path(sys.argv[1]), brokers=["broker-a"]) as cluster:
    with cluster.frozen("broker-a"):
        print(json.dumps(cluster.process_ids()), flush=True)
        signal.pause()
"""


@pytest.mark.parametrize("version", each_release())
def test_every_release_runs_only_on_loopback_and_its_clients_report_their_queues(
    version: str, tmp_path: Path
) -> None:
    with RealCluster(version, tmp_path) as cluster:
        cluster.create_topic("orders", queues=4)
        group = cluster.start_consumers(
            "billing", ["orders"], ["10.0.0.1@one", "10.0.0.2@two", "10.0.0.3@three"]
        )
        cluster.wait_until_stable(group)
        owners = cluster.owners(group)
        assert [owners[Queue("orders", "broker-a", number)] for number in range(4)] == [
            ["10.0.0.1@one"],
            ["10.0.0.1@one"],
            ["10.0.0.1@one"],
            ["10.0.0.2@two"],
        ]
        assert all(len(ids) == 1 for ids in owners.values())
        assert '"queueId":2,"topic":"orders"' in cluster.running_info(group.members[0])

        processes = cluster.process_ids()
        addresses = {
            connection.laddr.ip
            for number in processes.values()
            for connection in psutil.Process(number).net_connections()
            if connection.status == psutil.CONN_LISTEN
        }
        assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}

        cluster.kill_broker("broker-b")
        cluster.wait_until_stable(group)
        assert {queue.broker_name for queue in cluster.owners(group)} == {"broker-a"}
    assert not [number for number in processes.values() if psutil.pid_exists(number)]


def test_a_killed_test_leaves_no_process_behind_not_even_a_suspended_one(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    test = subprocess.Popen(
        [sys.executable, "-c", _TO_BE_KILLED, tmp_path / "cluster"],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert test.stdout is not None
    processes = [psutil.Process(number) for number in json.loads(test.stdout.readline()).values()]
    assert len(processes) == 3
    os.killpg(test.pid, signal.SIGKILL)
    test.communicate()

    def left() -> str | None:
        alive = [process.pid for process in processes if process.is_running()]
        return f"{alive} are still there" if alive else None

    wait_until(left, 30)
