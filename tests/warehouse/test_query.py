"""Queries of the published tables, and their results."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import ALL_TABLES, FINDING, SILVER_TABLES
from rebalance_ledger.warehouse import query as query_module
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.data_files import connect_reader, data_files, rows_of
from rebalance_ledger.warehouse.query import QueryError, open_groups, open_tables, query, views
from rebalance_ledger.warehouse.snapshot import Snapshot
from tests.support.published_sample import Publisher


def ask(root: str, text: str) -> list[tuple[Any, ...]]:
    with query(root, text) as result:
        return list(result.rows)


def columns(root: str, text: str) -> tuple[str, ...]:
    with query(root, text) as result:
        return result.column_names


def finding(client_id: str) -> dict[str, str]:
    return {"severity": "info", "kind": "test", "client_id": client_id}


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "warehouse")


class TestNames:
    def test_a_table_answers_to_its_short_and_its_qualified_name(self, shop_warehouse: str) -> None:
        assert ask(shop_warehouse, "SELECT count(*) FROM finding") == [(3,)]
        assert ask(shop_warehouse, "SELECT count(*) FROM gold.finding") == [(3,)]
        assert ask(shop_warehouse, "SELECT count(*) FROM silver.topic_route") == [(12,)]

    def test_names_are_not_case_sensitive(self, shop_warehouse: str) -> None:
        assert ask(shop_warehouse, "select count(*) > 0 from GOLD.Finding") == [(True,)]

    def test_show_tables_lists_every_table_and_view(self, shop_warehouse: str) -> None:
        listed = {name for (name,) in ask(shop_warehouse, "SHOW TABLES")}

        assert listed == {table.name for table in ALL_TABLES} | set(views())

    @pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.qualified_name)
    def test_a_table_has_the_columns_of_its_definition(self, table: Any, shop_warehouse: str) -> None:
        expected = tuple(column.name for column in table.all_columns)

        assert columns(shop_warehouse, f"FROM {table.qualified_name}") == expected
        assert columns(shop_warehouse, f"FROM latest.{table.name}") == expected

    def test_no_view_or_schema_hides_a_table(self) -> None:
        names = [table.name for table in ALL_TABLES] + list(views()) + ["latest", "previous", "quarantine"]

        assert len(names) == len(set(names))

    @pytest.mark.parametrize("name", ["queue_asignment", "latest.queue_asignment"])
    def test_a_similar_table_is_suggested_for_an_unknown_one(self, shop_warehouse: str, name: str) -> None:
        with pytest.raises(QueryError, match=r"There is no table .*: did you mean queue_assignment\?"):
            ask(shop_warehouse, f"FROM {name}")

    def test_an_unknown_table_is_answered_with_the_list_of_tables(self, shop_warehouse: str) -> None:
        with pytest.raises(QueryError, match=r"There is no table orders; there are") as raised:
            ask(shop_warehouse, "SELECT * FROM orders")

        assert "queue_assignment" in str(raised.value)
        assert all(table.name in str(raised.value) for table in SILVER_TABLES)

    def test_an_unknown_column_is_one_line_that_suggests_another(self, shop_warehouse: str) -> None:
        with pytest.raises(QueryError, match=r'"client".*"client_id"') as raised:
            ask(shop_warehouse, "SELECT client FROM finding")

        assert "\n" not in str(raised.value)


class TestConsistentSnapshot:
    def test_a_day_without_its_publication_is_invisible(self, publisher: Publisher) -> None:
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("a")])
        publisher.write("shop-prod", "2026-11-18", "finding", [finding("half")])

        assert ask(publisher.root, "SELECT client_id FROM finding") == [("a",)]
        assert ask(publisher.root, "SELECT client_id FROM latest.finding") == [("a",)]

    def test_it_stays_invisible_when_another_cluster_publishes_after_it(self, publisher: Publisher) -> None:
        publisher.write("shop-prod", "2026-11-18", "finding", [finding("half")])
        publisher.publish("pay-prod", "2026-11-18", finding=[finding("b")])

        assert ask(publisher.root, "SELECT client_id FROM finding") == [("b",)]

    def test_a_day_that_is_being_replaced_shows_its_old_rows(self, publisher: Publisher) -> None:
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("old")])
        publisher.write("shop-prod", "2026-11-17", "finding", [finding("new")])
        before = ask(publisher.root, "SELECT client_id FROM finding")
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("new")])

        assert (before, ask(publisher.root, "SELECT client_id FROM finding")) == ([("old",)], [("new",)])

    def test_a_late_publication_that_names_an_old_version_hides_nothing(self, publisher: Publisher) -> None:
        early = publisher.write("shop-prod", "2026-11-17", "finding", [finding("a")])
        publisher.publish("pay-prod", "2026-11-17", finding=[finding("b")])
        named = {"table_name": "gold.finding", "delta_version": early, "row_count": 1, "content_hash": ""}
        publisher.write("shop-prod", "2026-11-17", "publication", [{"tables": [named]}])

        assert ask(publisher.root, "SELECT client_id FROM finding ORDER BY ALL") == [("a",), ("b",)]

    def test_the_version_is_found_after_any_number_of_later_publications(self, publisher: Publisher) -> None:
        publisher.publish("shop-prod", "2026-01-01", broker=[{"broker_name": "a"}], finding=[])
        publisher.write("shop-prod", "2026-01-02", "broker", [{"broker_name": "half"}])
        for day in range(1, 36):
            publisher.publish(f"cluster-{day}", "2026-02-01", finding=[finding("x")])

        assert ask(publisher.root, "SELECT broker_name FROM broker") == [("a",)]

    def test_a_table_that_was_never_published_is_empty(self, publisher: Publisher) -> None:
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("a")])
        publisher.write("shop-prod", "2026-11-18", "broker", [{"broker_name": "half"}])

        assert ask(publisher.root, "SELECT * FROM broker") == []
        assert ask(publisher.root, "SELECT count(*) FROM queue_assignment") == [(0,)]

    def test_verdicts_on_refused_days_can_be_read_before_anything_is_published(
        self, publisher: Publisher
    ) -> None:
        publisher.quarantine("shop-prod", "2026-11-17", [{"expectation_id": "e"}])

        assert ask(publisher.root, "SELECT expectation_id FROM quarantine.gate_result") == [("e",)]
        assert ask(publisher.root, "SELECT * FROM gate_result") == []

    def test_without_a_warehouse_the_error_says_what_to_do_and_none_is_created(self, tmp_path: Path) -> None:
        with pytest.raises(QueryError, match=r"no warehouse at .*/none: .*`make run`.*`ledger run") as raised:
            ask(f"{tmp_path}/none", "SELECT 1")

        assert "\n" not in str(raised.value)
        assert list(tmp_path.iterdir()) == []

    def test_a_table_that_needs_a_newer_reader_is_refused(self, publisher: Publisher) -> None:
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("a")])
        commit = Path(publisher.root, "gold/finding/_delta_log/00000000000000000000.json")
        commit.write_text(
            commit.read_text().replace(
                '"minReaderVersion":1,"minWriterVersion":2', '"minReaderVersion":2,"minWriterVersion":5'
            )
        )

        with pytest.raises(QueryError, match=r"gold/finding asks for a reader of Delta protocol 2"):
            ask(publisher.root, "FROM finding")


class TestDays:
    def test_latest_and_previous_are_separate_for_each_cluster(self, shop_warehouse: str) -> None:
        days = "SELECT DISTINCT cluster, ds FROM {}.queue_assignment ORDER BY ALL"

        assert ask(shop_warehouse, days.format("latest")) == [
            ("pay-prod", date(2026, 11, 17)),
            ("shop-prod", date(2026, 11, 18)),
        ]
        assert ask(shop_warehouse, days.format("previous")) == [("shop-prod", date(2026, 11, 17))]

    def test_a_view_in_latest_reads_the_tables_in_latest(self, shop_warehouse: str) -> None:
        days = "SELECT DISTINCT ds FROM {}.queue_ownership WHERE cluster = 'shop-prod' ORDER BY ds"

        assert ask(shop_warehouse, days.format("gold")) == [(date(2026, 11, 17),), (date(2026, 11, 18),)]
        assert ask(shop_warehouse, days.format("latest")) == [(date(2026, 11, 18),)]
        assert ask(shop_warehouse, days.format("previous")) == [(date(2026, 11, 17),)]

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT client_id FROM finding WHERE cluster = 'shop-prod' AND ds = DATE '2026-11-17'",
            "SELECT client_id FROM finding WHERE ds >= '2026-11-17' AND cluster <> 'pay-prod'",
            "FROM (SELECT * FROM finding WHERE cluster IN ('shop-prod', 'none') AND ds BETWEEN '2026-11-17' AND '2026-12-31') SELECT client_id",
        ],
    )
    def test_a_condition_on_cluster_and_day_opens_the_files_of_that_day_only(
        self, text: str, publisher: Publisher
    ) -> None:
        publisher.publish("shop-prod", "2026-11-16", finding=[finding("before")])
        publisher.publish("pay-prod", "2026-11-17", finding=[finding("other")])
        publisher.publish("shop-prod", "2026-11-17", finding=[finding("asked")])
        asked_day = ClusterDay("shop-prod", date(2026, 11, 17))
        table = f"{publisher.root}/gold/finding"
        for file in data_files(DeltaTable(table)):
            if file.day != asked_day:
                Path(table, file.path).write_bytes(b"unreadable")

        assert ask(publisher.root, text) == [("asked",)]
        assert ask(publisher.root, "SELECT client_id FROM latest.finding WHERE cluster = 'shop-prod'") == [
            ("asked",)
        ]
        with pytest.raises(QueryError, match=r"cannot be answered .*parquet") as raised:
            ask(publisher.root, "SELECT client_id FROM finding")
        assert "\n" not in str(raised.value)

    def test_a_cluster_name_may_contain_characters_that_a_path_may_not(self, publisher: Publisher) -> None:
        publisher.publish("pay/eu =1%", "2026-11-17", finding=[finding("a")])

        assert ask(publisher.root, "SELECT cluster, client_id FROM finding WHERE cluster = 'pay/eu =1%'") == [
            ("pay/eu =1%", "a")
        ]

    def test_times_are_in_utc(self, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TZ", "Asia/Shanghai")
        moment = datetime(2026, 11, 17, 23, 30, tzinfo=UTC)
        publisher.publish("shop-prod", "2026-11-17", consume_progress=[{"last_consumed_at": moment}])

        assert ask(
            publisher.root,
            "SELECT last_consumed_at, date_trunc('day', last_consumed_at)::VARCHAR FROM consume_progress",
        ) == [(moment, "2026-11-17 00:00:00+00")]


class TestReadOnly:
    @pytest.mark.parametrize(
        "text",
        [
            "SELECT 1",
            "FROM finding",
            "WITH f AS (FROM finding) SELECT count(*) FROM f;",
            "VALUES (1), (2)",
            "DESCRIBE finding",
            "SUMMARIZE finding",
            "SHOW ALL TABLES",
            "EXPLAIN SELECT * FROM finding",
            "EXPLAIN ANALYZE SELECT * FROM finding",
            "-- a comment first\nSELECT 1",
        ],
    )
    def test_read_only_statements_are_answered(self, text: str, shop_warehouse: str) -> None:
        assert ask(shop_warehouse, text)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("INSERT INTO finding (kind) VALUES ('x')", "INSERT"),
            ("DELETE FROM finding", "DELETE"),
            ("UPDATE finding SET kind = 'x'", "UPDATE"),
            ("DROP VIEW gold.finding", "DROP"),
            ("CREATE TABLE t AS SELECT 1", "CREATE"),
            ("COPY (SELECT 1) TO 'out.csv'", "COPY"),
            ("EXPORT DATABASE 'out'", "EXPORT"),
            ("ATTACH 'out.db'", "ATTACH"),
            ("INSTALL httpfs", "LOAD"),
            ("LOAD httpfs", "LOAD"),
            ("SET enable_external_access = true", "SET"),
            ("RESET lock_configuration", "SET"),
            ("PRAGMA database_list", "PRAGMA"),
            ("CALL pragma_version()", "CALL"),
            ("USE gold", "SET"),
            ("BEGIN", "TRANSACTION"),
        ],
    )
    def test_other_statements_are_refused_with_their_kind(
        self, text: str, kind: str, shop_warehouse: str
    ) -> None:
        with pytest.raises(
            QueryError, match=rf"read-only, and this is a statement of type {kind}: use SELECT"
        ):
            ask(shop_warehouse, text)

    @pytest.mark.parametrize("text", ["", "  ;", "-- only a comment"])
    def test_an_empty_query_is_refused(self, text: str, shop_warehouse: str) -> None:
        with pytest.raises(QueryError, match="query is empty"):
            ask(shop_warehouse, text)

    def test_a_second_statement_is_refused(self, shop_warehouse: str) -> None:
        with pytest.raises(QueryError, match="holds 2 statements"):
            ask(shop_warehouse, "SELECT 1; DROP VIEW gold.finding")

    @pytest.mark.parametrize(
        "text",
        [
            "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
            "WITH w AS (COPY (SELECT 1) TO '{file}') SELECT 1",
            "WITH w AS (INSERT INTO finding (kind) VALUES ('x') RETURNING *) FROM w",
            "EXPLAIN ANALYZE INSERT INTO finding (kind) VALUES ('x')",
            "EXPLAIN ANALYZE ATTACH '{file}'",
            "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        ],
    )
    def test_nothing_is_written_by_a_statement_inside_another(
        self, text: str, shop_warehouse: str, tmp_path: Path
    ) -> None:
        before = sorted(Path(shop_warehouse).rglob("*"))

        with suppress(QueryError):
            ask(shop_warehouse, text.format(file=tmp_path / "out"))

        assert list(tmp_path.iterdir()) == []
        assert sorted(Path(shop_warehouse).rglob("*")) == before

    def test_a_python_variable_is_not_a_table(self, shop_warehouse: str) -> None:
        frame = pa.table({"secret": ["word"]})

        with pytest.raises(QueryError, match="There is no table frame"):
            ask(shop_warehouse, "SELECT * FROM frame")
        assert frame.num_rows == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("SELEC 1", "syntax error"),
            ("SELECT 'open", "unterminated"),
            ("SELECT 'x'::INT", "Could not convert"),
            ("SELECT nothing(1)", "nothing"),
            ("SELECT $1", "parameter"),
        ],
    )
    def test_an_invalid_query_is_reported_in_one_line(
        self, text: str, sentence: str, shop_warehouse: str
    ) -> None:
        with pytest.raises(QueryError, match=sentence) as raised:
            ask(shop_warehouse, text)

        assert "\n" not in str(raised.value)

    def test_an_error_after_the_first_rows_is_reported_too(self, shop_warehouse: str) -> None:
        # The rows are so wide that the engine's read-ahead ends long before the error.
        text = (
            "SELECT CASE WHEN range = 200000 THEN error('late') ELSE repeat('x', 1000) END FROM range(200001)"
        )

        with query(shop_warehouse, text) as result:
            assert next(result.rows) == ("x" * 1000,)
            with pytest.raises(QueryError, match="late"):
                for _ in result.rows:
                    pass

    def test_a_query_too_large_for_memory_says_how_to_narrow_it(
        self, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(query_module.SANDBOX_CONFIG, "memory_limit", "20MB")

        with pytest.raises(QueryError, match=r"20MB of memory: narrow it"):
            ask(shop_warehouse, "FROM range(100000000) ORDER BY hash(range)")


def test_tables_of_some_groups_show_their_rows_and_every_finding(publisher: Publisher) -> None:
    queue = {"topic": "t", "broker_name": "b", "state": "match", "observed_client_ids": ["c"]}
    publisher.publish(
        "shop",
        "2026-11-16",
        ownership_drift=[
            queue | {"consumer_group": group, "queue_id": number} for number, group in enumerate("abc")
        ],
        finding=[finding("x") | {"consumer_group": group} for group in ("a", "b", None)],
    )
    of_view = "SELECT consumer_group FROM queue_ownership ORDER BY ALL"
    of_findings = "SELECT count(*) FROM latest.finding"

    with open_tables(publisher.root, [of_view, of_findings], consumer_groups=["a", "c"]) as tables:
        assert [row["consumer_group"] for row in tables.rows(of_view)] == ["a", "c"]
        assert list(tables.query(of_findings).rows) == [(3,)]


def test_groups_of_a_day_show_their_rows_those_of_their_topics_and_every_finding(
    publisher: Publisher,
) -> None:
    for ds, topics in (("2026-11-15", "tuv"), ("2026-11-16", "tuv")):
        publisher.publish(
            "shop",
            ds,
            ownership_drift=[
                {"topic": topic, "broker_name": "b", "state": "match", "observed_client_ids": ["c"]}
                | {"consumer_group": group, "queue_id": number}
                for number, (group, topic) in enumerate(zip("abc", topics, strict=True))
            ],
            queue_offset=[
                {
                    "topic": topic,
                    "broker_name": "b",
                    "queue_id": 0,
                    "captured_at": datetime(2026, 11, 16, tzinfo=UTC),
                }
                for topic in topics
            ],
            finding=[finding("x") | {"consumer_group": group} for group in ("a", "b", None)],
        )
    of_view = "SELECT ds, consumer_group FROM queue_ownership ORDER BY ALL"
    of_topics = "SELECT ds, topic FROM queue_offset ORDER BY ALL"
    of_findings = "SELECT count(*) AS number FROM finding"
    day = ClusterDay("shop", date(2026, 11, 16))

    with open_groups(publisher.root, [of_view, of_topics, of_findings], ["a", "c"], day) as tables:
        assert tables.rows(of_view) == [{"ds": day.ds, "consumer_group": group} for group in "ac"]
        assert tables.rows(of_topics) == [{"ds": day.ds, "topic": topic} for topic in "tv"]
        assert tables.rows(of_findings) == [{"number": 6}]


def test_groups_of_a_truncated_file_are_refused_and_the_file_is_named(publisher: Publisher) -> None:
    publisher.publish(
        "shop",
        "2026-11-16",
        ownership_drift=[
            {"consumer_group": "a", "topic": "t", "broker_name": "b", "queue_id": 0, "state": "match"}
        ],
    )
    (file,) = Path(publisher.root, "gold", "ownership_drift").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    text = "SELECT topic FROM ownership_drift"

    with (
        pytest.raises(QueryError, match=re.escape(file.name)),
        open_groups(publisher.root, [text], ["a"], ClusterDay("shop", date(2026, 11, 16))),
    ):
        pass


def test_columns_that_a_file_does_not_have_are_null(publisher: Publisher) -> None:
    publisher.publish("shop", "2026-11-16", finding=[finding("x"), finding("y")])
    uri = f"{publisher.root}/gold/finding"
    day = ClusterDay("shop", date(2026, 11, 16))
    schema = pa.schema([("ds", pa.date32()), ("client_id", pa.string()), ("added_later", pa.int64())])

    with closing(connect_reader()) as reader:
        rows = rows_of(uri, schema, data_files(DeltaTable(uri)), day, {"client_id": ["y", "z"]}, reader)

    assert rows.schema == schema
    assert rows.to_pylist() == [{"ds": date(2026, 11, 16), "client_id": "y", "added_later": None}]


def test_a_query_of_one_cluster_shows_only_its_days_and_the_snapshot_names_no_other_file(
    publisher: Publisher,
) -> None:
    publisher.publish("shop", "2026-11-16", finding=[finding("x")])
    publisher.publish("shop", "2026-11-17", finding=[finding("x"), finding("y")])
    publisher.publish("pay", "2026-11-18", finding=[finding("z")])
    rows = "SELECT cluster, ds::VARCHAR, client_id FROM {} ORDER BY ALL"

    with query(publisher.root, rows.format("finding"), cluster="shop") as result:
        assert [row[1:] for row in result.rows] == [
            ("2026-11-16", "x"),
            ("2026-11-17", "x"),
            ("2026-11-17", "y"),
        ]
    with query(publisher.root, rows.format("latest.finding"), cluster="pay") as result:
        assert list(result.rows) == [("pay", "2026-11-18", "z")]
    snapshot = Snapshot(publisher.root, "pay")
    assert snapshot.days == {ClusterDay("pay", date(2026, 11, 18))}
    assert len(snapshot.published(FINDING).dataset().files) == 1
    assert Snapshot(publisher.root, "other").days == frozenset()
