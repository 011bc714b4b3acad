"""Compute `gold.broadcast_offset`: how far each broadcasting client has read each queue, and where it would continue.

Belongs here: the state of a queue, and its evidence. Does not belong here: where a client starts to consume
(`rebalance_ledger.rocketmq.consume_from`), and the state of whole files (`broadcast_offset_file`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.consume_from import (
    NONE,
    RESTART_REASONS,
    DefaultRule,
    Start,
    default_rule,
    restart_batch,
)
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from rebalance_ledger.rocketmq.versions import DEFAULT_VERSION
from spark_jobs.day_key import DAY
from spark_jobs.silver.offset_file_snapshots import FILES
from strategies import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame

_QUEUE: Final = ("topic", "broker_name", "queue_id")
_CLIENT: Final = (*DAY, "consumer_group", "client_id")
_EARLIER: Final = ("highest_earlier_offset", "previous_offset")

UNUSED_FILE_STATES: Final = ("clustering_group_with_file", "orphan_dir")
"""States of files that no client reads."""

_RESTART_DDL: Final = "struct<offset: bigint, reason: string, skipped: bigint, repeated: bigint>"


def broadcast_offset(
    silver: Mapping[str, DataFrame],
    routes: DataFrame,
    subscriptions: DataFrame,
    readings: DataFrame,
    files: DataFrame,
) -> DataFrame:
    """Return one row per queue of each pair of offset files: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name.
        routes: See `routes.client_routes`.
        subscriptions: See `subscriptions.subscriptions`.
        readings: See `offset_file_snapshots.readings`.
        files: `broadcast_offset_file`.
    """

    @F.arrow_udf(_RESTART_DDL)  # type: ignore[attr-defined,untyped-decorator]  # PySpark 4.1 exports it without a type
    def restarts(
        stored: pa.Array,
        setting: pa.Array,
        outcome: pa.Array,
        is_retry: pa.Array,
        bounds: pa.Array,
        is_newer: pa.Array,
        reached: pa.Array,
    ) -> pa.Array:
        return restart_structs(stored, setting, outcome, is_retry, bounds, is_newer, reached)

    queues = (
        _queues(readings, files, subscriptions)
        .join(_of_files(files, readings), list(FILES))
        .join(_settings_at_brokers(silver["group_presence"]), [*DAY, "consumer_group"], "left")
        .join(_own_settings(silver), list(_CLIENT), "left")
        .withColumns(_settings())
        .join(
            silver["queue_offset"].select(
                *DAY,
                *_QUEUE,
                "min_offset",
                "max_offset",
                "last_stored_at",
                F.col("captured_at").alias("asked_at"),
            ),
            [*DAY, *_QUEUE],
            "left",
        )
        .join(silver["memory_offset"].select(*_CLIENT, *_QUEUE, "memory_offset"), [*_CLIENT, *_QUEUE], "left")
        .join(routes.select(*DAY, "topic", "route_state", "brokers"), [*DAY, "topic"], "left")
        .withColumn("is_routed", _is_routed())
        .withColumn("is_newer", F.coalesce(F.col("modified_at") > F.col("asked_at"), F.lit(col=False)))
        .withColumn("reached", F.greatest("stored_offset", "memory_offset", *_EARLIER))
        .withColumn(
            "restart",
            restarts(
                F.col("stored_offset"),
                F.struct("consume_from_where", "consume_type", "client_version", "is_lite_pull"),
                F.col("start_outcome"),
                F.coalesce(F.startswith("topic", F.lit(RETRY_PREFIX)), F.lit(col=False)),
                F.struct("min_offset", "max_offset"),
                F.col("is_newer"),
                F.col("reached"),
            ),
        )
        .withColumn("state", _state())
    )
    is_pulled = ~F.col("state").isin("unused", "orphan_queue")
    # Brokers and files may have any 64-bit offsets; a difference beyond 64 bits is unknown.
    lag = F.try_subtract(F.col("max_offset"), F.col("stored_offset"))
    has_offset = F.col("stored_offset") >= 0
    return queues.select(
        *FILES,
        *_QUEUE,
        "state",
        "file_state",
        "start_from",
        "stored_offset",
        "memory_offset",
        "min_offset",
        "max_offset",
        F.when(has_offset & ((lag >= 0) | (F.col("state") == "ahead_of_max")), lag).alias(
            "lag_message_count"
        ),
        F.when(
            has_offset & F.col("min_offset").isNotNull(),
            F.greatest(F.try_subtract(F.col("min_offset"), F.col("stored_offset")), F.lit(0)),
        ).alias("lost_message_count"),
        F.col("asked_at").alias("offsets_captured_at"),
        "last_stored_at",
        "highest_earlier_offset",
        F.when(F.col("previous_offset").isNotNull(), F.col("previous_ds")).alias("previous_ds"),
        "previous_offset",
        "is_routed",
        "consume_from_where",
        *(
            F.when(is_pulled, F.col(f"restart.{field}")).alias(name)
            for field, name in (
                ("offset", "restart_offset"),
                ("reason", "restart_reason"),
                ("skipped", "skipped_message_count"),
                ("repeated", "repeated_message_count"),
            )
        ),
    )


def _queues(readings: DataFrame, files: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Return the queues with a stored offset, and those that should have one, with the current and earlier stored offsets."""

    def stored(role: str, name: str) -> DataFrame:
        return (
            readings.where(F.col("role") == role)
            .select(*FILES, F.inline("entries"))
            .select(*FILES, *_QUEUE, F.col("stored_offset").alias(name))
        )

    subscribed = (
        subscriptions.where("group_state = 'broadcasting' and route_state = 'known'")
        .where(~F.startswith("topic", F.lit(RETRY_PREFIX)))
        .select(*DAY, "consumer_group", "topic", F.explode("brokers").alias("broker"))
        .where("broker.queue_count > 0")
        .select(
            *DAY,
            "consumer_group",
            "topic",
            "broker.broker_name",
            F.explode(F.sequence(F.lit(0), F.col("broker.queue_count") - 1)).alias("queue_id"),
        )
    )
    expected = (
        files.where(~F.col("state").isin("unknown", *UNUSED_FILE_STATES))
        .select(*FILES)
        .join(subscribed, [*DAY, "consumer_group"])
        .withColumn("is_expected", F.lit(col=True))
    )
    sources = expected
    for role, name in (
        ("newest", "stored_offset"),
        ("earlier_moment", "highest_earlier_offset"),
        ("previous", "previous_offset"),
    ):
        sources = sources.unionByName(stored(role, name), allowMissingColumns=True)
    return (
        sources.groupBy(*FILES, *_QUEUE)
        .agg(
            F.max("is_expected").alias("is_expected"),
            F.max("stored_offset").alias("stored_offset"),
            F.max("highest_earlier_offset").alias("highest_earlier_offset"),
            F.max("previous_offset").alias("previous_offset"),
        )
        .where("is_expected or stored_offset is not null")
        .drop("is_expected")
    )


def _of_files(files: DataFrame, readings: DataFrame) -> DataFrame:
    """Return the columns that all queues of a pair of files share."""
    previous = (
        readings.where("role = 'previous'")
        .groupBy(*FILES)
        .agg(F.max("captured_at").alias("previous_captured_at"))
    )
    modified_at = F.when(F.col("start_from") == "bak", F.col("bak_modified_at")).otherwise(
        F.col("main_modified_at")
    )
    return (
        files.where("host is not null")
        .select(
            *FILES,
            F.col("state").alias("file_state"),
            "start_outcome",
            "start_from",
            "client_version",
            modified_at.alias("modified_at"),
            "previous_ds",
        )
        .join(previous, list(FILES), "left")
    )


def _agreed(name: str) -> Column:
    """Return the value if all rows that have one have the same."""
    return F.when(F.min(name) == F.max(name), F.max(name))


def _settings_at_brokers(group_presence: DataFrame) -> DataFrame:
    """Return the settings of a group for queues without a stored offset, from brokers that have the group online.

    A broker has those of the last heartbeat of any member, so they are known only if all brokers have the same.
    """
    return (
        group_presence.where("state = 'online'")
        .groupBy(*DAY, "consumer_group")
        .agg(
            _agreed("consume_from_where").alias("setting_at_brokers"),
            # A pull consumer's offsets are the least predictable.
            F.min("consume_type").alias("type_at_brokers"),
        )
    )


def _own_settings(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return what the processes of each client report of themselves: `_CLIENT`; setting, type, and whether it lists its queues."""
    names = ("consume_from_where", "consume_type", "reports_queues")
    answers = [
        silver[table].where("state = 'online'").select(*_CLIENT, *names)
        for table in ("consumer_client", "client_process")
    ]
    return (
        answers[0]
        .unionByName(answers[1])
        .groupBy(*_CLIENT)
        .agg(
            F.max("consume_from_where").isNotNull().alias("has_own_setting"),
            _agreed("consume_from_where").alias("own_setting"),
            F.min("consume_type").alias("own_type"),
            F.bool_and("reports_queues").alias("reports_queues"),
        )
    )


def _settings() -> dict[str, Column]:
    return {
        "consume_from_where": F.when(F.col("has_own_setting"), F.col("own_setting")).otherwise(
            F.col("setting_at_brokers")
        ),
        "consume_type": F.coalesce("own_type", "type_at_brokers"),
        # Of consumers that pull, only lite pull consumers list their queues.
        "is_lite_pull": F.when(F.col("reports_queues"), "yes"),
    }


def _is_routed() -> Column:
    is_readable = F.exists(
        "brokers",
        lambda broker: (
            (broker["broker_name"] == F.col("broker_name")) & (F.col("queue_id") < broker["queue_count"])
        ),
    ) & (F.col("queue_id") >= 0)
    return F.when(F.col("route_state") == "known", F.coalesce(is_readable, F.lit(col=False))).when(
        F.col("route_state") == "none", F.lit(col=False)
    )


def _state() -> Column:
    stored, least, greatest = F.col("stored_offset"), F.col("min_offset"), F.col("max_offset")
    earlier = F.greatest(*_EARLIER)
    is_past_end = stored > greatest
    # An offset past the end of the log that was stored after the broker answered is normal if the client was within the log before.
    was_within_log = F.coalesce(F.least(*_EARLIER) <= greatest, F.lit(col=False))
    # A client whose reported offset is ahead of its file still reads.
    is_reading = F.coalesce(F.col("memory_offset") > stored, F.lit(col=False))
    is_unchanged = (stored == F.col("previous_offset")) & (stored < greatest) & ~is_reading
    has_new_messages = F.col("last_stored_at") > F.col("previous_captured_at")
    # The first condition that holds decides; docs/broadcast-offsets.md explains the order.
    return (
        F.when(F.col("file_state").isin(*UNUSED_FILE_STATES), "unused")
        .when(F.col("is_routed") == F.lit(col=False), "orphan_queue")
        .when(stored.isNull() | (stored < 0), "no_offset")
        .when(is_past_end & ~F.col("is_newer"), "ahead_of_max")
        .when(stored < least, "behind_min")
        .when(stored < earlier, "regressed")
        .when(is_unchanged & has_new_messages, "stale")
        .when(least.isNull() | greatest.isNull() | (is_past_end & ~was_within_log), "unknown")
        .otherwise("ok")
    )


def restart_structs(
    stored: pa.Array,
    setting: pa.Array,
    outcome: pa.Array,
    is_retry: pa.Array,
    bounds: pa.Array,
    is_newer: pa.Array,
    reached: pa.Array,
) -> pa.Array:
    """Apply `rebalance_ledger.rocketmq.consume_from.restart_batch` to an Arrow batch of N queues.

    Args:
        stored: Stored offsets; null for none.
        setting: Structs of consume_from_where, consume_type, client_version and is_lite_pull (`yes`), each null if it is not reported.
        outcome: `start_outcome` of the files.
        is_retry: Whether the topic is a retry topic.
        bounds: Structs of min_offset and max_offset, null if unknown.
        is_newer: Whether the file is newer than the bounds.
        reached: The highest known offset.

    Returns:
        N structs of offset, reason, skipped and repeated; null for an unknown number.
    """
    is_failing = pc.equal(outcome, "fails_to_start")
    start = pc.if_else(is_failing, int(Start.FAILS), int(Start.STARTS)).fill_null(int(Start.UNKNOWN))
    batch = restart_batch(
        stored=stored.fill_null(NONE).to_numpy(zero_copy_only=False),
        rule=_rules(setting),
        start=start.to_numpy(zero_copy_only=False),
        is_retry=is_retry.to_numpy(zero_copy_only=False),
        least=bounds.field(0).fill_null(NONE).to_numpy(zero_copy_only=False),
        greatest=bounds.field(1).fill_null(NONE).to_numpy(zero_copy_only=False),
        is_newer=is_newer.to_numpy(zero_copy_only=False),
        reached=reached.fill_null(NONE).to_numpy(zero_copy_only=False),
    )
    numbers = [
        pa.array(values, mask=values < 0)
        for values in (batch.offset, batch.skipped_count, batch.repeated_count)
    ]
    reasons = pa.array(np.array(RESTART_REASONS, dtype=object)[batch.reason], pa.string())
    return pa.StructArray.from_arrays(
        [numbers[0], reasons, *numbers[1:]], ["offset", "reason", "skipped", "repeated"]
    )


def _rules(setting: pa.StructArray) -> npt.NDArray[np.int8]:
    """Return the `DefaultRule` of each setting as a number; each distinct setting is looked up once."""
    encoded = [part.fill_null("").dictionary_encode() for part in setting.flatten()]
    dictionaries = [part.dictionary.to_pylist() for part in encoded]
    codes = np.stack([part.indices.to_numpy() for part in encoded])
    settings, setting_of_row = np.unique(codes, axis=1, return_inverse=True)
    rules = []
    for codes_of_setting in settings.T:
        consume_from_where, consume_type, client_version, is_lite_pull = (
            texts[code] for texts, code in zip(dictionaries, codes_of_setting, strict=True)
        )
        try:
            rule = default_rule(
                consume_from_where or None,
                consume_type=consume_type or None,
                is_lite_pull=bool(is_lite_pull),
                client_version=client_version or DEFAULT_VERSION,
            )
        except UnknownNameError:
            rule = DefaultRule.UNKNOWN
        rules.append(rule)
    numbers: npt.NDArray[np.int8] = np.array(rules, np.int8)[setting_of_row.reshape(-1)]
    return numbers
