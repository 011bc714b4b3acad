"""The report of a day: every number equals the result of the SQL next to it, and the page loads and runs nothing."""

from __future__ import annotations

import base64
import hashlib
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.report import day_report
from rebalance_ledger.report.day_report import MOST_PAGE_BYTES, write_report
from rebalance_ledger.tables.vocabulary import FindingKind
from rebalance_ledger.warehouse.errors import QueryError
from tests.support.published_sample import Publisher, publish_sharing_day, publish_shop_days
from tests.support.report_page import ReportPage, compare_tables_with_statements

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>'; DROP TABLE x; --\x1b[31m\u202e&amp;"


@pytest.fixture(scope="module")
def shop_warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return publish_shop_days(tmp_path_factory.mktemp("shop") / "warehouse")


def report(
    root: str,
    folder: Path,
    *,
    cluster: str | None = "shop-prod",
    ds: date | None = None,
    group: str | None = None,
) -> str:
    output = folder / "report.html"
    write_report(root, output, cluster=cluster, ds=ds, group=group)
    return output.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shop_report(shop_warehouse: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the report of the newest day of `shop-prod`."""
    return report(shop_warehouse, tmp_path_factory.mktemp("report"))


def test_every_table_of_the_page_has_the_rows_of_the_sql_next_to_it(
    shop_warehouse: str, shop_report: str
) -> None:
    page = ReportPage.of(shop_report)

    assert compare_tables_with_statements(shop_warehouse, page) >= 10


def test_the_page_allows_no_script_no_request_and_one_style_sheet(shop_report: str) -> None:
    page = ReportPage.of(shop_report)

    policy = next(
        tag["content"] for name, tag in page.tags if tag.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert {name for name, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
    } == set()
    assert [tag for _, tag in page.tags if "style" in tag or any(key.startswith("on") for key in tag)] == []
    links = [tag["href"] or "" for _, tag in page.tags if "href" in tag]
    assert links
    assert all(link.startswith("#") for link in links)


def test_every_link_leads_to_a_section_of_the_page(shop_report: str) -> None:
    page = ReportPage.of(shop_report)

    ids = [tag["id"] for _, tag in page.tags if "id" in tag]
    assert len(ids) == len(set(ids))
    assert {(tag["href"] or "").removeprefix("#") for _, tag in page.tags if "href" in tag} <= set(ids)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    drift = {
        "consumer_group": HOSTILE,
        "topic": HOSTILE,
        "broker_name": HOSTILE,
        "queue_id": 0,
        "state": "unexpected_owner",
    }
    problem = {
        "severity": "critical",
        "kind": "unowned",
        "evidence": HOSTILE,
        "advice": HOSTILE,
        "finding_id": "f1",
    }
    nulls: dict[str, Any] = {"parent_finding_id": None, "root_finding_id": None}
    publisher.publish(
        HOSTILE[:20],
        "2026-11-18",
        ownership_drift=[drift | {"observed_client_ids": [HOSTILE], "expected_client_ids": ["c"]}],
        finding=[problem | nulls | {"consumer_group": HOSTILE, "topic": HOSTILE, "client_id": HOSTILE}],
    )

    html = report(publisher.root, tmp_path, cluster=None)

    page = ReportPage.of(html)
    assert "script" not in {name for name, _ in page.tags}
    assert "<script>alert(1)</script>'; DROP TABLE x; --\\x1b[31m\\u202e&amp;" in page.text
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert compare_tables_with_statements(publisher.root, page) >= 1


def test_the_text_of_an_approval_is_escaped(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    result = {"outcome": "approved", "approved_by": HOSTILE, "approval_reason": HOSTILE}
    publisher.publish("shop", "2026-11-18", gate_result=[result], ownership_drift=[], finding=[])

    html = report(publisher.root, tmp_path, cluster=None)

    assert (
        "approved by <script>alert(1)</script>'; DROP TABLE x; --\\x1b[31m\\u202e" in ReportPage.of(html).text
    )
    assert not {"\x1b", "\u202e"} & set(html)


def test_a_day_on_which_no_group_has_queues_has_a_report(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("quiet", "2026-11-18", ownership_drift=[], finding=[])

    page = ReportPage.of(report(publisher.root, tmp_path, cluster=None))

    assert "No findings on this day." in page.text


def test_a_shortened_table_and_a_quarantined_group_are_shown_as_such(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    drift = {
        "consumer_group": "g",
        "topic": "t",
        "broker_name": "b",
        "state": "match",
        "group_state": "online",
    }
    publisher.publish(
        "c",
        "2026-11-18",
        ownership_drift=[drift | {"queue_id": queue_id} for queue_id in range(300)],
        quarantined_group=[{"consumer_group": "q", "expectation_id": "e", "observed": 1.0}],
    )

    text = report(publisher.root, tmp_path, cluster="c", group="g")
    assert "At most 256 rows are shown." in text
    text = report(publisher.root, tmp_path, cluster="c", group="q")
    assert "Unknown: the day has no rows of the group." in text
    assert "rows are shown." not in text


def test_findings_of_quarantined_groups_are_neither_new_nor_gone(tmp_path: Path) -> None:
    def finding(group: str) -> dict[str, object]:
        subject: dict[str, object] = {"consumer_group": group, "topic": "t", "finding_id": group}
        return subject | {
            "kind": "unowned",
            "severity": "critical",
            "evidence": f"e {group}.",
            "advice": "a.",
        }

    def quarantined(group: str) -> list[dict[str, object]]:
        return [{"consumer_group": group, "expectation_id": "e", "observed": 1.0}]

    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c", "2026-11-17", finding=[finding("g1"), finding("g2")], quarantined_group=quarantined("g3")
    )
    publisher.publish(
        "c",
        "2026-11-18",
        baseline_ds="2026-11-17",
        finding=[finding("g2"), finding("g3")],
        quarantined_group=quarantined("g1"),
    )

    page = ReportPage.of(report(publisher.root, tmp_path, cluster="c", ds=date(2026, 11, 18)))

    assert "0 new, 0 resolved since 2026-11-17" in page.text
    assert page.text.count("Since 2026-11-17.") == 2  # g2, for the day and for its group
    assert "Since 2026-11-18." not in page.text
    assert "badge" not in [attributes.get("class") for _, attributes in page.tags]
    assert "e g1." not in page.text
    groups = next(rows for name, rows in page.tables if name == "day/groups")
    assert [row[0] for row in groups[1:]] == ["g2", "g3", "g1"]
    assert groups[-1][-1] == "yes"


def test_a_group_without_members_topics_and_progress_is_listed(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c",
        "2026-11-18",
        group_presence=[
            {"consumer_group": "g-off", "broker_name": broker, "state": "offline"} for broker in "ab"
        ],
        proxy_presence=[{"consumer_group": "g-proxy", "proxy": "p:8080", "state": "unknown"}],
    )

    page = ReportPage.of(report(publisher.root, tmp_path, cluster="c", group="g-off"))

    groups = next(rows for name, rows in page.tables if name == "day/groups")
    assert [row[:2] for row in groups[1:]] == [["g-off", "offline"], ["g-proxy", "unknown"]]


def test_the_same_day_gives_the_same_bytes(shop_warehouse: str, shop_report: str, tmp_path: Path) -> None:
    assert report(shop_warehouse, tmp_path) == shop_report


def test_an_earlier_day_has_its_own_numbers(shop_warehouse: str, tmp_path: Path) -> None:
    html = report(shop_warehouse, tmp_path, ds=date(2026, 11, 17))

    assert "<h1>shop-prod, 2026-11-17</h1>" in html
    assert "10.1.0.11@order-3" in html  # It left before the next day.


def test_queues_that_members_pop_are_a_table_and_no_map_of_owners(tmp_path: Path) -> None:
    warehouse = publish_sharing_day(tmp_path / "warehouse")
    text = report(warehouse, tmp_path, cluster="mail-prod", group="mail-sender")
    [rows] = [rows for name, rows in ReportPage.of(text).tables if name == "group/sharing"]

    assert [row[2] for row in rows] == ["queue id", "0", "1", "2"]
    assert "Map of queues" not in text
    assert "10.1.0.202@mail" in text


def test_a_member_that_pops_a_queue_is_not_called_its_owner(tmp_path: Path) -> None:
    queue = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "group_state": "online"}
    popped = {
        "state": "shared",
        "strategy": "POP",
        "observed_client_ids": ["c1"],
        "observed_process_count": 1,
    }
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-18", ownership_drift=[queue | popped], queue_sharing=[queue])
    text = report(publisher.root, tmp_path, cluster="c", group="g")

    assert "c1 pops it; members share the queue" in text
    assert "c1 owns it" not in text


def test_a_single_group_is_shown_expanded(shop_warehouse: str, tmp_path: Path) -> None:
    page = ReportPage.of(report(shop_warehouse, tmp_path, group="member-sync"))

    details = [tag for name, tag in page.tags if name == "details" and tag.get("class") == "group"]
    assert len(details) == 1
    assert "open" in details[0]


def test_a_group_that_does_not_exist_is_refused_and_nothing_is_written(
    shop_warehouse: str, tmp_path: Path
) -> None:
    with pytest.raises(
        QueryError,
        match="There is no group 'member-sink' in shop-prod on 2026-11-18: did you mean member-sync",
    ):
        report(shop_warehouse, tmp_path, group="member-sink")

    assert list(tmp_path.iterdir()) == []


def test_a_large_cluster_is_limited_to_the_worst_groups_with_a_note(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "warehouse")
    owners = [f"client-{number:02}-{'x' * 150}" for number in range(20)]
    publisher.publish(
        "large",
        "2026-11-18",
        ownership_drift=[
            {
                "consumer_group": f"group-{group:03}",
                "topic": f"topic-{queue}",
                "broker_name": "b" * 100,
                "queue_id": queue,
                "state": "unexpected_owner" if group == 59 else "match",
                "observed_client_ids": owners,
                "expected_client_ids": owners,
            }
            for group in range(60)
            for queue in range(100)
        ],
    )

    html = report(publisher.root, tmp_path, cluster=None)

    page = ReportPage.of(html)
    shown_groups = sum(tag.get("class") == "group" for name, tag in page.tags if name == "details")
    assert 0 < shown_groups < 60
    assert len(html.encode()) <= MOST_PAGE_BYTES
    assert f"The worst {shown_groups} of 60 groups." in html
    assert html.index("<summary>group-059</summary>") < html.index("<summary>group-000</summary>")


def test_a_kind_of_another_release_is_shown_without_its_description(tmp_path: Path) -> None:
    subject = {"consumer_group": "g", "topic": "t", "finding_id": "f", "severity": "critical"}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish(
        "c", "2026-11-18", finding=[subject | {"kind": "../renamed", "evidence": "e.", "advice": "a."}]
    )

    page = ReportPage.of(report(publisher.root, tmp_path, cluster="c"))

    assert "this release does not have the kind" in page.text
    assert "../renamed" in page.text


def test_every_kind_of_finding_has_a_page_that_can_be_shown() -> None:
    pages = [day_report._finding_page(kind) for kind in FindingKind]

    assert all("How it arises" in page for page in pages)
    assert not any("<a " in page for page in pages)
