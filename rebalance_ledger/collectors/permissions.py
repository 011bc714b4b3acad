"""Permissions that the collector's account needs, for the remarks about refused questions.

Belongs here: the permissions of RocketMQ's access control that each kind of question needs. Does not belong here: the classification
of answers as refusals (`tally`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES: Final[dict[str, tuple[str, ...]]] = {
    "nameserver_topic_list": ("Cluster:*",),
    "nameserver_cluster_info": ("Cluster:*",),
    "nameserver_route": ("Cluster:*", "Topic:*"),
    "broker_runtime_info": ("Cluster:*",),
    "broker_topic_config": ("Topic:*",),
    "broker_subscription_group": ("Group:*",),
    "broker_config": ("Cluster:*",),
    "broker_message_request_mode": ("Cluster:*",),
    "broker_producer_table": ("Cluster:*",),
    "broker_topic_stats": ("Topic:*",),
    "consumer_connection": ("Group:*",),
    "proxy_consumer_connection": ("Group:*",),
    "consumer_running_info": ("Group:*",),
    "consumer_status": ("Group:*", "Topic:*"),
    "consume_stats": ("Group:*",),
    "consume_stats_merged": ("Group:*",),
    "producer_connection": ("Topic:*",),
}
"""Kind of question -> the resources of ACL 2.0 on which it needs the actions Get and List.

Source: RocketMQAction and RocketMQResource of each request's header, 5.3.3. Resources of a whole broker belong to its cluster.
"""


def refusal_sentences(refusals: Mapping[str, int], questions: Mapping[str, int]) -> list[str]:
    """Return one sentence for each kind of question that the account was refused.

    Args:
        refusals: Number of refusals by kind.
        questions: Number of questions by kind.
    """
    return [
        f"{count} of {questions.get(kind, count)} questions of kind {kind} were refused for lack of permission; with ACL 2.0 grant the "
        f"account the actions Get and List on {' and '.join(RESOURCES.get(kind, ('Cluster:*',)))} (mqadmin createAcl or updateAcl), "
        "with ACL 1 check its access key, secret key and white list."
        for kind, count in sorted(refusals.items())
    ]
