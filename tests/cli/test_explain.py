"""`ledger explain` shows one group on one screen."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli import app as command_line
from rebalance_ledger.cli.app import app
from tests.support.published_sample import Publisher, publish_sharing_day

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 80


@pytest.fixture(autouse=True)
def _narrow_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_ledger.cli.explain._WIDTH_OF_A_PIPE", WIDTH)


def explain(warehouse: str, *arguments: str) -> str:
    result = CliRunner().invoke(
        app, ["explain", *arguments, "--warehouse", warehouse], catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.stdout


def refusal(
    warehouse: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr("sys.argv", ["ledger", "explain", *arguments, "--warehouse", warehouse])
    with pytest.raises(SystemExit) as ending:
        command_line.main()
    assert ending.value.code == 2
    return capsys.readouterr().err


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_group_is_explained_by_its_findings_owners_and_members(shop_warehouse: str) -> None:
    screen = in_one_line(explain(shop_warehouse, "member-sync", "--cluster", "shop-prod"))

    assert screen.startswith("member-sync in shop-prod on 2026-11-18 (UTC), gate: passed")
    assert "3 queues: 1 multiple_owners, 1 unowned, 1 unknown" in screen
    assert (
        "multiple_owners (duplicate_client_id): payment-notify hz@broker-b:0 owned by 10.1.0.101@member"
        in screen
    )
    assert "unowned (duplicate_client_id): payment-notify hz@broker-b:1 owned by no client" in screen
    assert (
        "unknown (members_unknown): payment-notify hz@broker-b:2 owned by 10.1.0.101@member; should be owned by unknown"
        in screen
    )
    assert "payment-notify AVG_BY_CIRCLE" in screen


def test_no_line_is_wider_than_the_terminal(shop_warehouse: str) -> None:
    lines = explain(shop_warehouse, "member-sync", "--cluster", "shop-prod").splitlines()

    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)


def test_one_queue_is_shown_without_the_others(shop_warehouse: str) -> None:
    screen = explain(shop_warehouse, "order-service", "--cluster", "shop-prod", "--queue", "hz@broker-a:7")

    assert "order-events hz@broker-a:7" in screen
    assert "hz@broker-a:0" not in screen


def test_a_queue_is_shown_with_its_owners_on_earlier_days(shop_warehouse: str) -> None:
    screen = in_one_line(
        explain(shop_warehouse, "order-service", "--cluster", "shop-prod", "--queue", "hz@broker-a:2")
    )

    assert (
        "2026-11-18 match: order-events owned by 10.1.0.10@order-2; should be owned by 10.1.0.10@order-2"
        in screen
    )
    assert (
        "2026-11-17 match: order-events owned by 10.1.0.9@order-1; should be owned by 10.1.0.9@order-1"
        in screen
    )


def test_an_earlier_day_is_shown_without_the_days_after_it(shop_warehouse: str) -> None:
    screen = explain(
        shop_warehouse,
        "order-service",
        "--cluster",
        "shop-prod",
        "--ds",
        "2026-11-17",
        "--queue",
        "hz@broker-a:2",
    )

    assert "2026-11-17" in screen
    assert "2026-11-18" not in screen


def test_queues_that_members_pop_have_possible_readers_and_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalance_ledger.cli.explain._WIDTH_OF_A_PIPE", 100)
    warehouse = publish_sharing_day(tmp_path / "warehouse")
    screen = in_one_line(explain(warehouse, "mail-sender"))
    of_queue = in_one_line(explain(warehouse, "mail-sender", "--queue", "hz@broker-a:1"))

    assert "3 queues: 3 shared" in screen
    assert "Queues that members pop: 3" in screen
    assert "mails hz@broker-a 0-1 10.1.0.201@mail, 10.1.0.202@mail 40 6" in screen
    assert "mails hz@broker-a 2 unknown unknown unknown" in screen
    assert "Members: 2" in screen
    assert "unknown to unknown" not in screen
    assert "shared: mails hz@broker-a:1 popped by unknown; members share it" in of_queue
    assert "Queues that members pop: 1" in of_queue


def test_a_group_without_members_topics_and_progress_is_explained(tmp_path: Path) -> None:
    offline = {"consumer_group": "g-off", "broker_name": "a", "state": "offline"}
    unknown = {"consumer_group": "g-unasked", "broker_name": "a", "state": "unknown"}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-18", group_presence=[offline, unknown])

    of_offline = in_one_line(explain(publisher.root, "g-off"))
    assert "gate: passed offline; 0 members; 0 topics; 0 queues: none" in of_offline
    assert "No topic of this group is known: it has no members that subscribe to one, and no progress." in (
        of_offline
    )
    assert "Findings: 0 None on this day." in of_offline
    of_unknown = in_one_line(explain(publisher.root, "g-unasked"))
    assert "unknown; members unknown; 0 topics; 0 queues: none No topic of this group is known." in of_unknown


def test_a_finding_with_a_root_elsewhere_names_the_root(tmp_path: Path) -> None:
    finding = {"severity": "info", "evidence": "e.", "advice": "a."}
    root = finding | {"finding_id": "r", "kind": "source_failed", "broker_name": "b"}
    below = {"parent_finding_id": "r", "root_finding_id": "r", "kind": "assignment_stale"}
    of_group = finding | {"consumer_group": "g"}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-17", finding=[root, of_group | below | {"finding_id": "f"}])
    publisher.publish(
        "c",
        "2026-11-18",
        finding=[
            root,
            of_group | below | {"finding_id": "f"},
            of_group | {"finding_id": "o", "kind": "load_imbalanced"},
            of_group | below | {"finding_id": "p", "parent_finding_id": "o", "root_finding_id": "o"},
        ],
    )

    assert "Findings: 1, explained by source_failed info assignment_stale" in in_one_line(
        explain(publisher.root, "g", "--ds", "2026-11-17")
    )
    assert "Findings: 1 (and 1 that these explain, 1 explained by source_failed)" in in_one_line(
        explain(publisher.root, "g")
    )


def test_processes_that_share_a_client_id_have_the_strategies_that_they_reported(tmp_path: Path) -> None:
    group = {"consumer_group": "g", "client_id": "m"}
    process = {"state": "online", "strategy": "AVG"}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c",
        "2026-11-18",
        ownership_drift=[
            {
                "consumer_group": "g",
                "topic": "t",
                "broker_name": "b",
                "queue_id": 0,
                "state": "match",
                "group_state": "online",
                "observed_client_ids": ["m"],
                "expected_client_ids": ["m"],
                "observed_process_count": 2,
            }
        ],
        consumer_connection=[group | {"broker_name": "b", "client_language": "JAVA"}],
        client_process=[group | process | {"process": name} for name in ("p1", "p2")],
    )

    screen = explain(publisher.root, "g")
    assert "no strategy" not in screen
    assert "m       JAVA unknown release  AVG" in screen


def test_every_row_of_a_large_group_is_counted_and_found(tmp_path: Path) -> None:
    group = {"consumer_group": "g"}
    drift = group | {"broker_name": "b", "state": "match", "group_state": "online", "strategy": "AVG"}
    owned = {"observed_client_ids": ["x"], "expected_client_ids": ["x"], "observed_process_count": 1}
    finding = {"kind": "load_imbalanced", "severity": "warning", "evidence": "e.", "advice": "a."}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c",
        "2026-11-18",
        ownership_drift=[drift | owned | {"topic": f"t{n:03}", "queue_id": n} for n in range(300)],
        assignment_fairness=[
            group | {"topic": f"t{n:03}", "strategy": "AVG", "is_effective": True, "group_state": "online"}
            for n in range(300)
        ],
        consumer_connection=[group | {"client_id": f"m{n}", "broker_name": "b"} for n in range(150)],
        finding=[group | finding | {"finding_id": f"f{n}", "topic": "t000"} for n in range(70)],
    )

    lines = explain(publisher.root, "g").splitlines()
    commands = [shlex.split(line.partition(" more: ")[2]) for line in lines if " more: " in line]
    answers = [CliRunner().invoke(app, [*words[1:], "--format", "json"]) for words in commands]
    assert [len(json.loads(answer.stdout)) for answer in answers] == [70, 300, 151]

    screen = in_one_line("\n".join(lines))
    assert "300 topics; 300 queues: 300 match" in screen
    assert "Findings: 70" in screen
    assert "Members: 151" in screen
    assert "1 topic; 1 queue: 1 match" in in_one_line(explain(publisher.root, "g", "--topic", "t299"))
    assert "1 queue: 1 match" in in_one_line(explain(publisher.root, "g", "--queue", "b:299"))


def test_what_is_unknown_is_not_shown_as_none(tmp_path: Path) -> None:
    unknown = {
        "consumer_group": "g",
        "topic": "t",
        "broker_name": "b",
        "queue_id": 0,
        "group_state": "online",
        "state": "unknown",
        "unknown_reason": "client_unreachable",
        "observed_client_ids": [],
        "unasked_client_count": 1,
    }
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c",
        "2026-11-18",
        ownership_drift=[unknown],
        consumer_connection=[{"consumer_group": "g", "client_id": "m", "broker_name": "b"}],
        quarantined_group=[{"consumer_group": "q", "expectation_id": "e", "observed": 1.0}],
    )

    screen = in_one_line(explain(publisher.root, "g", "--queue", "b:0"))
    assert screen.count("owned by unknown; should be owned by unknown") == 2
    assert "no client" not in screen
    assert "no strategy" not in screen
    screen = explain(publisher.root, "q")
    assert "Findings: unknown" in screen
    assert "None" not in screen


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["member-sinc", "--cluster", "shop-prod"],
            "There is no group 'member-sinc' in shop-prod on 2026-11-18: did you mean member-sync?",
        ),
        (
            ["member-sync", "--cluster", "shop-prd"],
            "No day of cluster 'shop-prd' is published: did you mean shop-prod?",
        ),
        (["member-sync"], "There are 2 clusters: name one with --cluster: pay-prod, shop-prod."),
        (
            ["member-sync", "--cluster", "shop-prod", "--ds", "2026-11-01"],
            "2026-11-01 of shop-prod is not published; there are 2 published days, 2026-11-17 to 2026-11-18.",
        ),
        (
            ["member-sync", "--cluster", "shop-prod", "--topic", "nope"],
            "Group 'member-sync' has no topic 'nope' on 2026-11-18; it has payment-notify.",
        ),
        (
            ["member-sync", "--cluster", "shop-prod", "--queue", "nope:1"],
            "`ledger explain member-sync --cluster shop-prod --ds 2026-11-18 --warehouse ",
        ),
        (
            ["member-sync", "--cluster", "shop-prod", "--queue", "nope"],
            "--queue 'nope' is not BROKER:ID, for example broker-a:3.",
        ),
        (
            ["member-sync", "--cluster", "shop-prod", "--queue", f"b:{'1' * 5_000}"],
            "is not BROKER:ID, for example broker-a:3.",
        ),
    ],
)
def test_an_unknown_name_is_reported_with_the_known_ones(
    arguments: list[str],
    sentence: str,
    shop_warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sentence in refusal(shop_warehouse, arguments, monkeypatch, capsys)


def test_hostile_names_cannot_move_the_cursor_or_end_the_query(tmp_path: Path) -> None:
    group, client = "o'x\x1b[2J", "c\x1b]0;x\x07\u202e"
    publisher = Publisher(tmp_path / "warehouse")
    drift = {
        "consumer_group": group,
        "topic": "t",
        "broker_name": "b",
        "queue_id": 0,
        "state": "unowned",
        "group_state": "online",
    }
    publisher.publish(
        "c1",
        "2026-11-18",
        ownership_drift=[drift | {"observed_client_ids": [], "expected_client_ids": [client]}],
        assignment_fairness=[
            {
                "consumer_group": group,
                "topic": "t",
                "strategy": "AVG",
                "strategy_source": "observed",
                "is_effective": True,
                "group_state": "online",
            }
        ],
    )

    screen = explain(publisher.root, group)

    assert "\x1b" not in screen.replace("\n", "")
    assert r"c\x1b]0;x\x07\u202e" in screen
    assert screen.replace("\n", "").isprintable()
