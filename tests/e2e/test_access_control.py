"""A real cluster with ACL 2.0, collected by a read-only account: the ledger is correct and contains no secret."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.real_cluster import Queue, RealCluster
from tests.real_cluster.cluster import Broker
from tests.real_cluster.releases import IN_CI
from tests.support.started_ledger import PATIENTLY, ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
ADMIN = ("root-of-the-cluster", "adm1n-p4ssword-of-the-test")
COLLECTOR = ("ledger", "c0llector-key-of-the-test")
AUTH = "org.apache.rocketmq.auth"
ACCESS_CONTROL = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationEnabled": "true",
    "authorizationProvider": f"{AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    "initAuthenticationUser": json.dumps({"username": ADMIN[0], "password": ADMIN[1]}),
    "innerClientAuthenticationCredentials": json.dumps({"accessKey": ADMIN[0], "secretKey": ADMIN[1]}),
}


@dataclass(frozen=True)
class Collected:
    """The ledger's results for the cluster.

    Attributes:
        folder: The folder with export, warehouse and pages.
        export: The export's folder.
        output: The complete terminal output of the commands.
        owners: The owners of each queue, as each process reports them.
    """

    folder: Path
    export: Path
    output: str
    owners: Mapping[Queue, list[str]]


def permit(cluster: RealCluster, account: tuple[str, str], resources: Sequence[str]) -> None:
    """Create an account that can read these resources and nothing else."""
    (address,) = cluster.broker_addresses.values()
    cluster.mqadmin("createUser", "-b", address, "-u", account[0], "-p", account[1], "-t", "Normal")
    words = ("-r", ",".join(resources), "-a", "Get,List", "-d", "Allow")
    cluster.mqadmin("createAcl", "-b", address, "-s", f"User:{account[0]}", *words)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    folder = tmp_path_factory.mktemp("ledger")
    brokers = [Broker("broker-a", properties=ACCESS_CONTROL)]
    servers = tmp_path_factory.mktemp("cluster")
    output = ""
    with RealCluster(IN_CI, servers, brokers=brokers, account=ADMIN) as cluster:
        cluster.create_topic("orders", queues=4)
        cluster.start_consumers("billing", ["orders"], ["10.0.0.1@one", "10.0.0.2@two"])
        cluster.wait_until_stable()
        permit(cluster, COLLECTOR, ["Cluster:*", "Topic:*", "Group:*"])
        settings = {"clusters": {"c": {"collect": PATIENTLY | {"nameservers": cluster.name_servers}}}}
        (folder / "ledger.yaml").write_text(json.dumps(settings))
        keys = json.dumps({"access_key": COLLECTOR[0], "secret_key": COLLECTOR[1]})
        words = ["exports", "collect", "--cluster=c", "--exports=exports", "--settings=ledger.yaml"]
        output += written(folder, *words, "--credentials-from=stdin", given=f"{keys}\n")
        owners = cluster.owners(cluster.groups["billing"])
    (export,) = (folder / "exports" / "c").iterdir()
    ds = f"--ds={export.name}"
    assert export.name == f"{datetime.now(UTC):%Y-%m-%d}"
    output += written(
        folder,
        "run",
        "--cluster=c",
        ds,
        "--exports=exports",
        "--settings=ledger.yaml",
        "--warehouse=warehouse",
    )
    output += written(folder, "gate", "show", "--cluster=c", ds, "--warehouse=warehouse")
    return Collected(folder, export, output, owners)


def written(folder: Path, *words: str, given: str = "") -> str:
    """Run a command that must succeed, and return its terminal output."""
    answer = subprocess.run(
        [ROOT / "setup" / "in-environment", "ledger", *words],
        cwd=folder,
        env=os.environ,
        check=False,
        capture_output=True,
        text=True,
        input=given,
    )
    text = answer.stdout + answer.stderr
    assert answer.returncode == 0, text
    return text


def lines(collected: Collected, file_name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (collected.export / file_name).read_bytes().splitlines()]


def test_a_password_sent_by_the_broker_is_stored_only_as_being_set(collected: Collected) -> None:
    (line,) = lines(collected, "broker_configs.jsonl")
    settings = dict(setting.split("=", 1) for setting in line["payload"].splitlines())
    assert settings["initAuthenticationUser"] == "<redacted>"
    assert settings["innerClientAuthenticationCredentials"] == "<redacted>"
    assert settings["authenticationEnabled"] == "true"
    assert settings["brokerName"] == "broker-a"


def test_no_output_contains_a_secret(collected: Collected) -> None:
    secrets = (ADMIN[1], COLLECTOR[1])
    assert not any(secret in collected.output for secret in secrets)
    looked_at = set()
    for path in collected.folder.rglob("*"):
        if path.is_file():
            looked_at.add(path.suffix)
            content = path.read_bytes()
            if path.suffix == ".parquet":
                content += str(pq.read_table(path).to_pylist()).encode()
            assert not any(secret.encode() in content for secret in secrets), path
    assert {".jsonl", ".json", ".parquet", ".html"} <= looked_at


def test_the_ledger_is_correct_with_a_read_only_account(collected: Collected) -> None:
    rows = ask(
        collected.folder,
        "SELECT broker_name, queue_id, state, observed_client_ids FROM ownership_drift"
        " WHERE consumer_group = 'billing' AND topic = 'orders'",
        warehouse="warehouse",
    )
    assert {row["state"] for row in rows} == {"match"}
    found = {Queue("orders", row["broker_name"], row["queue_id"]): row["observed_client_ids"] for row in rows}
    assert found == {queue: owners for queue, owners in collected.owners.items() if queue.topic == "orders"}
