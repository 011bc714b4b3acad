"""Versions, languages and class names in the form that clients report."""

from __future__ import annotations

import pytest

from strategies import Version, get_strategy, strategy_of_class_name, version_of_ordinal

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."


@pytest.mark.parametrize(
    ("ordinal", "release"),
    [
        (233, "4.1.0"),
        (317, "4.5.2"),
        (355, "4.7.1"),
        (407, "4.9.7"),
        (409, "4.9.8"),
        (413, "5.0.0"),
        (441, "5.1.4"),
        (479, "5.3.3"),
        (493, "5.4.0"),
        (513, "5.5.0"),
        (515, "5.5.1"),
        (611, "5.9.9"),
        (408, "4.9.8-SNAPSHOT"),
        (0, None),
        (79, None),
        (213, None),
        (612, None),
        (-1, None),
    ],
)
def test_the_release_behind_an_ordinal(ordinal: int, release: str | None) -> None:
    assert version_of_ordinal(ordinal) == release


def test_every_release_behind_an_ordinal_has_rules() -> None:
    releases = [release for release in map(version_of_ordinal, range(700)) if release is not None]
    assert len(releases) == 380
    assert all(get_strategy("AVG", client_version=release).name == "AVG" for release in releases)


def test_releases_compare_as_numbers() -> None:
    assert Version.parse("4.9.10") > Version.parse("4.9.8")
    assert Version.parse("4.1.0-incubating") == (4, 1, 0)


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("AllocateMessageQueueAveragely", "AVG"),
        ("AllocateMessageQueueAveragelyByCircle", "AVG_BY_CIRCLE"),
        ("AllocateMessageQueueByConfig", "CONFIG"),
        ("AllocateMessageQueueByMachineRoom", "MACHINE_ROOM"),
        ("AllocateMessageQueueConsistentHash", "CONSISTENT_HASH"),
        ("AllocateMachineRoomNearby", "MACHINE_ROOM_NEARBY"),
        ("AllocateMessageQueueOfOurs", None),
    ],
)
def test_the_strategy_behind_a_reported_class(class_name: str, name: str | None) -> None:
    assert strategy_of_class_name(f"{PACKAGE}{class_name}@79339374") == name
    assert strategy_of_class_name(f"{PACKAGE}{class_name}") == name


def test_a_class_with_only_the_same_simple_name_is_not_rocketmqs() -> None:
    assert strategy_of_class_name("com.example.AllocateMessageQueueAveragely@1") is None
    assert strategy_of_class_name("") is None
