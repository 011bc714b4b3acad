"""Link findings with one root cause: the finding that explains the others becomes their root.

An explanation needs evidence in the rows: equal subjects, and the likely cause of the queues' drift.

Belongs here: the closed list of explanations, and matching rows by it. Does not belong here: when a kind occurs (the other modules
of this package).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from rebalance_ledger.tables import FINDING
from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import CAUSE_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

QUEUE_KINDS: Final = ("unowned", "multiple_owners", "unexpected_owner", "broadcast_queue_not_consumed")
"""Kinds that come from `ownership_drift` and have its `likely_cause`."""

EVEN_STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE")
"""Strategies under which the loads of two clients with different ids differ by one queue at most."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rule by which a finding explains other findings of the same day.

    Attributes:
        kind: Kind of the explaining finding.
        explained: Kinds that it explains.
        same: Columns of `finding` that must be equal in both findings and not null. With `by_cause_sources`, they must equal an
            element of the explained finding's `cause_sources` instead, and may be null.
        cause: `likely_cause` of the explained finding; None for any.
        when: SQL condition on the explained finding; None for no condition.
        by_cause_sources: See `same`.
    """

    kind: str
    explained: tuple[str, ...]
    same: tuple[str, ...]
    cause: str | None = None
    when: str | None = None
    by_cause_sources: bool = False


EXPLANATIONS: Final = (
    Explanation("mixed_strategies", QUEUE_KINDS, ("consumer_group",), "mixed_strategies"),
    Explanation("duplicate_client_id", QUEUE_KINDS, ("consumer_group",), "duplicate_client_id"),
    Explanation("subscriptions_differ", QUEUE_KINDS, ("consumer_group", "topic"), "subscriptions_differ"),
    Explanation("mixed_request_modes", QUEUE_KINDS, ("consumer_group", "topic"), "mixed_request_modes"),
    Explanation(
        "mixed_request_modes",
        QUEUE_KINDS,
        ("consumer_group",),
        "mixed_request_modes",
        when="startswith(topic, '%RETRY%')",
    ),
    Explanation(
        "server_load_balancer_off", QUEUE_KINDS, ("consumer_group", "topic"), "server_load_balancer_off"
    ),
    Explanation(
        "server_load_balancer_off",
        QUEUE_KINDS,
        ("consumer_group",),
        "server_load_balancer_off",
        when="startswith(topic, '%RETRY%')",
    ),
    Explanation("member_lists_differ", QUEUE_KINDS, ("consumer_group",), "member_lists_differ"),
    Explanation("route_differs", QUEUE_KINDS, ("topic",), "route_views_differ"),
    Explanation("route_missing", (*QUEUE_KINDS, "assignment_stale"), ("topic",), "route_missing"),
    Explanation(
        "mixed_strategies",
        ("load_imbalanced", "idle_clients"),
        ("consumer_group",),
        when="try_element_at(seen_values, 1) = 'MIXED'",
    ),
    # Unless an id is listed twice, these strategies spread queues with a difference of at most one, and leave no client without a
    # queue if there are enough queues.
    Explanation(
        "duplicate_client_id",
        ("load_imbalanced", "idle_clients"),
        ("consumer_group",),
        when=f"try_element_at(seen_values, 1) IN {EVEN_STRATEGIES} AND client_total_count <= queue_total_count",
    ),
    Explanation(
        "load_imbalanced",
        ("idle_clients",),
        ("consumer_group", "topic"),
        when="client_total_count <= queue_total_count",
    ),
    Explanation("duplicate_client_id", ("offset_file_shared",), ("consumer_group", "client_id")),
    Explanation("offset_file_shared", ("broadcast_offset_regressed",), ("consumer_group", "client_id")),
    Explanation("broker_missing_on_nameserver", ("route_differs",), ("broker_name",), by_cause_sources=True),
    Explanation(
        "source_failed",
        ("broker_missing_on_nameserver", "route_missing", "members_unknown", "client_unreachable"),
        ("broker_name", "likely_cause"),
        by_cause_sources=True,
    ),
)
"""The closed list. If several findings explain one, the first entry decides; within an entry, the first finding by `_preference`."""

SOURCE_CAUSES: Final = ("permission_denied",)
"""Causes of `source_failed` that all brokers share, such as an account without a permission."""

GROUP_CAUSES: Final = (
    "duplicate_client_id",
    "room_without_clients",
    "not_in_config_list",
    "config_list_overlap",
    "mixed_clients",
    "mixed_parameters",
    "mixed_strategies",
    "old_machine_room",
    "member_lists_differ",
    "parameters_differ",
    "not_yet_rebalanced",
)
"""Causes that all topics of a group share: findings of several topics with such a cause are one problem."""

CLIENT_KINDS: Final = ("broadcast_messages_lost", "broadcast_offset_regressed", "broadcast_client_stuck")
"""Kinds that occur in each topic of a client for one reason."""

MOST_STEPS: Final = 5
"""Largest number of explanations between a finding and its root; a test derives it from `EXPLANATIONS`."""

_SUBJECT: Final = ("consumer_group", "topic", "broker_name", "client_id")


def finding_id() -> Column:
    """Return the id of a finding: a hash of what identifies it within a cluster and day."""
    key = F.to_json(F.array(*(F.col(name) for name in ("kind", *_SUBJECT, "likely_cause"))))
    return F.substring(F.sha2(key, 256), 1, 16)


def with_roots(rows: DataFrame, keep: Callable[[str, DataFrame], DataFrame]) -> DataFrame:
    """Add ids, and raise the severity of each root to the worst of the findings that it explains, which become `info`.

    Args:
        rows: Findings of `collect_findings`. They are read several times.
        keep: Writes an intermediate result under a name, and returns it as it was written.

    Returns:
        The columns of `finding`, `DAY` first.
    """
    known = rows.withColumn("finding_id", finding_id())
    # Each step of a chain reads the parents, and Spark would compute them once for each step.
    parents = keep("finding_parent", _parents(known))
    placed = _with_root(known.join(F.broadcast(parents), [*DAY, "finding_id"], "left"), parents)
    worst = (
        placed.where("root_finding_id is not null")
        .groupBy(*DAY, F.col("root_finding_id").alias("finding_id"))
        .agg(F.min(_rank()).alias("rank_below"))
    )
    rank = F.least(_rank(), "rank_below")
    severity = F.when(F.col("root_finding_id").isNotNull(), "info").otherwise(
        F.element_at(F.array(*map(F.lit, _SEVERITIES)), rank)
    )
    return (
        placed.join(F.broadcast(worst), [*DAY, "finding_id"], "left")
        .withColumn("severity", severity)
        .select(*(column.name for column in FINDING.all_columns))
    )


_SEVERITIES: Final = ("critical", "warning", "info")


def _rank() -> Column:
    return F.array_position(F.array(*map(F.lit, _SEVERITIES)), F.col("severity")).cast("int")


def _with_root(rows: DataFrame, parents: DataFrame) -> DataFrame:
    """Add root_finding_id: the last finding on the chain of parents."""

    def step(placed: DataFrame, _: int) -> DataFrame:
        above = parents.select(
            *DAY, F.col("finding_id").alias("root_finding_id"), F.col("parent_finding_id").alias("above")
        )
        return (
            placed.join(F.broadcast(above), [*DAY, "root_finding_id"], "left")
            .withColumn("root_finding_id", F.coalesce("above", "root_finding_id"))
            .drop("above")
        )

    return reduce(step, range(MOST_STEPS - 1), rows.withColumn("root_finding_id", F.col("parent_finding_id")))


def _parents(rows: DataFrame) -> DataFrame:
    """Return the findings that another finding of the day explains: `DAY`; finding_id, parent_finding_id."""
    offered = (
        rows.select(*DAY, F.explode(_offered_keys()).alias("key"), _preference().alias("offer"))
        .groupBy(*DAY, "key")
        .agg(F.min("offer")["finding_id"].alias("parent_finding_id"))
    )
    wanted = rows.select(*DAY, "finding_id", F.posexplode(_wanted_keys()).alias("place", "key"))
    return (
        wanted.join(F.broadcast(offered), [*DAY, "key"])
        # The first of the findings with a shared cause matches itself.
        .where(F.col("parent_finding_id") != F.col("finding_id"))
        .groupBy(*DAY, "finding_id")
        .agg(F.min(F.struct("place", "parent_finding_id"))["parent_finding_id"].alias("parent_finding_id"))
    )


def _preference() -> Column:
    """Return the sort key of findings with the same key, of which the first explains the others: retry topics last, then by name."""
    return F.struct(
        F.coalesce(F.col("topic").startswith(RETRY_PREFIX), F.lit(col=False)),
        F.array_position(F.array(*map(F.lit, QUEUE_KINDS)), F.col("kind")),
        *(F.coalesce(F.col(name), F.lit("")) for name in _SUBJECT),
        "finding_id",
    )


def _key(kind: str, names: tuple[str, ...], values: tuple[Column, ...]) -> Column:
    return F.to_json(F.array(F.lit(kind), *map(F.lit, names), *values))


def _shared_cause_key() -> Column:
    """Return a key that findings with a shared cause have in common; null if the finding shares no cause."""
    kind = F.col("kind")

    def key(*names: str) -> Column:
        return _key("shared cause", names, tuple(map(F.col, names)))

    return (
        F.when(
            kind.isin(*QUEUE_KINDS) & F.col("likely_cause").isin(*GROUP_CAUSES),
            key("consumer_group", "likely_cause"),
        )
        .when((kind == "source_failed") & F.col("likely_cause").isin(*SOURCE_CAUSES), key("likely_cause"))
        # Two applications with one group subscribe to different topics: one problem with a finding for each topic.
        .when((kind == "subscriptions_differ") & (F.col("client_count") > 0), key("kind", "consumer_group"))
        .when(kind.isin(*CLIENT_KINDS), key("kind", "consumer_group", "client_id"))
    )


def _offered_keys() -> Column:
    """Return an array of the keys by which this finding explains others."""
    by_kind = dict.fromkeys((rule.kind, rule.same, rule.by_cause_sources) for rule in EXPLANATIONS)
    of_kinds = (
        F.when(
            (F.col("kind") == kind) & (F.lit(may_be_null) | _all_given(names)),
            _key(kind, names, tuple(map(F.col, names))),
        )
        for kind, names, may_be_null in by_kind
    )
    return F.array_compact(F.array(*of_kinds, _shared_cause_key()))


def _wanted_keys() -> Column:
    """Return an array of the keys of findings that explain this one, in the order of precedence."""

    def keys(rule: Explanation) -> Column:
        holds = F.col("kind").isin(*rule.explained)
        if rule.cause:
            holds &= F.col("likely_cause").eqNullSafe(rule.cause)
        if rule.when:
            holds &= F.expr(rule.when)
        if rule.by_cause_sources:
            by_source = F.transform(
                F.array_sort(CAUSE_SOURCES),
                lambda source: _key(rule.kind, rule.same, tuple(source[name] for name in rule.same)),
            )
            return F.when(holds, by_source)
        own = _key(rule.kind, rule.same, tuple(map(F.col, rule.same)))
        return F.when(holds & _all_given(rule.same), F.array(own))

    shared = F.when(_shared_cause_key().isNotNull(), F.array(_shared_cause_key()))
    return F.flatten(F.array_compact(F.array(*map(keys, EXPLANATIONS), shared)))


def _all_given(names: tuple[str, ...]) -> Column:
    return reduce(lambda left, right: left & right, (F.col(name).isNotNull() for name in names))
