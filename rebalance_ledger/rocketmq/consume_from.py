"""The offset at which a starting client begins to read a queue: the stored one or that of its settings, and the broker's correction.

Rules, with their classes (verified in 4.1.0 to 5.3.3, and in Go's client 2.1.2):

* `RebalancePushImpl.computePullFromWhere` (from 4.9.0 on `computePullFromWhereWithException`): a stored offset of 0 or more
  is used; -1 means that none is stored, and `ConsumeFromWhere` applies; with less than -1, the client skips the queue. Go's `pushConsumer` does the same.
* `RebalanceLitePullImpl.computePullFromWhere` has the rule since 4.7.0, without the three deprecated settings: with one
  of these, a lite pull consumer without a stored offset requests -1.
* `DefaultMQPullConsumerImpl.consumeFromWhere` returns a constant that nothing uses: the application chooses the offset of a pull consumer.
* `DefaultMessageStore.getMessage` and `PullMessageProcessor`: for an offset outside of the queue, the broker returns
  `PULL_OFFSET_MOVED` and a new offset: the minimum for a smaller one, the maximum for a greater one. For an offset above the
  maximum, brokers up to 4.9.3 return 0 if the minimum offset is 0.

Belongs here: these rules. Does not belong here: the content of a file (`rebalance_ledger.rocketmq.offset_files`), Spark.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rebalance_ledger.rocketmq.versions import Version

if TYPE_CHECKING:
    import numpy.typing as npt

NONE: Final = -1
"""No stored offset, as in RocketMQ; in this module also an unknown offset. Offsets of queues are never negative."""

_PULL: Final = "CONSUME_ACTIVELY"
_LITE_PULL_SINCE: Final = Version(4, 7, 0)


class DefaultRule(IntEnum):
    """Where a client without a stored offset begins."""

    UNKNOWN = 0
    LAST = 1
    FIRST = 2
    TIMESTAMP = 3


class Start(IntEnum):
    """Whether the client starts."""

    UNKNOWN = 0
    STARTS = 1
    FAILS = 2


class Restart(IntEnum):
    """Reason for the offset at which a client begins."""

    UNKNOWN = 0
    STORED = 1
    DEFAULT_LAST = 2
    DEFAULT_FIRST = 3
    DEFAULT_TIMESTAMP = 4
    CORRECTED_BY_BROKER_TO_MIN = 5
    CORRECTED_BY_BROKER_TO_MAX = 6
    FAILS_TO_START = 7
    QUEUE_SKIPPED = 8


RESTART_REASONS: Final = tuple(restart.name.lower() for restart in Restart)
"""Names of `Restart` in the tables, in the order of their numbers."""


class RestartBatch(NamedTuple):
    """Where clients begin to read N queues.

    Attributes:
        offset: The first offset (messages) that is consumed; `NONE` if it is unknown or there is none.
        reason: Numbers of `Restart`.
        skipped_count: Messages between the offset that was reached and `offset`; `NONE` if unknown.
        repeated_count: Messages between `offset` and the offset that was reached; `NONE` if unknown.
    """

    offset: npt.NDArray[np.int64]
    reason: npt.NDArray[np.int8]
    skipped_count: npt.NDArray[np.int64]
    repeated_count: npt.NDArray[np.int64]


_RULE_OF_SETTING: Final = {
    "CONSUME_FROM_LAST_OFFSET": DefaultRule.LAST,
    "CONSUME_FROM_FIRST_OFFSET": DefaultRule.FIRST,
    "CONSUME_FROM_TIMESTAMP": DefaultRule.TIMESTAMP,
}
_DEPRECATED: Final = frozenset(
    {
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
    }
)
"""Settings that a push consumer treats as CONSUME_FROM_LAST_OFFSET, despite their names."""


def default_rule(
    consume_from_where: str | None, *, consume_type: str | None, is_lite_pull: bool, client_version: str
) -> DefaultRule:
    """Return where a client without a stored offset begins.

    Args:
        consume_from_where: `ConsumeFromWhere` as the client or a broker's `ConsumerConnection` names it; None if unknown.
        consume_type: `ConsumeType` in the same answer; a push consumer reports `CONSUME_PASSIVELY`, a pull consumer
            `CONSUME_ACTIVELY`; None if unknown; push is then assumed.
        is_lite_pull: Whether a pull consumer is known to be a lite pull consumer; any other begins where its application chooses.
        client_version: The client's release, such as `4.9.7`.

    Raises:
        UnknownNameError: The release is unknown.
    """
    is_pull = consume_type == _PULL
    if consume_from_where is None or (is_pull and not is_lite_pull):
        return DefaultRule.UNKNOWN
    if is_pull and Version.parse(client_version) < _LITE_PULL_SINCE:
        return DefaultRule.UNKNOWN
    if consume_from_where in _DEPRECATED and not is_pull:
        return DefaultRule.LAST
    return _RULE_OF_SETTING.get(consume_from_where, DefaultRule.UNKNOWN)


def restart_batch(
    *,
    stored: npt.NDArray[np.int64],
    rule: npt.NDArray[np.int8],
    start: npt.NDArray[np.int8],
    is_retry: npt.NDArray[np.bool_],
    least: npt.NDArray[np.int64],
    greatest: npt.NDArray[np.int64],
    is_newer: npt.NDArray[np.bool_],
    reached: npt.NDArray[np.int64],
) -> RestartBatch:
    """Return where clients that are started now would begin to read N queues, with brokers of 4.9.4 or later.

    Args:
        stored: The stored offset of each queue (messages); `NONE` for none.
        rule: Numbers of `DefaultRule`.
        start: Numbers of `Start`.
        is_retry: Whether the topic is a retry topic.
        least: Minimum offset of the queue (messages); `NONE` if the broker did not return it.
        greatest: Maximum offset of the queue, which is that of the next message; `NONE` if the broker did not return it.
        is_newer: Whether the offset was stored after the broker was queried, so that it may correctly be past `greatest`.
        reached: The furthest known offset of the client; `NONE` if none is known.
    """
    has_bounds = (least >= 0) & (greatest >= 0)
    has_stored = stored >= 0
    is_default = stored == NONE
    is_behind = has_stored & has_bounds & (stored < least)
    is_ahead = has_stored & has_bounds & (stored > greatest) & ~is_newer
    # At 0 the broker corrects to the least offset: `default_first` and retry topics begin there.
    lowest = np.where(has_bounds, least, NONE)
    highest = np.where(has_bounds, greatest, NONE)
    unknown = np.full_like(stored, NONE)
    # In the order of precedence: condition, reason, offset.
    choices = (
        (start == Start.UNKNOWN, Restart.UNKNOWN, unknown),
        (start == Start.FAILS, Restart.FAILS_TO_START, unknown),
        (stored < NONE, Restart.QUEUE_SKIPPED, unknown),
        (has_stored & ~has_bounds, Restart.UNKNOWN, unknown),
        (is_behind, Restart.CORRECTED_BY_BROKER_TO_MIN, lowest),
        (is_ahead, Restart.CORRECTED_BY_BROKER_TO_MAX, highest),
        (has_stored, Restart.STORED, stored),
        (
            is_default & (rule == DefaultRule.LAST),
            Restart.DEFAULT_LAST,
            np.where(is_retry, lowest, highest),
        ),
        (is_default & (rule == DefaultRule.FIRST), Restart.DEFAULT_FIRST, lowest),
        (
            is_default & (rule == DefaultRule.TIMESTAMP),
            Restart.DEFAULT_TIMESTAMP,
            np.where(is_retry, highest, NONE),
        ),
    )
    conditions = [condition for condition, _, _ in choices]
    reason = np.select(conditions, [int(each) for _, each, _ in choices], Restart.UNKNOWN).astype(np.int8)
    offset = np.select(conditions, [each for _, _, each in choices], NONE)
    # Past the log's end the numbers count another log's messages: these are undetermined.
    is_known = (offset >= 0) & (reached >= 0) & ~is_ahead
    skipped = np.where(is_known, np.maximum(offset - reached, 0), NONE)
    repeated = np.where(is_known, np.maximum(reached - offset, 0), NONE)
    return RestartBatch(offset, reason, skipped, repeated)
