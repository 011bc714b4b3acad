"""The collector against real clusters, including failures of servers, connections and the collector itself."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from rebalance_ledger.cli.collect import collector_jars, java_program
from rebalance_ledger.collectors.admin import Answer, Credentials, Question, admin_client
from rebalance_ledger.collectors.answered_names import topics_of_list
from rebalance_ledger.collectors.errors import UnusableConnectionError
from rebalance_ledger.exports.contract import KIND_BY_NAME, NOT_ASKED
from rebalance_ledger.exports.manifest import MANIFEST_NAME
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.rocketmq.json import loads
from rebalance_ledger.settings import CollectTls
from tests.real_cluster import RealCluster
from tests.real_cluster.cluster import Broker
from tests.real_cluster.processes import have_ended, wait_until
from tests.real_cluster.releases import each_release
from tests.support.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
NASTY = '10.0.0.66@\'; DROP TABLE t; -- $(id) `id` <script>alert(1)</script> ../../etc/passwd {{7*7}} %s \\ "q" é中'
SECRET = "s3cret-of-the-test"  # noqa: S105  # a secret that must not appear anywhere
TIMEOUT_S = 120
SLOW = {"calls_per_second": 8}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Yield a cluster with two brokers and three groups: one on both, one with a hostile client id, one broadcasting."""
    with RealCluster("5.3.3", tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic("orders", queues=4)
        cluster.create_topic("notices", queues=2)
        cluster.start_consumers("billing", ["orders"], ["10.0.0.1@one", "10.0.0.2@two"])
        cluster.start_consumers("nasty", ["orders"], [NASTY])
        cluster.start_consumers("everybody", ["notices"], ["10.0.0.3@all"], is_broadcasting=True)
        cluster.wait_until_stable()
        yield cluster


class Collector:
    """`ledger exports collect`, as a user starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exports = folder / "exports"
        self.directory = self.exports / "c" / f"{datetime.now(UTC):%Y-%m-%d}"

    def words(self, *nameservers: str, credentials: bool = False, **settings: Any) -> list[str | Path]:
        file = self.folder / "ledger.yaml"
        file.write_text(json.dumps({"clusters": {"c": {"collect": settings}}}))
        return [
            ROOT / "setup" / "in-environment", "ledger", "exports", "collect", "--cluster=c",
            f"--exports={self.exports}", f"--settings={file}", *(f"--nameserver={each}" for each in nameservers),
            *(["--credentials-from=stdin"] if credentials else []),
        ]  # fmt: skip

    def run(self, *nameservers: str, expect: int = 0, **settings: Any) -> str:
        """Collect, and return the messages to the user."""
        ended = subprocess.run(
            self.words(*nameservers, **settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.returncode == expect, ended.stderr
        return ended.stderr

    @contextmanager
    def started(
        self, *nameservers: str, whisper: str = "", **settings: Any
    ) -> Iterator[subprocess.Popen[str]]:
        """Start collecting, and end all of its processes at exit."""
        process = subprocess.Popen(
            self.words(*nameservers, credentials=bool(whisper), **settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdin is not None
            if whisper:
                process.stdin.write(whisper)
            process.stdin.close()
            process.stdin = None  # `communicate` would flush it
            yield process
        finally:
            process.kill()
            process.communicate()

    def wait_for_lines(self, process: subprocess.Popen[str], count: int, kind: str | None = None) -> None:
        """Wait until the unfinished export has this number of lines, or the process has ended."""

        def missing() -> str | None:
            growing = self.directory.parent / f".{self.directory.name}.partial" / "export"
            name = KIND_BY_NAME[kind].file_name if kind else "*.jsonl"
            seen = sum(file.read_bytes().count(b"\n") for file in growing.glob(name))
            return None if seen >= count or process.poll() is not None else f"{seen} of {count} lines"

        wait_until(missing, TIMEOUT_S)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        file = self.directory / KIND_BY_NAME[kind].file_name
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def exports_seen(self) -> list[str]:
        """Return every path that a reader could mistake for an export."""
        folder = self.directory.parent
        visible = (
            [path.name for path in folder.glob("*") if not path.name.startswith(".")]
            if folder.exists()
            else []
        )
        return visible + [str(path) for path in self.exports.rglob(MANIFEST_NAME)]


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    return Collector(tmp_path)


def errors(lines: list[dict[str, Any]]) -> set[str]:
    """Return the exception classes, without their packages, and RocketMQ's codes."""
    found = [line["error"] for line in lines if "error" in line]
    return {f"{each['type'].rpartition('.')[2]} {each['message'].partition('  ')[0]}" for each in found}


@pytest.mark.parametrize("version", each_release())
def test_every_release_is_collected_with_the_queues_that_each_member_reports(
    version: str, tmp_path: Path, collector: Collector
) -> None:
    with RealCluster(version, tmp_path / "cluster", nameservers=2) as cluster:
        cluster.create_topic("orders", queues=3)
        group = cluster.start_consumers("billing", ["orders"], ["10.0.0.1@one", "10.0.0.2@two"])
        cluster.wait_until_stable(group)
        collector.run(*cluster.name_servers)
        verify(collector.directory, cluster="c")
        owned = {
            member.client_id: {(queue.topic, queue.broker_name, queue.queue_id) for queue in queues}
            for member, queues in cluster.owned(group)
        }
    message = {
        line["client_id"]: {
            (key["topic"], key["brokerName"], key["queueId"])
            for key, _ in loads(line["payload"])["mqTable"].items()
        }
        for line in collector.lines("consumer_running_info")
    }
    assert message == owned
    kinds = {path.name for path in collector.directory.glob("*.jsonl")}
    failed = {
        kind.name: errors(collector.lines(kind.name)) - {""}
        for kind in KIND_BY_NAME.values()
        if kind.file_name in kinds
    }
    # A release before 5 has no such modes, and rejects the request as unknown. Every other source has answered.
    unknown_before_5 = {"broker_message_request_mode"} if version.startswith("4") else set()
    assert {kind for kind, found in failed.items() if found} == unknown_before_5


@pytest.mark.parametrize(
    "releases",
    [
        ("5.3.3", "4.7.1"),
        pytest.param(("5.3.3", "4.7.1", "5.1.4", "4.9.7", "5.5.0"), marks=pytest.mark.every_release),
        pytest.param(("4.7.1", "4.7.1"), marks=pytest.mark.every_release),
        pytest.param(("5.1.4", "5.1.4"), marks=pytest.mark.every_release),
    ],
    ids="-".join,
)
def test_each_broker_gets_only_requests_that_its_release_knows(
    releases: tuple[str, ...], tmp_path: Path, collector: Collector
) -> None:
    brokers = [Broker(f"broker-{number}", version=release) for number, release in enumerate(releases)]
    with RealCluster(releases[0], tmp_path / "cluster", brokers=brokers) as cluster:
        cluster.create_topic("orders", queues=2)
        group = cluster.start_consumers("billing", ["orders"], ["10.0.0.1@one", "10.0.0.2@two"])
        cluster.wait_until_stable(group)
        # With this limit one unanswered request is enough to stop querying a broker.
        collector.run(*cluster.name_servers, unresponsive_after_s=0.001, quality={"degraded_above": 0})
        owned = {
            member.client_id: {(queue.topic, queue.broker_name, queue.queue_id) for queue in queues}
            for member, queues in cluster.owned(group)
        }
    message = {
        line["client_id"]: {
            (key["topic"], key["brokerName"], key["queueId"])
            for key, _ in loads(line["payload"])["mqTable"].items()
        }
        for line in collector.lines("consumer_running_info")
    }
    assert message == owned
    failed = {
        (line["kind"], line["broker"], line["error"]["type"])
        for path in collector.directory.glob("*.jsonl")
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if "error" in line
    }
    since = {"broker_producer_table": (4, 9, 4), "broker_message_request_mode": (5, 0, 0)}
    assert failed == {
        (kind, broker.name, NOT_ASKED)
        for kind, first in since.items()
        for broker in brokers
        if tuple(map(int, (broker.version or "").split("."))) < first
    }


def test_a_static_topic_hides_no_other_topic(cluster: RealCluster, collector: Collector) -> None:
    cluster.mqadmin(
        "updateStaticTopic", "-n", cluster.name_servers[0], "-t", "fixed", "-qn", "4", "-c", cluster.name
    )
    message = collector.run(*cluster.name_servers)
    assert "cannot be read" not in message
    (config, other) = collector.lines("broker_topic_config")
    assert "topicQueueMappingDetailMap" in config["payload"] + other["payload"]
    for broker in cluster.broker_addresses:
        asked = {line["topic"] for line in collector.lines("broker_topic_stats") if line["broker"] == broker}
        assert {"orders", "notices", "fixed"} <= asked


def test_payloads_are_the_bytes_received_over_the_wire(cluster: RealCluster, collector: Collector) -> None:
    with TcpProxy(cluster.name_servers[0]) as proxy:
        collector.run(proxy.address)
        output = b"".join(proxy.sent_by_server)
    lines = [
        line
        for kind in ("nameserver_topic_list", "nameserver_cluster_info", "nameserver_route")
        for line in collector.lines(kind)
    ]
    assert len(lines) > 5
    assert all(line["payload"].encode() in output for line in lines)


def test_a_client_id_with_shell_sql_html_and_paths_is_only_text(
    cluster: RealCluster, collector: Collector
) -> None:
    collector.run(*cluster.name_servers)
    (line,) = [line for line in collector.lines("consumer_running_info") if line["group"] == "nasty"]
    assert line["client_id"] == NASTY
    assert '"topic":"orders"' in line["payload"]
    assert {path.name for path in collector.exports.iterdir()} == {"c"}


def test_the_progress_of_a_broadcasting_client_is_in_its_answers_and_in_its_file(
    cluster: RealCluster, collector: Collector, tmp_path: Path
) -> None:
    cluster.send("notices", 40)
    (member,) = cluster.groups["everybody"].members
    on_disk = cluster.offsets_folder(member.host)

    def missing() -> str | None:
        message = loads(cluster.running_info(member))["mqTable"]
        read = sum(max(0, queue["commitOffset"]) for _, queue in message.items())
        if read < 40:
            return f"{read} of 40 messages are read"
        return None if list(on_disk.rglob("offsets.json")) else "no offset file is written"

    wait_until(missing, TIMEOUT_S)
    shutil.copytree(on_disk, tmp_path / "drop" / "10.0.0.3")
    collector.run(*cluster.name_servers, offset_files=str(tmp_path / "drop"))

    (held,) = [line for line in collector.lines("consumer_running_info") if line["group"] == "everybody"]
    in_info = {
        tuple(sorted(queue.items())): message["commitOffset"]
        for queue, message in loads(held["payload"])["mqTable"].items()
    }
    (status,) = collector.lines("consumer_status")
    assert (status["group"], status["client_id"], status["topic"]) == ("everybody", "10.0.0.3@all", "notices")
    in_memory = loads(status["payload"])["consumerTable"]["10.0.0.3@all"]
    assert {tuple(sorted(queue.items())): offset for queue, offset in in_memory.items()} == in_info
    assert (len(in_info), sum(in_info.values())) == (4, 40)

    files = collector.lines("offset_file")
    assert {(line["host"], line["client_id"], line["group"]) for line in files} == {
        ("10.0.0.3", "10.0.0.3@all", "everybody")
    }
    assert "offset_files/10.0.0.3/10.0.0.3@all/everybody/offsets.json" in {line["path"] for line in files}


def test_a_name_server_that_is_down_affects_only_its_own_lines(
    cluster: RealCluster, collector: Collector
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = f"127.0.0.1:{closed.getsockname()[1]}"
    message = collector.run(cluster.name_servers[0], down, unresponsive_after_s=1)
    assert f"warning: {down} was not called any more in this run" in message
    topics = {line["topic"] for line in collector.lines("nameserver_route")}
    for nameserver, has_failed in ((cluster.name_servers[0], False), (down, True)):
        lines = [line for line in collector.lines("nameserver_route") if line["nameserver"] == nameserver]
        assert {line["topic"] for line in lines} == topics
        assert {"error" in line for line in lines} == {has_failed}
    assert not errors(collector.lines("consumer_running_info"))


def test_without_any_name_server_there_is_one_sentence_and_no_export(collector: Collector) -> None:
    message = collector.run("127.0.0.1:1", expect=1, retries=0)
    assert message.splitlines()[-1].startswith(
        "None of the name servers (127.0.0.1:1) returns topics and brokers ("
    )
    assert collector.exports_seen() == []


@pytest.mark.parametrize("let_through", [1, 100, 300])
def test_a_truncated_answer_is_an_error_without_payload(
    cluster: RealCluster, collector: Collector, let_through: int
) -> None:
    with TcpProxy(cluster.name_servers[0], [let_through]) as proxy:
        collector.run(cluster.name_servers[0], proxy.address, unresponsive_after_s=1)
        cut = [
            line for line in collector.lines("nameserver_topic_list") if line["nameserver"] == proxy.address
        ]
    assert [line.get("payload") for line in cut] == [None]
    whole = {
        line["topic"]: line["payload"]
        for line in collector.lines("nameserver_route")
        if line["nameserver"] == cluster.name_servers[0]
    }
    for line in collector.lines("nameserver_route"):
        # A short answer can be complete before the cut.
        assert "error" in line or line["payload"] == whole[line["topic"]]


def test_a_connection_that_breaks_once_is_reopened_and_nothing_is_missing(
    cluster: RealCluster, collector: Collector
) -> None:
    with TcpProxy(cluster.name_servers[0], [100, 3000, None]) as proxy:
        collector.run(proxy.address)
        assert len(proxy.sent_by_server) >= 3
    assert not errors(collector.lines("nameserver_topic_list"))
    assert not errors(collector.lines("nameserver_route"))


def test_missing_answers_of_a_broker_that_stops_half_way_are_error_lines(
    cluster: RealCluster, collector: Collector
) -> None:
    settings: dict[str, Any] = {
        "calls_per_second": 4,
        "parallelism": 2,
        "unresponsive_after_s": 6,
        "retries": 1,
    }
    settings["quality"] = {"degraded_above": 0}
    frozen = cluster.broker_addresses["broker-b"]
    with collector.started(*cluster.name_servers, **settings) as process:
        collector.wait_for_lines(process, 1, "broker_topic_stats")
        assert process.poll() is None
        with cluster.frozen("broker-b"):
            _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 4, message
    assert verify(collector.directory, cluster="c").quality == "degraded"
    assert f"warning: {frozen} was not called any more in this run" in message
    stats = collector.lines("broker_topic_stats")
    of_each = {
        address: [line for line in stats if line["broker_addr"] == address]
        for address in cluster.broker_addresses.values()
    }
    assert not errors(of_each[cluster.broker_addresses["broker-a"]])
    answered = [line for line in of_each[frozen] if "payload" in line]
    assert len(answered) < len(of_each[frozen])
    # Each topic of its configuration has a line, with or without an answer.
    (config,) = [line for line in collector.lines("broker_topic_config") if line["broker_addr"] == frozen]
    topics = loads(config["payload"])["topicConfigTable"]
    assert sorted(line["topic"] for line in of_each[frozen]) == sorted(name for name, _ in topics.items())
    assert "ServerNotAnswering " in {each.partition(" ")[0] + " " for each in errors(of_each[frozen])}

    # The broker is back: another attempt adds the missing answers, and leaves the others unchanged.
    earlier = {line["topic"]: line["captured_at"] for line in answered}
    collector.run(*cluster.name_servers, quality={"degraded_above": 0})
    manifest = verify(collector.directory, cluster="c")
    assert [attempt.quality for attempt in manifest.attempts] == ["degraded", "complete"]
    stats = collector.lines("broker_topic_stats")
    assert not errors(stats)
    now = {
        line["topic"]: (line["attempt"], line["captured_at"])
        for line in stats
        if line["broker_addr"] == frozen
    }
    assert {topic: now[topic] for topic in earlier} == {topic: (1, at) for topic, at in earlier.items()}
    assert {attempt for topic, (attempt, _) in now.items() if topic not in earlier} == {2}


def test_clients_that_pause_for_longer_than_a_broker_waits_are_asked_again(
    cluster: RealCluster, collector: Collector
) -> None:
    with collector.started(*cluster.name_servers) as process:
        with cluster.frozen("host"):
            assert process.stderr is not None
            assert any(line.startswith("groups: ") for line in process.stderr)
            time.sleep(11)  # The pause of the clients: a broker waits ten seconds for their answers.
        _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, message
    answers = collector.lines("consumer_running_info")
    assert not errors(answers)
    assert {line["client_id"] for line in answers} == {"10.0.0.1@one", "10.0.0.2@two", "10.0.0.3@all", NASTY}
    assert len(answers) == 4


def test_a_killed_collector_leaves_nothing_that_looks_like_an_export(
    cluster: RealCluster, collector: Collector
) -> None:
    collector.run(*cluster.name_servers)
    line_count = sum(
        collector.directory.joinpath(kind.file_name).read_bytes().count(b"\n")
        for kind in KIND_BY_NAME.values()
        if collector.directory.joinpath(kind.file_name).exists()
    )
    shutil.rmtree(collector.directory)
    chance = random.Random(20261116)  # noqa: S311  # times, not secrets
    # At most half of the lines exist when it is killed: at eight calls per second the other half takes seconds.
    for at_line in [0, *(chance.randrange(1, line_count // 2) for _ in range(5))]:
        with collector.started(*cluster.name_servers, **SLOW) as process:
            collector.wait_for_lines(process, at_line)
            jvms = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL
        assert collector.exports_seen() == []
        wait_until(partial(have_ended, jvms), TIMEOUT_S)
    collector.run(*cluster.name_servers)
    verify(collector.directory, cluster="c")
    # The next run removes the remains of the killed ones.
    assert [path.name for path in collector.directory.parent.iterdir()] == [collector.directory.name]


def test_a_collector_killed_near_its_end_leaves_a_complete_export_or_none(
    cluster: RealCluster, collector: Collector
) -> None:
    moments = ["the last sources are asked", "the manifest is there", "the export has its name"]
    for moment in moments:
        with collector.started(*cluster.name_servers) as process:
            wait_until(_comes_to(collector, process, moment), TIMEOUT_S)
            process.send_signal(signal.SIGKILL)
            process.wait()
        # A hidden folder can already have the manifest: readers only use folders named after a day.
        visible = [path.name for path in collector.directory.parent.glob("[!.]*")]
        assert visible in ([], [collector.directory.name])
        if visible:
            verify(collector.directory, cluster="c")
            shutil.rmtree(collector.directory)
    collector.run(*cluster.name_servers)
    verify(collector.directory, cluster="c")


def _comes_to(collector: Collector, process: subprocess.Popen[str], moment: str) -> Callable[[], str | None]:
    growing = collector.directory.parent / f".{collector.directory.name}.partial" / "export"
    place = {
        "the last sources are asked": growing / KIND_BY_NAME["broker_topic_stats"].file_name,
        "the manifest is there": growing / MANIFEST_NAME,
        "the export has its name": collector.directory,
    }[moment]
    return lambda: None if place.exists() or process.poll() is not None else f"{place} is not there"


def test_a_killed_admin_client_is_reported_in_one_sentence_and_leaves_no_export(
    cluster: RealCluster, collector: Collector
) -> None:
    with collector.started(*cluster.name_servers, **SLOW) as process:
        collector.wait_for_lines(process, 10)
        (jvm,) = [each for each in psutil.Process(process.pid).children() if "java" in each.name()]
        jvm.kill()
        _, message = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert message.splitlines()[-1].startswith("The JVM of RocketMQ's admin client ended while it was asked")
    assert collector.exports_seen() == []


def test_credentials_are_in_no_argument_no_environment_and_no_file(
    cluster: RealCluster, collector: Collector
) -> None:
    whisper = json.dumps({"access_key": "ledger", "secret_key": SECRET}) + "\n"
    with collector.started(*cluster.name_servers, whisper=whisper, **SLOW) as process:
        collector.wait_for_lines(process, 10)
        family = [process.pid, *(each.pid for each in psutil.Process(process.pid).children(recursive=True))]
        assert len(family) > 1
        for pid in family:
            for name in ("cmdline", "environ"):
                assert SECRET.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        out, message = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, message
    assert SECRET not in out + message
    assert not [
        path
        for path in collector.folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_a_second_collector_of_the_day_is_refused_while_and_after_the_first_runs(
    cluster: RealCluster, collector: Collector
) -> None:
    with collector.started(*cluster.name_servers, **SLOW) as process:
        collector.wait_for_lines(process, 1)
        process.send_signal(signal.SIGSTOP)  # On a busy machine the first could end before the second starts.
        assert "is being written by another process" in collector.run(*cluster.name_servers, expect=2)
        process.send_signal(signal.SIGCONT)
        _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, message
    sealed = (collector.directory / MANIFEST_NAME).read_bytes()
    assert "is already an export" in collector.run(*cluster.name_servers, expect=2)
    assert (collector.directory / MANIFEST_NAME).read_bytes() == sealed


def test_credentials_of_the_environment_are_not_inherited(
    cluster: RealCluster, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_ROCKETMQ_ACCESS_KEY", "ledger")
    monkeypatch.setenv("LEDGER_ROCKETMQ_SECRET_KEY", SECRET)
    words = [*collector.words(*cluster.name_servers, **SLOW), "--credentials-from=env"]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        collector.wait_for_lines(process, 10)
        (jvm,) = [each for each in psutil.Process(process.pid).children() if "java" in each.name()]
        assert SECRET not in str(jvm.environ()) + str(jvm.cmdline())
        _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, message
    finally:
        process.kill()
        process.communicate()


class Authority:
    """A certificate authority and a certificate that it has signed, as files and as a server's context."""

    def __init__(self, folder: Path) -> None:
        authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of the test")])
        server = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        signed = {
            name: x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(days=1))
            .not_valid_after(datetime.now(UTC) + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name is authority, path_length=None), critical=True)
            .sign(authority_key, hashes.SHA256())
            .public_bytes(Encoding.PEM)
            for name, key in ((authority, authority_key), (server, server_key))
        }
        self.file = folder / "authority.pem"
        self.file.write_bytes(signed[authority])
        key = server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = folder / "server.pem"
        chain.write_bytes(signed[server] + key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)


def ask_name_server(address: str, **connection: Any) -> Answer:
    with admin_client(collector_jars(), java_program(), [address], **connection) as client:
        return client.ask(Question(kind="nameserver_topic_list", nameserver=address), 5_000)


def topics_at(address: str, **connection: Any) -> list[str]:
    answer = ask_name_server(address, **connection)
    assert answer.payload is not None
    return topics_of_list(answer.payload)


def test_certificates_are_verified_unless_disabled(cluster: RealCluster, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with TcpProxy(cluster.name_servers[0], tls=authority.context) as proxy:
        trusting = CollectTls(trusted_certificates=str(authority.file))
        assert "orders" in topics_at(proxy.address, tls=trusting)
        assert "orders" in topics_at(proxy.address, tls=CollectTls(verify=False))
        assert ask_name_server(proxy.address, tls=CollectTls()).response_code is None
        assert ask_name_server(proxy.address).response_code is None


@pytest.mark.parametrize(
    ("tls", "cause"),
    [
        (None, "it speaks TLS, and the settings have no collect.tls"),
        ({}, "no authority that is trusted by default has signed its certificate"),
        ({"trusted_certificates": "other"}, "other/authority.pem has signed its certificate"),
    ],
    ids=["plain", "no authority", "another authority"],
)
def test_a_failed_tls_connection_is_reported_in_one_sentence_with_its_cause(
    cluster: RealCluster, collector: Collector, tmp_path: Path, tls: dict[str, str] | None, cause: str
) -> None:
    folders = [tmp_path / "own", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    own, other = map(Authority, folders)
    settings = {} if tls is None else {"tls": tls and {"trusted_certificates": str(other.file)}}
    with TcpProxy(cluster.name_servers[0], tls=own.context) as proxy:
        message = collector.run(proxy.address, expect=1, retries=0, call_timeout_ms=2000, **settings)
    assert cause in message.splitlines()[-1]


def test_without_certificates_no_request_is_sent_not_even_in_plain_text(
    cluster: RealCluster, tmp_path: Path
) -> None:
    missing = CollectTls(trusted_certificates=str(tmp_path / "not-there.pem"))
    with (
        TcpProxy(cluster.name_servers[0]) as proxy,
        pytest.raises(UnusableConnectionError, match=r"not-there\.pem"),
    ):
        ask_name_server(proxy.address, tls=missing)
    assert proxy.sent_by_clients == []


def test_requests_are_signed_and_do_not_contain_the_secret(cluster: RealCluster) -> None:
    with TcpProxy(cluster.name_servers[0]) as proxy:
        answer = ask_name_server(proxy.address, credentials=Credentials("an-account", SECRET))
        (asked,) = proxy.sent_by_clients
    assert answer.payload is not None
    assert b'"AccessKey":"an-account"' in asked
    assert b'"Signature":"' in asked
    assert SECRET.encode() not in asked
