"""Compute `gold.finding`: problems detected in the cluster.

Findings describe the cluster, so a day with findings is published. Each function of `spark_jobs/findings` reads one DataFrame and
defines the kinds of findings that it shows: when they occur, with which evidence and advice.

To add a kind, add a `finding_when` there, its name and severities in the gate's closed list (`expectations/suites/thresholds.py`), and a page
in `docs/findings/`. If it explains other kinds or is explained by one, also add a line in `findings/explanations.py` and in the gate's
list of explanations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.tables import (
    ASSIGNMENT_CHURN,
    ASSIGNMENT_FAIRNESS,
    BROADCAST_OFFSET,
    BROADCAST_OFFSET_FILE,
    OWNERSHIP_DRIFT,
    ROUTE_DIVERGENCE,
)
from spark_jobs.findings.broadcast import of_broadcast_offsets, of_offset_files
from spark_jobs.findings.changes import of_changes
from spark_jobs.findings.export import of_failed_sources, of_rejected_records, of_repeated_records
from spark_jobs.findings.groups import of_disabled_groups, of_groups, of_members, of_subscriptions
from spark_jobs.findings.masters import of_masters
from spark_jobs.findings.ownership import of_queues, of_shares, of_undetermined_queues
from spark_jobs.findings.progress import of_blocked_queues, of_stalled_queues
from spark_jobs.findings.request_modes import of_request_modes
from spark_jobs.findings.routes import (
    of_divergent_brokers,
    of_divergent_topics,
    of_routes,
    of_unreadable_order_confs,
)
from spark_jobs.session import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from spark_jobs.baseline import BaselineRows


def findings_of_inputs(
    silver: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    gold: Callable[[Table], DataFrame],
    baseline: BaselineRows,
) -> DataFrame:
    """Return the findings that need no computed owners, in the columns of `findings.finding_builder.collect_findings`.

    Args:
        silver: The silver tables by name.
        subscriptions: See `subscriptions.subscriptions`.
        gold: Returns another gold table, and waits until it is computed.
        baseline: The rows of the days' baselines.
    """
    return _side_by_side(
        subscriptions.sparkSession,
        lambda: of_members(subscriptions),
        lambda: of_request_modes(subscriptions),
        lambda: of_subscriptions(subscriptions, silver["client_subscription"]),
        lambda: of_stalled_queues(silver),
        lambda: of_blocked_queues(silver),
        lambda: of_unreadable_order_confs(silver["topic_route"]),
        lambda: of_rejected_records(silver["rejected_record"], silver["export_record"]),
        lambda: of_repeated_records(silver["export_record"]),
        lambda: of_failed_sources(silver["export_record"]),
        lambda: of_divergent_topics(gold(ROUTE_DIVERGENCE)),
        lambda: of_divergent_brokers(gold(ROUTE_DIVERGENCE), silver["broker"], silver["export_record"]),
        lambda: of_masters(silver["broker"], gold(ROUTE_DIVERGENCE)),
        lambda: of_groups(subscriptions, silver["export_record"], baseline),
        lambda: of_disabled_groups(subscriptions, silver["subscription_group"], silver["group_presence"]),
    )


def findings_of_results(
    silver: Mapping[str, DataFrame], subscriptions: DataFrame, gold: Callable[[Table], DataFrame]
) -> DataFrame:
    """Return the findings about computed owners and offset files; for arguments and columns see `findings_of_inputs`."""
    return _side_by_side(
        subscriptions.sparkSession,
        lambda: of_offset_files(gold(BROADCAST_OFFSET_FILE)),
        lambda: of_shares(gold(ASSIGNMENT_FAIRNESS)),
        lambda: of_broadcast_offsets(gold(BROADCAST_OFFSET)),
        lambda: of_queues(
            gold(OWNERSHIP_DRIFT),
            silver["consume_progress"],
            silver["queue_offset"],
            silver["group_presence"],
        ),
        lambda: of_undetermined_queues(gold(OWNERSHIP_DRIFT)),
        lambda: of_routes(subscriptions, gold(OWNERSHIP_DRIFT), silver["export_record"]),
        lambda: of_changes(gold(ASSIGNMENT_CHURN)),
    )


def _side_by_side(spark: SparkSession, *kinds: Callable[[], DataFrame]) -> DataFrame:
    """Return the rows of all kinds; plan them in concurrent threads, because planning takes longer than computing."""
    with thread_pool(spark) as pool:
        return _union(list(pool.map(lambda kind: kind(), kinds)))


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all parts. Unite halves recursively, because Spark analyzes the whole plan again at each union."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return _union(parts[:middle]).unionByName(_union(parts[middle:]))
