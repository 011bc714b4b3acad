"""The independent computation of offset files detects each altered value of a computed day, and accepts the unchanged day.

`tests/support/broadcasting_cluster.py` defines the day, which has files and queues in every state. Its files are read by
the build's readers and by the gate's SQL. The SQL is also compared with the results of RocketMQ's own classes.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from test_altered_columns import as_it_is, with_another_value

from expectations.measurement import gate_database
from expectations.suites import broadcast_sources
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.pipeline.gate_input import sources_of
from rebalance_ledger.pipeline.gate_metrics import OFFSET_FILES_QUERY, gate_database_of, show_tables
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from rebalance_ledger.warehouse.staged_files import staged_rows
from rebalance_ledger.warehouse.staging import read_build
from tests.support.broadcasting_cluster import write_exports
from tests.support.computed_days import newest
from tests.support.staged_day import OFFSET_FILE_CONTENT, ddl_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from expectations.measurement import GateDatabase
    from rebalance_ledger.warehouse.layout import StagingArea
    from tests.support.small_days import SmallDays

pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_exports)]

MOST_BYTES = 4096
"""Size limit of golden files. Larger ones cover no additional case."""
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
"""Covered column -> the group in whose rows it is altered."""


class ComputedDay:
    """A staged day in the gate's database."""

    def __init__(self, database: GateDatabase, stage: StagingArea) -> None:
        self.database = database
        show_tables(database, stage)
        for table in TABLES.values():
            database.show(f"staged_{table.name}", staged_rows(stage, table))

    def violating_groups(self, queries: Mapping[str, str]) -> dict[str, set[str]]:
        """Return expectation -> groups that violate it if queries replace the rows of some tables."""
        for name, table in TABLES.items():
            self.database.show_query(f"{table.layer}_{name}", queries.get(name, as_it_is(table)))
        return {
            row["expectation_id"]: {subject["consumer_group"] for subject in row["affected_subjects"]}
            for row in self.database.metrics((STATEMENT,))
        }


@pytest.fixture(scope="module")
def computed(small_days: SmallDays) -> Iterator[ComputedDay]:
    [of_test] = small_days.of(write_exports)
    stage = newest(of_test)
    with gate_database_of(stage, sources_of(of_test, of_test.settings, stage, read_build(stage))) as database:
        yield ComputedDay(database, stage)


@pytest.fixture(scope="module")
def violating(computed: ComputedDay) -> dict[str, set[str]]:
    """Return the expectations that the altered group of each column violates."""
    found: dict[str, set[str]] = {}
    for name, group in GROUPS.items():
        table = TABLES[name.partition(".")[0]]
        [column] = [column for column in table.columns if column.name == name.partition(".")[2]]
        query = with_another_value(table, column, f"consumer_group = '{group}'")
        groups = computed.violating_groups({table.name: query})
        found[name] = {expectation for expectation, of in groups.items() if group in of}
    return found


def test_a_day_with_files_in_every_state_violates_nothing(computed: ComputedDay) -> None:
    assert {name: groups for name, groups in computed.violating_groups({}).items() if groups} == {}


def test_every_judged_column_is_altered() -> None:
    judged = {
        name for expectation in broadcast_sources.SUITE.expectations for name in expectation.judged_columns
    }

    assert judged == GROUPS.keys()


@pytest.mark.parametrize("name", GROUPS)
def test_an_altered_value_violates_the_expectations_of_its_column(
    name: str, violating: dict[str, set[str]]
) -> None:
    [judge] = [
        expectation.expectation_id
        for expectation in broadcast_sources.SUITE.expectations
        if name in expectation.judged_columns
    ]

    assert judge in violating[name]


def test_bytes_that_differ_from_the_index_are_detected(computed: ComputedDay) -> None:
    other_hash = "CASE WHEN consumer_group = 'well' THEN repeat('0', 64) ELSE sha256 END"

    query = f"SELECT * REPLACE ({other_hash} AS sha256) FROM staged_offset_file"  # noqa: S608 - constants

    found = computed.violating_groups({"offset_file": query})

    assert found[broadcast_sources.CONTENT_EQUALS.expectation_id] == {"well"}


def test_hosts_are_known_from_files_of_excluded_groups(
    computed: ComputedDay,
) -> None:
    without = {
        name: f"{as_it_is(TABLES[name])} WHERE consumer_group IN ('timed', 'removed')"
        for name in ("offset_file", "broadcast_offset_file", "broadcast_offset")
    }

    assert not any(computed.violating_groups(without).values())


def test_a_file_without_bytes_for_the_gate_is_detected(computed: ComputedDay) -> None:
    computed.database.show_query("all_content", OFFSET_FILES_QUERY)
    computed.database.show_query(
        "offset_file_content", "SELECT * FROM all_content WHERE consumer_group <> 'well'"
    )

    found = computed.violating_groups({})

    computed.database.show_query("offset_file_content", OFFSET_FILES_QUERY)
    assert found[broadcast_sources.CONTENT_EQUALS.expectation_id] == {"well"}


def test_the_second_reader_reads_what_clients_read() -> None:
    """Compare with the golden vectors: each client parses a file in the plain form to the table that the SQL reads."""
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
    tables = broadcast_sources.FILE_TABLES
    query = f"WITH {tables} SELECT client_id, entries FROM read_file"  # noqa: S608 - constants of this project
    with gate_database(SANDBOX_CONFIG) as database:
        for name, rows in {"offset_file": index, "broadcast_offset_file": clients}.items():
            database.show_records(f"{TABLES[name].layer}_{name}", ddl_of(TABLES[name]), rows)
        for name in ("consumer_connection", "proxy_connection", "consumer_client"):
            database.show_records(f"silver_{name}", ddl_of(TABLES[name]), [])
        database.show_records("encoded_content", OFFSET_FILE_CONTENT.replace("binary", "string"), contents)
        database.show_query(
            "offset_file_content",
            "SELECT * REPLACE (from_base64(content) AS content) FROM encoded_content",
        )
        database.show_records("earlier_index_line", "ds date, value string", [])
        rows = database.rows(query)
    plain = {int(row["client_id"][1:]): row["entries"] for row in rows if row["entries"] is not None}

    assert len(rows) == len(cases)
    for number, entries in plain.items():
        read = table_of([(e["topic"], e["brokerName"], e["queueId"], e["offset"]) for e in entries])
        assert [read] * len(cases[number][2]) == cases[number][2], cases[number][1]
    assert {cases[number][0] for number in plain} == {"GO", "JAVA"}
    assert len(plain) > 100


def golden_cases(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / name) as lines:
        return [json.loads(line) for line in lines]


def java_files() -> Iterator[tuple[str, bytes, list[Any]]]:
    """Yield the language, the content, and for each release the parsed table or another result of its class."""
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
    """Yield the same for files that the Go client reads or writes."""
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
