"""Compute `gold.broadcast_offset_file`: the state of each broadcasting client's offset files.

Belongs here: the state, and its evidence. Does not belong here: how a client reads the files (`offset_file_snapshots`), and single
queues (`broadcast_offset`). `docs/broadcast-offsets.md` explains the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from spark_jobs.assignment.presence import is_users_group, with_answers_of_proxies
from spark_jobs.day_key import DAY
from spark_jobs.silver.offset_file_snapshots import FILES, connections_of_writers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

STALE_AFTER_MS: Final = 3_600_000
"""A running client writes its file every 5 s; the bound allows for files that are copied hourly."""

ORPHAN_AFTER_MS: Final = 7 * 24 * 3_600_000
"""No restart of a client that is still in use takes a week."""

_PROCESS_BOUND_ID: Final = r"^[^@]*@(\d+#\d+|[^@]+@\d+@\d{9,})(@|$)"
"""Ids with the process and a time, which no later process has: `pid#time`, and `nameserver@pid@nanoTime` of rocketmq-spring.

A number alone is a name that somebody chose: RocketMQ inserts the pid only for CLUSTERING consumers, which have no files.
"""

_COLLECTED_LANGUAGES: Final = ("JAVA", "GO")
"""Languages of clients whose files collectors ship. C++ clients write `offsets.Json`, in another format."""

_PORT: Final = r":\d+$"

_GROUP: Final = (*DAY, "consumer_group")
_CLIENT: Final = (*_GROUP, "client_id")
_HOST: Final = (*DAY, "host")

_SNAPSHOT_COLUMNS: Final = (
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
    """Return one row per pair of offset files: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name.
        subscriptions: See `subscriptions.subscriptions`.
        readings: See `offset_file_snapshots.readings`.
    """
    members = _members(silver)
    hosts = silver["offset_file"].where("state = 'landed'").select(*_HOST).distinct()
    groups = _groups(silver, subscriptions)
    snapshots = _snapshots(readings).join(_landed(silver["offset_file"]), list(FILES), "full_outer")
    described = (
        _with_clients_without_files(snapshots, _broadcasting(members, groups), hosts)
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
    evaluated = described.withColumn("age_ms", age_ms).withColumn("state", _state())
    # The files of a process-bound client id may be removed with the process, so missing files are not a problem.
    is_removed = F.col("newest").isNull() & _is_process_bound() & (F.col("state") == "missing")
    return evaluated.where(~is_removed | F.coalesce("is_online", F.lit(col=False))).select(
        *FILES,
        "state",
        _reason().alias("reason"),
        _start_outcome().alias("start_outcome"),
        *(F.col(f"newest.{name}").alias(name) for name in _SNAPSHOT_COLUMNS[2:]),
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


def _snapshots(readings: DataFrame) -> DataFrame:
    """Return one row per pair of files: the newest and the previous snapshot, and the states of the day's earlier ones."""
    row = F.struct("moment", "captured_at", "snapshot_ds", *_SNAPSHOT_COLUMNS)

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
    """Return the clients that are connected to a broker or proxy.

    Several connections to every broker are several processes or dead connections; only answers of the processes decide.

    Columns: `_CLIENT`; is_connected: always true; connected_process_count: null if unknown; address_count: addresses that it is
    connected from, null if no broker and no proxy lists it; other_language: its language if its files are not collected, else null.
    """
    writers = connections_of_writers(silver)
    connections = writers.groupBy(*_CLIENT, "connected_to").count()
    reports = writers.groupBy(*_CLIENT).agg(
        F.count_distinct(F.regexp_replace("client_addr", _PORT, "")).cast("int").alias("address_count"),
        F.when(
            F.bool_and(~F.col("client_language").isin(*_COLLECTED_LANGUAGES)), F.max("client_language")
        ).alias("other_language"),
    )
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
        # A second connection to only some of the brokers or proxies is a dead one.
        .agg(F.min("count").alias("connections"))
        .join(answered, list(_CLIENT), "full_outer")
        .join(own_answers, list(_CLIENT), "full_outer")
        .join(reports, list(_CLIENT), "left")
        .select(
            *_CLIENT,
            F.lit(col=True).alias("is_connected"),
            F.coalesce("answered", F.when(F.coalesce("connections", "asked") == 1, F.lit(1)))
            .cast("int")
            .alias("connected_process_count"),
            "address_count",
            "other_language",
        )
    )


def _groups(silver: Mapping[str, DataFrame], subscriptions: DataFrame) -> DataFrame:
    """Return the message model of each group: `DAY`; consumer_group; message_model; is_known: whether the members are known."""
    states = subscriptions.groupBy(*_GROUP).agg(
        F.bool_or(F.col("group_state") != "unknown").alias("is_known_by_route")
    )
    is_online = F.col("state") == "online"
    models = (
        silver["group_presence"]
        .select(*_GROUP, "state", "message_model")
        .unionByName(silver["proxy_presence"].select(*_GROUP, "state", "message_model"))
        .groupBy(*_GROUP)
        .agg(
            # A broadcasting member has files, even if other members do not broadcast.
            F.min(F.when(is_online, F.col("message_model"))).alias("message_model"),
            F.bool_and(F.col("state") != "unknown").alias("is_known_by_all"),
        )
    )
    return with_answers_of_proxies(silver, models.join(states, list(_GROUP), "full_outer")).select(
        *_GROUP,
        "message_model",
        (F.coalesce("is_known_by_route", "is_known_by_all") & ~F.col("may_have_hidden_members")).alias(
            "is_known"
        ),
    )


def _broadcasting(members: DataFrame, groups: DataFrame) -> DataFrame:
    return members.join(groups.where("message_model = 'BROADCASTING'"), list(_GROUP), "left_semi")


def _with_clients_without_files(snapshots: DataFrame, members: DataFrame, hosts: DataFrame) -> DataFrame:
    """Add a row for each connected client without files, with the host of its address if files of that host have landed."""
    without_files = members.join(snapshots.select(*_CLIENT).distinct(), list(_CLIENT), "left_anti").select(
        *_CLIENT, F.split("client_id", "@")[0].alias("address")
    )
    by_address = hosts.select(*_HOST, F.col("host").alias("address"))
    with_host = without_files.join(by_address, [*DAY, "address"], "left").select(*FILES)
    return snapshots.unionByName(with_host, allowMissingColumns=True)


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
    """Return whether a file of the newest snapshot failed to land; such a file is not missing, and its state is unknown."""
    failed = F.col("failed_moment")
    return failed.isNotNull() & (F.col("newest").isNull() | (failed >= F.col("newest.moment")))


def _has_other_files() -> Column:
    """Return whether the client writes files, if any, that are not collected; without files nothing is known of its progress."""
    return F.col("newest").isNull() & F.col("other_language").isNotNull()


def _has_further_processes() -> Column:
    """Return whether more processes have the client id than there are hosts with its files."""
    return F.coalesce(F.col("process_count") > F.col("host_count"), F.lit(col=False))


def _is_at_known_hosts() -> Column:
    """Return whether the client is connected from no more addresses than there are hosts with its files."""
    return F.coalesce(F.col("address_count") <= F.col("host_count"), F.lit(col=False))


def _state() -> Column:
    has_files = F.col("newest.main_state").isNotNull() | F.col("newest.bak_state").isNotNull()
    is_away = F.coalesce(~F.col("is_online"), F.lit(col=False))
    is_old = F.coalesce(F.col("age_ms") > ORPHAN_AFTER_MS, F.lit(col=False))
    outcome, source = F.col("newest.start_outcome"), F.col("newest.start_from")
    # The first condition that holds decides; docs/broadcast-offsets.md explains the order.
    return (
        F.when(_is_failed() | _has_other_files(), "unknown")
        .when(F.col("newest").isNull() & F.col("is_host_landed"), "missing")
        .when(F.col("newest").isNull(), "unknown")
        .when(F.col("message_model") == "CLUSTERING", "clustering_group_with_file")
        .when(is_away & is_old, "orphan_dir")
        # Only age proves that no client uses an id; a fixed name may look like a process.
        .when(outcome == "fails_to_start", "corrupt_both")
        .when(is_away & _is_process_bound(), "orphan_dir")
        .when(outcome.isNull(), "unknown")
        .when(~has_files, "missing")
        # Processes on two hosts have two files.
        .when(_has_further_processes() & ~_is_at_known_hosts(), "unknown")
        .when(_has_further_processes(), "shared_file")
        .when(outcome == "default", "empty")
        .when(source == "bak", "recovered_from_bak")
        .when(F.col("is_online") & (F.col("age_ms") > STALE_AFTER_MS), "stale")
        .otherwise("ok")
    )


def _reason() -> Column:
    is_read = F.col("newest.start_outcome").isNotNull() & (F.col("state") == "unknown")
    addresses = F.concat(
        F.lit("the client id is connected from "),
        F.col("address_count").cast("string"),
        F.lit(" addresses, which are more than the hosts with its files"),
    )
    processes = F.concat(
        F.coalesce(addresses, F.lit("no broker and no proxy lists an address of the client id")),
        F.lit(": whether processes share a file is not known"),
    )
    language = F.concat(
        F.lit("the client reports the language "),
        F.col("other_language"),
        F.lit(", and only files of Java and Go clients are collected"),
    )
    no_files = (
        F.when(F.col("is_host_landed"), "no offset file was found on the host")
        .when(F.col("host").isNull(), "no files landed of the client's host")
        .otherwise("nothing landed of this host today")
    )
    return (
        F.when(_is_failed(), "a file could not be read on its host")
        .when(_has_other_files(), language)
        .when(F.col("newest").isNull(), no_files)
        .when(is_read, processes)
        .otherwise(F.col("newest.reason"))
    )


def _start_outcome() -> Column:
    outcome = F.when(F.col("newest").isNull(), "default").otherwise(F.col("newest.start_outcome"))
    is_unused = F.col("state") == "clustering_group_with_file"
    is_unknown = F.col("state") == "unknown"
    return F.when(~is_unused & ~is_unknown, outcome)
