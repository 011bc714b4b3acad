"""Every query in sql/questions runs unchanged and answers the question in its first line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.query import header_comment, query, views
from tests.support.published_sample import Publisher

QUESTIONS = sorted((Path(__file__).resolve().parents[2] / "sql" / "questions").glob("*.sql"))


def answer(warehouse: str, name: str) -> list[dict[str, Any]]:
    path = next(path for path in QUESTIONS if path.stem == name)
    with query(warehouse, path.read_text(encoding="utf-8")) as result:
        return [dict(zip(result.column_names, row, strict=True)) for row in result.rows]


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_a_question_finds_what_the_sample_has_for_it(path: Path, shop_warehouse: str) -> None:
    assert answer(shop_warehouse, path.stem)


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_a_file_begins_with_the_question_and_the_meaning_of_a_row(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text.startswith("-- ")
    assert text.splitlines()[0].endswith("?")
    assert "One row per" in header_comment(text)


def test_the_guide_lists_every_question() -> None:
    guide = (QUESTIONS[0].parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")

    assert [path.name for path in QUESTIONS if f"| `{path.name}` |" not in guide] == []


@pytest.mark.parametrize("name", views())
def test_a_view_begins_with_the_meaning_of_a_row(name: str) -> None:
    assert views()[name].startswith("-- One row per")


def test_owners_of_a_queue_have_their_first_day(shop_warehouse: str) -> None:
    newest, before = (
        row
        for row in answer(shop_warehouse, "queue_history")
        if (row["cluster"], row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"])
        == ("shop-prod", "order-service", "order-events", "hz@broker-a", 3)
    )

    assert (str(newest["ds"]), newest["should_own"], newest["did_own"]) == (
        "2026-11-18",
        ["10.1.0.9@order-1"],
        ["10.1.0.9@order-1"],
    )
    assert (str(newest["since"]), str(before["since"])) == ("2026-11-18", "2026-11-17")


def test_a_queue_whose_members_are_unknown_is_not_called_unowned(shop_warehouse: str) -> None:
    rows = [
        row for row in answer(shop_warehouse, "queues_without_single_owner") if row["cluster"] == "shop-prod"
    ]

    assert [
        (row["queue_id"], row["ownership"], row["observed_owners"], row["likely_cause"]) for row in rows
    ] == [
        (0, "multiple_owners", ["10.1.0.101@member"], "duplicate_client_id"),
        (1, "unowned", [], "duplicate_client_id"),
    ]


def test_an_unexpected_owner_is_shown_with_the_expected_one(shop_warehouse: str) -> None:
    rows = [row for row in answer(shop_warehouse, "unexpected_owners") if row["cluster"] == "shop-prod"]

    assert [(row["queue_id"], row["expected_owners"], row["unexpected_owners"]) for row in rows] == [
        (7, ["10.1.0.9@order-1"], ["10.9.9.9@stranger"])
    ]


def test_mismatches_have_their_cause_and_are_sorted_by_severity(shop_warehouse: str) -> None:
    rows = [row for row in answer(shop_warehouse, "ownership_mismatches") if row["cluster"] == "shop-prod"]

    assert [
        (row["consumer_group"], row["state"], row["likely_cause"], row["example_queues"]) for row in rows
    ] == [
        ("member-sync", "multiple_owners", "duplicate_client_id", ["hz@broker-b/0"]),
        ("member-sync", "unowned", "duplicate_client_id", ["hz@broker-b/1"]),
        ("order-service", "unexpected_owner", "member_lists_differ", ["hz@broker-a/7"]),
    ]
    assert [row["evidence_most_processes"] for row in rows] == [2, 0, 1]


def test_queues_with_unknown_owner_are_no_mismatches_and_have_a_reason(
    shop_warehouse: str,
) -> None:
    rows = [
        row for row in answer(shop_warehouse, "queues_with_unknown_owner") if row["cluster"] == "shop-prod"
    ]

    assert [(row["consumer_group"], row["unknown_reason"], row["queue_count"]) for row in rows] == [
        ("member-sync", "members_unknown", 1)
    ]


def test_name_servers_are_compared_with_each_other_and_with_the_broker(shop_warehouse: str) -> None:
    [row] = [row for row in answer(shop_warehouse, "route_differences") if row["cluster"] == "shop-prod"]

    assert (row["topic"], row["differences"]) == ("order-events", ["config_perm", "perm"])
    assert [(output["nameserver"], output["perm"]) for output in row["answers"]] == [
        ("ns-1:9876", 6),
        ("ns-2:9876", 4),
    ]
    assert row["broker_configuration"]["perm"] == 6


def test_changed_queues_are_those_with_new_owners_in_clusters_with_two_days(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "owner_changes")

    # Eight queues, assigned round robin to three clients and then without the second: 0, 5 and 6 keep their owners, and so
    # does 7, which an unexpected client holds on both days.
    assert {(row["cluster"], row["change"]) for row in rows} == {("shop-prod", "moved")}
    assert [row["queue_id"] for row in rows] == [1, 2, 3, 4]
    assert (rows[0]["observed_owners_before"], rows[0]["observed_owners_now"]) == (
        ["10.1.0.11@order-3"],
        ["10.1.0.9@order-1"],
    )


def test_the_shared_id_counts_its_processes(shop_warehouse: str) -> None:
    rows = [row for row in answer(shop_warehouse, "duplicate_client_ids") if row["cluster"] == "shop-prod"]

    assert [(row["client_id"], row["process_count"]) for row in rows] == [("10.1.0.101@member", 2)]


def test_messages_in_queues_without_a_committed_offset_count_as_backlog(shop_warehouse: str) -> None:
    """Queue 0 has 20 messages after its committed offset.

    Queues 1 and 2 have 45 messages each and no offset. The broker reports no other queues.
    """
    rows = [row for row in answer(shop_warehouse, "consumer_lag") if row["cluster"] == "shop-prod"]

    assert [
        (row["waiting_count"], row["lag_count"], row["never_read_queue_count"], row["unknown_queue_count"])
        for row in rows
    ] == [(110, 20, 7, 5)]


def test_a_topic_that_depends_on_one_broker_names_the_others_and_why_they_cannot_take_over(
    shop_warehouse: str,
) -> None:
    rows = answer(shop_warehouse, "single_broker_topics")

    assert [
        (row["topic"], row["stops_with_broker"], row["brokers_that_take_nothing"])
        for row in rows
        if row["cluster"] == "shop-prod"
    ] == [("order-events", "hz@broker-a", ["hz@broker-b: no_master"])]


def test_a_topic_written_to_one_of_its_two_brokers_is_twice_as_much_as_even(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "producer_balance")

    assert [
        (row["written_broker_count"], row["max_over_even_share"], row["unread_share"], row["failing_share"])
        for row in rows
        if row["cluster"] == "shop-prod"
    ] == [(1, 2.0, 0.0, 0.0)]


def test_refusals_and_warnings_of_the_gate_are_listed_together(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "gate_results")

    assert [(str(row["ds"]), row["outcome"]) for row in rows if row["cluster"] == "shop-prod"] == [
        ("2026-11-19", "refused"),
        ("2026-11-18", "published"),
        ("2026-11-17", "published"),
    ]


def test_offset_files_that_stop_a_client_come_first(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "offset_file_problems")

    assert [row["state"] for row in rows if row["cluster"] == "shop-prod"] == [
        "corrupt_both",
        "recovered_from_bak",
    ]


def test_messages_repeated_by_a_restart_are_summed_over_queues(shop_warehouse: str) -> None:
    (row, *_) = answer(shop_warehouse, "broadcast_restart_effects")

    assert (row["skipped_messages"], row["repeated_messages"], row["undetermined_queue_count"]) == (0, 8, 0)


class TestAsk:
    def test_without_a_name_every_question_is_listed_with_its_sentence(self) -> None:
        listed = CliRunner().invoke(app, ["ask"]).stdout.splitlines()

        assert [line.split()[0] for line in listed] == [path.stem for path in QUESTIONS]
        assert all(line.endswith("?") for line in listed)

    def test_options_restrict_the_answer_and_keep_its_order(self, shop_warehouse: str) -> None:
        words = [
            "--group",
            "order-service",
            "--topic",
            "order-events",
            "--broker",
            "hz@broker-a",
            "--queue",
            "3",
        ]
        rows = asked(shop_warehouse, "queue_history", "--cluster", "shop-prod", *words)

        assert [row["ds"] for row in rows] == ["2026-11-18", "2026-11-17"]

    def test_a_day_replaces_the_newest_one(self, shop_warehouse: str) -> None:
        days = {row["ds"] for row in asked(shop_warehouse, "open_findings", "--ds", "2026-11-17")}

        assert days == {"2026-11-17"}

    def test_a_misspelt_question_names_its_neighbours(self) -> None:
        ended = CliRunner().invoke(app, ["ask", "consumer_leg"])

        assert "did you mean consumer_lag" in str(ended.exception)

    def test_an_option_without_a_column_lists_the_columns(self, shop_warehouse: str) -> None:
        ended = CliRunner().invoke(
            app, ["ask", "consumer_lag", "--client", "c", "--warehouse", shop_warehouse]
        )

        assert "The answer has no column client_id" in str(ended.exception)
        assert "consumer_group" in str(ended.exception)

    def test_a_value_is_no_sql(self, shop_warehouse: str) -> None:
        assert asked(shop_warehouse, "consumer_lag", "--group", "x' OR '1'='1") == []

    @pytest.mark.parametrize(
        ("words", "hint"),
        [
            (
                ["--cluster", "shop-prd"],
                "no day of cluster 'shop-prd' is published. Did you mean 'shop-prod'?",
            ),
            (["--ds", "2020-01-01"], "2020-01-01 is not published. There are"),
            (["--group", "nobody"], "No rows in 3 published days of pay-prod, shop-prod"),
        ],
        ids=["cluster", "day", "group"],
    )
    def test_an_empty_answer_shows_what_is_published(
        self, shop_warehouse: str, words: list[str], hint: str
    ) -> None:
        ended = CliRunner().invoke(app, ["ask", "consumer_lag", *words, "--warehouse", shop_warehouse])

        assert ended.exit_code == 0
        assert hint in ended.stderr

    def test_an_empty_answer_names_the_quarantine_of_the_group(self, tmp_path: Path) -> None:
        quarantined = {"consumer_group": "g", "expectation_id": "e", "observed": 1.0}
        publisher = Publisher(tmp_path / "warehouse")
        publisher.publish("c", "2026-11-17", quarantined_group=[])
        publisher.publish("c", "2026-11-18", quarantined_group=[quarantined])

        def hint(*words: str) -> str:
            command = ["ask", "open_findings", *words, "--warehouse", publisher.root]
            return CliRunner().invoke(app, command, catch_exceptions=False).stderr

        assert hint("--group", "g") == (
            "No rows: 2026-11-18 of c is published without group 'g', which is quarantined; `ledger explain` says why.\n"
        )
        assert hint("--group", "g", "--ds", "2026-11-17").startswith("No rows in 2 published days of c, ")
        assert hint("--group", "h").startswith("No rows in 2 published days of c, ")


def asked(warehouse: str, question: str, *words: str) -> list[dict[str, Any]]:
    """Return the rows of a question from the command line's JSON output."""
    ended = CliRunner().invoke(app, ["ask", question, *words, "--warehouse", warehouse, "--format", "json"])
    assert ended.exit_code == 0, ended.stderr
    rows: list[dict[str, Any]] = json.loads(ended.stdout)
    return rows


def test_two_chosen_days_can_be_compared(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    queue = {
        "consumer_group": "g",
        "topic": "t",
        "broker_name": "b",
        "queue_id": 0,
        "state": "match",
        "group_state": "online",
    }
    for day, owner in ((1, "a"), (2, "b"), (3, "b")):
        row = queue | {
            "observed_client_ids": [owner],
            "expected_client_ids": [owner],
            "observed_process_count": 1,
        }
        publisher.publish("c", f"2026-11-{day:02}", ownership_drift=[row])

    def changes(*arguments: str) -> list[tuple[str, str]]:
        command = ["ask", "owner_changes", "--warehouse", publisher.root, "--format", "json", *arguments]
        rows: list[dict[str, Any]] = json.loads(
            CliRunner().invoke(app, command, catch_exceptions=False).stdout
        )
        return [(row["ds_before"], row["ds_now"]) for row in rows]

    assert changes() == []
    assert changes("--compare-ds", "2026-11-01") == [("2026-11-01", "2026-11-03")]
    assert changes("--ds", "2026-11-02") == [("2026-11-01", "2026-11-02")]
    assert changes("--ds", "2026-11-02", "--compare-ds", "2026-11-03") == []
    assert changes("--ds", "2026-11-01", "--compare-ds", "2026-11-03") == [("2026-11-03", "2026-11-01")]


def test_a_day_is_not_compared_with_itself(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-18", ownership_drift=[])

    def refusal(*words: str) -> str:
        command = [
            "ask",
            "owner_changes",
            "--compare-ds",
            "2026-11-18",
            *words,
            "--warehouse",
            publisher.root,
        ]
        return str(CliRunner().invoke(app, command).exception)

    assert "--compare-ds 2026-11-18 is the newest published day of c, which would be" in refusal()
    assert "--compare-ds 2026-11-18 is the day of --ds, which would be" in refusal("--ds", "2026-11-18")


def test_one_published_day_is_named_in_the_singular(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-18", finding=[])

    ended = CliRunner().invoke(app, ["ask", "open_findings", "--warehouse", publisher.root])

    assert ended.stderr == "No rows in 1 published day of c, 2026-11-18.\n"


def test_an_unpublished_baseline_day_is_named(shop_warehouse: str) -> None:
    command = [
        "ask",
        "owner_changes",
        "--cluster",
        "shop-prod",
        "--compare-ds",
        "2026-11-01",
        "--warehouse",
        shop_warehouse,
    ]

    result = CliRunner().invoke(app, command, catch_exceptions=False)

    assert "2026-11-01 is not published" in result.stderr


def test_a_question_about_one_day_refuses_a_baseline_day(shop_warehouse: str) -> None:
    with pytest.raises(
        QueryError, match="The question open_findings does not compare two days; owner_changes does"
    ):
        CliRunner().invoke(
            app,
            ["ask", "open_findings", "--compare-ds", "2026-11-01", "--warehouse", shop_warehouse],
            catch_exceptions=False,
        )
