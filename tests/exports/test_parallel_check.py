"""A check by several processes has the same result as a check by one process, and leaves no process behind."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from rebalance_ledger.cli.failures import CRASHED, failure_of
from rebalance_ledger.exports import check_processes, read_ahead, sealing, survey
from rebalance_ledger.exports.check_processes import CheckEndedError, CheckProcesses
from rebalance_ledger.exports.file_facts import Expected
from rebalance_ledger.exports.manifest import ExportError, Manifest, load_manifest
from rebalance_ledger.exports.sealing import PARALLEL_EXPORT_BYTES, seal, verify
from rebalance_ledger.exports.survey import MAX_PROBLEM_COUNT, Survey

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples" / "exports").glob("*/*"))
DS = date(2026, 11, 16)
MAX_LINE_BYTES = 5_000
SEEDS = range(40)
KEYS = {
    "nameserver_topic_list": {"nameserver": "ns:9876"},
    "nameserver_route": {"nameserver": "ns:9876", "topic": "orders"},
    "consumer_connection": {"broker": "a", "broker_addr": "a:10911", "group": "g"},
    "consume_stats": {"broker": "a", "broker_addr": "a:10911", "group": "g"},
}
FILES = {
    "nameserver_topic_list": "nameserver_topic_lists.jsonl",
    "nameserver_route": "nameserver_routes.jsonl",
    "consumer_connection": "consumer_connections.jsonl",
    "consume_stats": "consume_stats.jsonl",
}
INDEX = "offset_files_index.jsonl"
ATTEMPTS = "capture_attempts.jsonl"

Fault: TypeAlias = Callable[[random.Random, Path], None]


def workers() -> list[psutil.Process]:
    """Return the check processes that this process has started, without those of other tests."""
    return [
        child
        for child in psutil.Process().children()
        if any("rebalance_ledger.exports.check_worker" in word for word in child.cmdline())
    ]


def line_of(kind: str, **fields: object) -> bytes:
    base = {"kind": kind, "cluster": "prod", "captured_at": "2026-11-16T12:00:00Z", **KEYS.get(kind, {})}
    content = {} if fields.keys() & {"sha256", "error", "payload"} else {"payload": "{}"}
    return json.dumps({**base, **content, **fields}).encode() + b"\n"


def attempt_line(number: int, **fields: object) -> bytes:
    instant = "2026-11-16T01:00:00.000000Z"
    payload = {
        "started_at": instant, "ended_at": instant, "quality": "complete", "asked_count": 3, "failed_count": 0,
    }  # fmt: skip
    return line_of("capture_attempt", attempt=number, payload=json.dumps(payload | fields))


def draw_export(chance: random.Random, directory: Path) -> None:
    """Write a valid export of a few dozen lines."""
    directory.mkdir(parents=True)
    for kind, name in FILES.items():
        lines = [
            line_of(
                kind,
                captured_at=f"2026-11-16T{chance.randrange(24):02}:00:00.{chance.randrange(10**6)}Z",
                **chance.choice(
                    [
                        {"payload": "x" * chance.randrange(2_000)},
                        {"payload": "\u2028\x85\r\ud800<redacted>é"},
                        {"error": {"type": "MQClientException", "message": "CODE: 17"}},
                    ]
                ),
            )
            for _ in range(chance.randrange(1, 30))
        ]
        (directory / name).write_bytes(b"".join(lines))
    for number in range(chance.randrange(40)):
        add_indexed(directory, f"offset_files/host-{number}/offsets.json", b"{}" * chance.randrange(50))
    if chance.random() < 0.5:
        (directory / ATTEMPTS).write_bytes(attempt_line(1) + attempt_line(2))
    (directory / "notes.txt").write_bytes(b"<redacted>" * chance.randrange(300_000))


def add_indexed(directory: Path, path: str, content: bytes, fields: dict[str, object] | None = None) -> None:
    (directory / path).parent.mkdir(parents=True, exist_ok=True)
    (directory / path).write_bytes(content)
    entry = {
        "path": path, "size": len(content), "mtime": "2026-11-01T00:00:00Z", "sha256": sha256(content).hexdigest(),
        "moment": 0, "host": "h", "client_id": "c", "group": "g",
    }  # fmt: skip
    with (directory / INDEX).open("ab") as file:
        file.write(line_of("offset_file", **(entry | (fields or {}))))


def bad_lines(chance: random.Random) -> list[bytes]:
    """Return lines that are invalid, or valid but unusual."""
    good = line_of("nameserver_route")
    return [
        b"\n",
        b"\xff\n",
        b"  \r\n",
        good[:-1] + b"\r\n",
        good[:-5] + b"\n",
        good.replace(b'"cluster"', b'"cluster": "prod", "cluster"'),
        good[:-2] + b', "more": NaN}\n',
        good[:-2] + b', "more": ' + b"9" * 4_800 + b"}\n",
        good[:-2] + b', "more": 1e999}\n',
        good[:-2] + b', "more": ' + b"[" * 4_000 + b"}\n",
        line_of("nameserver_route", topic="\ud800"),
        line_of("nameserver_route", payload="\ud83d"),
        line_of("nameserver_route", cluster="test"),
        line_of("nameserver_route", cluster="test", captured_at="2026-11-17T00:00:00Z"),
        line_of("nameserver_route", captured_at="2026-11-15T23:59:59Z"),
        line_of("consume_stats"),
        line_of("nameserver_route", payload={}),
        line_of("nameserver_route", payload="x" * MAX_LINE_BYTES),
        line_of("nameserver_route", payload="x" * MAX_LINE_BYTES)[:-1],
        good * chance.randrange(2, 20),
    ]


def insert_lines(chance: random.Random, directory: Path) -> None:
    file = directory / chance.choice(list(FILES.values()))
    if not file.is_file():
        return
    lines = file.read_bytes().splitlines(keepends=True)
    wrong = bad_lines(chance)
    for _ in range(chance.choice([1, 2, 4, 10])):
        lines.insert(chance.randint(0, len(lines)), chance.choice(wrong))
    file.write_bytes(b"".join(lines))


def cut_file(chance: random.Random, directory: Path) -> None:
    file = directory / chance.choice(list(FILES.values()))
    if file.is_file():
        os.truncate(file, chance.choice([0, chance.randint(0, file.stat().st_size)]))


def replace_file(chance: random.Random, directory: Path) -> None:
    file = directory / chance.choice([*FILES.values(), "notes.txt"])
    file.unlink(missing_ok=True)
    if chance.random() < 0.3:
        os.mkfifo(file)
    elif chance.random() < 0.5:
        file.symlink_to("notes.txt")


def spoil_index(chance: random.Random, directory: Path) -> None:
    for _ in range(chance.choice([1, 2, 8])):
        path = f"offset_files/host-{chance.randrange(50)}/offsets.json"
        changes = chance.choice([{}, {"size": 7}, {"sha256": "0" * 64}, {"path": "offset_files/../x"}])
        add_indexed(directory, path, b"other", changes)
    if chance.random() < 0.5:
        (directory / path).unlink()
    if chance.random() < 0.3:
        (directory / INDEX).unlink()


def spoil_attempts(chance: random.Random, directory: Path) -> None:
    lines = [attempt_line(1), attempt_line(0), attempt_line(3, quality="good"), attempt_line(4)[:-1]]
    (directory / ATTEMPTS).write_bytes(b"".join(chance.choices(lines, k=chance.randrange(1, 8))))


def add_files(chance: random.Random, directory: Path) -> None:
    (directory / "old").mkdir(exist_ok=True)
    (directory / "old" / "routes.jsonl").write_bytes(line_of("nameserver_route"))
    for number in range(chance.randrange(70)):
        (directory / "old" / f"{number}\n").write_bytes(b"")


FAULTS: list[Fault] = [insert_lines, cut_file, replace_file, spoil_index, spoil_attempts, add_files]


def found(directory: Path, process_count: int, chunk_bytes: int) -> dict[str, object]:
    """Return all results of a check of the directory."""
    reading = Survey(directory, Expected("prod", DS, max_line_bytes=MAX_LINE_BYTES))
    if process_count:
        with CheckProcesses(
            directory, reading.expected, process_count=process_count, chunk_bytes=chunk_bytes
        ) as processes:
            reading.read(processes)
    else:
        reading.read()
    return {
        "problems": reading.problems,
        "paths": reading.paths,
        "files": reading.files,
        "value_counts": reading.value_counts,
        "attempts": reading.attempts_in_order(),
        # Lines after the last problem of a file are not read, so the capture times of such an export are undefined.
        "capture_times": None if reading.problems else reading.capture_times(),
    }


def judged(directory: Path, process_count: int, chunk_bytes: int) -> Manifest | list[str]:
    try:
        return verify(directory, process_count=process_count, chunk_bytes=chunk_bytes)
    except ExportError as error:
        return error.problems


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int, int]]:
    """Return exports with and without faults, each with a number of processes and a size of chunks."""
    cases = []
    for seed in SEEDS:
        chance = random.Random(f"drawn export {seed}")  # noqa: S311 - drawn cases, no secret
        directory = tmp_path_factory.mktemp("drawn") / "2026-11-16"
        draw_export(chance, directory)
        seal(directory, cluster="prod", is_redacted=True)
        faults = chance.sample(FAULTS, k=chance.choice([0, 1, 2, 4]))
        for fault in [insert_lines, insert_lines, *faults] if seed % 2 else faults:
            fault(chance, directory)
        cases.append((directory, chance.choice([1, 2, 3]), chance.choice([1, 64, 700, 4_000, 20_000])))
    return cases


class TestSameResult:
    def test_reading_gives_the_same_result(self, drawn: list[tuple[Path, int, int]]) -> None:
        alone = [found(directory, 0, 1) for directory, _, _ in drawn]

        assert [found(*case) for case in drawn] == alone
        problem_counts = [len(facts["problems"]) for facts in alone]
        assert 0 in problem_counts
        assert MAX_PROBLEM_COUNT in problem_counts
        sentences = "\n".join(sentence for facts in alone for _, sentence in facts["problems"])
        assert [part for part in PARTS_OF_PROBLEMS if part not in sentences] == []

    def test_checking_gives_the_same_result(self, drawn: list[tuple[Path, int, int]]) -> None:
        some = drawn[::3]
        alone = [judged(directory, 0, 1) for directory, _, _ in some]

        assert [judged(*case) for case in some] == alone
        assert {type(answer) for answer in alone} == {Manifest, list}

    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
    @pytest.mark.parametrize("chunk_bytes", [1_000, 100_000])
    def test_samples(self, sample: Path, chunk_bytes: int) -> None:
        assert verify(sample, process_count=2, chunk_bytes=chunk_bytes) == verify(sample, process_count=0)

    def test_a_line_number_counts_from_the_start_of_the_file(self, tmp_path: Path) -> None:
        directory = tmp_path / "2026-11-16"
        draw_export(random.Random(1), directory)  # noqa: S311 - a case, no secret
        good = line_of("nameserver_route")
        (directory / FILES["nameserver_route"]).write_bytes(good * 999 + b"{\n" + good * 500)

        facts = found(directory, 2, len(good) * 10)

        assert facts == found(directory, 0, 1)
        assert facts["problems"][0][1].startswith("nameserver_routes.jsonl line 1000: not JSON at column 1")

    @pytest.mark.parametrize("readable_bytes", [0, 1, 500, 5_000])
    def test_a_partly_readable_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readable_bytes: int
    ) -> None:
        directory = tmp_path / "2026-11-16"
        draw_export(random.Random(3), directory)  # noqa: S311 - a case, no secret
        good = line_of("nameserver_route")
        (directory / FILES["nameserver_route"]).write_bytes(good + b"{\n" + good * 100)

        def open_failing(path: Path) -> io.BufferedReader:
            is_failing = path.name == FILES["nameserver_route"]
            return io.BufferedReader(FailingFile(path, readable_bytes if is_failing else sys.maxsize), 100)

        monkeypatch.setattr(read_ahead, "open_regular", open_failing)
        monkeypatch.setattr(survey, "open_regular", open_failing)

        facts = found(directory, 2, len(good) * 3)

        assert facts == found(directory, 0, 1)
        assert facts["problems"][-1][1] == "nameserver_routes.jsonl cannot be read: Input/output error"


class FailingFile(io.FileIO):
    """A file that cannot be read beyond a position."""

    def __init__(self, path: Path, readable_bytes: int) -> None:
        super().__init__(path)
        self.readable_bytes = readable_bytes

    def readinto(self, buffer: memoryview) -> int:
        most = self.readable_bytes - self.tell()
        if most <= 0:
            raise OSError(errno.EIO, "Input/output error")
        return super().readinto(memoryview(buffer)[:most])


PARTS_OF_PROBLEMS = (
    "is not UTF-8",
    "the line is empty",
    "duplicate key",
    "NaN is not JSON",
    "not JSON that an envelope is made of",
    "half a surrogate pair",
    "cluster is 'test', but this export is of 'prod'",
    "which is not on 2026-11-16 UTC",
    "longer than 5000 bytes",
    "does not end with a line feed",
    "already named by",
    "is in no line of",
    "needs a line in",
    "says 7",
    "is neither a file nor a folder",
    "is a symbolic link",
    "is missing",
    "is empty; a source that failed",
    "does not describe an attempt",
    "holds lines of kind",
)
"""Faults that the random exports must contain. Without them the comparison would cover less than it claims."""


class TestProcesses:
    @pytest.fixture
    def sealed(self, tmp_path: Path) -> Path:
        directory = tmp_path / "2026-11-16"
        draw_export(random.Random(2), directory)  # noqa: S311 - a case, no secret
        seal(directory, cluster="prod", is_redacted=True)
        return directory

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize(
        ("program", "cause"),
        [
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9"),
            ("import sys; from multiprocessing.connection import Connection; Connection(int(sys.argv[1])).recv()", "ended with 0"),
            ("raise SystemExit(3)", "ended with 3"),
        ],
        ids=["killed", "ended-with-a-task", "ended-at-its-start"],
    )  # fmt: skip
    def test_a_process_that_ends_is_one_error(
        self, sealed: Path, monkeypatch: pytest.MonkeyPatch, program: str, cause: str
    ) -> None:
        monkeypatch.setattr(check_processes, "_PROGRAM", program)

        with pytest.raises(CheckEndedError, match=cause) as caught:
            verify(sealed, process_count=2, chunk_bytes=100)

        assert workers() == []
        failure = failure_of(caught.value)
        assert failure is not None
        assert failure.exit_code == CRASHED

    @pytest.mark.timeout(60)
    def test_a_process_that_is_killed_while_it_checks_is_one_error(self, sealed: Path) -> None:
        reading = Survey(sealed, Expected("prod", DS))
        with CheckProcesses(sealed, reading.expected, process_count=1, chunk_bytes=100) as processes:
            processes.free_worker()
            [child] = workers()
            os.kill(child.pid, signal.SIGKILL)
            with pytest.raises(CheckEndedError, match="was ended by signal 9"):
                reading.read(processes)

    def test_a_process_that_cannot_be_started_is_one_error(
        self, sealed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", str(sealed / "no-python"))

        with pytest.raises(CheckEndedError, match="cannot be started: No such file"):
            verify(sealed, process_count=2)

    def test_no_process_remains_after_too_many_problems(self, sealed: Path) -> None:
        for name in FILES.values():
            (sealed / name).write_bytes(b"\n" * 50)

        assert len(found(sealed, 2, 10)["problems"]) == MAX_PROBLEM_COUNT
        assert workers() == []

    @pytest.mark.timeout(60)
    def test_no_process_outlives_one_that_is_killed(self, sealed: Path) -> None:
        program = (
            "import os, signal, sys, time\n"
            "from pathlib import Path\n"
            "import psutil\n"
            "from rebalance_ledger.exports.check_processes import CheckProcesses\n"
            "from rebalance_ledger.exports.file_facts import Expected\n"
            "processes = CheckProcesses(Path(sys.argv[1]), Expected('prod', None), process_count=3, chunk_bytes=100)\n"
            "tickets = [processes.read_files(['notes.txt'] * 50) for _ in range(3)]\n"
            "print(*[child.pid for child in psutil.Process().children()], flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program, str(sealed)], cwd=ROOT, stdout=subprocess.PIPE, check=False
        )

        workers = [_process(int(pid)) for pid in ended.stdout.split()]
        assert len(workers) == 3
        _, alive = psutil.wait_procs([worker for worker in workers if worker is not None], timeout=30)
        # A worker that has ended may be a zombie until its new parent reaps it.
        assert [worker for worker in alive if worker.status() != psutil.STATUS_ZOMBIE] == []

    @pytest.mark.parametrize(
        ("core_count", "size_bytes", "process_count"),
        [
            (4, PARALLEL_EXPORT_BYTES, 4),
            (4, PARALLEL_EXPORT_BYTES - 1, 0),
            (1, PARALLEL_EXPORT_BYTES, 0),
            (64, PARALLEL_EXPORT_BYTES, 8),
        ],
    )
    def test_the_number_of_processes_depends_on_cores_and_size(
        self,
        sealed: Path,
        monkeypatch: pytest.MonkeyPatch,
        core_count: int,
        size_bytes: int,
        process_count: int,
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(core_count)))
        manifest = load_manifest(sealed)
        [routes] = [file for file in manifest.files if file.path == FILES["nameserver_route"]]

        large = replace(manifest, files=(replace(routes, size_bytes=size_bytes),))

        assert sealing._process_count(large) == process_count


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
