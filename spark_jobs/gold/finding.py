"""`gold.finding`: problems detected in the cluster.

A finding is true, so it is published. Each function of `spark_jobs/findings` takes one relation and says, for every kind
that can be seen in it, when, with which evidence and what to do. A new kind is a `case` there, a name in the gate's
closed list with its severities (`expectations/thresholds.py`) and a page in `docs/findings/`; if it explains other kinds or is
explained by one, a line in `findings/explanations.py` and in the gate's list of them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from spark_jobs.findings.broadcast import of_broadcast_offsets, of_offset_files
from spark_jobs.findings.changes import of_changes
from spark_jobs.findings.export import of_failed_sources, of_rejected_records, of_repeated_records
from spark_jobs.findings.groups import of_groups, of_members, of_subscriptions
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def finding(
    silver: Mapping[str, DataFrame], subscriptions: DataFrame, gold: Mapping[str, DataFrame]
) -> DataFrame:
    """Every finding by itself, as `findings.finding_builder.collect_findings` gives it; `findings.explanations.with_roots` completes the table.

    Args:
        silver: the silver tables by name.
        subscriptions: see `subscriptions.subscriptions`.
        gold: the gold tables but this one, by name.
    """
    drift, divergence = gold["ownership_drift"], gold["route_divergence"]
    kinds = [
        of_groups(subscriptions, silver["export_record"]),
        of_members(subscriptions),
        of_request_modes(subscriptions),
        of_subscriptions(subscriptions, silver["client_subscription"]),
        of_queues(drift, silver["consume_progress"], silver["queue_offset"]),
        of_undetermined_queues(drift),
        of_shares(gold["assignment_fairness"]),
        of_changes(gold["assignment_churn"]),
        of_stalled_queues(silver),
        of_blocked_queues(silver),
        of_routes(subscriptions, drift, silver["export_record"]),
        of_divergent_topics(divergence),
        of_divergent_brokers(divergence, silver["broker"], silver["export_record"]),
        of_unreadable_order_confs(silver["topic_route"]),
        of_masters(silver["broker"], divergence),
        of_offset_files(gold["broadcast_offset_file"]),
        of_broadcast_offsets(gold["broadcast_offset"]),
        of_rejected_records(silver["rejected_record"], silver["export_record"]),
        of_repeated_records(silver["export_record"]),
        of_failed_sources(silver["export_record"]),
    ]
    return reduce(lambda left, right: left.unionByName(right), kinds)
