"""One row per (group, topic) of a day: the queues to share, the members who share them, and how each member says it does.

This is the input of every allocation. All of it is facts of silver, put together as a client would see them:

* **Route.** A client polls one name server. Where they differ, `routes` says whose queue set is taken; the rest shows
  in findings.
* **Members.** A client asks one random broker of the topic's route for the ids of its group. Where the brokers'
  lists differ, the list that most of them give is taken; of those with as many votes, the one that least of what is known of
  the members contradicts (`_fault_counts`), then the longest, then that of the smallest broker name.
  A broker lists one id per channel, so an id shared by two processes stands twice. Where no broker of the route has the
  group online, those that proxies list are taken.
* **Groups.** Those of applications: RocketMQ's own have no row.
* **Order.** Java's: by UTF-16 code units, which is the byte order of the big-endian encoding.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.client_ids import GRPC_CLIENT_ID_PATTERN
from spark_jobs.assignment.allocation import SERVER_OFF
from spark_jobs.assignment.presence import absence, is_users_group
from spark_jobs.assignment.request_modes import BROKER_STRATEGIES, CLIENT_MODE, POP_MODE, request_modes
from spark_jobs.assignment.routes import elected_routes, java_order
from spark_jobs.day_key import DAY
from spark_jobs.session import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_OF_GROUP: Final = (*DAY, "consumer_group")
_OF_LIST: Final = (*_OF_GROUP, "list_id")
_OF_CLIENT: Final = (*_OF_GROUP, "client_id")
_AT_BROKER: Final = (*_OF_GROUP, "broker_name")
_SUBSCRIPTION: Final = (*_OF_GROUP, "topic")

_MEMBER_EVIDENCE = (
    "connection_count",
    "client_state",
    "client_age_ms",
    "least_connection_count",
    "process_count",
    "reports_queues",
    "is_assigned_by_hand",
)
"""What is known of a member beside how it shares: no strategy asks for it, drift and findings do."""

_PROXIES = ""
"""Stands for the broker's name in the view that all proxies have together; no broker has such a name."""

_RETRY_PREFIX = "%RETRY%"
"""How the topic begins to which a group's messages go that are to be consumed again; the group's name follows."""

_NO_TOPIC_ROUTE = 17
"""`ResponseCode.TOPIC_NOT_EXIST`: the name server knows no route for the topic."""


def _java_sorted(names: Column) -> Column:
    """Return an array of names in Java's order, duplicates kept."""
    keyed = F.transform(names, lambda name: F.struct(java_order(name).alias("key"), name.alias("name")))
    return F.transform(F.array_sort(keyed), lambda element: element["name"])


def routes(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the route that a client gets for each topic.

    Columns: `DAY`; topic; route_state (`known`, `none`: the name servers that answered know no route, `unknown`: none could be
    asked); brokers array<struct<key, broker_name, queue_count>> in Java order, with queue_count 0 where nothing may be
    read; queue_set_count (different queue sets among the name servers).
    """
    known = elected_routes(silver["topic_route"].where("is_in_route"), "subscribe_queue_count")
    is_answer = (F.col("state") == "payload") | F.coalesce(
        F.col("error_code") == _NO_TOPIC_ROUTE, F.lit(col=False)
    )
    route_requests = (
        silver["export_record"]
        .where("kind = 'nameserver_route'")
        .groupBy(*DAY, "topic")
        .agg(F.max(is_answer).alias("was_answered"))
    )
    state = (
        F.when(F.col("brokers").isNotNull(), "known").when(F.col("was_answered"), "none").otherwise("unknown")
    )
    return route_requests.join(known, [*DAY, "topic"], "left").select(
        *DAY, "topic", state.alias("route_state"), "brokers", F.col("answer_count").alias("queue_set_count")
    )


def group_topics(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the distinct pairs of a group and a topic: `DAY`; consumer_group, topic.

    What brokers, proxies and clients say of subscriptions; for a group without any, the topics in which it has progress or a
    client holds queues. A group that the export names, and of which no answer says any of that nor that it is offline, has
    its retry topic: it must not be missing.
    """

    def pairs(table: str, *, is_subscribed: bool) -> DataFrame:
        return silver[table].select(*_SUBSCRIPTION, F.lit(is_subscribed).alias("is_subscribed"))

    named_pairs = (
        pairs("subscription", is_subscribed=True)
        .union(pairs("client_subscription", is_subscribed=True))
        .union(pairs("proxy_subscription", is_subscribed=True))
        .union(pairs("consume_progress", is_subscribed=False))
        .union(pairs("observed_owner", is_subscribed=False))
        .union(pairs("process_owner", is_subscribed=False))
        .where(is_users_group())
        .groupBy(*_SUBSCRIPTION)
        .agg(F.max("is_subscribed").alias("is_subscribed"))
    )
    has_subscription = F.max("is_subscribed").over(Window.partitionBy(*_OF_GROUP))
    described = (
        named_pairs.withColumn("has_subscription", has_subscription)
        .where("is_subscribed or not has_subscription")
        .select(*_SUBSCRIPTION)
    )
    unheard = _unheard_groups(silver).join(named_pairs.select(*_OF_GROUP), list(_OF_GROUP), "left_anti")
    return described.union(
        unheard.select(*_OF_GROUP, F.concat(F.lit(_RETRY_PREFIX), "consumer_group").alias("topic"))
    )


def _unheard_groups(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that brokers' configurations, failed questions and retry topics name and that may be online: `DAY`; consumer_group.

    A group of which every broker that has it answered that it is offline is none of them: it exists and is not used.
    """
    answers = silver["group_presence"].select(*_AT_BROKER, "state")
    configured = silver["subscription_group"].select(*_AT_BROKER).distinct()
    by_broker = (
        configured.join(answers, list(_AT_BROKER), "full")
        .where(is_users_group())
        .groupBy(*_OF_GROUP)
        .agg(F.max(~F.col("state").eqNullSafe("offline")).alias("may_be_online"))
    )
    failed = silver["export_record"].where(
        "consumer_group is not null and state <> 'payload' and kind <> 'offset_file'"
    )
    # The retry topic of a group that was deleted stays; a broker that listed its groups without this one has none of its members.
    read = (
        silver["export_record"]
        .where("kind = 'broker_subscription_group' and state = 'payload'")
        .select(*DAY, "broker_name")
        .distinct()
    )
    retried = (
        silver["topic_config"]
        .select(*DAY, "topic", "broker_name")
        .union(silver["topic_route"].where("is_in_route").select(*DAY, "topic", "broker_name"))
        .where(F.col("topic").startswith(_RETRY_PREFIX))
        .join(F.broadcast(read), [*DAY, "broker_name"], "left_anti")
        .select(*DAY, F.substring("topic", len(_RETRY_PREFIX) + 1, 1_000_000).alias("consumer_group"))
    )
    # `%RETRY%<group>_<topic>` and `%RETRY%<group>+<topic>` are retry topics of POP.
    named = by_broker.select(
        *(F.col(name).alias(f"named_{name}") for name in DAY), F.col("consumer_group").alias("group")
    )
    is_same_day = reduce(and_, (F.col(name) == F.col(f"named_{name}") for name in DAY))
    of_pop = F.col("consumer_group").startswith(F.concat("group", F.lit("_"))) | F.col(
        "consumer_group"
    ).startswith(F.concat("group", F.lit("+")))
    groups = (
        failed.select(*_OF_GROUP)
        .union(retried)
        .where(is_users_group())
        .distinct()
        .join(by_broker, list(_OF_GROUP), "left_anti")
        .join(F.broadcast(named), is_same_day & of_pop, "left_anti")
    )
    return by_broker.where("may_be_online").select(*_OF_GROUP).union(groups)


def group_views(silver: Mapping[str, DataFrame], member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Return how each broker sees each group, one row per group.

    Columns: `DAY`; consumer_group; views array<struct<broker_name, state, message_model, list_id, member_count, fault_count>>. A
    list_id stands for one list of members, duplicates included; it is null where the broker does not have the group online.
    fault_count: what is known of the members and contradicts the list, see `_fault_counts`.
    One more view is that of all proxies, if one has the group online.
    """
    views = member_ids.join(_fault_counts(member_ids, descriptions), list(_OF_LIST), "left").select(
        *_AT_BROKER,
        "list_id",
        F.size("member_ids").alias("member_count"),
        "fault_count",
    )
    at_proxies = (
        silver["proxy_presence"]
        .where("state = 'online'")
        .groupBy(*_OF_GROUP)
        .agg(F.lit("online").alias("state"), F.max("message_model").alias("message_model"))
        .withColumn("broker_name", F.lit(_PROXIES))
    )
    return (
        silver["group_presence"]
        .select(*_AT_BROKER, "state", "message_model")
        .unionByName(at_proxies)
        .join(views, list(_AT_BROKER), "left")
        .groupBy(*_OF_GROUP)
        .agg(
            F.array_sort(
                F.collect_list(
                    F.struct(
                        "broker_name", "state", "message_model", "list_id", "member_count", "fault_count"
                    )
                )
            ).alias("views")
        )
    )


def _member_ids_by_broker(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the ids that each broker lists, and under the name `_PROXIES` those that proxies list."""
    of_proxies = silver["proxy_connection"].select(
        *_OF_GROUP, F.lit(_PROXIES).alias("broker_name"), "client_id"
    )
    ids = (
        silver["consumer_connection"]
        .select(*_AT_BROKER, "client_id")
        # Proxies tell each other of their clients, so that several list the same connection.
        .unionByName(of_proxies.distinct())
        .groupBy(*_AT_BROKER)
        .agg(_java_sorted(F.collect_list("client_id")).alias("member_ids"))
    )
    return ids.withColumn("list_id", F.xxhash64("member_ids"))


def member_lists(member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Return the different member lists of each group, with what each member says of itself.

    Columns: `DAY`; consumer_group, list_id; members: an array, in Java's order of the ids, of struct<slot, client_id, strategy,
    client_language, client_version, topics, is_client_rebalance, is_orderly, client_state, client_age_ms, connection_count,
    least_connection_count, process_count, reports_queues, is_assigned_by_hand>, where strategy is RocketMQ's name, or the Java class where it has none, or null
    for a member that could not be asked; topics are the member's own subscriptions or null; client_state is `online`
    (it answered), `offline` (a broker says that it is not connected) or `unknown`; connection_count counts the slots with
    the same id in this list, least_connection_count in the list with fewest of them, process_count the processes with
    this id that answered when they were asked themselves. reports_queues is false for a client whose answer does not say what it
    holds, is_assigned_by_hand true for one whose application chooses its queues: neither shares by a strategy.
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
        .join(descriptions, list(_OF_CLIENT), "left")
        .groupBy(*_OF_LIST)
        .agg(F.array_sort(F.collect_list(member)).alias("members"))
    )


def _slots(member_ids: DataFrame) -> DataFrame:
    """Return the slots of each list of members: one row for each connection, with how often the lists have its id."""
    return (
        member_ids.groupBy(*_OF_LIST)
        .agg(F.first("member_ids").alias("member_ids"))
        .select(*_OF_LIST, F.posexplode("member_ids").alias("slot", "client_id"))
        .withColumn(
            "connection_count", F.count("*").over(Window.partitionBy(*_OF_LIST, "client_id")).cast("int")
        )
        .withColumn(
            "least_connection_count",
            F.min("connection_count").over(Window.partitionBy(*_OF_CLIENT)),
        )
    )


def _fault_counts(member_ids: DataFrame, descriptions: DataFrame) -> DataFrame:
    """Return what contradicts each list of members: `DAY`; consumer_group, list_id, fault_count.

    A slot is a fault whose id a broker says is not connected, or that is one more connection of an id than it has processes: as
    many as answered when they were asked themselves, else as another list has. So is a member that answered and is not listed.
    """
    clients = descriptions.select(*_OF_CLIENT, "client_state", "process_count")
    lists = (
        _slots(member_ids)
        .select(*_OF_CLIENT, "list_id", "connection_count", "least_connection_count")
        .distinct()
        .join(clients, list(_OF_CLIENT), "left")
    )
    process_count = F.when(F.col("process_count") > 0, F.col("process_count")).otherwise(
        F.col("least_connection_count")
    )
    faults = F.when(F.col("client_state").eqNullSafe("offline"), F.col("connection_count")).otherwise(
        F.greatest(F.col("connection_count") - process_count, F.lit(0))
    )
    counts = lists.groupBy(*_OF_LIST).agg(
        F.sum(faults).alias("faults"), F.count_if(F.col("client_state") == "online").alias("listed_count")
    )
    answered = (
        clients.where("client_state = 'online'").groupBy(*_OF_GROUP).agg(F.count("*").alias("answered_count"))
    )
    missing = F.coalesce("answered_count", F.lit(0)) - F.col("listed_count")
    return counts.join(answered, list(_OF_GROUP), "left").select(
        *_OF_LIST, (F.col("faults") + missing).cast("int").alias("fault_count")
    )


def _self_descriptions(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per (group, client): its own answers, through a broker or directly, and what brokers report."""

    def description(table: str, *, is_process: bool) -> DataFrame:
        is_by_hand = (F.col("consume_type") == "CONSUME_ACTIVELY") & (F.col("subscription_count") == 0)
        is_free = F.coalesce(~F.col("reports_queues") | is_by_hand, F.lit(col=False))
        return silver[table].select(
            *_OF_CLIENT,
            "state",
            # A consumer that pulls what its application chooses has a strategy set, and never asks it.
            F.when(~is_free, F.coalesce("strategy", "strategy_class")).alias("strategy"),
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
            *_OF_CLIENT, "client_language", F.col("client_version").alias("connected_version")
        )

    connected = connections("consumer_connection").union(connections("proxy_connection"))
    subscribed = silver["client_subscription"].select(*_OF_CLIENT, "topic")
    topics = F.collect_set("topic")
    is_online = F.col("state") == "online"
    return (
        description("consumer_client", is_process=False)
        .unionByName(description("client_process", is_process=True))
        .unionByName(connected, allowMissingColumns=True)
        .unionByName(subscribed, allowMissingColumns=True)
        .groupBy(*_OF_CLIENT)
        .agg(
            F.max("strategy").alias("strategy"),
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
            F.min("client_age_ms").alias("client_age_ms"),
            F.count_if(is_online & F.col("is_process")).cast("int").alias("process_count"),
        )
    )


def subscriptions(
    silver: Mapping[str, DataFrame],
    before: BaselineRows,
    keep: Callable[[str, DataFrame], DataFrame],
) -> DataFrame:
    """Return the input of every allocation, one row per (group, topic) of a day.

    Its parts are written as intermediate results, side by side. In one statement, Spark would compute a part once for each of its uses, and would
    take longer to plan it than to plan and compute the parts.

    Args:
        silver: the silver tables by name.
        before: the days' baselines.
        keep: writes an intermediate result under a name, and returns it as it was written.

    Returns:
        `DAY`; consumer_group, topic; route_state, brokers, queue_set_count (see `routes`); group_state (`online`, `broadcasting`,
        `offline`, `unknown`); group_state_reason (why it is unknown); is_unmoved_since_baseline (see `presence.absence`), baseline_ds, null
        without a baseline; member_list_count (different lists among the brokers that were asked); request_state, request_mode,
        request_mode_source, pop_share_count, is_server_off (see `request_modes`); may_have_hidden_members (see `presence.absence`);
        division_reason (why no owner can be named whatever the strategies are, or null); proxied_ids: members that proxies alone list and
        that read the topic; member_ids array<string> in Java order with duplicates, null unless somebody is online; variants: an array
        beside member_ids of struct<slot, strategy, client_language, client_version, is_subscribed, is_broker_assigned, is_grpc, is_askable,
        fetches_by (`pop`, `pull` or null), and the last seven of `member_lists`>.
    """
    with thread_pool(silver["topic_route"].sparkSession) as pool:

        def kept(name: str, rows: Callable[[], DataFrame]) -> Callable[[], DataFrame]:
            return pool.submit(lambda: keep(name, rows())).result

        descriptions = kept("self_description", lambda: _self_descriptions(silver))
        ids = kept("member_ids", lambda: _member_ids_by_broker(silver))
        topics = kept("group_topic", lambda: group_topics(silver))
        of_topics = kept("route", lambda: routes(silver))
        absent = kept("absence", lambda: absence(silver, before))
        views = kept("group_view", lambda: group_views(silver, ids(), descriptions()))
        lists = kept("member_list", lambda: member_lists(ids(), descriptions()))
        modes = kept("request_mode", lambda: request_modes(silver, topics(), of_topics()))
    shared = (
        topics()
        .join(views(), list(_OF_GROUP), "left")
        .join(of_topics(), [*DAY, "topic"], "left")
        .join(modes(), list(_SUBSCRIPTION), "left")
        .join(absent(), list(_OF_GROUP), "left")
        .join(F.broadcast(before.days), list(DAY), "left")
        .withColumn("views", _views_of_route())
        .withColumn("group_state_reason", _unknown_reason())
    )
    online = F.filter("views", lambda view: view["list_id"].isNotNull())
    list_ids = F.array_distinct(F.transform(online, lambda view: view["list_id"]))

    def ballot(list_id: Column) -> Column:
        voters = F.filter(online, lambda view: view["list_id"] == list_id)
        first = F.get(voters, F.lit(0))
        return F.struct(
            (-F.size(voters)).alias("votes"),
            F.coalesce(first["fault_count"], F.lit(0)).alias("fault_count"),
            (-first["member_count"]).alias("member_count"),
            first["broker_name"].alias("broker_name"),
            list_id.alias("list_id"),
        )

    chosen = shared.select(
        *_SUBSCRIPTION,
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
        F.array_min(F.transform(list_ids, ballot))["list_id"].alias("list_id"),
        (F.array_min(F.transform(list_ids, ballot))["broker_name"] == _PROXIES).alias("is_list_of_proxies"),
    )
    members = chosen.join(lists(), list(_OF_LIST), "left").withColumn(
        "member_ids", F.transform("members", lambda member: member["client_id"])
    )
    proxied = F.filter(
        F.array_except(F.coalesce("proxied_ids", _no_ids()), F.coalesce("member_ids", _no_ids())),
        lambda client_id: ~(is_grpc_id(client_id) & _is_plain_retry()),
    )
    return (
        members.join(_proxied(silver), list(_SUBSCRIPTION), "left")
        .withColumn("proxied_ids", F.when(F.col("group_state") == "online", proxied).otherwise(_no_ids()))
        .withColumn("variants", F.transform("members", _variant))
        .withColumn("division_reason", _division_reason())
        .drop("members", "list_id", "is_list_of_proxies")
    )


def _no_ids() -> Column:
    return F.array().cast("array<string>")


def _variant(member: Column) -> Column:
    """Return what a member is to this topic."""
    return F.named_struct(
        F.lit("slot"),
        member["slot"],
        F.lit("strategy"),
        member["strategy"],
        F.lit("client_language"),
        member["client_language"],
        F.lit("client_version"),
        member["client_version"],
        # A member that could not be asked is taken to subscribe to what its group subscribes to.
        F.lit("is_subscribed"),
        F.coalesce(F.array_contains(member["topics"], F.col("topic")), F.lit(col=True))
        & ~(_is_grpc(member) & _is_plain_retry()),
        F.lit("is_broker_assigned"),
        _is_broker_assigned(member),
        F.lit("is_grpc"),
        _is_grpc(member),
        # Nobody can be asked through a proxy what it holds.
        F.lit("is_askable"),
        ~_is_grpc(member) & ~F.coalesce("is_list_of_proxies", F.lit(col=False)),
        F.lit("fetches_by"),
        _fetches_by(member),
        *(part for name in _MEMBER_EVIDENCE for part in (F.lit(name), member[name])),
    )


def _is_grpc(member: Column) -> Column:
    """Return whether it is a gRPC client: it has such a client's id, and no strategy, which no such client has."""
    return is_grpc_id(member["client_id"]) & member["strategy"].isNull()


def _is_plain_retry() -> Column:
    """Return whether the topic is `%RETRY%<group>`: for members that pull. What gRPC clients get again comes from POP's own retry topics."""
    return F.col("topic") == F.concat(F.lit(_RETRY_PREFIX), F.col("consumer_group"))


def is_grpc_id(client_id: Column) -> Column:
    """Return whether a client id has the form that gRPC clients give themselves."""
    return client_id.rlike(GRPC_CLIENT_ID_PATTERN)


def _is_broker_assigned(member: Column) -> Column:
    """Return whether it asks the broker for its queues: who consumes orderly or broadcasts divides for itself all the same."""
    no = F.lit(col=False)
    leaves_it = ~F.coalesce(member["is_client_rebalance"], F.lit(col=True)) & ~F.coalesce(
        member["is_orderly"], no
    )
    is_asked = ~F.coalesce(F.col("request_mode") == CLIENT_MODE, no)
    return leaves_it & is_asked & (F.col("group_state") != "broadcasting")


def _pops_by_broker(member: Column) -> Column:
    """Return whether the broker lets the member pop: its answer is POP, and it has the member's strategy or asks for none."""
    is_answered = member["strategy"].isin(*BROKER_STRATEGIES) | F.col("is_server_off")
    return _is_broker_assigned(member) & F.coalesce(
        (F.col("request_mode") == POP_MODE) & is_answered, F.lit(col=False)
    )


def _fetches_by(member: Column) -> Column:
    """Return `pop`, `pull`, or null if it is unknown or the member does neither."""
    is_undetermined = _is_broker_assigned(member) & F.col("request_mode").isNull()
    return (
        F.when(_is_grpc(member), F.when(~_is_plain_retry(), "pop"))
        .when(_pops_by_broker(member), "pop")
        .when((member["client_state"] == "online") & ~is_undetermined, "pull")
    )


def _division_reason() -> Column:
    """Return why no single owner can be named although the strategies of the members are known; null where one can."""

    def has(condition: Callable[[Column], Column]) -> Column:
        return F.coalesce(F.exists("variants", condition), F.lit(col=False))

    has_pop = has(lambda member: F.coalesce(member["fetches_by"] == "pop", F.lit(col=False)))
    has_proxied_grpc = F.exists("proxied_ids", is_grpc_id)
    has_assigned = has(lambda member: member["is_broker_assigned"])
    is_odd = has(
        lambda member: (
            member["is_broker_assigned"]
            & ~F.coalesce(member["strategy"].isin(*BROKER_STRATEGIES), F.lit(col=True))
        )
    )
    return F.when(
        F.col("group_state") == "online",
        F.when(has_pop | has_proxied_grpc, "pop_mode")
        .when(F.size("proxied_ids") > 0, "mixed_request_modes")
        .when(has_assigned & (F.col("request_state") == "differ"), "request_modes_differ")
        .when(has_assigned & F.col("request_mode").isNull(), "request_mode_unknown")
        .when(has_assigned & F.coalesce("is_server_off", F.lit(col=False)), SERVER_OFF)
        .when(is_odd, "strategy_unknown_to_broker"),
    )


def _proxied(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the members of each group that proxies list (proxied_ids), for the topics to which proxies say that it subscribes."""
    ids = (
        silver["proxy_connection"]
        .groupBy(*_OF_GROUP)
        .agg(_java_sorted(F.collect_set("client_id")).alias("proxied_ids"))
    )
    topics = silver["proxy_subscription"].select(*_SUBSCRIPTION).distinct()
    return topics.join(ids, list(_OF_GROUP))


def _views_of_route() -> Column:
    """Return the brokers that a client would ask: those of the topic's route; the proxies, where none of them has the group.

    A topic without a route has no broker to ask; its clients keep the members that they knew, so any broker may speak.
    """
    route = F.transform(F.coalesce("brokers", F.array()), lambda broker: broker["broker_name"])
    of_brokers = F.filter("views", lambda view: view["broker_name"] != _PROXIES)
    on_route = F.filter("views", lambda view: F.array_contains(route, view["broker_name"]))
    views = F.when(F.size(on_route) > 0, on_route).otherwise(of_brokers)
    at_proxies = F.filter("views", lambda view: view["broker_name"] == _PROXIES)
    is_online = F.exists(views, lambda view: view["state"] == "online")
    return F.when(~is_online & (F.size(at_proxies) > 0), at_proxies).otherwise(views)


def _any_view(column: str, value: str) -> Column:
    return F.exists("views", lambda view: F.coalesce(view[column] == value, F.lit(col=False)))


def _unknown_reason() -> Column:
    """Return the reason why the group cannot be called offline although no view has it online; null where it is proven."""
    is_unasked = F.col("views").isNull() | (F.size("views") == 0) | _any_view("state", "unknown")
    return (
        F.when(is_unasked, "broker_not_asked")
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
