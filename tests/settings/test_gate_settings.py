"""Gate settings in the settings file, and the messages for errors in them."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rebalance_ledger.cli.settings_schema import SCHEMA_FILE, schema
from rebalance_ledger.gate.policy import GATE_NAMES
from rebalance_ledger.settings import ClusterSettings, GateSettings, SettingsError, load_settings

if TYPE_CHECKING:
    from pathlib import Path

WAIVER = {"expires_on": date(2026, 12, 1), "approved_by": "ana", "reason": "known"}


def gate(folder: Path, settings: dict[str, Any]) -> GateSettings:
    path = folder / "ledger.yaml"
    path.write_text(yaml.safe_dump({"clusters": {"shop": {"gate": settings}}}), encoding="utf-8")
    return load_settings(path, GATE_NAMES).clusters["shop"].gate


@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        (
            {"severities": {"queue_assignment.one_ownr": "warn"}},
            "gate.severities",
            "'queue_assignment.one_ownr' is no expectation (did you mean queue_assignment.one_owner",
        ),
        ({"severities": {"finding.no_unowned": "warn"}}, "gate.severities", "is no expectation"),
        (
            {"severities": {"rejected_record.count_within_limit": "fatal"}},
            "gate.severities.rejected_record.count_within_limit",
            "'block' or 'warn'",
        ),
        ({"findings": {"queue_unownd": "block"}}, "gate.findings", "did you mean unowned"),
        ({"findings": {"xyzzy": "block"}}, "gate.findings", "docs/gate.md lists them"),
        (
            {"limits": {"broker.row_count_like_day_before": -1}},
            "gate.limits.broker.row_count_like_day_before",
            "greater",
        ),
        (
            {"limits": {"broker.row_count_like_day_before": float("nan")}},
            "gate.limits.broker",
            "greater",
        ),
        ({"limits": {"queue_assignment.one_owner": 3}}, "gate.limits", "is no expectation with a limit"),
        (
            {"groups": {"a-*": {"findings": {"boredom": "warn"}}}},
            "gate.groups.a-*.findings",
            "kind of finding",
        ),
        ({"groups": {"a-*": {"limits": {}}}}, "gate.groups.a-*.limits", "no such setting"),
        ({"max_over_mean": {}}, "gate.max_over_mean", "give warn, block or both"),
        ({"max_over_mean": {"warn": 3, "block": 2}}, "gate.max_over_mean", "warn (3) is above block (2)"),
        ({"max_over_mean": {"warn": 0.5}}, "gate.max_over_mean.warn", "greater than or equal to 1"),
        ({"waivers": [WAIVER]}, "gate.waivers.0", "give either expectation or finding"),
        (
            {"waivers": [WAIVER | {"finding": "unowned", "approved_by": ""}]},
            "gate.waivers.0.approved_by",
            "at least 1",
        ),
        (
            {"waivers": [{"finding": "unowned", "approved_by": "a", "reason": "b"}]},
            "gate.waivers.0.expires_on",
            "is missing",
        ),
        ({"waivers": [WAIVER | {"expectation": "a.b"}]}, "gate.waivers.0.expectation", "is no expectation"),
        ({"waivers": [WAIVER | {"finding": "route"}]}, "gate.waivers.0.finding", "kind of finding"),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence_that_names_the_key_and_similar_names(
    tmp_path: Path, settings: dict[str, Any], key: str, why: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        gate(tmp_path, settings)

    assert f", clusters.shop.{key}" in str(refused.value)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_findings_are_not_checked_on_loading(tmp_path: Path) -> None:
    (tmp_path / "ledger.yaml").write_text("clusters: {shop: {gate: {findings: {boredom: warn}}}}")

    assert list(load_settings(tmp_path / "ledger.yaml").clusters) == ["shop"]


def test_a_name_overrides_patterns_and_a_longer_pattern_a_shorter_one() -> None:
    rules = {
        name: {"max_over_mean": {"warn": float(limit)}}
        for limit, name in enumerate(("order-*", "order-service", "order-b*"), start=2)
    }
    settings = GateSettings.model_validate({"groups": rules, "max_over_mean": {"warn": 9.0}})

    def limit(group: str | None) -> float | None:
        limits = settings.of_group(group).max_over_mean
        return limits.warn if limits else None

    assert [limit(group) for group in ("order-service", "order-a", "order-book", "billing", None)] == [
        3,
        2,
        4,
        9,
        9,
    ]


def test_what_only_judges_is_no_part_of_what_is_computed() -> None:
    strict = ClusterSettings.model_validate({"gate": {"findings": {"unowned": "block"}}})

    assert strict.sha256 == ClusterSettings().sha256


def test_the_published_schema_equals_that_of_the_model() -> None:
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == schema(), "run `make docs`"


def test_the_published_schema_lists_the_existing_names() -> None:
    published = schema()["$defs"]["GateSettings"]["properties"]

    assert "unowned" in published["findings"]["propertyNames"]["enum"]
    assert "queue_assignment.one_owner" in published["severities"]["propertyNames"]["enum"]
    assert set(published["limits"]["propertyNames"]["enum"]) == GATE_NAMES.limited
