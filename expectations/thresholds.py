"""The numbers and closed lists that the gate judges by.

Written down here and not imported from `strategies`, so that a slip there cannot move the bar with it; a test outside
this package holds the two equal. What does not belong here: how a number is measured.
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.tables import vocabulary

SPREAD_BOUND: Final[dict[str, int]] = {"AVG": 1, "AVG_BY_CIRCLE": 1, "MACHINE_ROOM": 1}
"""Strategy -> the most by which the queue counts of two clients of a group may differ, within one topic.

A strategy that is not named promises no bound: a hash ring and a list are uneven by nature, rooms differ in size.
"""

ONE_OWNER_STRATEGIES: Final = frozenset(
    {"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"}
)
"""Strategies that never give a queue to two clients with different ids. `CONFIG` may: lists can overlap."""

MACHINE_ROOM_ONE_OWNER_SINCE: Final = (4, 8, 0)
"""The Java release from which `MACHINE_ROOM` keeps that promise.

Up to 4.7.1 `AllocateMessageQueueByMachineRoom` takes a client's first queues from the whole list and the rest from
the rooms, so two clients can get the same; the Go client copies that.
"""

COVERING_STRATEGIES: Final = frozenset({"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"})
"""Strategies that give every queue to somebody. `MACHINE_ROOM` leaves out the rooms that it does not serve."""

DIVISION_REASONS: Final = (
    "pop_mode",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    "server_off",
    "strategy_unknown_to_broker",
)
"""Reasons that lie in how members fetch, and not in their strategy."""

EXCUSED_UNOWNED_REASONS: Final = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "strategy_failed",
    "owner_not_subscribed",
    "mixed_clients",
    "not_assigned_by_strategy",
    *DIVISION_REASONS,
    "release_unknown",
    "mixed_parameters",
)
"""Reasons with which even a covering strategy may leave a queue to nobody.

Either nobody can say who owns it, or the strategy gave it to somebody who does not read it, or members follow its rules
of different languages, versions or parameters, or its parameters (no virtual nodes) leave everything out.
"""

UNKNOWN_OWNER_REASONS: Final = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    *DIVISION_REASONS,
)
"""Reasons that mean "the owner of this queue is unknown": counts of owners in its topic must be null and not 0."""

REASONS_OF_RULES: Final = (
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "mixed_clients",
    "mixed_parameters",
    *DIVISION_REASONS,
)
"""Reasons that members' own rules give: never where a strategy is tried with one rule for all members."""

STRATEGIES_OF_REASON: Final[dict[str, tuple[str, ...]]] = {
    "not_in_config_list": ("CONFIG",),
    "queue_not_in_route": ("CONFIG", "MIXED"),
    "room_without_clients": ("MACHINE_ROOM",),
    "mixed_strategies": ("MIXED",),
    "pop_mode": ("POP",),
}
"""Reason -> the strategies that alone can have it."""

STRATEGIES_THAT_LEAVE_NOTHING_OUT: Final = ("AVG", "AVG_BY_CIRCLE", "BROADCASTING", "POP")
"""Strategies that give every queue to a member."""

DOUBTFUL_OWNER_REASONS: Final = (*UNKNOWN_OWNER_REASONS, "strategy_failed")
"""Reasons under which a count over the topic may be given or null: a part of it is known."""

STRATEGY_SOURCES: Final = tuple(vocabulary.StrategySource)
"""The closed list of `strategy_source`."""

FINDING_SEVERITIES: Final = tuple(vocabulary.Severity)
"""The closed list of `finding.severity`."""

_KINDS_OF_QUEUES: Final = (
    "unowned",
    "multiple_owners",
    "unexpected_owner",
    "broadcast_queue_not_consumed",
)

FINDING_KIND_SEVERITIES: Final[dict[str, tuple[str, ...]]] = {
    "mixed_strategies": ("critical",),
    "mixed_request_modes": ("critical",),
    "server_load_balancer_off": ("critical",),
    "request_modes_differ": ("warning",),
    "strategy_unknown_to_broker": ("warning",),
    "duplicate_client_id": ("critical", "warning"),
    "subscriptions_differ": ("critical", "warning"),
    "unowned": ("critical", "warning"),
    "broadcast_queue_not_consumed": ("warning",),
    "multiple_owners": ("critical", "warning"),
    "unexpected_owner": ("warning",),
    "assignment_stale": ("warning",),
    "idle_clients": ("info",),
    "load_imbalanced": ("warning",),
    "group_offline": ("warning",),
    "members_unknown": ("warning",),
    "client_unreachable": ("warning",),
    "member_lists_differ": ("warning",),
    "settings_missing": ("info",),
    "strategy_unknown": ("info",),
    "strategy_changed": ("info",),
    "consumption_stalled": ("warning",),
    "order_queue_blocked": ("warning",),
    "route_differs": ("warning",),
    "route_missing": ("warning",),
    "write_route_differs": ("warning",),
    "order_conf_differs": ("warning",),
    "order_conf_unreadable": ("warning",),
    "broker_missing_on_nameserver": ("warning",),
    "broker_address_differs": ("warning",),
    "route_config_differs": ("warning",),
    "broker_without_master": ("warning",),
    "offset_files_corrupt": ("critical",),
    "offset_file_shared": ("critical",),
    "offset_file_recovered": ("warning",),
    "offset_file_lost": ("warning",),
    "offset_file_undecided": ("warning",),
    "offset_file_stale": ("warning",),
    "offset_file_unused": ("info",),
    "broadcast_messages_lost": ("critical",),
    "broadcast_offset_ahead": ("warning",),
    "broadcast_offset_regressed": ("warning",),
    "broadcast_client_stuck": ("warning",),
    "record_rejected": ("warning",),
    "record_repeated": ("info", "warning"),
    "source_failed": ("warning",),
}
"""Kind of finding -> the severities that a finding of it has by itself, the usual one first; each has a page in docs/findings."""

FINDING_KINDS: Final = tuple(vocabulary.FindingKind)
"""The closed list of `finding.kind`."""

PASSING_CAUSES: Final = ("not_yet_rebalanced",)
"""Causes that pass without intervention: a critical kind is a warning with one of them."""

_IS_ENOUGH: Final = "client_total_count <= queue_total_count"

FINDING_EXPLANATIONS: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...]] = (
    ("mixed_strategies", _KINDS_OF_QUEUES, ("consumer_group",), "likely_cause = 'mixed_strategies'"),
    ("duplicate_client_id", _KINDS_OF_QUEUES, ("consumer_group",), "likely_cause = 'duplicate_client_id'"),
    (
        "subscriptions_differ",
        _KINDS_OF_QUEUES,
        ("consumer_group", "topic"),
        "likely_cause = 'subscriptions_differ'",
    ),
    (
        "mixed_request_modes",
        _KINDS_OF_QUEUES,
        ("consumer_group", "topic"),
        "likely_cause = 'mixed_request_modes'",
    ),
    (
        "mixed_request_modes",
        _KINDS_OF_QUEUES,
        ("consumer_group",),
        "likely_cause = 'mixed_request_modes' AND startswith(topic, '%RETRY%')",
    ),
    (
        "server_load_balancer_off",
        _KINDS_OF_QUEUES,
        ("consumer_group", "topic"),
        "likely_cause = 'server_load_balancer_off'",
    ),
    (
        "server_load_balancer_off",
        _KINDS_OF_QUEUES,
        ("consumer_group",),
        "likely_cause = 'server_load_balancer_off' AND startswith(topic, '%RETRY%')",
    ),
    ("member_lists_differ", _KINDS_OF_QUEUES, ("consumer_group",), "likely_cause = 'member_lists_differ'"),
    ("route_differs", _KINDS_OF_QUEUES, ("topic",), "likely_cause = 'route_views_differ'"),
    (
        "route_missing",
        (*_KINDS_OF_QUEUES, "assignment_stale"),
        ("topic",),
        "likely_cause = 'route_missing'",
    ),
    (
        "mixed_strategies",
        ("load_imbalanced", "idle_clients"),
        ("consumer_group",),
        "try_element_at(seen_values, 1) = 'MIXED'",
    ),
    (
        "duplicate_client_id",
        ("load_imbalanced", "idle_clients"),
        ("consumer_group",),
        f"try_element_at(seen_values, 1) IN ('AVG', 'AVG_BY_CIRCLE') AND {_IS_ENOUGH}",
    ),
    ("load_imbalanced", ("idle_clients",), ("consumer_group", "topic"), _IS_ENOUGH),
    ("duplicate_client_id", ("offset_file_shared",), ("consumer_group", "client_id"), "TRUE"),
    ("offset_file_shared", ("broadcast_offset_regressed",), ("consumer_group", "client_id"), "TRUE"),
)
"""Kind, the kinds that it explains, the columns that are equal in both, and a condition on the explained finding.

What findings on brokers explain is decided by other tables and stands in `finding.py`.
"""

FINDING_CAUSES_OF_GROUPS: Final = (
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
"""Causes with which the findings on queues of a group, in all of its topics, are one problem."""

FINDING_KINDS_OF_CLIENTS: Final = (
    "broadcast_messages_lost",
    "broadcast_offset_regressed",
    "broadcast_client_stuck",
)
"""Kinds that are one problem in all topics of a client."""

DRIFT_FINDING_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "unowned": ("unowned", "broadcast_queue_not_consumed"),
    "multiple_owners": ("multiple_owners",),
    "unexpected_owner": ("unexpected_owner", "assignment_stale"),
}
"""State of `ownership_drift` -> the kinds of which one tells a person."""

DRIFT_STATES: Final = tuple(vocabulary.DriftState)
"""The closed list of `ownership_drift.state`."""

DRIFT_CAUSES: Final = tuple(vocabulary.DriftCause)
"""The closed list of `ownership_drift.likely_cause`."""

SOURCE_CAUSES: Final = tuple(vocabulary.SourceCause)
"""Why a source did not answer."""

FINDING_CAUSES: Final = (*DRIFT_CAUSES, "more_clients_than_queues", *SOURCE_CAUSES)
"""The closed list of `finding.likely_cause`: idle clients and failed sources have causes too, and no queue is amiss for them."""

DRIFT_UNKNOWN_REASONS: Final = tuple(vocabulary.UnknownReason)
"""The closed list of `ownership_drift.unknown_reason`."""

UNKNOWN_RULE_REASONS: Final = (
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "strategy_failed",
)
"""Those under which a queue is unowned all the same where every member answered and none holds it."""

REASONS_WITH_A_CAUSE: Final = (
    "room_without_clients",
    "not_in_config_list",
    "mixed_strategies",
    "mixed_clients",
    "mixed_parameters",
    "owner_not_subscribed",
    "duplicate_client_id",
)
"""Reasons of an unowned queue in `queue_assignment` that are themselves evidence of a cause."""

REQUEST_MODES: Final = tuple(vocabulary.RequestMode)
"""The closed list of `queue_sharing.request_mode`."""

REQUEST_MODE_SOURCES: Final = tuple(vocabulary.RequestModeSource)
"""The closed list of `queue_sharing.request_mode_source`."""

NON_ASCII_PATTERN: Final = r"[^\x00-\x7F]"
"""Characters that Java, and a client that sorts names by byte, may put in different orders."""

GRPC_CLIENT_ID_PATTERN: Final = r"^.+@\d+@\d+@-?[0-9a-z]+$"
"""The form of the ids of gRPC clients, which cannot be asked for a process table."""

GROUP_STATES: Final = tuple(vocabulary.GroupState)
"""The closed list of `group_state`."""

GROUP_STATE_REASONS: Final = tuple(vocabulary.GroupStateReason)
"""The closed list of `group_state_reason`, which says why the state is unknown."""

PROXY_HEARTBEAT_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
"""The group whose members are the proxies."""

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
"""How groups begin that RocketMQ keeps for itself."""

SYSTEM_GROUPS: Final = (
    PROXY_HEARTBEAT_GROUP,
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_PULL",
    "CLIENT_INNER_PRODUCER",
    "DEFAULT_CONSUMER",
    "DEFAULT_PRODUCER",
    "FILTERSRV_CONSUMER",
    "SCHEDULE_CONSUMER",
    "SELF_TEST_C_GROUP",
    "SELF_TEST_P_GROUP",
    "TOOLS_CONSUMER",
    "__MONITOR_CONSUMER",
)
"""The others of them, of all releases from 4.7.1 to 5.5.0."""

OFFSET_FILE_STATES: Final = tuple(vocabulary.OffsetFileState)
"""The closed list of `broadcast_offset_file.state`."""

UNREAD_OFFSET_FILE_STATES: Final = ("orphan_dir", "clustering_group_with_file")
"""Those of files that no client reads."""

BROADCAST_OFFSET_STATES: Final = tuple(vocabulary.BroadcastOffsetState)
"""The closed list of `broadcast_offset.state`."""

RESTARTS_WITH_STORED_OFFSET: Final = (
    "stored",
    "corrected_by_broker_to_min",
    "corrected_by_broker_to_max",
    "queue_left_out",
)
"""Reasons in `broadcast_offset.restart_reason` that need a stored offset."""

RESTARTS_WITHOUT_STORED_OFFSET: Final = (
    "default_last",
    "default_first",
    "default_timestamp",
    "fails_to_start",
)
"""Those that need that there is none."""

OFFSET_FILE_FINDING_KINDS: Final[dict[str, str]] = {
    "corrupt_both": "offset_files_corrupt",
    "shared_file": "offset_file_shared",
    "recovered_from_bak": "offset_file_recovered",
    "empty": "offset_file_lost",
    "missing": "offset_file_lost",
    "stale": "offset_file_stale",
    "orphan_dir": "offset_file_unused",
    "clustering_group_with_file": "offset_file_unused",
}
"""State of `broadcast_offset_file` -> the kind that tells a person."""

UNDECIDED_OFFSET_FILE_KIND: Final = "offset_file_undecided"
"""The kind that tells of a file of state `unknown` whose bytes and release do not decide what a client makes of it."""

BROADCAST_FINDING_KINDS: Final[dict[str, str]] = {
    "behind_min": "broadcast_messages_lost",
    "ahead_of_max": "broadcast_offset_ahead",
    "regressed": "broadcast_offset_regressed",
    "stale": "broadcast_client_stuck",
}
"""State of `broadcast_offset` -> the kind that tells a person."""

REBALANCE_GRACE_MS: Final = 60_000
"""How young a client may be for its start to be the cause of a difference: three rounds of rebalance, 20 s each."""

ROUTE_DIFFERENCES: Final = tuple(vocabulary.RouteDifference)
"""The closed list of the elements of `route_divergence.differences`."""

DIVERGENCE_STATES: Final = tuple(vocabulary.DivergenceState)
"""The closed list of `route_divergence.state`."""

FINDING_KINDS_WITHOUT_SUBJECT: Final = ("record_rejected", "record_repeated", "source_failed")
"""Kinds that may concern a name server or a file, for which `finding` has no subject column."""

OWN_TOPIC_PREFIXES: Final = ("%RETRY%", "%DLQ%", "rmq_sys_")
"""How topics begin that RocketMQ writes for itself: retries, dead letters, system topics."""

SYSTEM_TOPICS: Final = (
    "BenchmarkTest",
    "CHECKPOINT_TOPIC",
    "OFFSET_MOVED_EVENT",
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "SCHEDULE_TOPIC_XXXX",
    "SELF_TEST_TOPIC",
    "TBW102",
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
"""The names that `TopicValidator` reserves, of all releases from 4.7.1 to 5.5.0."""

REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
"""After a cluster's name, its topic for replies. Cluster and brokers have topics of their own name, too."""

RATIO_TOLERANCE: Final = 1e-9
"""How far a published ratio may be from its recomputation, relative to the larger of 1 and the ratio."""

MOST_REJECTED_RATIO: Final = 0.01
"""The share of an export's lines that may be unreadable before the gate warns."""

MOST_NOT_COMPARED_RATIO: Final = 0.5
"""The share of the answers of a kind that tables may be silently held against nothing before the gate warns."""

LEAST_ROW_COUNT_LIKENESS: Final = 0.5
"""The smaller of a table's row counts on two days, divided by the larger, before the gate warns."""

LEAST_COMPARED_ROW_COUNT: Final = 100
"""Tables with fewer rows on both days come and go without a word: a few rows more are soon twice as many."""

UNEVENNESS_JUMP: Final = 1.5
"""How many times as great max_over_mean may be as on the earlier day before the gate warns."""

MOST_QUARANTINED_RATIO: Final = 0.25
"""The share of the groups that a day may be published without: what is wrong with more of them is no fault of theirs."""

MOST_EXAMPLES: Final = 10
"""Offenders that are kept for each expectation, the first in the order of their text."""


def names_in_table(strategies: frozenset[str]) -> tuple[str, ...]:
    """A set of strategies as the `strategy` column names them, sorted.

    `MACHINE_ROOM_NEARBY` stands there as `MACHINE_ROOM_NEARBY-<inner>` (`AllocateMachineRoomNearby.getName()`) and
    keeps a promise only where its inner strategy does.
    """
    names = set(strategies)
    if "MACHINE_ROOM_NEARBY" in strategies:
        names |= {f"MACHINE_ROOM_NEARBY-{inner}" for inner in strategies}
    return tuple(sorted(names))
