"""Compute the input of every allocation: the queues and members of each consumer group and topic of a day.

The rows combine silver facts as a client would see them:

* **Route.** A client polls one name server. If name servers return different routes, `routes.client_routes` elects one.
* **Members.** A client asks a random broker of the topic's route for the client ids of its group
  (`MQClientInstance.findConsumerIdList`, every version). If brokers list different members, the list that most of them return is
  used; with equal votes, the one with the fewest contradictions (`_contradiction_counts`), then the longest, then the one of the
  smallest broker name. Of a group that broadcasts at some brokers only, the lists of the others have no reader of the topic and are
  not used. A broker lists an id once per channel, so an id that two processes share is listed twice. If no broker of the route has
  the group online, the members that proxies list are used for the topics to which proxies report a subscription.
* **Groups.** RocketMQ's own groups have no row.
* **Order.** Names are in Java's order, by UTF-16 code units, which is the byte order of the big-endian encoding.

Belongs here: which queues and members count. Does not belong here: the owners (`allocation`), and whether a group is offline
(`presence`).
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from rebalance_ledger.exports.contract import UNKNOWN_BROKER
from rebalance_ledger.rocketmq.client_ids import GRPC_CLIENT_ID_PATTERN
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from spark_jobs.assignment.allocation import SERVER_OFF
from spark_jobs.assignment.presence import absence, is_users_group
from spark_jobs.assignment.request_modes import (
    BETWEEN_STRATEGIES,
    BROKER_STRATEGIES,
    CLIENT_MODE,
    POP_MODE,
    is_unknown_to_broker,
    reports_several,
    request_modes,
)
from spark_jobs.assignment.routes import java_order
from spark_jobs.day_key import DAY
from spark_jobs.session import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_GROUP_KEY: Final = (*DAY, "consumer_group")
_LIST_KEY: Final = (*_GROUP_KEY, "list_id")
_CLIENT_KEY: Final = (*_GROUP_KEY, "client_id")
_BROKER_KEY: Final = (*_GROUP_KEY, "broker_name")
_SUBSCRIPTION_KEY: Final = (*_GROUP_KEY, "topic")

_MEMBER_EVIDENCE: Final = (
    "connection_count",
    "client_state",
    "client_age_ms",
    "least_connection_count",
    "process_count",
    "reports_queues",
    "is_assigned_by_hand",
)
"""Fields of a member that no strategy reads, but drift and findings do."""

_PROXIES: Final = ""
"""Broker name of the view that all proxies have together; no broker has an empty name."""


def subscriptions(
    silver: Mapping[str, DataFrame],
    routes: Callable[[], DataFrame],
    baseline: BaselineRows,
    keep: Callable[[str, DataFrame], DataFrame],
) -> DataFrame:
    """Return the input of every allocation, one row per consumer group and topic of a day.

    Args:
        silver: The silver tables by name.
        routes: Waits for the routes of topics, and returns them; see `routes.client_routes`.
        baseline: The rows of the days' baselines.
        keep: Writes an intermediate result under a name, and returns it as it was written.

    Returns:
        These columns:

        * `DAY`; consumer_group, topic.
        * route_state, brokers, queue_set_count: see `routes.client_routes`.
        * group_state: `online`, `broadcasting`, `offline` or `unknown`; group_state_reason: why it is unknown.
        * is_unmoved_since_baseline: see `presence.absence`; baseline_ds: null without a baseline.
        * member_list_count: number of different member lists among the queried brokers.
        * request_state, request_mode, request_mode_source, pop_share_count, is_server_off: see `request_modes`.
        * may_have_hidden_members: see `presence.absence`.
        * division_reason: why no single owner can be named, whatever the strategies are; null if one can.
        * proxied_ids: array<string>, members that only proxies list and that read the topic.
        * member_ids: array<string> in Java's order with duplicates; null unless the group is online or broadcasting.
        * variants: an array parallel to member_ids of struct<slot, strategy, client_language, client_version, is_subscribed,
          is_broker_assigned, is_grpc, is_askable, fetches_by (`pop`, `pull` or null), and the fields of `_MEMBER_EVIDENCE`>, see
          `member_lists`.
    """
    parts = _write_parts(silver, routes, baseline, keep)
    described = (
        parts["group_topic"]
        .join(parts["group_view"], list(_GROUP_KEY), "left")
        .join(routes(), [*DAY, "topic"], "left")
        .join(parts["request_mode"], list(_SUBSCRIPTION_KEY), "left")
        .join(parts["absence"], list(_GROUP_KEY), "left")
        .join(F.broadcast(baseline.days), list(DAY), "left")
        .withColumn("views", _route_views())
        .withColumn("group_state_reason", _unknown_reason())
    )
    list_ids = _member_list_ids()
    elected_list = _elected_list(list_ids)
    elected = described.select(
        *_SUBSCRIPTION_KEY,
        F.coalesce("route_state", F.lit("unknown")).alias("route_state"),
        "brokers",
        "queue_set_count",
        "request_state",
        "request_mode",
        "request_mode_source",
        "pop_share_count",
        "is_server_off",
        _group_state().alias("group_state"),
        F.when(_group_state() == "unknown", F.col("group_state_reason")).alias("group_state_reason"),
        F.coalesce("is_unmoved_since_baseline", F.lit(col=False)).alias("is_unmoved_since_baseline"),
        "baseline_ds",
        F.coalesce(F.size(list_ids), F.lit(0)).alias("member_list_count"),
        F.coalesce("may_have_hidden_members", F.lit(col=False)).alias("may_have_hidden_members"),
        elected_list["list_id"].alias("list_id"),
        (elected_list["broker_name"] == _PROXIES).alias("is_list_of_proxies"),
    )
    return _with_members(elected, parts["member_list"], _proxied_members(silver))


def _write_parts(
    silver: Mapping[str, DataFrame],
    routes: Callable[[], DataFrame],
    baseline: BaselineRows,
    keep: Callable[[str, DataFrame], DataFrame],
) -> dict[str, DataFrame]:
    """Write the intermediate results of `subscriptions` in concurrent threads, and return them by name.

    In a single query, Spark would compute a part once for each use, and planning would take longer than planning and computing
    the parts.
    """
    parts: dict[str, Future[DataFrame]] = {}
    with thread_pool(silver["topic_route"].sparkSession) as pool:

        def part(name: str) -> DataFrame:
            """Return a part as it was written; wait until it is. It must have been submitted before."""
            return parts[name].result()

        def submit(name: str, rows: Callable[[], DataFrame]) -> None:
            parts[name] = pool.submit(lambda: keep(name, rows()))

        submit("self_description", lambda: _self_descriptions(silver))
        submit("member_ids", lambda: _member_ids_by_broker(silver))
        submit("group_topic", lambda: group_topics(silver))
        submit("absence", lambda: absence(silver, baseline))
        submit("group_view", lambda: group_views(silver, part("member_ids"), part("self_description")))
        submit("member_list", lambda: member_lists(part("member_ids"), part("self_description")))
        submit("request_mode", lambda: request_modes(silver, part("group_topic"), routes()))
    return {name: written.result() for name, written in parts.items()}


def _with_members(subscriptions: DataFrame, member_lists: DataFrame, proxied_members: DataFrame) -> DataFrame:
    """Add the members of the elected list (list_id), those behind proxies, and division_reason; drop the columns for the election."""
    members = subscriptions.join(member_lists, list(_LIST_KEY), "left").withColumn(
        "member_ids", F.transform("members", lambda member: member["client_id"])
    )
    proxied = F.filter(
        F.array_except(F.coalesce("proxied_ids", _no_ids()), F.coalesce("member_ids", _no_ids())),
        lambda client_id: ~(is_grpc_id(client_id) & _is_plain_retry()),
    )
    return (
        members.join(proxied_members, list(_SUBSCRIPTION_KEY), "left")
        .withColumn("proxied_ids", F.when(F.col("group_state") == "online", proxied).otherwise(_no_ids()))
        .withColumn("variants", F.transform("members", _variant))
        .withColumn("division_reason", _division_reason())
        .drop("members", "list_id", "is_list_of_proxies")
    )


def _java_sorted(names: Column) -> Column:
    """Return an array of names in Java's order, duplicates kept."""
    keyed = F.transform(names, lambda name: F.struct(java_order(name).alias("key"), name.alias("name")))
    return F.transform(F.array_sort(keyed), lambda element: element["name"])


def group_topics(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the distinct pairs of a group and a topic: `DAY`; consumer_group, topic.

    The topics are those that brokers, proxies or clients report as subscribed. A group without a reported subscription has the
    topics in which it has progress or a client holds queues. A group for which neither is reported, and which may be online, has
    its retry topic, so that it is not missing from the tables.
    """

    def pairs(table: str, *, is_subscribed: bool) -> DataFrame:
        return silver[table].select(*_SUBSCRIPTION_KEY, F.lit(is_subscribed).alias("is_subscribed"))

    reported = (
        pairs("subscription", is_subscribed=True)
        .union(pairs("client_subscription", is_subscribed=True))
        .union(pairs("proxy_subscription", is_subscribed=True))
        .union(pairs("consume_progress", is_subscribed=False))
        .union(pairs("observed_owner", is_subscribed=False))
        .union(pairs("process_owner", is_subscribed=False))
        .where(is_users_group())
        .groupBy(*_SUBSCRIPTION_KEY)
        .agg(F.max("is_subscribed").alias("is_subscribed"))
    )
    has_subscription = F.max("is_subscribed").over(Window.partitionBy(*_GROUP_KEY))
    described = (
        reported.withColumn("has_subscription", has_subscription)
        .where("is_subscribed or not has_subscription")
        .select(*_SUBSCRIPTION_KEY)
    )
    without_topics = _possibly_online_groups(silver).join(
        reported.select(*_GROUP_KEY), list(_GROUP_KEY), "left_anti"
    )
    return described.union(
        without_topics.select(*_GROUP_KEY, F.concat(F.lit(RETRY_PREFIX), "consumer_group").alias("topic"))
    )


def _possibly_online_groups(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that may be online, from brokers' configurations, failed requests and retry topics: `DAY`; consumer_group.

    A group is excluded if every broker that has it answered that it is offline: it exists and is not used.
    """
    answers = silver["group_presence"].select(*_BROKER_KEY, "state")
    configured = silver["subscription_group"].select(*_BROKER_KEY).distinct()
    groups_of_brokers = (
        configured.join(answers, list(_BROKER_KEY), "full")
        .where(is_users_group())
        .groupBy(*_GROUP_KEY)
        .agg(F.max(~F.col("state").eqNullSafe("offline")).alias("may_be_online"))
    )
    failed = silver["export_record"].where(
        "consumer_group is not null and state <> 'payload' and kind <> 'offset_file'"
    )
    other_groups = (
        failed.select(*_GROUP_KEY)
        .union(_groups_of_retry_topics(silver))
        .where(is_users_group())
        .distinct()
        .join(groups_of_brokers, list(_GROUP_KEY), "left_anti")
    )
    return (
        groups_of_brokers.where("may_be_online")
        .select(*_GROUP_KEY)
        .union(_without_pop_retries(other_groups, groups_of_brokers))
    )


def _groups_of_retry_topics(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that retry topics name, at brokers whose group configurations were not read: `DAY`; consumer_group.

    The retry topic of a deleted group remains. A broker whose list of groups was read and does not contain the group has no member
    of it.
    """
    listing_brokers = (
        silver["export_record"]
        .where("kind = 'broker_subscription_group' and state = 'payload'")
        .select(*DAY, "broker_name")
        .distinct()
    )
    return (
        silver["topic_config"]
        .select(*DAY, "topic", "broker_name")
        .union(silver["topic_route"].where("is_in_route").select(*DAY, "topic", "broker_name"))
        .where(F.col("topic").startswith(RETRY_PREFIX))
        .join(F.broadcast(listing_brokers), [*DAY, "broker_name"], "left_anti")
        .select(*DAY, F.substring("topic", len(RETRY_PREFIX) + 1, 1_000_000).alias("consumer_group"))
    )


def _without_pop_retries(groups: DataFrame, known_groups: DataFrame) -> DataFrame:
    """Exclude names that are part of a retry topic of POP: `%RETRY%<group>_<topic>` or `%RETRY%<group>+<topic>` of a known group."""
    known = known_groups.select(
        *(F.col(name).alias(f"known_{name}") for name in DAY), F.col("consumer_group").alias("known_group")
    )
    is_same_day = reduce(and_, (F.col(name) == F.col(f"known_{name}") for name in DAY))
    name = F.col("consumer_group")
    is_pop_retry = name.startswith(F.concat("known_group", F.lit("_"))) | name.startswith(
        F.concat("known_group", F.lit("+"))
    )
    return groups.join(F.broadcast(known), is_same_day & is_pop_retry, "left_anti")


def group_views(silver: Mapping[str, DataFrame], member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Return how each broker sees each group, one row per group.

    Columns: `DAY`; consumer_group; views: array<struct<broker_name, state, message_model, list_id, member_count,
    contradiction_count>>. A list_id identifies a list of members, duplicates included; it is null if the broker does not have the
    group online. contradiction_count: see `_contradiction_counts`. If a proxy has the group online, one more view is that of all
    proxies. topics_at_proxies: array<string>, the topics to which proxies report a subscription; null without any.

    Args:
        silver: The silver tables by name.
        member_ids: See `_member_ids_by_broker`.
        descriptions: See `_self_descriptions`.
    """
    lists = member_ids.join(_contradiction_counts(member_ids, descriptions), list(_LIST_KEY), "left").select(
        *_BROKER_KEY,
        "list_id",
        F.size("member_ids").alias("member_count"),
        "contradiction_count",
    )
    at_proxies = (
        silver["proxy_presence"]
        .where("state = 'online'")
        .groupBy(*_GROUP_KEY)
        .agg(F.lit("online").alias("state"), F.max("message_model").alias("message_model"))
        .withColumn("broker_name", F.lit(_PROXIES))
    )
    topics_at_proxies = (
        silver["proxy_subscription"]
        .groupBy(*_GROUP_KEY)
        .agg(F.collect_set("topic").alias("topics_at_proxies"))
    )
    view = F.struct("broker_name", "state", "message_model", "list_id", "member_count", "contradiction_count")
    return (
        silver["group_presence"]
        .select(*_BROKER_KEY, "state", "message_model")
        .unionByName(at_proxies)
        .join(lists, list(_BROKER_KEY), "left")
        .groupBy(*_GROUP_KEY)
        .agg(F.array_sort(F.collect_list(view)).alias("views"))
        .join(topics_at_proxies, list(_GROUP_KEY), "left")
    )


def _member_ids_by_broker(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the client ids that each broker lists, and those that proxies list under the broker name `_PROXIES`.

    Columns: `DAY`; consumer_group, broker_name; member_ids: array<string> in Java's order with duplicates; list_id: a hash of it.
    """
    at_proxies = silver["proxy_connection"].select(
        *_GROUP_KEY, F.lit(_PROXIES).alias("broker_name"), "client_id"
    )
    ids = (
        silver["consumer_connection"]
        .select(*_BROKER_KEY, "client_id")
        # Proxies synchronize their clients, so several proxies list the same connection.
        .unionByName(at_proxies.distinct())
        .groupBy(*_BROKER_KEY)
        .agg(_java_sorted(F.collect_list("client_id")).alias("member_ids"))
    )
    return ids.withColumn("list_id", F.xxhash64("member_ids"))


def member_lists(member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Return the different member lists of each group, with each member's description of itself.

    Columns: `DAY`; consumer_group, list_id; members: an array in Java's order of the ids, of structs with these fields:

    * slot, client_id: position in the list, and the id.
    * strategy: RocketMQ's name, the Java class if it has none, or null if the member did not answer. If the answers of one client id
      differ, all names, with `BETWEEN_STRATEGIES` between them.
    * client_language, client_version, is_client_rebalance, is_orderly, client_age_ms.
    * topics: the member's own subscriptions, or null.
    * client_state: `online` (the member answered), `offline` (a broker reports that it is not connected) or `unknown`.
    * connection_count: number of slots with the same id in this list; least_connection_count: the smallest such number among the
      group's lists; process_count: number of processes with this id that answered directly.
    * reports_queues: false for a client whose answer does not contain its queues; is_assigned_by_hand: true for a client whose
      application chooses its queues. Neither follows a strategy.

    Args:
        member_ids: See `_member_ids_by_broker`.
        descriptions: See `_self_descriptions`.
    """
    member = F.struct(
        "slot",
        "client_id",
        "strategy",
        "client_language",
        "client_version",
        "topics",
        "is_client_rebalance",
        "is_orderly",
        F.coalesce("client_state", F.lit("unknown")).alias("client_state"),
        "client_age_ms",
        "connection_count",
        "least_connection_count",
        F.coalesce("process_count", F.lit(0)).alias("process_count"),
        F.coalesce("reports_queues", F.lit(col=True)).alias("reports_queues"),
        F.coalesce("is_assigned_by_hand", F.lit(col=False)).alias("is_assigned_by_hand"),
    )
    return (
        _slots(member_ids)
        .join(descriptions, list(_CLIENT_KEY), "left")
        .groupBy(*_LIST_KEY)
        .agg(F.array_sort(F.collect_list(member)).alias("members"))
    )


def _slots(member_ids: DataFrame) -> DataFrame:
    """Return one row per slot of each member list, with the number of slots of its id in this list and the least in any list."""
    return (
        member_ids.groupBy(*_LIST_KEY)
        .agg(F.first("member_ids").alias("member_ids"))
        .select(*_LIST_KEY, F.posexplode("member_ids").alias("slot", "client_id"))
        .withColumn(
            "connection_count",
            F.count("*").over(Window.partitionBy(*_LIST_KEY, "client_id")).cast("int"),
        )
        .withColumn(
            "least_connection_count",
            F.min("connection_count").over(Window.partitionBy(*_CLIENT_KEY)),
        )
    )


def _contradiction_counts(member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Count what contradicts each member list: `DAY`; consumer_group, list_id, contradiction_count.

    These are contradictions: a slot whose id a broker reports as not connected; a connection of an id beyond its number of processes
    (those that answered directly, otherwise its connections in the list with the fewest); a member that answered and is not listed.
    """
    clients = descriptions.select(*_CLIENT_KEY, "client_state", "process_count")
    lists = (
        _slots(member_ids)
        .select(*_CLIENT_KEY, "list_id", "connection_count", "least_connection_count")
        .distinct()
        .join(clients, list(_CLIENT_KEY), "left")
    )
    process_count = F.when(F.col("process_count") > 0, F.col("process_count")).otherwise(
        F.col("least_connection_count")
    )
    wrong_slots = F.when(F.col("client_state").eqNullSafe("offline"), F.col("connection_count")).otherwise(
        F.greatest(F.col("connection_count") - process_count, F.lit(0))
    )
    counts = lists.groupBy(*_LIST_KEY).agg(
        F.sum(wrong_slots).alias("wrong_slot_count"),
        F.count_if(F.col("client_state") == "online").alias("listed_count"),
    )
    answered = (
        clients.where("client_state = 'online'")
        .groupBy(*_GROUP_KEY)
        .agg(F.count("*").alias("answered_count"))
    )
    missing_count = F.coalesce("answered_count", F.lit(0)) - F.col("listed_count")
    return counts.join(answered, list(_GROUP_KEY), "left").select(
        *_LIST_KEY, (F.col("wrong_slot_count") + missing_count).cast("int").alias("contradiction_count")
    )


def _self_descriptions(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per group and client id: the client's own answers, direct or through a broker, and what brokers report.

    Columns: `DAY`; consumer_group, client_id, and the fields of `member_lists` that do not depend on the list.
    """

    def answers(table: str, *, is_process: bool) -> DataFrame:
        is_by_hand = (F.col("consume_type") == "CONSUME_ACTIVELY") & (F.col("subscription_count") == 0)
        has_no_strategy = F.coalesce(~F.col("reports_queues") | is_by_hand, F.lit(col=False))
        return silver[table].select(
            *_CLIENT_KEY,
            "state",
            # A consumer that pulls what its application chooses has a strategy set, but never calls it.
            F.when(~has_no_strategy, F.coalesce("strategy", "strategy_class")).alias("strategy"),
            "reports_queues",
            is_by_hand.alias("is_assigned_by_hand"),
            F.col("client_version").alias("own_version"),
            "is_client_rebalance",
            "is_orderly",
            (F.unix_millis("captured_at") - F.unix_millis("started_at")).alias("client_age_ms"),
            F.lit(is_process).alias("is_process"),
        )

    def connections(table: str) -> DataFrame:
        return silver[table].select(
            *_CLIENT_KEY, "client_language", F.col("client_version").alias("connected_version")
        )

    connected = connections("consumer_connection").union(connections("proxy_connection"))
    subscribed = silver["client_subscription"].select(*_CLIENT_KEY, "topic")
    topics = F.collect_set("topic")
    is_online = F.col("state") == "online"
    return (
        answers("consumer_client", is_process=False)
        .unionByName(answers("client_process", is_process=True))
        .unionByName(connected, allowMissingColumns=True)
        .unionByName(subscribed, allowMissingColumns=True)
        .groupBy(*_CLIENT_KEY)
        .agg(
            F.when(
                F.count("strategy") > 0,
                F.array_join(F.array_sort(F.collect_set("strategy")), BETWEEN_STRATEGIES),
            ).alias("strategy"),
            F.max("client_language").alias("client_language"),
            F.min("reports_queues").alias("reports_queues"),
            F.max("is_assigned_by_hand").alias("is_assigned_by_hand"),
            F.coalesce(F.min("is_client_rebalance"), F.lit(col=True)).alias("is_client_rebalance"),
            F.coalesce(F.max("is_orderly"), F.lit(col=False)).alias("is_orderly"),
            F.coalesce(F.max("own_version"), F.max("connected_version")).alias("client_version"),
            F.when(F.size(topics) > 0, topics).alias("topics"),
            F.when(F.max(is_online), "online")
            .when(F.max(F.col("state") == "offline"), "offline")
            .otherwise("unknown")
            .alias("client_state"),
            # The age nearest to zero: it is negative if the client's clock is ahead.
            F.min(
                F.when(F.col("client_age_ms").isNotNull(), F.struct(F.abs("client_age_ms"), "client_age_ms"))
            )["client_age_ms"].alias("client_age_ms"),
            F.count_if(is_online & F.col("is_process")).cast("int").alias("process_count"),
        )
    )


def _online_views() -> Column:
    return F.filter("views", lambda view: view["list_id"].isNotNull())


def _member_list_ids() -> Column:
    """Return the distinct member lists among `views`, as an array of list_id."""
    return F.array_distinct(F.transform(_online_views(), lambda view: view["list_id"]))


def _elected_list(list_ids: Column) -> Column:
    """Return the member list that is used (see the module docstring), as a struct with list_id and broker_name.

    Args:
        list_ids: See `_member_list_ids`.
    """

    def ballot(list_id: Column) -> Column:
        voters = F.filter(_online_views(), lambda view: view["list_id"] == list_id)
        broadcasts = F.exists(voters, lambda view: view["message_model"].eqNullSafe("BROADCASTING"))
        first = F.get(voters, F.lit(0))
        return F.struct(
            (~broadcasts).alias("is_other_model"),
            (-F.size(voters)).alias("votes"),
            F.coalesce(first["contradiction_count"], F.lit(0)).alias("contradiction_count"),
            (-first["member_count"]).alias("member_count"),
            first["broker_name"].alias("broker_name"),
            list_id.alias("list_id"),
        )

    # The smallest struct: a list of broadcasting members if there is one, most votes, fewest contradictions, most members, smallest
    # broker name.
    return F.array_min(F.transform(list_ids, ballot))


def _no_ids() -> Column:
    return F.array().cast("array<string>")


def _variant(member: Column) -> Column:
    """Return an element of `variants`: what a member is for the row's topic."""
    return F.named_struct(
        F.lit("slot"),
        member["slot"],
        F.lit("strategy"),
        member["strategy"],
        F.lit("client_language"),
        member["client_language"],
        F.lit("client_version"),
        member["client_version"],
        # A member whose subscriptions are unknown is assumed to have those of its group.
        F.lit("is_subscribed"),
        F.coalesce(F.array_contains(member["topics"], F.col("topic")), F.lit(col=True))
        & ~(_is_grpc(member) & _is_plain_retry()),
        F.lit("is_broker_assigned"),
        _is_broker_assigned(member),
        F.lit("is_grpc"),
        _is_grpc(member),
        # A proxy cannot be asked which queues its clients hold.
        F.lit("is_askable"),
        ~_is_grpc(member) & ~F.coalesce("is_list_of_proxies", F.lit(col=False)),
        F.lit("fetches_by"),
        _fetches_by(member),
        *(part for name in _MEMBER_EVIDENCE for part in (F.lit(name), member[name])),
    )


def _is_grpc(member: Column) -> Column:
    """Return whether a member is a gRPC client: its id has their form, and it reports no strategy."""
    return is_grpc_id(member["client_id"]) & member["strategy"].isNull()


def _is_plain_retry() -> Column:
    """Return whether the topic is `%RETRY%<group>`, the retry topic of members that pull; gRPC clients read the retry topics of POP."""
    return F.col("topic") == F.concat(F.lit(RETRY_PREFIX), F.col("consumer_group"))


def is_grpc_id(client_id: Column) -> Column:
    """Return whether a client id has the form of the ids that gRPC clients generate."""
    return client_id.rlike(GRPC_CLIENT_ID_PATTERN)


def _is_broker_assigned(member: Column) -> Column:
    """Return whether a member asks the broker for its queues.

    A member that consumes orderly or broadcasts divides the queues itself, whatever its `clientRebalance` setting is.
    """
    no = F.lit(col=False)
    leaves_division = ~F.coalesce(member["is_client_rebalance"], F.lit(col=True)) & ~F.coalesce(
        member["is_orderly"], no
    )
    is_supported = ~F.coalesce(F.col("request_mode") == CLIENT_MODE, no)
    return leaves_division & is_supported & (F.col("group_state") != "broadcasting")


def _pops_by_broker(member: Column) -> Column:
    """Return whether the broker lets a member pop: the request mode is POP, and the broker has its strategy or needs none."""
    is_answered = member["strategy"].isin(*BROKER_STRATEGIES) | F.col("is_server_off")
    return _is_broker_assigned(member) & F.coalesce(
        (F.col("request_mode") == POP_MODE) & is_answered, F.lit(col=False)
    )


def _fetches_by(member: Column) -> Column:
    """Return `pop` or `pull`; null if it is unknown, or if the member does neither.

    A broker lets a member pop only with a strategy that it has.
    """
    mode = F.col("request_mode")
    is_strategy_unclear = member["strategy"].isNull() | reports_several(member["strategy"])
    is_undetermined = _is_broker_assigned(member) & (mode.isNull() | (mode == POP_MODE) & is_strategy_unclear)
    return (
        F.when(_is_grpc(member), F.when(~_is_plain_retry(), "pop"))
        .when(_pops_by_broker(member), "pop")
        .when((member["client_state"] == "online") & ~is_undetermined, "pull")
    )


def _division_reason() -> Column:
    """Return why no single owner can be named even if the strategies of all members are known; null if one can."""

    def has(condition: Callable[[Column], Column]) -> Column:
        return F.coalesce(F.exists("variants", condition), F.lit(col=False))

    has_pop = has(lambda member: F.coalesce(member["fetches_by"] == "pop", F.lit(col=False)))
    has_proxied_grpc = F.exists("proxied_ids", is_grpc_id)
    has_broker_assigned = has(lambda member: member["is_broker_assigned"])
    has_unknown_strategy = has(
        lambda member: member["is_broker_assigned"] & is_unknown_to_broker(member["strategy"])
    )
    return F.when(
        F.col("group_state") == "online",
        F.when(has_pop | has_proxied_grpc, "pop_mode")
        .when(F.size("proxied_ids") > 0, "mixed_request_modes")
        .when(has_broker_assigned & (F.col("request_state") == "differ"), "request_modes_differ")
        .when(has_broker_assigned & F.col("request_mode").isNull(), "request_mode_unknown")
        .when(has_broker_assigned & F.coalesce("is_server_off", F.lit(col=False)), SERVER_OFF)
        .when(has_unknown_strategy, "strategy_unknown_to_broker"),
    )


def _proxied_members(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the members that proxies list, for each topic to which proxies report a subscription.

    Columns: `DAY`; consumer_group, topic; proxied_ids: array<string> in Java's order.
    """
    ids = (
        silver["proxy_connection"]
        .groupBy(*_GROUP_KEY)
        .agg(_java_sorted(F.collect_set("client_id")).alias("proxied_ids"))
    )
    topics = silver["proxy_subscription"].select(*_SUBSCRIPTION_KEY).distinct()
    return topics.join(ids, list(_GROUP_KEY))


def _route_views() -> Column:
    """Return the views that a client can get: those of the brokers in the topic's route, or that of the proxies if none has the group.

    The members at proxies read the topics to which proxies report a subscription; without any, they may read each topic. A client
    of a topic without a route asks no broker and keeps the members that it knew, so the views of all brokers count. If the route is
    known and none of its brokers was asked, only the view of an unnamed broker may be of one of them.
    """
    route = F.transform(F.coalesce("brokers", F.array()), lambda broker: broker["broker_name"])
    of_brokers = F.filter("views", lambda view: view["broker_name"] != _PROXIES)
    on_route = F.filter("views", lambda view: F.array_contains(route, view["broker_name"]))
    unnamed = F.filter("views", lambda view: view["broker_name"] == UNKNOWN_BROKER)
    views = F.when(F.size(on_route) > 0, on_route).when(F.size(route) == 0, of_brokers).otherwise(unnamed)
    is_read_there = F.coalesce(F.array_contains("topics_at_proxies", F.col("topic")), F.lit(col=True))
    of_proxies = F.filter("views", lambda view: (view["broker_name"] == _PROXIES) & is_read_there)
    is_online = F.exists(views, lambda view: view["state"] == "online")
    return F.when(~is_online & (F.size(of_proxies) > 0), of_proxies).otherwise(views)


def _any_view(column: str, value: str) -> Column:
    return F.exists("views", lambda view: F.coalesce(view[column] == value, F.lit(col=False)))


def _unknown_reason() -> Column:
    """Return why a group that no view has online is not known to be offline; null if it is."""
    is_not_queried = F.col("views").isNull() | (F.size("views") == 0) | _any_view("state", "unknown")
    return (
        F.when(is_not_queried, "broker_not_asked")
        .when(F.col("is_online_at_a_broker"), "online_at_other_brokers")
        .when(F.col("has_unasked_broker"), "broker_not_asked")
        .otherwise(F.col("absence_doubt"))
    )


def _group_state() -> Column:
    is_online = _any_view("state", "online")
    return (
        F.when(is_online & _any_view("message_model", "BROADCASTING"), "broadcasting")
        .when(is_online, "online")
        .when(F.col("group_state_reason").isNotNull(), "unknown")
        .otherwise("offline")
    )
