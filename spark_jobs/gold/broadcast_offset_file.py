"""Compute `gold.broadcast_offset_file`: the state of each broadcasting client's offset files.

What belongs here: which state, and what is evidence of it. What does not: what a client reads in the files
(`offset_file_snapshots`), single queues (`broadcast_offset`). `docs/broadcast-offsets.md` is this module in prose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from spark_jobs.assignment.presence import is_users_group
from spark_jobs.day_key import DAY
from spark_jobs.silver.offset_file_snapshots import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

STALE_AFTER_MS: Final = 3_600_000
"""A running client writes every 5 s; an hour leaves room for files that are shipped hourly."""

ORPHAN_AFTER_MS: Final = 7 * 24 * 3_600_000
"""A week: no restart of a client that is still in use takes so long."""

_PROCESS_BOUND_ID: Final = r"^[^@]*@\d+(#\d+)?(@|$)"
"""The ids of `ClientConfig.changeInstanceNameToPID`: a pid up to 4.8.0, `pid#nanoTime` since. The next process has another."""

_GROUP: Final = (*DAY, "consumer_group")
_CLIENT: Final = (*_GROUP, "client_id")
_HOST: Final = (*DAY, "host")

_OF_SNAPSHOT: Final = (
    "reason",
    "start_outcome",
    "start_from",
    "main_state",
    "bak_state",
    "main_size_bytes",
    "bak_size_bytes",
    "main_modified_at",
    "bak_modified_at",
    "main_entry_count",
    "bak_entry_count",
    "client_language",
    "client_version",
    "client_version_source",
)


def broadcast_offset_file(
    silver: Mapping[str, DataFrame], subscriptions: DataFrame, readings: DataFrame
) -> DataFrame:
    """Return `DAY` and the table's own columns.

    Args:
        silver: the silver tables by name.
        subscriptions: see `subscriptions.subscriptions`.
        readings: see `offset_file_snapshots.readings`.
    """
    members = _members(silver)
    hosts = silver["offset_file"].where("state = 'landed'").select(*_HOST).distinct()
    groups = _groups(silver, subscriptions)
    snapshots = _seen(readings).join(_landed(silver["offset_file"]), list(FILES), "full_outer")
    described = (
        _with_hostless(snapshots, _broadcasting(members, groups), hosts)
        .join(members, list(_CLIENT), "left")
        .join(groups, list(_GROUP), "left")
        .join(hosts.withColumn("is_host_landed", F.lit(col=True)), list(_HOST), "left")
        .withColumn("is_host_landed", F.coalesce("is_host_landed", F.lit(col=False)))
        .where(is_users_group())
        .withColumns(_presence())
        .withColumn("host_count", _host_count())
    )
    age_ms = F.unix_millis("captured_at") - F.unix_millis(
        F.greatest("newest.main_modified_at", "newest.bak_modified_at")
    )
    judged = described.withColumn("age_ms", age_ms).withColumn("state", _state())
    # A client id that ends with its process leaves no files, so missing files are not a problem.
    is_tidied = F.col("newest").isNull() & _is_process_bound() & (F.col("state") == "missing")
    return judged.where(~is_tidied | F.coalesce("is_online", F.lit(col=False))).select(
        *FILES,
        "state",
        _reason().alias("reason"),
        _start_outcome().alias("start_outcome"),
        *(F.col(f"newest.{name}").alias(name) for name in _OF_SNAPSHOT[2:]),
        "age_ms",
        F.col("newest.moment").alias("moment"),
        "captured_at",
        F.coalesce("snapshot_count", F.lit(0)).alias("snapshot_count"),
        F.coalesce("landed_file_count", F.lit(0)).alias("landed_file_count"),
        F.coalesce("failed_file_count", F.lit(0)).alias("failed_file_count"),
        F.coalesce("earlier_snapshots", F.array().cast("array<string>")).alias("earlier_snapshots"),
        "message_model",
        "is_online",
        "process_count",
        "host_count",
        F.col("previous.snapshot_ds").alias("previous_ds"),
        F.col("previous.start_outcome").alias("previous_start_outcome"),
        F.greatest("previous.main_modified_at", "previous.bak_modified_at").alias("previous_modified_at"),
    )


def _seen(readings: DataFrame) -> DataFrame:
    """Return one row per pair of files that was read: the newest and previous snapshot, and the states of the day's earlier ones."""
    row = F.struct("moment", "captured_at", "snapshot_ds", *_OF_SNAPSHOT)

    def of(role: str, value: Column) -> Column:
        return F.when(F.col("role") == role, value)

    state_text = F.format_string("%d: %s/%s", "moment", "main_state", "bak_state")
    earlier = F.array_sort(
        F.collect_list(of("earlier_moment", F.struct("moment", state_text.alias("state_text"))))
    )
    return readings.groupBy(*FILES).agg(
        F.max(of("newest", row)).alias("newest"),
        F.max(of("previous", row)).alias("previous"),
        F.transform(earlier, lambda snapshot: snapshot["state_text"]).alias("earlier_snapshots"),
        F.count_if(F.col("role") != "previous").cast("int").alias("snapshot_count"),
    )


def _landed(offset_file: DataFrame) -> DataFrame:
    is_failed = F.col("state") == "failed"
    return offset_file.groupBy(*FILES).agg(
        F.count_if(~is_failed).cast("int").alias("landed_file_count"),
        F.count_if(is_failed).cast("int").alias("failed_file_count"),
        F.max(F.when(is_failed, F.col("moment"))).alias("failed_moment"),
    )


def _members(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the connected clients: `_CLIENT`, is_connected (true), connected_process_count (null where it is unknown).

    Several connections on every broker are several processes, or connections that died unnoticed: only answers tell.
    """
    connections = silver["consumer_connection"].groupBy(*_CLIENT, "broker_name").count()
    answered = (
        silver["client_process"]
        .where("state = 'online'")
        .groupBy(*_CLIENT)
        .agg(F.count("*").alias("answered"))
    )
    own_answers = (
        silver["consumer_client"].where("state = 'online'").select(*_CLIENT, F.lit(1).alias("asked"))
    )
    return (
        connections.groupBy(*_CLIENT)
        # Twice on some brokers only is the mark of a connection that died unnoticed.
        .agg(F.min("count").alias("connections"))
        .join(answered, list(_CLIENT), "full_outer")
        .join(own_answers, list(_CLIENT), "full_outer")
        .select(
            *_CLIENT,
            F.lit(col=True).alias("is_connected"),
            F.coalesce("answered", F.when(F.coalesce("connections", "asked") == 1, F.lit(1)))
            .cast("int")
            .alias("connected_process_count"),
        )
    )


def _groups(silver: Mapping[str, DataFrame], subscriptions: DataFrame) -> DataFrame:
    """Return what is known of each group: `DAY`, consumer_group, message_model, is_known (whether the brokers' lists of members can be trusted)."""
    states = subscriptions.groupBy(*_GROUP).agg(
        F.bool_or(F.col("group_state") != "unknown").alias("is_known_by_route")
    )
    is_online = F.col("state") == "online"
    models = (
        silver["group_presence"]
        .groupBy(*_GROUP)
        .agg(
            # One member that broadcasts has files, whatever the others do.
            F.min(F.when(is_online, F.col("message_model"))).alias("message_model"),
            F.bool_and(F.col("state") != "unknown").alias("is_known_by_all"),
        )
    )
    return models.join(states, list(_GROUP), "full_outer").select(
        *_GROUP,
        "message_model",
        F.coalesce("is_known_by_route", "is_known_by_all").alias("is_known"),
    )


def _broadcasting(members: DataFrame, groups: DataFrame) -> DataFrame:
    return members.join(groups.where("message_model = 'BROADCASTING'"), list(_GROUP), "left_semi")


def _with_hostless(seen: DataFrame, members: DataFrame, hosts: DataFrame) -> DataFrame:
    """Add a row for each connected client without files, on the host of its address if that host has landed."""
    without = members.join(seen.select(*_CLIENT).distinct(), list(_CLIENT), "left_anti").select(
        *_CLIENT, F.split("client_id", "@")[0].alias("address")
    )
    by_address = hosts.select(*_HOST, F.col("host").alias("address"))
    placed = without.join(by_address, [*DAY, "address"], "left").select(*FILES)
    return seen.unionByName(placed, allowMissingColumns=True)


def _presence() -> dict[str, Column]:
    is_online = F.coalesce("is_connected", F.when(F.col("is_known"), F.lit(col=False)))
    return {
        "is_online": is_online,
        "process_count": F.when(is_online, F.col("connected_process_count")).when(~is_online, F.lit(0)),
        "captured_at": F.col("newest.captured_at"),
    }


def _host_count() -> Column:
    return F.count_if(F.col("newest").isNotNull()).over(Window.partitionBy(*_CLIENT)).cast("int")


def _is_process_bound() -> Column:
    return F.col("client_id").rlike(_PROCESS_BOUND_ID)


def _is_failed() -> Column:
    """Return whether a file of the newest snapshot failed to land: then it is not missing, and nothing follows."""
    failed = F.col("failed_moment")
    return failed.isNotNull() & (F.col("newest").isNull() | (failed >= F.col("newest.moment")))


def _state() -> Column:
    has_files = F.col("newest.main_state").isNotNull() | F.col("newest.bak_state").isNotNull()
    is_away = F.coalesce(~F.col("is_online"), F.lit(col=False))
    is_old = F.coalesce(F.col("age_ms") > ORPHAN_AFTER_MS, F.lit(col=False))
    outcome, source = F.col("newest.start_outcome"), F.col("newest.start_from")
    # The first that holds; docs/broadcast-offsets.md says why in this order.
    return (
        F.when(_is_failed(), "unknown")
        .when(F.col("newest").isNull() & F.col("is_host_landed"), "missing")
        .when(F.col("newest").isNull(), "unknown")
        .when(F.col("message_model") == "CLUSTERING", "clustering_group_with_file")
        .when(is_away & (_is_process_bound() | is_old), "orphan_dir")
        .when(outcome.isNull(), "unknown")
        .when(outcome == "fails_to_start", "corrupt_both")
        .when(~has_files, "missing")
        .when(F.col("process_count") > F.col("host_count"), "shared_file")
        .when(outcome == "default", "empty")
        .when(source == "bak", "recovered_from_bak")
        .when(F.col("is_online") & (F.col("age_ms") > STALE_AFTER_MS), "stale")
        .otherwise("ok")
    )


def _reason() -> Column:
    no_files = (
        F.when(F.col("is_host_landed"), "no offset file was found on the host")
        .when(F.col("host").isNull(), "no files landed of the client's host")
        .otherwise("nothing landed of this host today")
    )
    return (
        F.when(_is_failed(), "a file could not be read on its host")
        .when(F.col("newest").isNull(), no_files)
        .otherwise(F.col("newest.reason"))
    )


def _start_outcome() -> Column:
    outcome = F.when(F.col("newest").isNull(), "default").otherwise(F.col("newest.start_outcome"))
    nothing_starts = F.col("state") == "clustering_group_with_file"
    cannot_tell = F.col("state") == "unknown"
    return F.when(~nothing_starts & ~cannot_tell, outcome)
