"""A settings file is valid, or is refused in one sentence that names the file and the key."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rebalance_ledger.settings import (
    ClusterSettings,
    RoomRule,
    SettingsError,
    load_settings,
    settings_by_member,
)
from tests.support.computed_days import SETTINGS_FILE

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, text: str) -> Any:
    path = folder / "ledger.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as refused:
        loaded(folder, text)
    return str(refused.value)


def of_group(settings: dict[str, Any]) -> str:
    return yaml.safe_dump({"clusters": {"shop": {"groups": {"orders": settings}}}})


SHA256_OF_RING_IN_EARLIER_RELEASES = "13f0f1c6caf74131463494ee265c602456258b3ac6c619fbde533a558c2959e3"
RING = {"strategy": "CONSISTENT_HASH", "virtual_node_count": 10}


def test_a_member_with_different_parameters_inherits_the_others_from_its_group() -> None:
    nearby = {
        "strategy": "MACHINE_ROOM_NEARBY",
        "inner": {"strategy": "AVG"},
        "broker_room": {"separator": "@"},
        "consumer_room": {"prefixes": {"10.1.": "hz"}},
    }
    other = {"prefixes": {"10.1.": "sh"}}
    cluster = ClusterSettings.model_validate(
        {
            "groups": {
                "nearby": {**nearby, "members": {"c1": {"consumer_room": other}}},
                "ring": {**RING, "members": {"c1": {"virtual_node_count": 0}}},
                "plain": {"strategy": "AVG"},
            }
        }
    )
    members = {group: settings_by_member(of_group) for group, of_group in cluster.groups.items()}

    expected = ClusterSettings.model_validate(
        {"groups": {"nearby": {**nearby, "consumer_room": other}, "ring": {**RING, "virtual_node_count": 0}}}
    )
    assert members == {
        "nearby": {"c1": expected.groups["nearby"]},
        "ring": {"c1": expected.groups["ring"]},
        "plain": {},
    }


def test_a_member_with_different_parameters_changes_the_settings_hash() -> None:
    """The SHA of settings from before there could be any stays what it was."""
    without = ClusterSettings.model_validate({"groups": {"ring": RING}})
    empty = ClusterSettings.model_validate({"groups": {"ring": {**RING, "members": {}}}})
    other = ClusterSettings.model_validate(
        {"groups": {"ring": {**RING, "members": {"c1": {"virtual_node_count": 9}}}}}
    )

    assert without.sha256 == empty.sha256 != other.sha256
    assert without.sha256 == SHA256_OF_RING_IN_EARLIER_RELEASES


def test_the_bundled_settings_can_be_read() -> None:
    shop = load_settings(SETTINGS_FILE).clusters["shop-prod"]

    assert {group: settings.strategy for group, settings in shop.groups.items()} == {
        "user-profile": "CONSISTENT_HASH",
        "room-report": "MACHINE_ROOM",
        "nearby-search": "MACHINE_ROOM_NEARBY",
        "pinned-export": "CONFIG",
    }


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "clusters: {}\n"])
def test_an_empty_file_configures_nothing(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text).clusters == {}


@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        ({"strategy": "AVERAGE"}, "clusters.shop.groups.orders", "AVERAGE"),
        ({}, "clusters.shop.groups.orders", "strategy"),
        ({"strategy": "AVG", "virtual_node_count": 10}, "virtual_node_count", "no such setting"),
        ({"strategy": "CONSISTENT_HASH"}, "virtual_node_count", "is missing"),
        ({"strategy": "CONSISTENT_HASH", "virtual_node_count": "10"}, "virtual_node_count", "integer"),
        ({"strategy": "CONSISTENT_HASH", "virtual_node_count": 10.0}, "virtual_node_count", "integer"),
        ({"strategy": "CONSISTENT_HASH", "virtual_node_count": True}, "virtual_node_count", "integer"),
        ({"strategy": "CONSISTENT_HASH", "virtual_node_count": -1}, "virtual_node_count", "greater"),
        (
            {**RING, "members": {"c1": {"consumer_idcs": ["hz"]}}},
            "members.c1.consumer_idcs",
            "no such setting",
        ),
        ({**RING, "virtual_node_count": 2**31}, "virtual_node_count", "2147483648 is no int of Java"),
        ({**RING, "virtual_node_count": 10_001}, "virtual_node_count", "more than the 10000 that the ledger"),
        (
            {**RING, "members": {"c1": {"virtual_node_count": 99_999_999_999}}},
            "members.c1.virtual_node_count",
            "is no int of Java",
        ),
        ({**RING, "members": {"c1": {"virtual_node_count": -1}}}, "members.c1.virtual_node_count", "greater"),
        ({**RING, "members": {"c1": {}}}, "members.c1", "give at least one of virtual_node_count"),
        (
            {"strategy": "AVG", "members": {}},
            "clusters.shop.groups.orders.members: the strategy AVG",
            "AVG has no such setting; correct it",
        ),
        ({"strategy": "MACHINE_ROOM", "consumer_idcs": "hz"}, "consumer_idcs", "list"),
        ({"strategy": "MACHINE_ROOM", "consumer_idcs": [1]}, "consumer_idcs.0", "string"),
        ({"strategy": "MACHINE_ROOM", "consumer_idc": ["hz"]}, "consumer_idcs", "is missing"),
        ({"strategy": "CONFIG", "clients": {"c": [{"topic": "t"}]}}, "clients.c.0.broker_name", "is missing"),
    ],
    ids=str,
)
def test_a_wrong_key_or_value_is_one_sentence_with_file_and_key(
    tmp_path: Path, settings: dict[str, Any], key: str, why: str
) -> None:
    sentence = refusal(tmp_path, of_group(settings))

    assert f"he settings file {tmp_path / 'ledger.yaml'}" in sentence
    assert "see docs/settings.md" in sentence
    assert all(
        "clusters.shop.groups.orders" in line
        for line in sentence.splitlines()[1 if "\n" in sentence else 0 :]
    )
    assert key in sentence
    assert why in sentence


@pytest.mark.parametrize(
    ("name", "problem"),
    [("a/b", "'a/b' cannot be the name of a folder"), ("", "is empty"), ("..", "cannot be")],
)
def test_a_cluster_whose_name_no_export_can_have_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    sentence = refusal(tmp_path, yaml.safe_dump({"clusters": {name: {}}}))
    assert "clusters: the name " in sentence
    assert problem in sentence


def test_every_error_is_named_and_an_unknown_key_has_a_suggestion(tmp_path: Path) -> None:
    first, *problems = refusal(
        tmp_path,
        yaml.safe_dump({"clusters": {"shop": {"gruops": {}}, "pay": {"collect": {"nameservers": "x"}}}}),
    ).splitlines()

    assert first.endswith("has 2 errors; correct them or see docs/settings.md:")
    assert any(problem.strip().startswith("clusters.pay.collect.nameservers") for problem in problems)
    assert "  clusters.shop.gruops: there is no such setting; did you mean groups?" in problems


@pytest.mark.parametrize(
    "text",
    [
        "- clusters\n",
        "clusters: [shop]\n",
        "cluster: {}\n",
        "clusters: {shop: {group: {}}}\n",
        "clusters: {1: {}}\n",
        "x",
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text).startswith(f"In the settings file {tmp_path / 'ledger.yaml'}, ")


@pytest.mark.parametrize(
    "text",
    [
        "clusters: {shop\n",
        "clusters: 2026-13-45\n",
        "clusters: !!python/object/apply:os.getcwd []\n",
        "? [a]\n: b\n",
        "[" * 5000,
        "clusters: !!bool x\n",
        "clusters: !!timestamp x\n",
        'clusters: {"c\\ud83d": {}}',
    ],
    ids=[
        "torn",
        "no such date",
        "code",
        "a list as a key",
        "too deep",
        "no boolean",
        "no timestamp",
        "half a pair",
    ],
)
def test_what_is_not_plain_yaml_is_refused(tmp_path: Path, text: str) -> None:
    sentence = refusal(tmp_path, text)

    assert sentence.startswith(f"The settings file {tmp_path / 'ledger.yaml'} is not valid YAML: ")
    assert "\n" not in sentence


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.yaml"
    path.write_bytes(b"clusters: \xff")

    with pytest.raises(SettingsError, match="is not valid YAML"):
        load_settings(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "clusters:\n  on: {}\n",
            "clusters: a name must be a string, and YAML reads one as true (as yes and on): put it in quotes",
        ),
        (
            "clusters:\n  17: {}\n",
            "clusters: a name must be a string, and YAML reads one as the number 17: put it in quotes",
        ),
        (
            "clusters: {c: {groups: {2026-11-16: {strategy: AVG}}}}",
            "clusters.c.groups: a name must be a string, and YAML reads one as the date 2026-11-16: put it in quotes",
        ),
        (
            "clusters: {c: {groups: {g: {strategy: MACHINE_ROOM, consumer_idcs: [no]}}}}",
            "clusters.c.groups.g.consumer_idcs.0: must be a string, and YAML reads false (as no and off): put it in quotes",
        ),
        (
            "clusters: {c: {deadlines: {export_by: 25:00}}}",
            "clusters.c.deadlines.export_by: must be a string, and YAML reads the number 1500: put it in quotes",
        ),
        (
            "clusters: {c: {groups: {g: {strategy: MACHINE_ROOM, consumer_idcs: [null]}}}}",
            "clusters.c.groups.g.consumer_idcs.0: must be a string, and has no value: write one, or remove the key",
        ),
        (
            "clusters: {c: {deadlines: {export_by: '8:30'}}}",
            'clusters.c.deadlines.export_by: must be a time such as "08:30", up to "47:59"',
        ),
        ("clusters: [c]", "clusters: must be a mapping (`key: value`)"),
        ("clusters: {c: {groups: {g: {}}}}", "clusters.c.groups.g: `strategy` is missing"),
        (
            "clusters: {c: {groups: {CONFIG: {strategy: CONFIG, clients: {CONFIG: [CONFIG]}}}}}",
            "clusters.c.groups.CONFIG.clients.CONFIG.0: must be a mapping (`key: value`)",
        ),
        ("- clusters", "the whole file: must be a mapping (`key: value`)"),
    ],
)
def test_an_error_is_in_the_words_of_the_file(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "ledger.yaml"
    assert (
        refusal(tmp_path, text)
        == f"In the settings file {file}, {problem}; correct it or see docs/settings.md."
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"clusters:\n\tc: {}",
            "while scanning for the next token found character '\\t' that cannot start any token (line 2, column 1)",
        ),
        (
            b"clusters: {}\n---\n{}",
            "expected a single document in the stream but found another document (line 2, column 1)",
        ),
        (b"clusters: {\xff: {}}", "byte 12 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_what_is_not_yaml_is_located(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "ledger.yaml"
    file.write_bytes(content)

    with pytest.raises(SettingsError) as refused:
        load_settings(file)
    assert str(refused.value) == f"The settings file {file} is not valid YAML: {problem}."


def test_a_duplicate_group_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    text = "clusters:\n  shop:\n    groups:\n      orders: {strategy: AVG}\n      orders: {strategy: AVG_BY_CIRCLE}\n"

    assert re.search(r"duplicate key orders .*line 5", refusal(tmp_path, text))


def test_json_with_escapes_is_read_as_json(tmp_path: Path) -> None:
    settings = {"clusters": {"shop": {"groups": {"orders-😀": {"strategy": "AVG"}}}}}
    path = tmp_path / "ledger.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")

    assert load_settings(path).clusters["shop"].groups.keys() == {"orders-😀"}


def test_an_absent_file_is_named_with_the_option_to_give(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path / "none.yaml")

    assert str(refused.value) == (
        f"The settings file {tmp_path / 'none.yaml'} cannot be read (No such file or directory): "
        "give another with --settings."
    )


@pytest.mark.parametrize(
    ("rule", "room"),
    [
        ({"names": {"hz@broker-a": "hz"}}, "hz"),
        ({"names": {"hz@broker": "hz"}}, None),
        ({"prefixes": {"hz": "wrong", "hz@broker-": "hz", "x": "wrong"}}, "hz"),
        ({"prefixes": {"sh": "sh"}}, None),
        ({"separator": "@"}, "hz"),
        ({"separator": "@broker"}, "hz"),
        ({"separator": "#"}, None),
    ],
    ids=str,
)
def test_a_room_is_determined_by_name_by_longest_prefix_or_by_separator(
    rule: dict[str, Any], room: str | None
) -> None:
    assert RoomRule.model_validate(rule).room("hz@broker-a") == room


def test_an_empty_prefix_is_a_room_for_all_the_others() -> None:
    rule = RoomRule.model_validate({"prefixes": {"10.1.": "hz", "": "elsewhere"}})

    assert [rule.room("10.1.0.1@a"), rule.room("10.2.0.1@b")] == ["hz", "elsewhere"]


@pytest.mark.parametrize(
    ("rule", "got"),
    [
        ({}, "none"),
        ({"names": {}, "separator": "@"}, "names, separator"),
        ({"prefixes": {}, "names": {}}, "names, prefixes"),
    ],
    ids=str,
)
def test_a_room_rule_has_exactly_one_method(tmp_path: Path, rule: dict[str, Any], got: str) -> None:
    nearby = {
        "strategy": "MACHINE_ROOM_NEARBY",
        "inner": {"strategy": "AVG"},
        "broker_room": rule,
        "consumer_room": {"separator": "@"},
    }

    sentence = refusal(tmp_path, of_group(nearby))

    assert "broker_room" in sentence
    assert f"give exactly one of names, prefixes, separator; got {got}" in sentence


def test_the_hash_depends_on_values_and_not_on_formatting(tmp_path: Path) -> None:
    one = loaded(
        tmp_path,
        """
clusters:
  shop:
    groups:
      a: {strategy: CONSISTENT_HASH, virtual_node_count: 10}
      b: {strategy: MACHINE_ROOM, consumer_idcs: [hz, sh]}
""",
    )
    other = loaded(
        tmp_path,
        """
# The same, the other way round.
clusters:
  pay: {}
  shop:
    groups:
      b:
        consumer_idcs:
          - hz
          - sh
        strategy: "MACHINE_ROOM"
      a:
        virtual_node_count: 0xa
        strategy: CONSISTENT_HASH
""",
    )

    assert one.clusters["shop"].sha256 == other.clusters["shop"].sha256
    assert other.clusters["pay"].sha256 == ClusterSettings().sha256 != one.clusters["shop"].sha256


def test_a_changed_number_changes_the_hash(tmp_path: Path) -> None:
    hashes = {
        loaded(tmp_path, of_group({"strategy": "CONSISTENT_HASH", "virtual_node_count": count}))
        .clusters["shop"]
        .sha256
        for count in (10, 11)
    }

    assert len(hashes) == 2


def of_collecting(settings: Any) -> str:
    return yaml.safe_dump({"clusters": {"shop": {"collect": settings}}})


def test_a_collected_cluster_needs_no_further_settings(tmp_path: Path) -> None:
    collect = loaded(tmp_path, of_collecting({})).clusters["shop"].collect
    assert (collect.nameservers, collect.connection, collect.tls, collect.retention) == ([], None, None, None)


def test_a_retention_is_a_dry_run_by_default(tmp_path: Path) -> None:
    collect = loaded(tmp_path, of_collecting({"retention": {"keep_days": 30}})).clusters["shop"].collect
    assert collect.retention.dry_run is True


@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        ({"nameservers": "ns:9876"}, "nameservers", "list"),
        ({"nameservers": ["ns"]}, "nameservers", "'ns' is not host:port"),
        ({"nameservers": ["ns:0"]}, "nameservers", "'ns:0' is not host:port"),
        ({"nameservers": ["a:1;b:1"]}, "nameservers", "is not host:port"),
        ({"nameservers": ["ns:1", "ns:1"]}, "nameservers", "duplicate address"),
        ({"calls_per_second": 0}, "calls_per_second", "greater than 0"),
        ({"parallelism": 0}, "parallelism", "greater"),
        ({"client_timeout_ms": 10_000}, "client_timeout_ms", "greater"),
        ({"exclude_kinds": ["consumer_connection"]}, "exclude_kinds.0", "broker_config"),
        ({"retention": {}}, "retention.keep_days", "is missing"),
        ({"retention": {"keep_days": 0}}, "retention.keep_days", "greater"),
        ({"tls": {"certificate": "c.pem"}}, "tls", "both certificate and key"),
        ({"offset_files": "drop"}, "offset_files", "'drop' is not an absolute path"),
        ({"offset_file_limit_bytes": 0}, "offset_file_limit_bytes", "greater"),
        ({"secret_key": "s"}, "secret_key", "no such setting"),
    ],
    ids=str,
)
def test_a_wrong_collect_setting_is_one_sentence_with_the_key(
    tmp_path: Path, settings: dict[str, Any], key: str, why: str
) -> None:
    sentence = refusal(tmp_path, of_collecting(settings))
    assert sentence.startswith(
        f"In the settings file {tmp_path / 'ledger.yaml'}, clusters.shop.collect.{key}: "
    )
    assert why in sentence
    assert "\n" not in sentence


def test_how_a_cluster_is_collected_is_no_part_of_a_computation(tmp_path: Path) -> None:
    groups = {"orders": {"strategy": "AVG"}}
    plain, collected = (
        loaded(tmp_path, yaml.safe_dump({"clusters": {"shop": {"groups": groups, **more}}})).clusters["shop"]
        for more in ({}, {"collect": {"calls_per_second": 5, "retention": {"keep_days": 9}}})
    )
    assert plain.sha256 == collected.sha256


def of_cluster(*hypothetical: dict[str, Any]) -> str:
    return yaml.safe_dump({"clusters": {"shop": {"hypothetical": list(hypothetical)}}})


ROOM = {"strategy": "MACHINE_ROOM", "consumer_idcs": ["hz"]}
HASH = {"strategy": "CONSISTENT_HASH", "virtual_node_count": 100}


def test_strategies_to_try_are_a_set_independent_of_order(tmp_path: Path) -> None:
    one, other = (
        loaded(tmp_path, of_cluster(*tried)).clusters["shop"] for tried in ((ROOM, HASH), (HASH, ROOM))
    )

    assert {tried.strategy for tried in one.hypothetical} == {"MACHINE_ROOM", "CONSISTENT_HASH"}
    assert one.sha256 == other.sha256 != ClusterSettings().sha256


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        ([ROOM, HASH, {**ROOM, "consumer_idcs": ["sh"]}], "duplicate MACHINE_ROOM"),
        ([{"strategy": "AVG"}], "AVG"),
        ([{"strategy": "MACHINE_ROOM"}], "consumer_idcs"),
    ],
    ids=["twice", "computed anyway", "without its parameters"],
)
def test_a_strategy_that_cannot_be_tried_is_refused(
    tmp_path: Path, tried: list[dict[str, Any]], why: str
) -> None:
    sentence = refusal(tmp_path, of_cluster(*tried))

    assert sentence.startswith(f"In the settings file {tmp_path / 'ledger.yaml'}, clusters.shop.hypothetical")
    assert why in sentence


def test_deadlines_count_from_the_beginning_of_the_day_and_change_no_computation(tmp_path: Path) -> None:
    text = "clusters: {shop: {deadlines: {export_by: '03:00', published_by: '26:30'}}}"
    shop = loaded(tmp_path, text).clusters["shop"]

    assert shop.deadlines.export_by_time == timedelta(hours=3)
    assert shop.deadlines.published_by_time == timedelta(hours=26, minutes=30)
    assert shop.sha256 == ClusterSettings().sha256


@pytest.mark.parametrize(
    "deadlines", ["{export_by: '3:00'}", "{export_by: '48:00'}", "{published_by: '05:00'}"]
)
def test_a_deadline_that_cannot_be_kept_is_refused(tmp_path: Path, deadlines: str) -> None:
    assert "clusters.shop.deadlines" in refusal(tmp_path, f"clusters: {{shop: {{deadlines: {deadlines}}}}}")
