"""The reader uses the config file that the broker would use, and never guesses without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.collectors.broker_files import (
    OFFSETS_FILE,
    WHOLE_FILES,
    ConfigFileError,
    consume_stats,
    read_config_file,
)
from rebalance_ledger.rocketmq.json import ObjectMap, loads
from tests.support.offline_captures import RELEASES, lay_out

if TYPE_CHECKING:
    from pathlib import Path

GOOD = '{"topicConfigTable":{"new":{}}}'
OLD = '{"topicConfigTable":{"old":{}}}'
CUT = '{"topicConfigTable":{"new'


def write(folder: Path, main: str | None, backup: str | None) -> Path:
    for name, content in (("topics.json", main), ("topics.json.bak", backup)):
        if content is not None:
            (folder / name).write_text(content)
    return folder


class TestWhichFileIsRead:
    @pytest.mark.parametrize("backup", [None, "", OLD, CUT])
    def test_the_main_file_is_read_if_it_is_valid(self, tmp_path: Path, backup: str | None) -> None:
        config_file = read_config_file(write(tmp_path, GOOD, backup), "topics.json")
        assert config_file is not None
        assert (config_file.name, config_file.text, config_file.reason) == ("topics.json", GOOD, "")

    @pytest.mark.parametrize(
        ("main", "reason"),
        [
            (None, "topics.json is missing"),
            ("", "topics.json is empty"),
            (CUT, "topics.json is damaged (line 1, column 22: "),
            (GOOD + "}", "topics.json is damaged (line 1, column 32: "),
            (GOOD + "\0" * 4096, "topics.json is damaged (line 1, column 32: "),
        ],
    )
    def test_otherwise_the_backup_is_read_and_the_reason_is_recorded(
        self, tmp_path: Path, main: str | None, reason: str
    ) -> None:
        config_file = read_config_file(write(tmp_path, main, OLD), "topics.json")
        assert config_file is not None
        assert (config_file.name, config_file.text) == ("topics.json.bak", OLD)
        assert config_file.reason.startswith(reason)

    def test_without_either_file_there_is_no_answer(self, tmp_path: Path) -> None:
        assert read_config_file(tmp_path, "topics.json") is None

    @pytest.mark.parametrize(
        ("main", "backup"), [("", None), (None, ""), ("", ""), (CUT, None), (CUT, ""), (CUT, CUT), ("", CUT)]
    )
    def test_lost_content_is_undetermined(self, tmp_path: Path, main: str | None, backup: str | None) -> None:
        with pytest.raises(ConfigFileError, match="what the broker holds cannot be determined"):
            read_config_file(write(tmp_path, main, backup), "topics.json")

    @pytest.mark.parametrize("main", [" \n", "null", "[]", "7"])
    def test_content_that_releases_read_differently_is_undetermined(self, tmp_path: Path, main: str) -> None:
        with pytest.raises(ConfigFileError, match="depends on its release"):
            read_config_file(write(tmp_path, main, OLD), "topics.json")

    @pytest.mark.parametrize("database", ["topics", "rdb"])
    def test_a_file_beside_a_database_may_be_old(self, tmp_path: Path, database: str) -> None:
        write(tmp_path, GOOD, OLD)
        (tmp_path / database).mkdir()
        assert read_config_file(tmp_path, "topics.json") is not None
        (tmp_path / database / "CURRENT").write_text("MANIFEST-000004\n")
        with pytest.raises(ConfigFileError, match="keeps this in RocksDB"):
            read_config_file(tmp_path, "topics.json")

    @pytest.mark.parametrize("release", RELEASES)
    def test_files_of_every_release_are_good(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "broker_files/hz@broker-a", tmp_path)
        for name in (*WHOLE_FILES.values(), OFFSETS_FILE, "delayOffset.json", "consumerFilter.json"):
            if name == "consumerOrderInfo.json":
                continue  # The captures do not contain it.
            config_file = read_config_file(folder, name)
            if name == "messageRequestMode.json" and release == "4.9.7":
                assert config_file is None
                continue
            assert config_file is not None
            assert config_file.text.encode() == (folder / config_file.name).read_bytes()

    @pytest.mark.parametrize("release", RELEASES)
    def test_the_backup_replaces_a_main_file_truncated_anywhere(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "broker_files/hz@broker-a", tmp_path)
        whole = (folder / "topics.json").read_bytes()
        for length in range(0, len(whole), 97):
            (folder / "topics.json").write_bytes(whole[:length])
            config_file = read_config_file(folder, "topics.json")
            assert config_file is not None
            assert config_file.name == "topics.json.bak"


class TestOffsets:
    def offsets(self, folder: Path) -> dict[str, dict[tuple[Any, Any, Any], Any]]:
        file = read_config_file(folder, OFFSETS_FILE)
        assert file is not None
        stats = {}
        for group, payload in consume_stats("hz@broker-a", file).items():
            document: Any = loads(payload)
            table = ObjectMap.of(document["offsetTable"])
            stats[group] = {
                (queue["topic"], queue["brokerName"], queue["queueId"]): value
                for queue, value in table.items()
            }
        return stats

    @pytest.mark.parametrize("release", RELEASES)
    def test_only_the_consumer_offset_of_each_group_is_read(self, tmp_path: Path, release: str) -> None:
        offsets = self.offsets(lay_out(release, "broker_files/hz@broker-a", tmp_path))
        assert {"order-service", "user-profile", "gone", "long-names"} <= set(offsets)
        orders = offsets["order-service"]
        for queue_id in range(4):
            assert set(orders["order-events", "hz@broker-a", queue_id]) == {"consumerOffset"}
        assert sum(value["consumerOffset"] for value in orders.values()) > 0

    @pytest.mark.parametrize("release", ["5.3.3", "5.5.0"])
    def test_offsets_that_a_proxy_keeps_for_broadcasting_clients_are_no_group_progress(
        self, tmp_path: Path, release: str
    ) -> None:
        folder = lay_out(release, "broker_files/hz@broker-a", tmp_path)
        assert "@config-listeners@broadcast" in (folder / OFFSETS_FILE).read_text()
        assert "config-listeners" not in self.offsets(folder)

    @pytest.mark.parametrize(
        ("table", "reason"),
        [
            ("null", "has no offsetTable"),
            ('{"orders":{0:1}}', "no topic@group"),
            ('{"@g":{0:1}}', "no topic@group"),
            ('{"orders@g":[1]}', "no topic@group"),
            ('{"orders@g":{"first":1}}', "no offset for queue 'first'"),
            ('{"orders@g":{0:"many"}}', "no offset for queue 0"),
            ('{"orders@g":{0:true}}', "no offset for queue 0"),
        ],
    )
    def test_an_invalid_offset_is_refused(self, tmp_path: Path, table: str, reason: str) -> None:
        (tmp_path / OFFSETS_FILE).write_text(f'{{"offsetTable":{table}}}')
        with pytest.raises(ConfigFileError, match=reason):
            self.offsets(tmp_path)
