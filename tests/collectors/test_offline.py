"""An export of texts and files equals one of the admin API, except for information that the texts lack."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from rebalance_ledger.collectors.offline import Conversion, Sources, convert
from rebalance_ledger.exports.contract import KIND_BY_NAME, Envelope, SourceError, parse_envelope
from rebalance_ledger.exports.manifest import ExportError, export_directory
from rebalance_ledger.exports.payloads import facts
from rebalance_ledger.exports.sealing import verify
from tests.support.offline_captures import (
    DS,
    HOSTILE_ID,
    LONG_BROKER,
    LONG_TOPICS,
    NOON,
    RELEASES,
    admin_api,
    answer_to,
    lay_out,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UTC_ZONE = ZoneInfo("UTC")
BROKERS = ("hz@broker-a", LONG_BROKER)
ROOT = Path(__file__).resolve().parents[2]


def convert_sources(exports: Path, sources: Sources) -> Conversion:
    conversion = convert(exports, "shop", DS, sources)
    assert verify(export_directory(exports, "shop", DS)) == conversion.manifest
    return conversion


def refusals(exports: Path, sources: Sources, ds: date = DS) -> list[str]:
    with pytest.raises(ExportError) as caught:
        convert(exports, "shop", ds, sources)
    assert not list(exports.rglob("*.jsonl"))
    assert not any("\n" in problem for problem in caught.value.problems)
    return caught.value.problems


def envelopes(exports: Path, kind: str) -> list[Envelope]:
    path = export_directory(exports, "shop", DS) / KIND_BY_NAME[kind].file_name
    if not path.exists():
        return []
    return [parse_envelope(line, kind) for line in path.read_bytes().splitlines()]


def error_of(exports: Path, kind: str, **request: str) -> SourceError:
    (envelope,) = [
        each
        for each in envelopes(exports, kind)
        if all(getattr(each, key) == value for key, value in request.items())
    ]
    assert envelope.error is not None
    return envelope.error


def events(exports: Path) -> list[str]:
    return [str(each.note) for each in envelopes(exports, "event")]


@pytest.fixture(params=RELEASES)
def texts(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return mqadmin output of a cluster of each release, collected by the documented script."""
    return lay_out(request.param, "mqadmin", tmp_path / "texts")


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    """Return the mqadmin output of 5.5.0 only, for tests that do not depend on the release."""
    return lay_out("5.5.0", "mqadmin", tmp_path / "texts")


def minimum(folder: Path, *more: str, name: str = "all.txt") -> Path:
    """Return a folder with one transcript: the answers that every export requires, and additional ones."""
    parts = [
        text("5.5.0", "mqadmin/clusterList.txt"),
        text("5.5.0", "mqadmin/topicList.txt"),
        answer_to("5.5.0", "mqadmin/topicRoute.txt", "topicRoute", "order-events"),
        answer_to("5.5.0", "mqadmin/consumerConnection.txt", "room-report", "127.0.0.1:22010"),
    ]
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join([*parts, *more]))
    return folder


class TestAgainstTheAdminApi:
    """The same cluster at the same time, captured with the admin API and with mqadmin."""

    UNTIMED = ("captured_at", "last_pull_at", "started_at")
    UNSAID: dict[str, tuple[str, ...]] = {  # noqa: RUF012  # Read only.
        # mqadmin does not show them.
        "subscription": ("expression_type",),
        "client_subscription": ("expression_type",),
    }

    @staticmethod
    def rows(lines: Iterable[Envelope]) -> dict[str, set[str]]:
        """Return the silver rows of lines as comparable text."""
        rows_by_table = defaultdict(set)
        for line in lines:
            for table, row in facts(line):
                excluded_groups = (
                    *TestAgainstTheAdminApi.UNTIMED,
                    *TestAgainstTheAdminApi.UNSAID.get(table, ()),
                )
                columns = {key: value for key, value in row.items() if key not in excluded_groups}
                rows_by_table[table].add(json.dumps(columns, sort_keys=True))
        return rows_by_table

    @staticmethod
    def of_api(release: str) -> Iterator[Envelope]:
        for line in admin_api(release):
            fields = {"cluster": "shop", "captured_at": "2026-11-21T12:00:00Z"} | line
            yield parse_envelope(json.dumps(fields), line["kind"])

    @pytest.mark.parametrize("release", RELEASES)
    def test_every_fact_is_the_same(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "mqadmin", tmp_path / "texts")
        convert_sources(tmp_path / "exports", Sources(texts=[folder], zone=UTC_ZONE))
        kinds = (
            "nameserver_cluster_info",
            "nameserver_route",
            "consumer_connection",
            "consumer_running_info",
        )
        converted = self.rows(line for kind in kinds for line in envelopes(tmp_path / "exports", kind))
        routed = {line.topic for line in envelopes(tmp_path / "exports", "nameserver_route")}
        expected = self.rows(
            line
            for line in self.of_api(release)
            if line.kind in kinds and (not line.topic or line.topic in routed)
        )
        assert set(converted) == set(expected)
        assert {"observed_owner", "consumer_client", "group_presence", "topic_route", "broker"} <= set(
            expected
        )
        for table in expected:
            assert converted[table] == expected[table], table

    @pytest.mark.parametrize("release", RELEASES)
    def test_progress_is_the_same_where_names_are_whole(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "mqadmin", tmp_path / "texts")
        convert_sources(tmp_path / "exports", Sources(texts=[folder], zone=UTC_ZONE))

        def progress(lines: Iterable[Envelope]) -> dict[str | None, set[str]]:
            rows_by_group = {}
            for line in lines:
                if line.error is None:
                    rows = self.rows([replace(line, kind="consume_stats")])["consume_progress"]
                    # mqadmin shows whole seconds only.
                    rows_by_group[line.group] = {row.partition('"last_consumed_at"')[0] for row in rows}
            return rows_by_group

        converted = progress(envelopes(tmp_path / "exports", "consume_stats_merged"))
        expected = progress(line for line in self.of_api(release) if line.kind == "consume_stats_merged")
        assert set(expected) - set(converted) == {"long-names"}
        assert converted == {group: rows for group, rows in expected.items() if group != "long-names"}

    @pytest.mark.parametrize("release", RELEASES)
    def test_configs_are_the_same_where_texts_have_them(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "mqadmin", tmp_path / "texts")
        convert_sources(tmp_path / "exports", Sources(texts=[folder], zone=UTC_ZONE))
        for kind, table in (
            ("broker_topic_config", "topic_config"),
            ("broker_subscription_group", "subscription_group"),
        ):
            converted = self.rows(envelopes(tmp_path / "exports", kind))[table]
            expected = self.rows(line for line in self.of_api(release) if line.kind == kind)[table]
            assert converted
            assert converted <= expected
            excluded_groups = [json.loads(row) for row in expected - converted]
            assert not [row for row in excluded_groups if row.get("topic") in {"order-events", *LONG_TOPICS}]
            assert not [row for row in excluded_groups if row.get("consumer_group") == "order-service"]


class TestRecordedMetadata:
    def test_every_source_is_sealed_byte_for_byte_but_for_settings_of_brokers(
        self, tmp_path: Path, texts: Path
    ) -> None:
        conversion = convert_sources(tmp_path / "exports", Sources(texts=[texts]))
        source_names = sorted(
            path.relative_to(texts).as_posix() for path in texts.rglob("*") if path.is_file()
        )
        assert [file.path for file in conversion.manifest.attachments] == [
            f"mqadmin/{name}" for name in source_names
        ]
        for name in source_names:
            sealed = export_directory(tmp_path / "exports", "shop", DS) / "mqadmin" / name
            redacted = 0
            lines = zip(
                sealed.read_bytes().split(b"\n"), (texts / name).read_bytes().split(b"\n"), strict=True
            )
            for written_line, given_line in lines:
                if written_line != given_line:
                    redacted += 1
                    assert written_line == given_line.partition(b" =  ")[0] + b" =  <redacted>"
            assert bool(redacted) is (name == "brokerConfig.txt")

    def test_no_secret_of_the_sources_is_sealed(self, tmp_path: Path, newest: Path) -> None:
        config = newest / "brokerConfig.txt"
        name = "initAuthenticationUser"
        config.write_text(
            config.read_text().replace("brokerName ", f'{name:<50}=  {{"password":"hunter2"}}\nbrokerName ')
        )
        (newest / "more.txt").write_text("$ mqadmin getUser -n ns:9876 -u ledger\nledger hunter2 Normal\n")
        lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        (next((tmp_path / "brokers").iterdir()) / "plain_acl.yml").write_text("globalWhite: hunter2\n")
        sources = Sources(texts=[newest], broker_files=[tmp_path / "brokers"], captured_at=NOON)
        convert_sources(tmp_path / "exports", sources)
        payloads = [envelope.payload for envelope in envelopes(tmp_path / "exports", "broker_config")]
        assert payloads
        assert all(f"{name}=<redacted>\n" in str(payload) for payload in payloads)
        for path in tmp_path.glob("exports/**/*"):
            assert not path.is_file() or b"hunter2" not in path.read_bytes()

    def test_the_same_sources_give_the_same_bytes(self, tmp_path: Path, newest: Path) -> None:
        first = convert_sources(tmp_path / "first", Sources(texts=[newest]))
        second = convert_sources(tmp_path / "second", Sources(texts=[newest]))
        assert first.manifest.sha256 == second.manifest.sha256

    def test_notices_are_events_too(self, tmp_path: Path, newest: Path) -> None:
        conversion = convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        assert events(tmp_path / "exports") == list(conversion.notices)
        assert any("`exportMetadata -t` omits system topics" in each for each in conversion.notices)

    def test_an_answer_has_the_time_of_its_command(self, tmp_path: Path, newest: Path) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        (line,) = envelopes(tmp_path / "exports", "nameserver_topic_list")
        instant_line = text("5.5.0", "mqadmin/topicList.txt").split("\n")[0]
        assert f"# {line.captured_at:%Y-%m-%dT%H:%M:%SZ}" == instant_line

    def test_a_written_file_has_the_time_in_its_path(self, tmp_path: Path, newest: Path) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        (path,) = newest.glob("*/10.1.0.9@order-9")
        instant = datetime.fromtimestamp(int(path.parent.name) / 1000, UTC)
        (line,) = [
            each
            for each in envelopes(tmp_path / "exports", "consumer_running_info")
            if each.client_id == path.name
        ]
        assert line.captured_at == instant

    def test_the_file_time_is_the_default_and_a_given_time_overrides_all(self, tmp_path: Path) -> None:
        folder = minimum(tmp_path / "texts")
        path = folder / "all.txt"
        path.write_text(
            "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("# 2"))
        )
        os.utime(path, (NOON.timestamp(), NOON.timestamp()))
        convert_sources(tmp_path / "first", Sources(texts=[folder]))
        assert {line.captured_at for line in envelopes(tmp_path / "first", "nameserver_route")} == {NOON}
        later = NOON.replace(hour=13)
        convert_sources(tmp_path / "second", Sources(texts=[folder], captured_at=later))
        assert {line.captured_at for line in envelopes(tmp_path / "second", "nameserver_route")} == {later}

    def test_a_client_that_no_text_describes_is_an_error_line(self, tmp_path: Path, newest: Path) -> None:
        (path,) = newest.glob("*/10.1.0.9@order-9")
        path.unlink()
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        error = error_of(tmp_path / "exports", "consumer_running_info", client_id="10.1.0.9@order-9")
        assert error == SourceError(
            "SourceNotGiven", "no text of `consumerStatus -g order-service` describes this client"
        )

    def test_a_broker_that_was_not_asked_is_an_error_line(self, tmp_path: Path) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts")]))
        error = error_of(tmp_path / "exports", "consumer_connection", group="room-report", broker=LONG_BROKER)
        assert error.type == "SourceNotGiven"

    def test_several_name_servers_in_one_command_are_kept_as_one_source(self, tmp_path: Path) -> None:
        folder = minimum(tmp_path / "texts")
        path = folder / "all.txt"
        path.write_text(
            path.read_text().replace("-n 127.0.0.1:22000", r"-n 127.0.0.1:22000\;127.0.0.1:22001")
        )
        convert_sources(tmp_path / "exports", Sources(texts=[folder]))
        (line,) = envelopes(tmp_path / "exports", "nameserver_route")
        assert line.nameserver == "127.0.0.1:22000;127.0.0.1:22001"

    def test_a_command_without_n_belongs_to_the_given_name_server(self, tmp_path: Path) -> None:
        folder = minimum(tmp_path / "texts")
        path = folder / "all.txt"
        path.write_text(path.read_text().replace(" -n 127.0.0.1:22000", ""))
        assert all(
            "specify the name server with --nameserver" in each
            for each in refusals(tmp_path / "e", Sources(texts=[folder]))[:3]
        )
        convert_sources(tmp_path / "exports", Sources(texts=[folder], nameserver="ns-1:9876"))
        (line,) = envelopes(tmp_path / "exports", "nameserver_route")
        assert line.nameserver == "ns-1:9876"

    def test_texts_from_another_operating_system_give_the_same_export(
        self, tmp_path: Path, newest: Path
    ) -> None:
        convert_sources(tmp_path / "first", Sources(texts=[newest], captured_at=NOON))
        for path in newest.rglob("*.txt"):
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        convert_sources(tmp_path / "second", Sources(texts=[newest], captured_at=NOON))
        for path in (tmp_path / "first").rglob("*.jsonl"):
            assert (
                tmp_path / "second" / path.relative_to(tmp_path / "first")
            ).read_bytes() == path.read_bytes()

    def test_a_hostile_client_id_is_only_a_name(self, tmp_path: Path, texts: Path) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[texts]))
        ids = {line.client_id for line in envelopes(tmp_path / "exports", "consumer_running_info")}
        assert HOSTILE_ID in ids

    def test_a_client_id_with_a_slash_is_reassembled(self, tmp_path: Path, newest: Path) -> None:
        (path,) = newest.glob("*/10.1.0.9@order-9")
        moved = path.parent / "10.1.0.9@.." / "x"
        moved.parent.mkdir()
        path.rename(moved)
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        ids = {line.client_id for line in envelopes(tmp_path / "exports", "consumer_running_info")}
        assert "10.1.0.9@../x" in ids

    def test_a_client_without_a_group_belongs_to_the_group_that_lists_it(
        self, tmp_path: Path, newest: Path
    ) -> None:
        (path,) = newest.glob("*/10.1.0.9@order-9")
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("consumerGroup ")))
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        (line,) = [
            each
            for each in envelopes(tmp_path / "exports", "consumer_running_info")
            if each.client_id == path.name
        ]
        assert (line.group, line.error) == ("order-service", None)
        (newest / "consumerStatus.txt").unlink()
        conversion = convert_sources(tmp_path / "second", Sources(texts=[newest]))
        assert any("names its group" in notice for notice in conversion.notices)


class TestMissingInformation:
    def test_truncated_names_are_completed_only_from_complete_lists(
        self, tmp_path: Path, texts: Path
    ) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[texts]))
        error = error_of(tmp_path / "exports", "consume_stats_merged", group="long-names")
        assert error.type == "UnreadableText"
        assert "consumerProgress.txt line " in error.message
        assert f"no source says which one begins with '{LONG_TOPICS[0][:64]}'" in error.message
        groups = {line.group for line in envelopes(tmp_path / "exports", "consume_stats")}
        assert "order-service" in groups
        assert "long-names" not in groups
        brokers = {line.broker for line in envelopes(tmp_path / "exports", "consume_stats")}
        assert brokers == set(BROKERS)

    def test_a_truncated_broker_name_is_unknown_without_the_list_of_brokers(self, tmp_path: Path) -> None:
        stats = answer_to("5.5.0", "more/topicStatus.txt", "topicStatus", "order-events")
        folder = minimum(tmp_path / "texts", stats)
        path = folder / "all.txt"
        whole = path.read_text()
        convert_sources(tmp_path / "first", Sources(texts=[folder]))
        assert {line.broker for line in envelopes(tmp_path / "first", "broker_topic_stats")} == set(BROKERS)
        path.write_text(whole.replace(text("5.5.0", "mqadmin/clusterList.txt"), ""))
        convert_sources(tmp_path / "second", Sources(texts=[folder]))
        for broker in BROKERS:
            error = error_of(tmp_path / "second", "broker_topic_stats", broker=broker)
            assert f"begins with '{LONG_BROKER[:32]}'" in error.message

    def test_members_shown_by_an_unnamed_broker_have_no_broker(self, tmp_path: Path) -> None:
        members = answer_to("5.5.0", "more/consumerConnection.txt", "consumerConnection", "order-service")
        conversion = convert_sources(
            tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts", members)])
        )
        (line,) = [
            each
            for each in envelopes(tmp_path / "exports", "consumer_connection")
            if each.group == "order-service"
        ]
        assert (line.broker, line.broker_addr) == ("(unknown)", "(unknown)")
        assert any("does not say which broker showed these members" in each for each in conversion.notices)

    def test_the_only_broker_of_the_retry_topic_is_the_one_that_was_asked(self, tmp_path: Path) -> None:
        members = answer_to("5.5.0", "more/consumerConnection.txt", "consumerConnection", "order-service")
        one_broker = (
            "$ mqadmin topicRoute -t %RETRY%order-service -n 127.0.0.1:22000\n"
            '{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:22010"},"brokerName":"hz@broker-a"}],"queueDatas":[]}\n'
        )
        folder = minimum(tmp_path / "texts", members, "# 2026-11-21T12:00:00Z\n", one_broker)
        convert_sources(tmp_path / "exports", Sources(texts=[folder]))
        brokers = {
            line.broker
            for line in envelopes(tmp_path / "exports", "consumer_connection")
            if line.group == "order-service" and line.error is None
        }
        assert brokers == {"hz@broker-a"}

    def test_not_online_applies_to_the_named_broker_and_others_are_unknown(self, tmp_path: Path) -> None:
        offline = answer_to("5.5.0", "more/consumerConnection.txt", "consumerConnection", "gone")
        convert_sources(tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts", offline)]))
        states = {
            line.broker: [row["state"] for _, row in facts(line)]
            for line in envelopes(tmp_path / "exports", "consumer_connection")
            if line.group == "gone"
        }
        assert sorted(states.values()) == [["offline"], ["unknown"]]

    def test_not_online_from_an_unknown_broker_does_not_make_a_group_offline(self, tmp_path: Path) -> None:
        offline = answer_to("4.9.7", "more/consumerConnection.txt", "consumerConnection", "gone")
        unnamed = offline.partition(" BROKER: ")[0] + "\n\tat org.apache.rocketmq.A.b(C.java:1)\n"
        unnamed = unnamed.replace("-n 127.0.0.1:20000", "-n 127.0.0.1:22000")
        convert_sources(tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts", unnamed)]))
        (line,) = [
            each for each in envelopes(tmp_path / "exports", "consumer_connection") if each.group == "gone"
        ]
        assert line.broker == "(unknown)"
        assert [row["state"] for _, row in facts(line)] == ["unknown"]

    @pytest.mark.parametrize(
        ("name", "kind", "message"),
        [
            ("topicList-c.txt", "nameserver_topic_list", "`topicList -c` omits %RETRY%"),
            ("clusterList-m.txt", "nameserver_cluster_info", "`clusterList -m` shows no addresses"),
        ],
    )
    def test_commands_with_incomplete_output_are_error_lines(
        self, tmp_path: Path, name: str, kind: str, message: str
    ) -> None:
        folder = minimum(tmp_path / "texts")
        path = folder / "all.txt"
        whole = path.read_text()
        (folder / name).write_text(text("5.5.0", f"more/{name}"))
        convert_sources(tmp_path / "whole", Sources(texts=[folder]))
        assert [line.error for line in envelopes(tmp_path / "whole", kind)] == [None]
        full = text("5.5.0", f"mqadmin/{name.partition('-')[0]}.txt")
        path.write_text(whole.replace(full, ""))
        convert_sources(tmp_path / "poor", Sources(texts=[folder]))
        (line,) = envelopes(tmp_path / "poor", kind)
        assert line.error is not None
        assert message in line.error.message

    def test_a_route_as_a_table_is_an_error_line(self, tmp_path: Path) -> None:
        convert_sources(
            tmp_path / "exports",
            Sources(texts=[minimum(tmp_path / "texts", text("5.5.0", "more/topicRoute-l.txt"))]),
        )
        error = error_of(tmp_path / "exports", "nameserver_route", topic=LONG_TOPICS[0])
        assert error.type == "IncompleteSource"
        assert "`topicRoute -l` omits the order configuration" in error.message

    def test_progress_of_one_topic_is_not_progress_of_the_group(self, tmp_path: Path) -> None:
        progress = answer_to("5.5.0", "mqadmin/consumerProgress.txt", "consumerProgress", "order-service")
        partial = progress.replace("-g order-service", "-g order-service -t order-events")
        convert_sources(tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts", partial)]))
        assert envelopes(tmp_path / "exports", "consume_stats") == []
        error = error_of(tmp_path / "exports", "consume_stats_merged", group="order-service")
        assert "`consumerProgress -t` shows one topic" in error.message

    def test_without_a_zone_there_are_no_times(self, tmp_path: Path, newest: Path) -> None:
        convert_sources(tmp_path / "exports", Sources(texts=[newest]))
        lines = envelopes(tmp_path / "exports", "consumer_running_info")
        rows = [
            row
            for line in lines
            for table, row in facts(line)
            if table == "observed_owner" and not row["is_pop"]
        ]
        assert rows
        assert all(row["last_pull_at"] is None for row in rows)

    def test_commands_that_are_not_read_are_named(self, tmp_path: Path) -> None:
        folder = minimum(
            tmp_path / "texts",
            text("5.5.0", "more/exportConfigs.txt"),
            text("5.5.0", "more/consumerProgress-all.txt"),
        )
        (folder / "notes.md").write_text("We asked at noon.\n")
        conversion = convert_sources(tmp_path / "exports", Sources(texts=[folder]))
        notices = "\n".join(conversion.notices)
        assert "nothing is read of `exportConfigs`" in notices
        assert "`consumerProgress` without -g shows sums of groups only" in notices
        assert "notes.md: no text of mqadmin" in notices


class TestFailures:
    def test_a_failed_command_is_the_error_that_the_api_would_have_given(self, tmp_path: Path) -> None:
        failed = answer_to("5.5.0", "more/topicStatus.txt", "topicStatus", "no-such-topic")
        convert_sources(
            tmp_path / "exports",
            Sources(texts=[minimum(tmp_path / "texts", failed.replace("topicStatus -t", "topicRoute -t"))]),
        )
        error = error_of(tmp_path / "exports", "nameserver_route", topic="no-such-topic")
        assert error.type == "org.apache.rocketmq.client.exception.MQClientException"
        assert error.message.startswith("CODE: 17  DESC: No topic route info in name server for the topic: ")

    def test_a_failure_at_an_unknown_address_is_reported(self, tmp_path: Path) -> None:
        dead = text("5.5.0", "more/consumerConnection-dead.txt")
        conversion = convert_sources(tmp_path / "exports", Sources(texts=[minimum(tmp_path / "texts", dead)]))
        assert any("connect to 127.0.0.1:1 failed" in notice for notice in conversion.notices)

    def test_a_client_that_does_not_answer_is_an_error_line(self, tmp_path: Path) -> None:
        convert_sources(
            tmp_path / "exports",
            Sources(texts=[minimum(tmp_path / "texts", text("5.5.0", "more/consumerStatus-no.txt"))]),
        )
        error = error_of(tmp_path / "exports", "consumer_running_info", client_id="no-such-client")
        assert error.message.startswith(
            "CODE: 1  DESC: The Consumer <order-service> <no-such-client> not online"
        )

    @pytest.mark.parametrize(
        ("name", "kind", "request_fields"),
        [
            ("topicRoute.txt", "nameserver_route", {"topic": "order-events"}),
            (
                "consumerConnection.txt",
                "consumer_connection",
                {"group": "order-service", "broker": "hz@broker-a"},
            ),
            ("consumerProgress.txt", "consume_stats_merged", {"group": "order-service"}),
        ],
    )
    def test_a_truncated_answer_is_an_error_line_and_other_answers_are_kept(
        self, tmp_path: Path, texts: Path, name: str, kind: str, request_fields: dict[str, str]
    ) -> None:
        convert_sources(tmp_path / "whole", Sources(texts=[texts]))
        path = texts / name
        commands = path.read_text().split("# 2026-")
        subject = request_fields.get("topic") or request_fields["group"]
        index = next(
            index
            for index, each in enumerate(commands)
            if f" {subject} " in each.partition("\n$ ")[2].partition("\n")[0] and "\tat" not in each
        )
        command_lines = commands[index].rstrip("\n").split("\n")
        commands[index] = "\n".join(command_lines[: len(command_lines) // 2 + 1]) + "\n\n"
        path.write_text("# 2026-".join(commands))
        convert_sources(tmp_path / "cut", Sources(texts=[texts]))
        error = error_of(tmp_path / "cut", kind, **request_fields)
        assert error.type == "UnreadableText"
        assert error.message.startswith(f"{name} line ")

        def others(place: str) -> list[tuple[str | None, ...]]:
            return [
                (line.topic, line.group, line.broker, line.payload)
                for line in envelopes(tmp_path / place, kind)
                if any(getattr(line, key) != value for key, value in request_fields.items())
            ]

        assert others("cut") == others("whole")

    def test_a_truncated_running_info_is_an_error_line(self, tmp_path: Path, texts: Path) -> None:
        (path,) = texts.glob("*/10.1.0.9@order-9")
        path.write_text(path.read_text().partition("#Consumer MQ Detail#")[0])
        convert_sources(tmp_path / "exports", Sources(texts=[texts]))
        error = error_of(tmp_path / "exports", "consumer_running_info", client_id="10.1.0.9@order-9")
        assert error.type == "UnreadableText"
        assert "#Consumer MQ Detail#" in error.message

    def test_an_answer_is_preferred_to_a_failure_and_a_later_answer_to_an_earlier_one(
        self, tmp_path: Path
    ) -> None:
        route = answer_to("5.5.0", "mqadmin/topicRoute.txt", "topicRoute", "order-events")
        later = route.replace('"readQueueNums":4', '"readQueueNums":8').replace(
            route.split("\n")[0], "# 2026-11-21T23:00:00Z"
        )
        failed = answer_to("5.5.0", "more/topicStatus.txt", "topicStatus", "no-such-topic")
        failed = failed.replace("topicStatus -t no-such-topic", "topicRoute -t order-events").replace(
            failed.split("\n")[0], "# 2026-11-21T23:30:00Z"
        )
        folder = minimum(tmp_path / "texts", later, failed)
        conversion = convert_sources(tmp_path / "exports", Sources(texts=[folder]))
        (line,) = envelopes(tmp_path / "exports", "nameserver_route")
        assert line.payload is not None
        assert '"readQueueNums":8' in line.payload
        assert any("order-events: has two different answers" in notice for notice in conversion.notices)


class TestRefused:
    def test_sums_over_brokers(self, tmp_path: Path, newest: Path) -> None:
        lay_out("5.5.0", "more", tmp_path / "more")
        for name in ("exportMetadata-c.txt", "exportMetadata/metadata.json"):
            copied = newest / Path(name).name
            copied.write_bytes((tmp_path / "more" / name).read_bytes())
            (problem,) = refusals(tmp_path / "exports", Sources(texts=[newest]))
            assert problem.startswith(copied.name)
            assert "`exportMetadata -c` sums the queues of a topic over the brokers" in problem
            assert "`exportMetadata -b ADDRESS` of each broker" in problem
            copied.unlink()

    def test_a_simulated_assignment(self, tmp_path: Path, newest: Path) -> None:
        (newest / "allocateMQ.txt").write_text(text("5.5.0", "more/allocateMQ.txt"))
        (problem,) = refusals(tmp_path / "exports", Sources(texts=[newest]))
        assert problem.startswith(
            "allocateMQ.txt line 2: `allocateMQ` computes AVG over an unsorted set of queues"
        )
        assert "give `consumerStatus -g GROUP`" in problem

    def test_a_table_without_its_command(self, tmp_path: Path, newest: Path) -> None:
        clients = answer_to("5.5.0", "mqadmin/consumerStatus.txt", "order-service").partition("#Index")
        (newest / "x.txt").write_text(clients[1] + clients[2])
        (problem,) = refusals(tmp_path / "exports", Sources(texts=[newest]))
        assert problem.startswith(
            "x.txt does not say which command printed it; write that into the line before it"
        )

    def test_an_unknown_address(self, tmp_path: Path) -> None:
        folder = minimum(tmp_path / "texts")
        path = folder / "all.txt"
        path.write_text(path.read_text().replace("-b 127.0.0.1:22010", "-b 10.9.9.9:10911"))
        problems = refusals(tmp_path / "exports", Sources(texts=[folder]))
        assert "no source says which broker has the address 10.9.9.9:10911" in problems[0]

    def test_texts_of_another_day_in_one_sentence(self, tmp_path: Path, newest: Path) -> None:
        (problem,) = refusals(tmp_path / "exports", Sources(texts=[newest]), date(2026, 11, 20))
        assert "answers are not of 2026-11-20 UTC" in problem
        assert "--captured-at" in problem

    def test_brokers_files_alone(self, tmp_path: Path) -> None:
        lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        problems = refusals(
            tmp_path / "exports", Sources(broker_files=[tmp_path / "brokers"], captured_at=NOON)
        )
        assert [problem.partition("; ") for problem in problems] == [
            (f"no source says {what}", "; ", f"give the text of `mqadmin {command}`{of}")
            for what, command, of in (
                ("the topics that a name server knows", "topicList -n NAMESERVER", ""),
                ("the route of any topic", "topicRoute -n NAMESERVER -t TOPIC", " of each topic"),
                (
                    "the members of any group",
                    "consumerConnection -g GROUP -b ADDRESS",
                    " of each group and each broker",
                ),
            )
        ]

    def test_a_text_that_is_not_unicode(self, tmp_path: Path, newest: Path) -> None:
        for written in (b"$ mqadmin topicRoute -t \xff\n", "$ mqadmin topicRoute -t t\n".encode("utf-16")):
            (newest / "topicRoute.txt").write_bytes(written)
            assert (
                "topicRoute.txt is not UTF-8; convert it"
                in refusals(tmp_path / "exports", Sources(texts=[newest]))[0]
            )

    def test_names_that_are_not_unicode(self, tmp_path: Path, newest: Path) -> None:
        brokers = lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        odd = (brokers / os.fsdecode(b"b\xff"), brokers / "hz@broker-a" / os.fsdecode(b"c\xff.json"))
        odd[0].mkdir()
        odd[1].touch()
        for file in (newest / os.fsdecode(b"t\xff.txt"), tmp_path / os.fsdecode(b"u\xff.txt")):
            file.write_text("hello\n")
        sources = Sources(
            texts=[newest, tmp_path / os.fsdecode(b"u\xff.txt")], broker_files=[brokers], captured_at=NOON
        )
        assert refusals(tmp_path / "exports", sources) == [
            f"the name {name} is not UTF-8; rename it, or leave it out"
            for name in (r"1/t\xff.txt", r"2/u\xff.txt", r"b\xff", r"hz@broker-a/c\xff.json")
        ]

    def test_a_file_that_cannot_be_read_hides_no_other(self, tmp_path: Path, newest: Path) -> None:
        # Reading the first bytes of this file fails for every user.
        (newest / "mem.txt").symlink_to("/proc/self/mem")
        assert refusals(tmp_path / "exports", Sources(texts=[newest], captured_at=NOON)) == [
            "mem.txt cannot be read: Input/output error"
        ]

    def test_links_to_folders_and_special_files(self, tmp_path: Path, newest: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (newest / "link").symlink_to(tmp_path / "elsewhere")
        (newest / "nothing").symlink_to(tmp_path / "missing")
        os.mkfifo(newest / "pipe")

        problems = refusals(tmp_path / "exports", Sources(texts=[newest], captured_at=NOON))

        assert sorted(problem.partition(";")[0] for problem in problems) == [
            f"{newest / 'link'} is a link to a folder",
            f"{newest / 'nothing'} is neither a file nor a folder, or a link to nothing",
            f"{newest / 'pipe'} is neither a file nor a folder, or a link to nothing",
        ]
        (problem, *_) = refusals(tmp_path / "exports", Sources(texts=[newest / "pipe"], captured_at=NOON))
        assert problem == f"{newest / 'pipe'} is neither a file nor a folder; put its text into a file"

    def test_missing_sources(self, tmp_path: Path, newest: Path) -> None:
        gone = Sources(texts=[newest, tmp_path / "nothing"], broker_files=[tmp_path / "none"])
        problems = refusals(tmp_path / "exports", gone)
        assert [problem.partition(";")[0] for problem in problems] == [
            f"{tmp_path / 'nothing'} is not there",
            f"{tmp_path / 'none'} is not a folder",
        ]

    @pytest.mark.parametrize("release", RELEASES)
    def test_a_file_that_several_commands_wrote_is_refused(self, tmp_path: Path, release: str) -> None:
        folder = lay_out(release, "mqadmin", tmp_path / "texts")
        path = folder / "exportMetadata.txt"
        addresses = {folder.name for folder in (folder / "exportMetadata").iterdir()}
        same = path.read_text()
        for address in addresses:
            same = same.replace(f"exportMetadata/{address}", "exportMetadata/all")
        path.write_text(same)
        (folder / "exportMetadata" / min(addresses)).rename(folder / "exportMetadata" / "all")
        convert_sources(tmp_path / "exports", Sources(texts=[folder]))
        for broker in BROKERS:
            error = error_of(tmp_path / "exports", "broker_topic_config", broker=broker)
            assert error.type == "IncompleteSource"
            assert "was written by several commands" in error.message

    def test_one_broker_in_two_folders(self, tmp_path: Path, newest: Path) -> None:
        folders = [lay_out("5.5.0", "broker_files", tmp_path / name) for name in ("one", "two")]
        sources = Sources(texts=[newest], broker_files=folders, captured_at=NOON)
        (problem,) = refusals(tmp_path / "exports", sources)
        assert "'broker_files/hz@broker-a/consumerFilter.json' is already there" in problem


class TestBrokersFiles:
    @pytest.fixture(params=RELEASES)
    def sources(self, request: pytest.FixtureRequest, tmp_path: Path) -> Sources:
        brokers = lay_out(request.param, "broker_files", tmp_path / "brokers")
        texts = lay_out(request.param, "mqadmin", tmp_path / "texts")
        for path in brokers.rglob("*.json*"):
            os.utime(path, (NOON.timestamp(), NOON.timestamp()))
        return Sources(texts=[texts], broker_files=[brokers], zone=UTC_ZONE)

    def test_are_sealed_with_their_times_and_read(self, tmp_path: Path, sources: Sources) -> None:
        convert_sources(tmp_path / "exports", sources)
        indexed = envelopes(tmp_path / "exports", "broker_file")
        source_names = sorted((tmp_path / "brokers/hz@broker-a").iterdir())
        assert sorted(line.file.path for line in indexed if line.file) == [
            f"broker_files/hz@broker-a/{path.name}" for path in source_names
        ]
        assert {(line.broker, line.captured_at, line.file.mtime) for line in indexed if line.file} == {
            ("hz@broker-a", NOON, NOON)
        }
        (configs,) = [
            line
            for line in envelopes(tmp_path / "exports", "broker_topic_config")
            if line.broker == "hz@broker-a"
        ]
        # All topics of the broker; `exportMetadata` omits the system topics.
        assert configs.payload == (tmp_path / "brokers/hz@broker-a/topics.json").read_text()
        assert {"SCHEDULE_TOPIC_XXXX", "order-events"} <= {row["topic"] for _, row in facts(configs)}
        assert (configs.broker_addr or "").startswith("127.0.0.1:")

    def test_offsets_are_read_where_no_text_has_them(self, tmp_path: Path, sources: Sources) -> None:
        convert_sources(tmp_path / "exports", sources)
        stats = {
            (line.group, line.broker): [row for _, row in facts(line)]
            for line in envelopes(tmp_path / "exports", "consume_stats")
        }
        of_file = stats["long-names", "hz@broker-a"]
        assert {row["topic"] for row in of_file} <= {*LONG_TOPICS, "%RETRY%long-names"}
        assert all(row["broker_offset"] is None and row["consumer_offset"] is not None for row in of_file)
        assert all(row["broker_offset"] is not None for row in stats["order-service", "hz@broker-a"])

    def test_pop_groups_are_known_from_files_only(self, tmp_path: Path) -> None:
        brokers = lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        texts = lay_out("5.5.0", "mqadmin", tmp_path / "texts")
        convert_sources(
            tmp_path / "exports", Sources(texts=[texts], broker_files=[brokers], captured_at=NOON)
        )
        (line,) = envelopes(tmp_path / "exports", "broker_message_request_mode")
        ((_, row),) = facts(line)
        assert (row["consumer_group"], row["mode"], row["pop_share_queue_count"]) == ("popping", "POP", 1)

    def test_order_locks_are_known_from_files_only(self, tmp_path: Path) -> None:
        brokers = lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        texts = lay_out("5.5.0", "mqadmin", tmp_path / "texts")
        lock = '{"table":{"orders@fifo":{2:{"cm":0,"i":60000,"l":1,"o":[5],"oc":{5:1},"popTime":1}}}}'
        (brokers / "hz@broker-a/consumerOrderInfo.json").write_text(lock)
        convert_sources(
            tmp_path / "exports", Sources(texts=[texts], broker_files=[brokers], captured_at=NOON)
        )
        (row,) = [
            row
            for line in envelopes(tmp_path / "exports", "consumer_order_info")
            if line.broker == "hz@broker-a"
            for _, row in facts(line)
        ]
        assert (row["consumer_group"], row["queue_id"], row["redelivery_count"]) == ("fifo", 2, 1)

    def test_the_backup_replaces_a_damaged_file_and_this_is_reported(
        self, tmp_path: Path, sources: Sources
    ) -> None:
        folder = tmp_path / "brokers/hz@broker-a"
        (folder / "topics.json").write_bytes((folder / "topics.json").read_bytes()[:391])
        os.utime(folder / "topics.json", (NOON.timestamp(), NOON.timestamp()))
        conversion = convert_sources(tmp_path / "exports", sources)
        (configs,) = [
            line
            for line in envelopes(tmp_path / "exports", "broker_topic_config")
            if line.broker == "hz@broker-a"
        ]
        assert configs.payload == (folder / "topics.json.bak").read_text()
        (notice,) = [each for each in conversion.notices if "topics.json.bak is read" in each]
        assert notice.startswith("hz@broker-a: topics.json is damaged (line ")

    def test_unreadable_files_are_an_error_line(self, tmp_path: Path, sources: Sources) -> None:
        folder = tmp_path / "brokers/hz@broker-a"
        for name in ("subscriptionGroup.json", "subscriptionGroup.json.bak"):
            (folder / name).write_text("{")
        convert_sources(
            tmp_path / "exports", replace(sources, texts=[minimum(tmp_path / "few")], captured_at=NOON)
        )
        error = error_of(tmp_path / "exports", "broker_subscription_group", broker="hz@broker-a")
        assert error.type == "UnreadableText"
        assert error.message.startswith("hz@broker-a: subscriptionGroup.json is damaged")

    def test_a_missing_file_adds_no_line(self, tmp_path: Path, sources: Sources) -> None:
        folder = tmp_path / "brokers/hz@broker-a"
        for path in folder.glob("topics.json*"):
            path.unlink()
        conversion = convert_sources(
            tmp_path / "exports", replace(sources, texts=[minimum(tmp_path / "few")], captured_at=NOON)
        )
        assert envelopes(tmp_path / "exports", "broker_topic_config") == []
        assert any("there is no topics.json among its files" in each for each in conversion.notices)

    def test_a_folder_that_belongs_to_no_broker_is_refused(self, tmp_path: Path, sources: Sources) -> None:
        one_broker = replace(sources, broker_files=[tmp_path / "brokers/hz@broker-a"])
        (problem,) = refusals(tmp_path / "exports", one_broker)
        assert "has no folder for each broker" in problem
        (tmp_path / "brokers/empty").mkdir()
        (problem,) = refusals(tmp_path / "exports", sources)
        assert problem.startswith(f"{tmp_path / 'brokers/empty'} is empty")
