"""Every question of sql/questions can be asked as it stands, and answers what its first line asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warehouse.query import header_comment, query, views

QUESTIONS = sorted((Path(__file__).resolve().parents[2] / "sql" / "questions").glob("*.sql"))


def answer(warehouse: str, name: str) -> list[dict[str, Any]]:
    path = next(path for path in QUESTIONS if path.stem == name)
    with query(warehouse, path.read_text(encoding="utf-8")) as result:
        return [dict(zip(result.column_names, row, strict=True)) for row in result.rows]


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_a_question_finds_what_the_sample_has_for_it(path: Path, shop_warehouse: str) -> None:
    assert answer(shop_warehouse, path.stem)


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_a_question_begins_with_the_question_and_says_what_a_row_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text.startswith("-- ")
    assert text.splitlines()[0].endswith("?")
    assert "One row per" in header_comment(text)


def test_the_guide_lists_every_question() -> None:
    guide = (QUESTIONS[0].parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")

    assert [path.name for path in QUESTIONS if f"| `{path.name}` |" not in guide] == []


@pytest.mark.parametrize("name", views())
def test_a_view_begins_with_what_a_row_is(name: str) -> None:
    assert views()[name].startswith("-- One row per")


def test_who_owned_this_queue_since_when(shop_warehouse: str) -> None:
    newest, before = answer(shop_warehouse, "who_owned_this_queue")

    assert (str(newest["ds"]), newest["should_own"], newest["did_own"]) == (
        "2026-11-18",
        ["10.1.0.9@order-1"],
        ["10.1.0.9@order-1"],
    )
    assert (str(newest["since"]), str(before["since"])) == ("2026-11-18", "2026-11-17")


def test_a_queue_whose_members_are_unknown_is_not_called_unowned(shop_warehouse: str) -> None:
    rows = [
        row for row in answer(shop_warehouse, "queues_without_one_owner") if row["cluster"] == "shop-prod"
    ]

    assert [(row["queue_id"], row["ownership"], row["reason"]) for row in rows] == [
        (0, "multi_owned", None),
        (1, "unowned", "duplicate_client_id"),
    ]


def test_a_stranger_that_holds_a_queue_is_told_with_the_owner_who_should(shop_warehouse: str) -> None:
    rows = [
        row for row in answer(shop_warehouse, "owners_other_than_expected") if row["cluster"] == "shop-prod"
    ]

    assert [(row["queue_id"], row["client_id"], row["difference"]) for row in rows] == [
        (7, "10.1.0.9@order-1", "should own it, does not"),
        (7, "10.9.9.9@stranger", "owns it, should not"),
    ]


def test_what_changed_is_the_queues_with_other_owners_of_clusters_with_two_days(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "what_changed_since_yesterday")

    # Round robin over eight queues, by three clients and then without the second: 0, 5 and 6 stay where they were.
    assert {(row["cluster"], row["change"]) for row in rows} == {("shop-prod", "moved")}
    assert [row["queue_id"] for row in rows] == [1, 2, 3, 4, 7]


def test_the_shared_id_counts_its_processes(shop_warehouse: str) -> None:
    rows = [row for row in answer(shop_warehouse, "shared_client_ids") if row["cluster"] == "shop-prod"]

    assert [(row["client_id"], row["process_count"]) for row in rows] == [("10.1.0.101@member", 2)]


def test_a_queue_without_an_offset_has_no_lag_rather_than_none(shop_warehouse: str) -> None:
    rows = [row for row in answer(shop_warehouse, "groups_behind") if row["cluster"] == "shop-prod"]

    assert [(row["lag_count"], row["queues_without_offset_count"]) for row in rows] == [(20, 1)]


def test_the_gates_refusals_stand_beside_its_warnings(shop_warehouse: str) -> None:
    rows = answer(shop_warehouse, "what_the_gate_said")

    assert [(str(row["ds"]), row["outcome"]) for row in rows if row["cluster"] == "shop-prod"] == [
        ("2026-11-19", "refused"),
        ("2026-11-18", "published"),
        ("2026-11-17", "published"),
    ]
