"""Secrets of the deployment: generated once, kept, migrated from an older installation, and read from files."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_ledger.secret_files import read_secret_files

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
OLD_ENV = {
    "POSTGRES_PASSWORD": "old/password",
    "AIRFLOW_ADMIN_PASSWORD": "old-admin",
    "AIRFLOW_FERNET_KEY": "old-fernet",
    "AIRFLOW_SECRET_KEY": "old-secret",
    "AIRFLOW_JWT_SECRET": "old-jwt",
    "AWS_ACCESS_KEY_ID": "old-id",
    "AWS_SECRET_ACCESS_KEY": "old-key",
}


def draw(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "deploy" / "draw_secrets.py", folder],
        env={"PATH": os.environ["PATH"], **variables},
        check=False,
        capture_output=True,
        text=True,
    )


def contents(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_every_installation_generates_its_own_secrets(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        assert draw(folder).returncode == 0
    one, two = (contents(folder) for folder in folders)
    assert one.keys() == two.keys()
    assert not set(one.values()) & set(two.values())
    assert all(len(value) >= 32 for value in one.values())
    assert len(base64.urlsafe_b64decode(one["fernet/key"])) == 32
    password = one["metadata/password"]
    assert one["metadata/url"] == f"postgresql+psycopg://airflow:{password}@postgres:5432/airflow"
    assert one["spark/secret"] in one["spark/rpc.conf"]


def test_a_secret_is_readable_by_its_user_and_group_and_not_writable(tmp_path: Path) -> None:
    draw(tmp_path)
    for file in tmp_path.rglob("*"):
        assert file.stat().st_mode & 0o777 == (0o750 if file.is_dir() else 0o440)


def test_a_second_start_keeps_everything_and_prints_no_secret(tmp_path: Path) -> None:
    first = draw(tmp_path)
    drawn = contents(tmp_path)
    second = draw(tmp_path)
    assert second.returncode == 0
    assert contents(tmp_path) == drawn
    assert {line.partition(": ")[2] for line in second.stdout.splitlines()} == {"kept"}
    for value in drawn.values():
        assert value not in first.stdout + first.stderr + second.stdout + second.stderr


def test_a_lost_file_is_generated_again_and_the_others_are_kept(tmp_path: Path) -> None:
    draw(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "spark" / "secret").unlink()
    assert draw(tmp_path).returncode == 0
    after = contents(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {"spark/secret", "spark/rpc.conf"}
    assert after["spark/secret"] in after["spark/rpc.conf"]


def test_the_secrets_of_an_older_env_file_are_migrated(tmp_path: Path) -> None:
    answer = draw(tmp_path, **OLD_ENV)
    assert answer.returncode == 0
    found = contents(tmp_path)
    assert {found[name] for name in found} >= set(OLD_ENV.values())
    assert found["metadata/url"] == "postgresql+psycopg://airflow:old%2Fpassword@postgres:5432/airflow"
    # The variables may stay in .env, or go.
    assert draw(tmp_path, **OLD_ENV).returncode == draw(tmp_path).returncode == 0
    assert contents(tmp_path) == found


def test_a_different_value_for_a_secret_in_use_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    draw(tmp_path)
    drawn = contents(tmp_path)
    answer = draw(tmp_path, AIRFLOW_FERNET_KEY="another")
    assert answer.returncode == 2
    assert "AIRFLOW_FERNET_KEY in .env is not the secret that this deployment uses" in answer.stderr
    assert contents(tmp_path) == drawn


def test_the_keys_of_an_object_store_follow_the_env_file(tmp_path: Path) -> None:
    draw(tmp_path)
    keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
    assert draw(tmp_path, **keys).returncode == 0
    found = contents(tmp_path)
    assert (found["object-store/access-key-id"], found["object-store/secret-access-key"]) == ("id", "key")
    one_alone = draw(tmp_path, AWS_ACCESS_KEY_ID="id")
    assert one_alone.returncode == 2
    assert "Set both" in one_alone.stderr


def test_a_key_is_read_from_its_file_unless_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("from the file\n")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"{variable}_FILE", str(file))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "set")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    read_secret_files()
    assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]) == ("set", "from the file")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")


def test_a_driver_reads_the_rpc_secret_from_a_file_and_gets_no_airflow_variable(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a key")
    answer = run_with_stand_in(
        tmp_path,
        "spark-submit",
        [Path(sys.executable).with_name("ledger-spark-submit"), "--name", "build"],
        AIRFLOW__CORE__FERNET_KEY_CMD="cat key",
        AWS_SECRET_ACCESS_KEY_FILE=str(tmp_path / "key"),
        LEDGER_SPARK_PROPERTIES_FILE="rpc.conf",
    )
    lines = answer.splitlines()
    assert lines[0] == "--properties-file rpc.conf --load-spark-defaults --name build"
    assert "AWS_SECRET_ACCESS_KEY=a key" in lines
    assert not [line for line in lines if line.startswith("AIRFLOW")]


def test_a_worker_advertises_the_address_that_reaches_the_master(tmp_path: Path) -> None:
    program = [
        sys.executable,
        ROOT / "deploy" / "local_address.py",
        "spark://127.0.0.1:7077",
        "spark-class",
        "Worker",
        "--webui-port=0",
    ]
    lines = run_with_stand_in(tmp_path, "spark-class", program, SPARK_LOCAL_IP="192.0.2.1").splitlines()
    assert lines[0] == "Worker --webui-port=0"
    assert {"SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_HOSTNAME=127.0.0.1"} <= set(lines)


def run_with_stand_in(folder: Path, name: str, command: list[str | Path], **variables: str) -> str:
    """Run a program that becomes another one, which prints its arguments and its environment; return that."""
    stand_in = folder / name
    stand_in.write_text('#!/bin/sh\necho "$@"\nenv\n')
    stand_in.chmod(0o755)
    return subprocess.run(
        command,
        env={"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **variables},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
