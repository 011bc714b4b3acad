"""Compute `gold.ownership_drift`: the expected owners of each queue beside the observed ones, with state and likely cause.

Belongs here: the state of a queue, and the evidence of a cause. Does not belong here: the expected owners
(`queue_assignment`) and the answers of clients and brokers (silver). `docs/ownership-drift.md` explains the rules.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rebalance_ledger.settings import settings_by_member
from spark_jobs.assignment.allocation import (
    BROADCASTING,
    DIVISION_REASONS,
    MIXED,
    NOT_IN_ROUTE,
    POP,
    SERVER_OFF,
)
from spark_jobs.assignment.members import (
    distinct_count,
    ids_where,
    repeated_ids,
    shared_client_ids,
    unsubscribed_ids,
)
from spark_jobs.assignment.presence import is_users_group
from spark_jobs.day_key import DAY
from spark_jobs.gold.deviating_members import deviating_members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from rebalance_ledger.settings import ClusterSettings

REBALANCE_GRACE_MS: Final = 60_000
"""Three rounds of `RebalanceService` (20 s): a client may need two after its start, and the other members one more."""

_QUEUE = (*DAY, "consumer_group", "topic", "broker_name", "queue_id")
_SUBSCRIPTION = (*DAY, "consumer_group", "topic")

_CANNOT_TELL = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "strategy_failed",
    *DIVISION_REASONS,
)
"""Reasons of `queue_assignment` with which the expected owner is unknown."""

_UNKNOWN_RULE = (
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "strategy_failed",
)
"""Reasons with which a queue is nevertheless unowned if every member answered and none holds it."""

ANY_QUEUE: Final = -1
"""The queue id with which a client pops all queues of a broker (`QueryAssignmentProcessor.allocate4Pop`, 5.x)."""


def ownership_drift(
    silver: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    gold: Mapping[str, DataFrame],
    settings: Mapping[str, ClusterSettings],
) -> DataFrame:
    """Return one row per group, topic and queue: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name.
        subscriptions: See `subscriptions.subscriptions`.
        gold: `queue_assignment`, `queue_sharing` and `route_divergence`.
        settings: The settings of each cluster, for groups in which single members have other parameters.
    """
    holders = held(silver)
    queues = (
        _expected(gold["queue_assignment"])
        .unionByName(holders.where("not is_pop").drop("is_pop"), allowMissingColumns=True)
        .groupBy(*_QUEUE)
        .agg(
            F.coalesce(F.max("is_routed"), F.lit(col=False)).alias("is_routed"),
            F.max("strategy").alias("strategy"),
            F.max("reason").alias("expected_reason"),
            F.array_sort(F.collect_set("chosen_id")).alias("chosen"),
            F.collect_list(F.when(~F.col("is_released"), F.struct("holder_id", "is_process"))).alias(
                "holders"
            ),
            F.coalesce(F.max("is_released"), F.lit(col=False)).alias("is_being_released"),
        )
    )
    shared = gold["queue_sharing"].select(*_QUEUE, "sharing_degree", "unobserved_reader_count")
    # Each of the following steps reads the columns of the previous one.
    evaluated = queues.join(
        _evidence(subscriptions, holders, gold["route_divergence"]), list(_SUBSCRIPTION), "left"
    ).join(
        F.broadcast(
            deviating_members(
                subscriptions, gold["queue_assignment"], holders.where("not is_pop and not is_released")
            )
        ),
        list(_SUBSCRIPTION),
        "left",
    )
    evaluated = evaluated.join(shared, list(_QUEUE), "left").join(
        F.broadcast(_broadcasting_groups(silver)), [*DAY, "consumer_group"], "left"
    )
    for columns in (_observed(), _comparison(), {"state": _state()}, {"state": _state_with_hidden_readers()}):
        evaluated = evaluated.withColumns(columns)
    is_wrong = F.col("state").isin("unowned", "multiple_owners", "unexpected_owner")
    evaluated = evaluated.withColumn(
        "likely_cause", F.when(is_wrong, _cause(_has_member_parameters(settings)))
    )
    is_deviation = F.col("likely_cause").eqNullSafe("parameters_differ")
    return evaluated.select(
        *_QUEUE,
        "state",
        "likely_cause",
        F.when(F.col("state") == "unknown", _unknown_reason()).alias("unknown_reason"),
        "strategy",
        F.when(F.col("undetermined").isNull(), F.col("chosen")).alias("expected_client_ids"),
        "expected_reason",
        "observed_client_ids",
        "observed_process_count",
        "is_routed",
        "route_state",
        "group_state",
        "group_state_reason",
        "client_count",
        F.size("unasked").alias("unasked_client_count"),
        F.size("absent").alias("absent_client_count"),
        F.size("shared_client_ids").alias("shared_client_id_count"),
        F.size("repeated").alias("repeated_client_id_count"),
        "unsubscribed_client_count",
        "member_list_count",
        F.coalesce("divergent_broker_count", F.lit(0)).alias("divergent_broker_count"),
        "strategy_count",
        "language_count",
        "version_count",
        "newest_client_age_ms",
        "is_being_released",
        F.when(is_deviation, F.col("deviation.client_id")).alias("deviating_client_id"),
        F.when(is_deviation, F.col("deviation.parameters")).alias("deviating_parameters"),
    )


def _has_member_parameters(settings: Mapping[str, ClusterSettings]) -> Column:
    """Return whether the settings give single members of the row's group other parameters than the group."""
    has_parameters = F.lit(col=False)
    for cluster, cluster_settings in settings.items():
        groups = [group for group, values in cluster_settings.groups.items() if settings_by_member(values)]
        if groups:
            has_parameters |= (F.col("cluster") == F.lit(cluster)) & F.col("consumer_group").isin(*groups)
    return has_parameters


def _expected(assignments: DataFrame) -> DataFrame:
    """Return every queue of the assignment with its effective owners; without an effective strategy, only the queue.

    In that case the queues come from the rows of AVG, which is computed for all groups but broadcasting ones, and those
    always have effective rows.
    """
    is_kept = F.col("reason").eqNullSafe("route_missing")

    def effective(column: str) -> Column:
        return F.when(F.col("is_effective"), F.col(column))

    return assignments.where("is_effective or strategy = 'AVG'").select(
        *_QUEUE,
        (~is_kept & ~F.col("reason").eqNullSafe(NOT_IN_ROUTE)).alias("is_routed"),
        effective("strategy").alias("strategy"),
        effective("reason").alias("reason"),
        # A queue that is kept without a route is held by its client, but no strategy chose that client.
        F.when(~is_kept, effective("client_id")).alias("chosen_id"),
    )


def held(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the queues in clients' process tables: `_QUEUE`, holder_id, is_process, is_released, is_pop.

    Direct answers of processes take precedence over the answer through a broker, which comes from only one process
    of a client id.
    """

    def rows(table: str, *, is_process: bool) -> DataFrame:
        return (
            silver[table]
            .where(is_users_group())
            .select(
                *_QUEUE,
                F.col("client_id").alias("holder_id"),
                F.lit(is_process).alias("is_process"),
                F.coalesce("is_dropped", F.lit(col=False)).alias("is_released"),
                "is_pop",
            )
        )

    processes = silver["client_process"].where("state = 'online'")
    answered = processes.select(*DAY, "consumer_group", F.col("client_id").alias("holder_id")).distinct()
    through_brokers = rows("observed_owner", is_process=False)
    return through_brokers.join(
        F.broadcast(answered), [*DAY, "consumer_group", "holder_id"], "left_anti"
    ).unionByName(rows("process_owner", is_process=True))


def _broadcasting_groups(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups of which a broker, a proxy or a member reports BROADCASTING: `DAY`; consumer_group, is_reported_broadcasting."""
    reports = [
        silver[table].where("message_model = 'BROADCASTING'").select(*DAY, "consumer_group")
        for table in ("group_presence", "proxy_presence", "consumer_client", "client_process")
    ]
    return reduce(DataFrame.union, reports).distinct().withColumn("is_reported_broadcasting", F.lit(col=True))


def _evidence(subscriptions: DataFrame, holders: DataFrame, divergence: DataFrame) -> DataFrame:
    """Return the facts that all queues of a group and topic share.

    The lists only contain members that are exceptions, never all members, because the result is joined to many rows.
    """
    pops = (
        holders.where("is_pop and not is_released")
        .groupBy(*_SUBSCRIPTION)
        .agg(F.collect_set(F.struct("broker_name", "queue_id", "holder_id")).alias("pops"))
    )
    divergent = (
        divergence.where("is_read_affected")
        .groupBy(*DAY, "topic")
        .agg(F.count_distinct("broker_name").cast("int").alias("divergent_broker_count"))
    )
    is_readable = F.exists("brokers", lambda broker: broker["queue_count"] > 0)
    # The age nearest to zero, so that a clock that is an hour ahead does not hide a member that was just started.
    ages = F.array_compact(F.transform("variants", lambda member: member["client_age_ms"]))
    youngest = F.array_min(F.transform(ages, lambda age: F.struct(F.abs(age), age.alias("age_ms"))))["age_ms"]
    of_group_and_topic = subscriptions.select(
        *_SUBSCRIPTION,
        "group_state",
        "group_state_reason",
        F.when((F.col("route_state") == "known") & ~is_readable, "none")
        .otherwise(F.col("route_state"))
        .alias("route_state"),
        F.size(F.array_distinct("member_ids")).alias("client_count"),
        # A gRPC client has no process table to query.
        ids_where(
            lambda member: (
                ~member["is_grpc"] & ((member["client_state"] == "unknown") | ~member["reports_queues"])
            )
        ).alias("unasked"),
        ids_where(lambda member: ~member["reports_queues"]).alias("pullers"),
        F.exists("variants", lambda member: member["is_assigned_by_hand"]).alias("is_assigned_by_hand"),
        ids_where(lambda member: member["client_state"] == "offline").alias("absent"),
        shared_client_ids().alias("shared_client_ids"),
        F.transform(repeated_ids(), lambda repeated: repeated["client_id"]).alias("repeated"),
        F.size(unsubscribed_ids()).alias("unsubscribed_client_count"),
        F.exists("variants", lambda member: member["is_grpc"] & ~member["is_subscribed"]).alias(
            "has_grpc_bystander"
        ),
        "member_list_count",
        "may_have_hidden_members",
        distinct_count("strategy").alias("strategy_count"),
        distinct_count("client_language").alias("language_count"),
        distinct_count("client_version").alias("version_count"),
        youngest.alias("newest_client_age_ms"),
    )
    return of_group_and_topic.join(pops, list(_SUBSCRIPTION), "left").join(
        F.broadcast(divergent), [*DAY, "topic"], "left"
    )


def _observed() -> dict[str, Column]:
    """Return the observed side: the clients that hold the queue, and their number of processes."""
    shares_by_pop = F.col("pops").isNotNull() | F.col("strategy").eqNullSafe(POP)
    pops = F.filter(
        F.coalesce("pops", F.array()),
        lambda pop: (
            (pop["broker_name"] == F.col("broker_name"))
            & pop["queue_id"].isin(F.col("queue_id"), F.lit(ANY_QUEUE))
        ),
    )
    ids = F.concat(
        F.transform("holders", lambda holder: holder["holder_id"]),
        F.transform(pops, lambda pop: pop["holder_id"]),
    )

    return {
        "is_popped": shares_by_pop,
        "observed_client_ids": F.array_sort(F.array_distinct(ids)),
        # A holder is a process that answered directly, or a client of which one process answered through a broker.
        "observed_process_count": F.size("holders") + F.size(pops),
        "pull_count": F.size("holders"),
        "pop_count": F.size(pops),
        "is_hidden": F.coalesce("may_have_hidden_members", F.lit(col=False))
        & (F.col("group_state") == "online"),
        "route_state": F.coalesce("route_state", F.lit("unknown")),
        "group_state": F.coalesce("group_state", F.lit("unknown")),
        "is_reported_broadcasting": F.coalesce("is_reported_broadcasting", F.lit(col=False)),
    }


def _comparison() -> dict[str, Column]:
    """Return the comparison of expected and observed owners, and why the expected ones are unknown (`undetermined`)."""
    no_clients = F.array().cast("array<string>")
    unasked, pullers = F.coalesce("unasked", no_clients), F.coalesce("pullers", no_clients)
    repeated = F.coalesce("repeated", no_clients)
    missing = F.array_except("chosen", "observed_client_ids")
    is_online = F.col("group_state").isin("online", "broadcasting")
    is_unreported = F.col("is_routed") & is_online & F.col("strategy").isNull()
    is_by_hand = F.coalesce("is_assigned_by_hand", F.lit(col=False)) & (
        F.col("strategy").isNull() | F.col("strategy").eqNullSafe(BROADCASTING)
    )
    return {
        "undetermined": F.when(F.col("is_popped"), F.lit("pop_mode"))
        .when(F.col("route_state") == "unknown", F.lit("route_unknown"))
        .when(F.col("group_state") == "unknown", F.lit("members_unknown"))
        .when(F.col("expected_reason").isin(*_CANNOT_TELL), F.col("expected_reason"))
        .when((is_by_hand | is_unreported) & (F.size(pullers) > 0), F.lit("pull_consumer_reports_no_queues"))
        .when(is_by_hand, F.lit("assigned_by_hand"))
        .when(is_unreported & (F.size(unasked) > 0), F.lit("client_unreachable"))
        .when(is_unreported, F.lit("strategy_not_reported")),
        "is_unexpected": F.size(F.array_except("observed_client_ids", "chosen")) > 0,
        "is_owner_unasked": F.size(F.array_intersect(missing, unasked)) > 0,
        "is_owner_puller": F.size(F.array_intersect(missing, pullers)) > 0,
        "is_owner_repeated": F.arrays_overlap("observed_client_ids", repeated),
        # A member that is not connected reads nothing, so it is not a missing reader of a broadcasting group.
        "is_reader_missing": F.size(
            F.array_except(missing, F.concat(unasked, F.coalesce("absent", no_clients)))
        )
        > 0,
        "is_chosen_absent": F.arrays_overlap("chosen", F.coalesce("absent", no_clients)),
        "has_everybody_answered": F.col("group_state").isin("online", "broadcasting")
        & (F.size(unasked) == 0),
    }


def _state() -> Column:
    """Return the state of a queue; the first condition that holds decides."""
    processes = F.col("observed_process_count")
    # A queue that no route has, or of which the route or the members are unknown, has no effective strategy.
    is_broadcast = (
        F.col("strategy").eqNullSafe(BROADCASTING)
        | (F.col("group_state") == "broadcasting")
        | ((F.col("group_state") != "online") & F.col("is_reported_broadcasting"))
    )
    # Some states follow from observation alone: two owners, or no owner although every member answered.
    is_surely_unowned = (
        F.col("has_everybody_answered")
        & (processes == 0)
        & F.col("undetermined").isin(*_UNKNOWN_RULE, "strategy_not_reported")
    )
    of_broadcast = (
        F.when(F.col("is_unexpected"), "unexpected_owner")
        .when(F.col("is_reader_missing") | (F.size("chosen") == 0), "unowned")
        .when(F.col("is_owner_unasked"), "unknown")
        .otherwise("match")
    )
    return (
        F.when(F.col("is_popped"), _state_of_shared())
        .when(is_broadcast & F.col("undetermined").isNull(), of_broadcast)
        .when(~is_broadcast & (processes > 1), "multiple_owners")
        .when(is_surely_unowned, "unowned")
        .when(F.col("undetermined").isNotNull(), "unknown")
        .when(F.col("is_unexpected"), "unexpected_owner")
        .when(F.col("is_owner_unasked") | F.col("is_owner_repeated"), "unknown")
        .when(processes == 1, "match")
        .otherwise("unowned")
    )


def _unknown_reason() -> Column:
    """Return why the state is `unknown`; the first condition that holds decides."""
    return (
        F.when(F.col("undetermined").isNotNull(), F.col("undetermined"))
        .when(F.col("is_owner_puller"), "pull_consumer_reports_no_queues")
        .when(F.col("is_owner_unasked"), "client_unreachable")
        .when(F.col("is_hidden") & ~F.col("is_owner_repeated"), "may_be_behind_a_proxy")
        .otherwise("process_count_unknown")
    )


def _state_with_hidden_readers() -> Column:
    """Return the state, `unknown` instead of `match` or `unowned` if the group may have members that only a proxy knows."""
    return F.when(F.col("is_hidden") & F.col("state").isin("match", "unowned"), "unknown").otherwise(
        F.col("state")
    )


def _state_of_shared() -> Column:
    """Return the state of a queue that members pop: it has no owner, and a member that pulls it takes messages of the others."""
    pulls, pops = F.col("pull_count"), F.col("pop_count")
    has_unobserved_reader = F.coalesce(F.col("unobserved_reader_count") > 0, F.lit(col=False))
    has_no_reader = (F.col("sharing_degree") == 0) & (pulls == 0) & (pops == 0)
    return (
        F.when((pulls > 1) | ((pulls > 0) & (pops > 0)), "multiple_owners")
        .when((pops > 0) | has_unobserved_reader, "shared")
        .when(F.coalesce(has_no_reader, F.lit(col=False)) & F.col("has_everybody_answered"), "unowned")
        .otherwise("unknown")
    )


def _cause(has_member_parameters: Column) -> Column:
    """Return the likely cause of a mismatch: the first condition with evidence decides, null without evidence."""
    return F.coalesce(_foreseen_cause(has_member_parameters), _unforeseen_cause(), _configuration_cause())


def _has_shared_ids() -> Column:
    return F.coalesce(F.size("shared_client_ids"), F.lit(0)) > 0


def _has_repeated_ids() -> Column:
    return F.coalesce(F.size("repeated"), F.lit(0)) > 0


def _foreseen_cause(has_member_parameters: Column) -> Column:
    """Return the cause if the assignment itself gives the queue no owner or several, for a known reason."""
    reason, strategy = F.col("expected_reason"), F.col("strategy")
    is_config = strategy.eqNullSafe("CONFIG")
    is_unowned, has_multiple_owners = F.col("state") == "unowned", F.col("state") == "multiple_owners"
    has_shared_id = F.col("observed_process_count") > F.size("observed_client_ids")
    is_foreseen_multiple = has_multiple_owners & F.col("undetermined").isNull() & (F.size("chosen") > 1)
    has_mixed_clients = (F.col("language_count") > 1) | (F.col("version_count") > 1)

    def unowned_for(name: str) -> Column:
        return is_unowned & (reason == name)

    return (
        F.when(is_unowned & (F.col("group_state") == "offline"), "group_offline")
        .when(reason == NOT_IN_ROUTE, NOT_IN_ROUTE)
        .when(~F.col("is_routed") & (F.col("route_state") == "none"), "route_missing")
        .when(
            has_multiple_owners & (F.col("pull_count") > 0) & (F.col("pop_count") > 0), "mixed_request_modes"
        )
        .when(has_multiple_owners & has_shared_id, "duplicate_client_id")
        # `QueryAssignmentProcessor.doLoadBalance` (5.x): each member that queries the broker gets every queue.
        .when(has_multiple_owners & (reason == SERVER_OFF), "server_load_balancer_off")
        .when(
            unowned_for("duplicate_client_id") & (_has_shared_ids() | _has_repeated_ids()),
            "duplicate_client_id",
        )
        .when(unowned_for("room_without_clients"), "room_without_clients")
        .when(unowned_for("not_in_config_list"), "not_in_config_list")
        # The share of a gRPC client in the retry topic of the members that pull.
        .when(unowned_for("owner_not_subscribed") & F.col("has_grpc_bystander"), "mixed_request_modes")
        .when(unowned_for("owner_not_subscribed"), "subscriptions_differ")
        .when(unowned_for("mixed_strategies"), "mixed_strategies")
        .when(unowned_for("mixed_clients"), "mixed_clients")
        .when(unowned_for("mixed_parameters"), "mixed_parameters")
        .when(
            unowned_for("not_assigned_by_strategy") & strategy.eqNullSafe("MACHINE_ROOM"), "old_machine_room"
        )
        .when(unowned_for("settings_missing") & is_config, "not_in_config_list")
        # CONFIG needs no rebalance: a client that holds a queue has it in its list.
        .when(has_multiple_owners & is_config, "config_list_overlap")
        .when(is_foreseen_multiple & strategy.eqNullSafe(MIXED), "mixed_strategies")
        .when(is_foreseen_multiple & has_mixed_clients, "mixed_clients")
        .when(is_foreseen_multiple & has_member_parameters, "mixed_parameters")
        .when(is_foreseen_multiple & strategy.eqNullSafe("MACHINE_ROOM"), "old_machine_room")
    )


def _unforeseen_cause() -> Column:
    """Return the cause if an input of the clients differs from the one that the ledger uses, or a change is in progress."""
    is_new = F.abs("newest_client_age_ms") < REBALANCE_GRACE_MS
    # The division counts an id twice although it has one process: its other connection is dead.
    is_listed_twice = (
        (F.col("state") == "unowned")
        & F.col("expected_reason").eqNullSafe("duplicate_client_id")
        & ~_has_shared_ids()
        & ~_has_repeated_ids()
    )
    return (
        # A client without a route to a broker is not in that broker's member list, so different routes explain different lists.
        F.when(F.col("divergent_broker_count") > 0, "route_views_differ")
        .when(
            (F.col("member_list_count") > 1) | F.col("is_chosen_absent") | is_listed_twice,
            "member_lists_differ",
        )
        .when(is_new | F.col("is_being_released"), "not_yet_rebalanced")
    )


def _configuration_cause() -> Column:
    """Return the cause if the group is configured in a way that leads to mismatches."""
    strategy = F.col("strategy")
    deviator = F.array("deviation.client_id")
    is_deviation = ((F.size("unasked") == 0) & ~_has_repeated_ids()) & (
        F.arrays_overlap("chosen", deviator) | F.arrays_overlap("observed_client_ids", deviator)
    )
    # The owner has answered, and does not hold what its own rule gives it: other members' rules and subscriptions do not explain that.
    is_lost_by_owner = (F.col("state") == "unowned") & (F.size("chosen") > 0)
    return (
        F.when(strategy.eqNullSafe(MIXED) & ~is_lost_by_owner, "mixed_strategies")
        .when(_has_shared_ids(), "duplicate_client_id")
        .when(F.coalesce(is_deviation, F.lit(col=False)), "parameters_differ")
        .when((F.col("unsubscribed_client_count") > 0) & ~is_lost_by_owner, "subscriptions_differ")
        .when((F.col("language_count") > 1) & ~is_lost_by_owner, "mixed_clients")
        .when(strategy.eqNullSafe("CONFIG") & (F.col("state") == "unowned"), "not_in_config_list")
    )
