"""The offset at which a starting client resumes a queue: cases of `RebalancePushImpl` and of the broker's correction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rebalance_ledger.rocketmq.consume_from import (
    NONE,
    RESTART_REASONS,
    DefaultRule,
    Start,
    default_rule,
    restart_batch,
)


def restart(**given: Any) -> tuple[str, int, int, int]:
    """Return the reason, offset, skipped and repeated count of a queue with messages 10 to 99.

    By default no offset is stored, and none was observed earlier.
    """
    queue = {
        "stored": NONE,
        "rule": DefaultRule.LAST,
        "start": Start.STARTS,
        "is_retry": False,
        "least": 10,
        "greatest": 100,
        "is_newer": False,
    } | given
    queue.setdefault("reached", queue["stored"])
    kinds = {"rule": np.int8, "start": np.int8, "is_retry": np.bool_, "is_newer": np.bool_}
    batch = restart_batch(
        **{name: np.array([value], kinds.get(name, np.int64)) for name, value in queue.items()}
    )
    return (
        RESTART_REASONS[batch.reason[0]],
        int(batch.offset[0]),
        int(batch.skipped_count[0]),
        int(batch.repeated_count[0]),
    )


def test_a_stored_offset_wins_whatever_the_settings_say() -> None:
    for rule in DefaultRule:
        assert restart(stored=42, rule=rule) == ("stored", 42, 0, 0)


@pytest.mark.parametrize("stored", [10, 100])
def test_both_ends_of_the_log_are_taken_as_they_are(stored: int) -> None:
    assert restart(stored=stored) == ("stored", stored, 0, 0)


def test_what_was_removed_is_skipped() -> None:
    assert restart(stored=4) == ("corrected_by_broker_to_min", 10, 6, 0)


def test_an_offset_past_the_end_is_set_to_the_end_with_an_unknown_skip() -> None:
    assert restart(stored=101) == ("corrected_by_broker_to_max", 100, NONE, NONE)


def test_an_offset_past_the_end_of_an_empty_queue_becomes_0() -> None:
    assert restart(stored=5, least=0, greatest=0) == ("corrected_by_broker_to_max", 0, NONE, NONE)


def test_an_offset_that_is_newer_than_what_the_broker_said_may_be_past_it() -> None:
    assert restart(stored=101, is_newer=True) == ("stored", 101, 0, 0)


def test_an_older_stored_offset_repeats() -> None:
    assert restart(stored=42, reached=50) == ("stored", 42, 0, 8)


def test_without_a_stored_offset_last_skips_to_the_end() -> None:
    assert restart(reached=90) == ("default_last", 100, 10, 0)


def test_without_a_stored_offset_first_repeats_all_that_is_kept() -> None:
    assert restart(rule=DefaultRule.FIRST, reached=90) == ("default_first", 10, 0, 80)


def test_a_client_without_observed_progress_skips_an_unknown_number() -> None:
    assert restart() == ("default_last", 100, NONE, NONE)


def test_the_start_offset_by_timestamp_is_unknown() -> None:
    assert restart(rule=DefaultRule.TIMESTAMP, reached=90) == ("default_timestamp", NONE, NONE, NONE)


def test_a_retry_topic_begins_at_the_other_end() -> None:
    assert restart(is_retry=True)[:2] == ("default_last", 10)
    assert restart(is_retry=True, rule=DefaultRule.TIMESTAMP)[:2] == ("default_timestamp", 100)


def test_a_stored_offset_below_minus_one_leaves_the_queue_out() -> None:
    assert restart(stored=-2) == ("queue_skipped", NONE, NONE, NONE)


def test_a_client_that_does_not_start_has_no_offset() -> None:
    assert restart(start=Start.FAILS, reached=90) == ("fails_to_start", NONE, NONE, NONE)


@pytest.mark.parametrize(
    "unknown",
    [
        {"stored": 42, "least": NONE, "greatest": NONE},
        {"rule": DefaultRule.UNKNOWN},
        {"start": Start.UNKNOWN},
    ],
)
def test_missing_values_are_not_invented(unknown: dict[str, Any]) -> None:
    assert restart(**unknown) == ("unknown", NONE, NONE, NONE)


def test_a_default_without_the_brokers_offsets_has_a_reason_and_no_offset() -> None:
    assert restart(least=NONE, greatest=NONE, reached=90) == ("default_last", NONE, NONE, NONE)


@pytest.mark.parametrize(
    "setting",
    [
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
    ],
)
def test_a_push_consumer_takes_the_deprecated_settings_for_last(setting: str) -> None:
    push = {"consume_type": "CONSUME_PASSIVELY", "is_lite_pull": False, "client_version": "5.3.3"}

    assert default_rule(setting, **push) is DefaultRule.LAST


def test_a_lite_pull_consumer_does_not_know_the_deprecated_settings() -> None:
    lite = {"consume_type": "CONSUME_ACTIVELY", "is_lite_pull": True, "client_version": "5.3.3"}

    assert default_rule("CONSUME_FROM_MIN_OFFSET", **lite) is DefaultRule.UNKNOWN
    assert default_rule("CONSUME_FROM_FIRST_OFFSET", **lite) is DefaultRule.FIRST


def test_a_lite_pull_consumer_has_the_rule_since_4_7_0() -> None:
    def rule(version: str) -> DefaultRule:
        return default_rule(
            "CONSUME_FROM_LAST_OFFSET",
            consume_type="CONSUME_ACTIVELY",
            is_lite_pull=True,
            client_version=version,
        )

    assert (rule("4.6.1"), rule("4.7.0")) == (DefaultRule.UNKNOWN, DefaultRule.LAST)


def test_an_unreported_setting_is_unknown() -> None:
    assert (
        default_rule(None, consume_type=None, is_lite_pull=False, client_version="5.3.3")
        is DefaultRule.UNKNOWN
    )


def test_the_application_chooses_where_another_pull_consumer_begins() -> None:
    pull = {"consume_type": "CONSUME_ACTIVELY", "is_lite_pull": False, "client_version": "5.3.3"}

    assert default_rule("CONSUME_FROM_LAST_OFFSET", **pull) is DefaultRule.UNKNOWN
