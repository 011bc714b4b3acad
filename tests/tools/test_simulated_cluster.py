"""The simulated cluster: its export is one that the collector would write, of the size that was asked for, always the same."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.settings import load_settings
from tools.simulated_cluster import Layout, Size, generate
from tools.simulated_cluster.layout import BROADCASTING

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest

DS = date(2026, 11, 16)
SIZE = Size(broker_count=5, topic_count=20, group_count=100, clients_per_group=4)


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout("simulated", SIZE)


@pytest.fixture(scope="module")
def exports(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    generate(layout, folder, DS, folder / "settings.yaml")
    return folder


@pytest.fixture(scope="module")
def manifest(exports: Path) -> Manifest:
    return verify(exports / "simulated" / DS.isoformat())


def test_a_line_for_each_question_of_a_capture(manifest: Manifest, layout: Layout) -> None:
    clients = sum(len(group.client_ids) for group in layout.groups)
    placed = sum(len(topic.brokers) for topic in layout.all_topics)
    asked = SIZE.broker_count * SIZE.group_count
    assert {file.kind: file.line_count for file in manifest.envelope_files} == {
        "nameserver_topic_list": 2,
        "nameserver_cluster_info": 2,
        "nameserver_route": 2 * len(layout.all_topics),
        "broker_topic_config": SIZE.broker_count,
        "broker_subscription_group": SIZE.broker_count,
        "broker_config": SIZE.broker_count,
        "broker_runtime_info": SIZE.broker_count,
        "broker_message_request_mode": SIZE.broker_count,
        "broker_producer_table": SIZE.broker_count,
        "broker_topic_stats": placed,
        "consumer_connection": asked,
        "consumer_running_info": clients,
        "consumer_status": sum(
            len(group.client_ids) * len(group.topics)
            for group in layout.groups
            if group.sharing == BROADCASTING
        ),
        "consume_stats": asked,
    }


def test_brokers_that_no_client_of_a_group_is_connected_to_refuse(manifest: Manifest, layout: Layout) -> None:
    strangers = sum(SIZE.broker_count - len(group.retry.brokers) for group in layout.groups)
    assert strangers > 0
    assert {file.kind: file.error_count for file in manifest.envelope_files if file.error_count} == {
        "consumer_connection": strangers
    }


def test_groups_use_every_strategy_and_those_with_parameters_are_in_the_settings(
    exports: Path, layout: Layout
) -> None:
    ways = {group.sharing for group in layout.groups}
    assert ways == {
        "AVG",
        "AVG_BY_CIRCLE",
        "BROADCASTING",
        "CONFIG",
        "CONSISTENT_HASH",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY",
        "POP",
    }
    configured = load_settings(exports / "settings.yaml").clusters["simulated"].groups
    assert configured == layout.settings.groups
    assert {settings.strategy for settings in configured.values()} == {
        "CONFIG",
        "CONSISTENT_HASH",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY",
    }


def test_the_same_arguments_give_the_same_bytes_and_another_seed_gives_others(
    manifest: Manifest, tmp_path: Path
) -> None:
    again = generate(Layout("simulated", SIZE), tmp_path / "again", DS)
    other = generate(Layout("simulated", SIZE, seed=1), tmp_path / "other", DS)
    assert again.sha256 == manifest.sha256
    assert other.sha256 != manifest.sha256


def test_the_command_refuses_an_existing_day_in_one_sentence(exports: Path) -> None:
    size = ["--brokers", "1", "--topics", "1", "--groups", "1"]
    place = ["--cluster", "simulated", "--ds", DS.isoformat(), "--exports", str(exports)]
    answer = subprocess.run(
        [sys.executable, "-m", "tools.simulated_cluster", *size, *place],
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 2
    assert "is already an export" in answer.stderr
    assert "Traceback" not in answer.stderr
