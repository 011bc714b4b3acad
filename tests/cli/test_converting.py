"""`ledger exports import`, from the script that collects the mqadmin texts to the owners that the ledger computes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.collectors.mqadmin_transcript import read_transcript
from rebalance_ledger.collectors.offline import Sources, convert
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.command_line import ledger
from tests.support.computed_days import ROOT, Row, compute, newest, staged_rows
from tests.support.offline_captures import DS, LONG_BROKER, NOON, admin_api, lay_out

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DOCUMENT = ROOT / "docs" / "offline-collecting.md"
CAPTURED_AT = f"{NOON:%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return lay_out("5.5.0", "mqadmin", tmp_path / "texts")


def converted(tmp_path: Path, *words: str, ds: str = "2026-11-21") -> int:
    return ledger(
        "exports", "import", "--cluster", "shop", "--ds", ds, "--exports", str(tmp_path / "exports"), *words
    )


class TestTheCommand:
    def test_reports_what_was_written_and_what_the_sources_lack(
        self, tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        brokers = lay_out("5.5.0", "broker_files", tmp_path / "brokers")
        words = ("--mqadmin", str(texts), "--broker-files", str(brokers), "--captured-at", CAPTURED_AT)
        assert converted(tmp_path, *words, "--time-zone", "UTC") == 0
        output = capsys.readouterr()
        directory = tmp_path / "exports/shop/2026-11-21"
        assert output.out.startswith(f"{directory} is imported and sealed: cluster shop, 2026-11-21, ")
        assert "notice: exportMetadata.txt line " not in output.out
        assert "`exportMetadata -t` omits system topics" in output.err
        assert ledger("exports", "verify", str(directory)) == 0

    def test_offset_files_get_the_time_of_the_last_source(
        self, tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        group = tmp_path / "drop" / "10.1.1.21" / "10.1.1.21@DEFAULT" / "prices"
        group.mkdir(parents=True)
        (group / "offsets.json").write_bytes(b"{}")
        (group / "offsets.json.bak").symlink_to("offsets.json")
        assert converted(tmp_path, "--mqadmin", str(texts), "--offset-files", str(tmp_path / "drop")) == 0
        assert "'10.1.1.21/10.1.1.21@DEFAULT/prices/offsets.json.bak': " in capsys.readouterr().err
        directory = tmp_path / "exports/shop/2026-11-21"
        landed, failed = map(json.loads, (directory / "offset_files_index.jsonl").read_text().splitlines())
        manifest = json.loads((directory / "manifest.json").read_text())
        assert landed["captured_at"] == failed["captured_at"] == manifest["last_captured_at"]
        assert (directory / landed["path"]).read_bytes() == b"{}"

    def test_control_characters_of_a_file_name_do_not_reach_the_terminal(
        self, tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (texts / "a\n\x1b[31m\u202e.txt").write_text("hello\n")
        assert converted(tmp_path, "--mqadmin", str(texts), "--captured-at", CAPTURED_AT) == 0
        output = capsys.readouterr().err
        assert "notice: a\\n\\x1b[31m\\u202e.txt: no text of mqadmin" in output
        assert output.replace("\n", "").isprintable()

    def test_a_second_import_is_refused_in_one_sentence(
        self, tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert converted(tmp_path, "--mqadmin", str(texts)) == 0
        capsys.readouterr()
        assert converted(tmp_path, "--mqadmin", str(texts)) == 2
        assert "is already an export, and an export does not change" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ((), "no source says the topics that a name server knows; give the text of `mqadmin topicList"),
            (("--time-zone", "Mars/Olympus"), "'Mars/Olympus' is no time zone; give a name such as UTC"),
            (("--time-zone", "../../etc/passwd"), "'../../etc/passwd' is no time zone"),
            (("--mqadmin", "nowhere"), "nowhere is not there; give a text of mqadmin"),
            (
                ("--offset-files", "nowhere"),
                "nowhere is not a folder; give the one that has a folder for each host",
            ),
        ],
    )
    def test_bad_input_is_one_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
    ) -> None:
        assert converted(tmp_path, *words) == 2
        assert f"- {sentence}" in capsys.readouterr().err
        assert (
            not list((tmp_path / "exports").rglob("*")) or not (tmp_path / "exports/shop/2026-11-21").exists()
        )


# Prints mqadmin's recorded output, from a table of command lines. The files that mqadmin wrote already exist.
MQADMIN = """
import json, sys
from pathlib import Path
words = [word for word in sys.argv[1:]]
del words[words.index("-n"):words.index("-n") + 2]
answers = json.loads(Path({answers!r}).read_text())
print(answers.pop(json.dumps(words)), end="")
"""


class TestTheScript:
    def recorded_answers(self, folder: Path) -> dict[str, str]:
        """Return command line without the name server -> its output."""
        answers = {}
        for path in sorted(folder.glob("*.txt")):
            text = path.read_text()
            lines = text.split("\n")
            commands = read_transcript(text)
            for number, command in enumerate(commands):
                end = commands[number + 1].line_number - 2 if number + 1 < len(commands) else len(lines)
                words = re.findall(r"\S+", lines[command.line_number - 1])[2:]
                del words[words.index("-n") : words.index("-n") + 2]
                answers[json.dumps(words)] = "\n".join(lines[command.line_number : end]).rstrip("\n") + "\n"
        return answers

    def test_the_script_collects_everything_that_an_export_needs(self, tmp_path: Path, texts: Path) -> None:
        (script,) = re.findall(r"^```bash\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
        convert(tmp_path / "recorded", "shop", DS, Sources(texts=[texts], captured_at=NOON))
        answers = tmp_path / "answers.json"
        answers.write_text(json.dumps(self.recorded_answers(texts)))
        (tmp_path / "bin").mkdir()
        program = tmp_path / "mqadmin.py"
        program.write_text(MQADMIN.format(answers=str(answers)))
        mqadmin = tmp_path / "bin" / "mqadmin"
        # The shebang line of a script cannot contain a path with a space.
        mqadmin.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(program))} "$@"\n'
        )
        mqadmin.chmod(0o755)
        for path in texts.glob("*.txt"):
            path.unlink()
        environment = {
            **os.environ,
            "PATH": f"{mqadmin.parent}:{os.environ['PATH']}",
            "NAMESERVER": "127.0.0.1:22000",
        }
        ended = subprocess.run(
            ["bash", "-c", script, "collect.sh"],
            cwd=texts,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert "Traceback" not in "".join(path.read_text() for path in texts.glob("*.txt"))
        convert(tmp_path / "asked", "shop", DS, Sources(texts=[texts], captured_at=NOON))
        for recorded in sorted((tmp_path / "recorded/shop/2026-11-21").glob("*.jsonl")):
            asked = tmp_path / "asked/shop/2026-11-21" / recorded.name
            if recorded.name == "events.jsonl":
                continue  # Events name files and lines.
            for one, other in zip(
                recorded.read_text().split("\n"), asked.read_text().split("\n"), strict=True
            ):
                assert other == one or "consumerProgress.txt line " in one


SETTINGS = """
clusters:
  shop:
    groups:
      room-report: {strategy: MACHINE_ROOM, consumer_idcs: [hz]}
      user-profile: {strategy: CONSISTENT_HASH, virtual_node_count: 10}
"""

DESCRIBED = {"user-profile", "room-report", "long-names", "config-listeners", "popping"}
"""The groups with `consumerStatus` output in the test below; order-service has none."""


def computed(spark: SparkSession, folder: Path) -> dict[str, list[Row]]:
    """Compute the day below a folder, which the gate must accept; return its rows by table."""
    settings = folder / "ledger.yaml"
    settings.write_text(SETTINGS)
    day = Day("shop", DS, folder, Warehouse.at(str(folder / "warehouse")), settings)
    compute(spark, day)
    assert steps.gate(day).verdict != "refused"
    stage = newest(day)
    return {table: staged_rows(stage, table) for table in ("queue_assignment", "ownership_drift")}


def of_groups(rows: list[Row], groups: set[str]) -> set[str]:
    """Return the rows of some groups without client ages, because the two captures alternated."""
    return {
        json.dumps(
            {column: value for column, value in row.items() if column != "newest_client_age_ms"},
            sort_keys=True,
            default=str,
        )
        for row in rows
        if row["consumer_group"] in groups
    }


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.nightly
def test_owners_equal_those_of_the_admin_api_or_are_unknown_if_the_texts_are_incomplete(
    spark: SparkSession, tmp_path: Path
) -> None:
    with ExportWriter(tmp_path / "api", "shop", DS) as writer:
        for line in admin_api("5.5.0"):
            kind, payload, error = line.pop("kind"), line.pop("payload", None), line.pop("error", None)
            if error is None:
                writer.payload(kind, NOON, payload, **line)
            else:
                writer.error(kind, NOON, error["type"], error["message"], **line)
    texts = lay_out("5.5.0", "mqadmin", tmp_path / "mqadmin")
    for pattern in ("*/10.1.0.9@order-9", "*/10.1.0.10@order-10", "*/10.1.0.11@order-11"):
        (path,) = texts.glob(pattern)
        path.unlink()
    convert(tmp_path / "texts", "shop", DS, Sources(texts=[texts]))
    by_api, by_texts = computed(spark, tmp_path / "api"), computed(spark, tmp_path / "texts")
    for table, rows in by_texts.items():
        assert of_groups(rows, DESCRIBED) == of_groups(by_api[table], DESCRIBED), table
    states = {row["state"] for row in by_texts["ownership_drift"] if row["consumer_group"] == "order-service"}
    assert states == {"unknown"}
    states = {row["state"] for row in by_api["ownership_drift"] if row["consumer_group"] == "order-service"}
    assert states == {"match"}
    owners = {
        (row["broker_name"], row["queue_id"], row["client_id"])
        for row in by_texts["queue_assignment"]
        if row["consumer_group"] == "user-profile" and row["topic"] == "order-events" and row["is_effective"]
    }
    assert len(owners) == 8
    assert {broker for broker, _, _ in owners} == {"hz@broker-a", LONG_BROKER}
    assert {client_id for _, _, client_id in owners} == {"10.1.0.31@profile-1", "10.1.0.32@profile-2"}
