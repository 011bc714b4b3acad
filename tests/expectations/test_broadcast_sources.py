"""The second computation of offset files finds each altered value of a computed day, and nothing in the day as it is.

The day is that of `tests/spark_jobs/test_broadcast_offsets.py`, which has files and queues in every state. Its files are read by
the build's readers and by the gate's SQL; the SQL is also held against the answers of RocketMQ's own classes.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions
from test_altered_columns import another

from expectations.suites import broadcast_sources
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.exports.catalog import earlier_exports
from rebalance_ledger.pipeline.steps import Day
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.layout import Warehouse
from spark_jobs.session import literal_path, spark_schema
from spark_jobs.silver.offset_file_snapshots import show_offset_files
from tests.spark_jobs.test_broadcast_offsets import day, earlier_day
from tests.support.computed_days import compute, newest
from tests.support.export_builder import DS
from tests.support.staged_day import show_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MOST_BYTES = 4096
"""Larger golden files say nothing that smaller ones do not."""
GOLDEN = Path(__file__).parents[1] / "golden"
TABLES = {table.name: table for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)}
[STATEMENT] = [
    text for text in METRIC_STATEMENTS if f"'{broadcast_sources.INDEX_EQUALS.expectation_id}'" in text
]
GROUPS: Final[dict[str, str]] = {
    "broadcast_offset_file.moment": "well",
    "broadcast_offset_file.captured_at": "went_back",
    "broadcast_offset_file.snapshot_count": "stuck",
    "broadcast_offset_file.host_count": "behind",
    "broadcast_offset_file.main_size_bytes": "ahead",
    "broadcast_offset_file.bak_size_bytes": "recovered",
    "broadcast_offset_file.main_modified_at": "negative",
    "broadcast_offset_file.bak_modified_at": "zeroed",
    "broadcast_offset_file.age_ms": "not_written",
    "broadcast_offset_file.message_model": "listed_twice",
    "broadcast_offset_file.is_online": "timed",
    "broadcast_offset_file.process_count": "silent_writer",
    "broadcast_offset_file.client_language": "queue_gone",
    "broadcast_offset_file.client_version": "asleep",
    "broadcast_offset_file.client_version_source": "broker_untold",
    "broadcast_offset_file.main_state": "emptied",
    "broadcast_offset_file.bak_state": "cut_without_bak",
    "broadcast_offset_file.main_entry_count": "well",
    "broadcast_offset_file.bak_entry_count": "recovered",
    "broadcast_offset_file.earlier_snapshots": "stuck",
    "broadcast_offset_file.previous_ds": "went_back",
    "broadcast_offset_file.previous_start_outcome": "removed",
    "broadcast_offset_file.previous_modified_at": "emptied",
    "broadcast_offset_file.state": "nested",
    "broadcast_offset_file.reason": "zeroed",
    "broadcast_offset_file.start_outcome": "cut_twice",
    "broadcast_offset_file.start_from": "removed",
    "broadcast_offset.start_from": "well",
    "broadcast_offset.offsets_captured_at": "went_back",
    "broadcast_offset.last_stored_at": "stuck",
    "broadcast_offset.consume_from_where": "not_written",
    "broadcast_offset.is_routed": "queue_gone",
    "broadcast_offset.stored_offset": "broker_untold",
    "broadcast_offset.highest_earlier_offset": "silent_writer",
    "broadcast_offset.previous_ds": "went_back",
    "broadcast_offset.previous_offset": "went_back",
    "broadcast_offset.restart_offset": "behind",
    "broadcast_offset.restart_reason": "timed",
    "broadcast_offset.skipped_message_count": "emptied",
    "broadcast_offset.repeated_message_count": "removed",
}
"""Judged column -> the group of the day in whose rows it is altered."""
ROUNDS = [
    {column: group for number, (column, group) in enumerate(GROUPS.items()) if number % 2 == parity}
    for parity in (0, 1)
]


class ComputedDay:
    """A staged day and the views that the statement reads."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        earlier_day().seal(folder / "exports")
        day().seal(folder / "exports")
        computed = Day("shop-test", DS, folder / "exports", Warehouse.at(str(folder / "warehouse")), None)
        compute(spark, computed)
        stage = newest(computed)
        self._spark = spark
        self.rows: dict[str, DataFrame] = {
            name: spark.read.schema(spark_schema(table)).parquet(literal_path(stage.table(table)))
            for name, table in TABLES.items()
        }
        show_offset_files(spark, stage, earlier_exports(folder / "exports", "shop-test", DS, most=3))

    def violating_groups(self, rows: Mapping[str, DataFrame]) -> dict[str, set[str]]:
        """Expectation -> groups that violate it, with other rows of some tables."""
        for name, table in TABLES.items():
            shown = rows.get(name, self.rows[name])
            shown.createOrReplaceTempView(f"{table.layer}_{name}")
        for name, query in broadcast_sources.SHARED_VIEWS.items():
            self._spark.sql(query).createOrReplaceTempView(name)
        return {
            row["expectation_id"]: {offender["consumer_group"] for offender in row["offenders"]}
            for row in self._spark.sql(STATEMENT).collect()
        }


@pytest.fixture(scope="module")
def computed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ComputedDay:
    return ComputedDay(spark, tmp_path_factory.mktemp("broadcast_sources"))


@pytest.fixture(scope="module")
def violating(computed: ComputedDay) -> dict[str, set[str]]:
    """Column -> expectations that its altered group violates."""
    found: dict[str, set[str]] = {}
    for columns in ROUNDS:
        rows = {name: computed.rows[name] for name in ("broadcast_offset_file", "broadcast_offset")}
        for name, group in columns.items():
            table, _, column_name = name.partition(".")
            [column] = [column for column in TABLES[table].columns if column.name == column_name]
            value = functions.when(functions.col("consumer_group") == group, another(column)).otherwise(
                functions.col(column_name)
            )
            rows[table] = rows[table].withColumn(column_name, value)
        groups = computed.violating_groups(rows)
        found |= {
            name: {expectation for expectation, of in groups.items() if group in of}
            for name, group in columns.items()
        }
    return found


def test_a_day_with_files_in_every_state_violates_nothing(computed: ComputedDay) -> None:
    assert {name: groups for name, groups in computed.violating_groups({}).items() if groups} == {}


def test_every_judged_column_is_altered() -> None:
    judged = {
        name for expectation in broadcast_sources.SUITE.expectations for name in expectation.judged_columns
    }

    assert judged == GROUPS.keys()


@pytest.mark.parametrize("name", GROUPS)
def test_an_altered_value_violates_what_judges_its_column(name: str, violating: dict[str, set[str]]) -> None:
    [judge] = [
        expectation.expectation_id
        for expectation in broadcast_sources.SUITE.expectations
        if name in expectation.judged_columns
    ]

    assert judge in violating[name]


def test_bytes_that_are_not_those_of_the_index_are_found(computed: ComputedDay) -> None:
    files = computed.rows["offset_file"].withColumn(
        "sha256",
        functions.when(functions.col("consumer_group") == "well", functions.lit("0" * 64)).otherwise(
            functions.col("sha256")
        ),
    )

    found = computed.violating_groups({"offset_file": files})

    assert found[broadcast_sources.CONTENT_EQUALS.expectation_id] == {"well"}


def test_hosts_are_known_by_the_files_of_groups_without_which_the_day_is_judged(
    computed: ComputedDay,
) -> None:
    without = {
        name: computed.rows[name].where("consumer_group IN ('timed', 'removed')")
        for name in ("offset_file", "broadcast_offset_file", "broadcast_offset")
    }

    assert not any(computed.violating_groups(without).values())


def test_a_file_whose_bytes_the_gate_was_not_given_is_found(
    computed: ComputedDay, spark: SparkSession
) -> None:
    given = spark.table("offset_file_content")
    given.where("consumer_group <> 'well'").createOrReplaceTempView("offset_file_content")

    found = computed.violating_groups({})

    given.createOrReplaceTempView("offset_file_content")
    assert found[broadcast_sources.CONTENT_EQUALS.expectation_id] == {"well"}


def test_what_the_second_reader_reads_is_what_the_clients_read(spark: SparkSession) -> None:
    """Compare with the golden vectors: a file in the plain form is to every client the table that the SQL reads."""
    cases = [*java_files(), *go_files()]
    names = ("host", "client_id", "consumer_group", "moment")
    index, contents, clients = [], [], []
    for number, (language, content, _) in enumerate(cases):
        of = dict(zip(names, ("h", f"c{number}", "g", 0), strict=True))
        name = "offset.json" if language == "GO" else "offsets.json"
        index.append({**of, "state": "landed", "path": f"h/{name}", "size_bytes": len(content)})
        contents.append(
            {**of, "is_previous": False, "side": "main", "content": base64.b64encode(content).decode()}
        )
        clients.append({**of, "client_language": language, "client_version": "5.3.3"})
    show_rows(spark, "silver_offset_file", index, ddl_of("offset_file"))
    show_rows(spark, "gold_broadcast_offset_file", clients, ddl_of("broadcast_offset_file"))
    ddl = "host string, client_id string, consumer_group string, is_previous boolean, moment int, side string, content binary"
    show_rows(spark, "offset_file_content", contents, ddl)
    show_rows(spark, "earlier_index_line", [], "ds date, value string")
    for table in ("consumer_connection", "consumer_client"):
        show_rows(spark, f"silver_{table}", [], ddl_of(table))
    tables = broadcast_sources.FILE_TABLES
    query = f"WITH {tables} SELECT client_id, entries FROM read_file"  # noqa: S608 - constants of this project
    rows = spark.sql(query).collect()
    plain = {int(row["client_id"][1:]): row["entries"] for row in rows if row["entries"] is not None}

    assert len(rows) == len(cases)
    for number, entries in plain.items():
        read = table_of([(e["topic"], e["brokerName"], e["queueId"], e["offset"]) for e in entries])
        assert [read] * len(cases[number][2]) == cases[number][2], cases[number][1]
    assert {cases[number][0] for number in plain} == {"GO", "JAVA"}
    assert len(plain) > 100


def ddl_of(table: str) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in TABLES[table].all_columns)


def golden_cases(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / name) as lines:
        return [json.loads(line) for line in lines]


def java_files() -> Iterator[tuple[str, bytes, list[Any]]]:
    """Language, content, and for each release the table that its class reads, or another answer."""
    for case in golden_cases("offsets_file.jsonl.gz"):
        main = case["main"]
        if case["op"] != "read" or main is None:
            continue
        content = base64.b64decode(main["base64"]) if isinstance(main, dict) else main.encode()
        answers = [answer["parse_main"] for answer in case["expect"]]
        if len(content) <= MOST_BYTES:
            yield "JAVA", content, [table_of(answer) for answer in answers]


def table_of(answer: Any) -> Any:
    return sorted(map(tuple, answer), key=str) if isinstance(answer, list) else answer


def go_files() -> Iterator[tuple[str, bytes, list[Any]]]:
    """Return the same of files that Go's client reads or writes."""
    for case in golden_cases("go_offsets_file.jsonl.gz"):
        entries = case.get("table", []) if "content" in case else [case["entry"]]
        table: Any = [
            (text_of(entry["topic"]), text_of(entry["broker_name"]), entry["queue_id"], entry["offset"])
            for entry in entries
        ]
        content = base64.b64decode(case.get("content") or case.get("written") or "")
        yield "GO", content, ["refused" if case.get("refused") else table_of(table)]


def text_of(name: str) -> str:
    return base64.b64decode(name).decode("utf-8", "replace")
