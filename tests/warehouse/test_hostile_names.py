"""Names of a cluster are treated as text everywhere, from the export to every output.

Some parts also have separate tests with such names (the reader of RocketMQ's JSON, publication, Data Docs,
`ledger sql`). RocketMQ's part is in `tests/e2e/test_real_clusters.py`.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.command_line import ledger
from tests.support.computed_days import compute_and_publish
from tests.support.export_builder import DS, ExportBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

CLUSTER: Final = "_it's 50% [x]*{a}? \"q\" ü <b onload=harm()>'; DROP TABLE publication; --"
TOPICS: Final = ('=HYPERLINK("x")', "../../../etc/cron.d/planted", "%DLQ%'; DELETE FROM finding; --")
GROUPS: Final = (
    "<script>harm()</script>",
    "@SUM(1)\r\n2026-11-16 INFO the gate passed everything",
    "${HOME} {{ ds }} {0} %s",
)
CLIENT_IDS: Final = (
    "\x1b[2J\x1b[31mred@\x07",
    "gnp.\u202eexe@1",
    "-2+3|' /c calc'!A0@1",
    "10.0.0.1@$(touch planted)`touch planted`",
    "null@\ufeff\u2028\x00",
)
BROKER: Final = "broker-'a' OR 1=1"


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Return a published day in which every name is hostile. The queues of the second group have no owner."""
    folder = tmp_path_factory.mktemp("hostile") / "ledger"
    export = ExportBuilder(CLUSTER)
    for topic in TOPICS:
        export.route(topic, {BROKER: len(CLIENT_IDS)})
    for group in GROUPS:
        export.group(group, TOPICS, CLIENT_IDS, BROKER)
    export.failure("consume_stats", f"no answer for {GROUPS[1]}", broker=BROKER, group=GROUPS[1])
    export.answer("broker_config", "brokerName", broker=TOPICS[1])
    export.seal(folder / "exports")
    hostile = Day(CLUSTER, DS, folder / "exports", Warehouse.at(str(folder / "ware house")), None)
    compute_and_publish(spark, hostile)
    return hostile


def _output(day: Day, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert ledger(*words, "--warehouse", day.warehouse.root) == 0
    return capsys.readouterr().out


NAMES: Final = (
    "SELECT DISTINCT cluster, topic, broker_name, consumer_group, client_id FROM queue_assignment "
    "WHERE client_id IS NOT NULL"
)


def test_every_name_arrives_as_it_was_given(day: Day, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(_output(day, capsys, "sql", NAMES, "--format", "json"))

    given = {column: {row[column] for row in rows} for column in rows[0]}
    assert given == {
        "cluster": {CLUSTER},
        "topic": set(TOPICS),
        "broker_name": {BROKER},
        "consumer_group": set(GROUPS),
        "client_id": set(CLIENT_IDS),
    }


def test_no_cell_of_a_spreadsheet_is_a_formula(day: Day, capsys: pytest.CaptureFixture[str]) -> None:
    findings = (
        "SELECT cluster, consumer_group, client_id, topic, broker_name, evidence, examples FROM finding"
    )
    for query in (NAMES, findings):
        text = _output(day, capsys, "sql", query, "--format", "csv")
        _, *rows = csv.reader(io.StringIO(text, newline=""))
        assert len(rows) > 3
        assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in set("=+-@\t\r")]


@pytest.mark.parametrize(
    "words",
    [
        ("sql", NAMES),
        ("sql", "FROM finding"),
        ("summary",),
        ("tables",),
        ("fingerprint", f"--cluster={CLUSTER}"),
        ("gate", "show", f"--cluster={CLUSTER}", f"--ds={DS}"),
    ],
    ids=lambda words: " ".join(words[:2])[:24],
)
def test_a_terminal_shows_names_without_control_characters(
    day: Day, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    text = _output(day, capsys, *words)

    assert text
    # Control characters, characters that change the text direction, and line separators other than the newline.
    acting = {"Cc", "Cf", "Zl", "Zp"}
    assert not {character for character in text if unicodedata.category(character) in acting} - {"\n"}
    assert not [line for line in text.splitlines() if line.startswith("2026-11-16 INFO")]


def test_nothing_is_written_beside_the_exports_and_the_warehouse(day: Day) -> None:
    place = Path(day.warehouse.root).parent

    assert {path.name for path in place.iterdir()} == {"exports", "ware house"}
    assert {path.name for path in place.parent.iterdir()} == {"ledger"}
    assert not list(place.rglob("planted"))


def test_pages_show_no_name_as_markup(day: Day) -> None:
    pages = [path.read_text(encoding="utf-8") for path in Path(day.warehouse.root).rglob("*.html")]

    assert pages
    for page in pages:
        assert "<b onload=" not in page
        assert "<script>harm()" not in page
