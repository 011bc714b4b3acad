"""Determine the request mode (POP or PULL) of members whose queues the broker assigns, and the setting that it comes from.

Belongs here: the settings of the brokers in a topic's route. Does not belong here: which members query them (`subscriptions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

BROKER_STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE")
"""The strategies that a broker has (`QueryAssignmentProcessor`, 5.x); a client with another one gets no answer and keeps its queues."""

BETWEEN_STRATEGIES: Final = " and "
"""Between the names if one client id reports several strategies: no rule has such a name, so the member's queues are unknown."""

POP_MODE: Final = "POP"
PULL_MODE: Final = "PULL"
CLIENT_MODE: Final = "CLIENT"
"""The broker does not support the request (before 5.0.0), so its clients divide the queues themselves."""

_REQUEST_CODE_NOT_SUPPORTED: Final = 3
_SUBSCRIPTION_KEY: Final = (*DAY, "consumer_group", "topic")
_BROKER_KEY: Final = (*DAY, "broker_name")


def reports_several(strategy: Column) -> Column:
    """Return whether one client id reports several strategies: its processes differ, or it was restarted between two answers."""
    return F.coalesce(F.contains(strategy, F.lit(BETWEEN_STRATEGIES)), F.lit(col=False))


def is_unknown_to_broker(strategy: Column) -> Column:
    """Return whether a member reports one strategy, and the broker does not have it."""
    is_certain = strategy.isNotNull() & ~reports_several(strategy)
    return is_certain & ~strategy.isin(*BROKER_STRATEGIES)


def request_modes(silver: Mapping[str, DataFrame], pairs: DataFrame, routes: DataFrame) -> DataFrame:
    """Return the request mode of each topic with a known route, for groups with members that ask brokers for their queues.

    Args:
        silver: The silver tables by name.
        pairs: `DAY`; consumer_group, topic.
        routes: See `subscriptions.routes`.

    Returns:
        `DAY`; consumer_group, topic; request_state: `known`, `differ` (the brokers of the route answer differently) or `unknown` (the
        modes or settings of a broker were not read); request_mode, request_mode_source, pop_share_count and is_server_off: null
        unless known.
    """
    asking = (
        silver["consumer_client"]
        .select(*DAY, "consumer_group", "is_client_rebalance")
        .union(silver["client_process"].select(*DAY, "consumer_group", "is_client_rebalance"))
        .where("not is_client_rebalance")
        .select(*DAY, "consumer_group")
        .distinct()
    )
    requested = (
        pairs.join(F.broadcast(asking), [*DAY, "consumer_group"], "left_semi")
        .join(routes.where("route_state = 'known'").select(*DAY, "topic", "brokers"), [*DAY, "topic"])
        .select(*_SUBSCRIPTION_KEY, F.explode("brokers.broker_name").alias("broker_name"))
    )
    entries = silver["message_request_mode"].select(
        *_SUBSCRIPTION_KEY, "broker_name", "mode", F.col("pop_share_queue_count").alias("share")
    )
    broker_answers = (
        requested.join(entries, [*_SUBSCRIPTION_KEY, "broker_name"], "left")
        .join(F.broadcast(_brokers(silver)), list(_BROKER_KEY), "left")
        .select(*_SUBSCRIPTION_KEY, _answer().alias("answer"))
    )
    answers = F.collect_set("answer")
    # Brokers agree if their rules are equal: the share matters only for POP, and the source never. CLIENT and PULL are one rule.
    rules = F.array_distinct(
        F.transform(
            answers,
            lambda answer: F.struct(answer["mode"] == POP_MODE, answer["share"], answer["is_off"]),
        )
    )
    state = (
        F.when(F.size(rules) > 1, "differ")
        .when(F.max(F.col("answer").isNull()), "unknown")
        .otherwise("known")
    )
    known = F.when(state == "known", F.array_max(answers))
    return broker_answers.groupBy(*_SUBSCRIPTION_KEY).agg(
        state.alias("request_state"),
        known["mode"].alias("request_mode"),
        known["source"].alias("request_mode_source"),
        known["share"].alias("pop_share_count"),
        known["is_off"].alias("is_server_off"),
    )


def _brokers(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return each broker's settings for all groups: `DAY`; broker_name, default_mode, default_share, is_off, are_settings_read, are_entries_read, is_too_old."""

    def value(setting: str) -> Column:
        return F.max(F.when(F.col("setting") == setting, F.col("value")))

    settings = (
        silver["broker_setting"]
        .groupBy(*_BROKER_KEY)
        .agg(
            F.upper(value("defaultMessageRequestMode")).alias("default_mode"),
            value("defaultPopShareQueueNum").try_cast("int").alias("default_share"),
            # A broker may omit a setting, so a missing `serverLoadBalancerEnable` does not mean that the settings were not read.
            (F.lower(value("serverLoadBalancerEnable")) == "false").alias("is_off"),
            F.lit(col=True).alias("are_settings_read"),
        )
    )
    records = (
        silver["export_record"]
        .where("kind = 'broker_message_request_mode'")
        .groupBy(*_BROKER_KEY)
        .agg(
            F.max(F.col("state") == "payload").alias("are_entries_read"),
            F.max(F.coalesce(F.col("error_code") == _REQUEST_CODE_NOT_SUPPORTED, F.lit(col=False))).alias(
                "is_too_old"
            ),
        )
    )
    return settings.join(records, list(_BROKER_KEY), "full")


def _answer() -> Column:
    """Return the answer of one broker: struct<mode, share, is_off, source>; null if the export does not contain it."""
    no = F.lit(col=False)
    is_off = F.coalesce("is_off", no)

    def answer(mode: Column, share: Column, source: str) -> Column:
        is_pop = mode == POP_MODE
        return F.struct(
            mode.alias("mode"),
            F.when(is_pop, share).cast("int").alias("share"),
            is_off.alias("is_off"),
            F.when(is_off, "server_off").otherwise(source).alias("source"),
        )

    no_share = F.lit(None).cast("int")
    return (
        F.when(
            F.coalesce("is_too_old", no) & F.col("mode").isNull(),
            answer(F.lit(CLIENT_MODE), no_share, "broker_default"),
        )
        .when(~F.coalesce("are_settings_read", no), None)
        .when(F.col("mode").isNotNull(), answer(F.col("mode"), F.col("share"), "entry"))
        .when(~F.coalesce("are_entries_read", no), None)
        .when(F.col("topic").startswith(RETRY_PREFIX), answer(F.lit(PULL_MODE), no_share, "retry_rule"))
        .when(
            F.col("default_mode").isin(POP_MODE, PULL_MODE),
            answer(F.col("default_mode"), F.coalesce("default_share", F.lit(-1)), "broker_default"),
        )
    )
