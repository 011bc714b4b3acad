"""The thresholds and closed lists of the gate.

They are not imported from `strategies`, so that an error there cannot change the gate too; a test outside this package
keeps the two equal. Does not belong here: how a number is measured.
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.tables import vocabulary

SPREAD_BOUND: Final[dict[str, int]] = {"AVG": 1, "AVG_BY_CIRCLE": 1, "MACHINE_ROOM": 1}
"""Strategy -> maximum difference between the queue counts of two clients of a group, within one topic.

Other strategies guarantee no bound: a hash ring and a list are uneven by design, and rooms differ in size.
"""

ONE_OWNER_STRATEGIES: Final = frozenset(
    {"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"}
)
"""Strategies that never assign a queue to two clients with different ids. `CONFIG` may: lists can overlap."""

MACHINE_ROOM_ONE_OWNER_SINCE: Final = (4, 8, 0)
"""The Java release from which `MACHINE_ROOM` keeps that guarantee.

Up to 4.7.1 `AllocateMessageQueueByMachineRoom` takes a client's first queues from the whole list and the rest from
the rooms, so two clients can get the same queues; the Go client copies that.
"""

COVERING_STRATEGIES: Final = frozenset({"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"})
"""Strategies that assign every queue. `MACHINE_ROOM` does not assign the queues of rooms that it does not serve."""

DIVISION_REASONS: Final = (
    "pop_mode",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    "server_off",
    "strategy_unknown_to_broker",
)
"""Reasons caused by how members fetch, not by their strategy."""

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
"""Reasons with which even a covering strategy may leave a queue without an owner.

The owner is unknown, or the strategy assigned the queue to a member that does not read it, or members follow the rules of
different languages, versions or parameters, or the parameters (no virtual nodes) assign no queue at all.
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
"""Reasons that follow from members' own rules; never those of a strategy that is computed with one rule for all members."""

REASONS_WITHOUT_SHARES: Final = tuple(
    reason for reason in REASONS_OF_RULES if reason not in ("mixed_clients", "mixed_parameters")
)
"""Those of a queue that may belong to a member of which no share is known."""

CODES_OF_ANSWERS: Final = (17, 26, 206, 213)
"""Response codes with which a source answers: no route, no such group, group not online, group without progress."""

NOT_ONLINE_TEXT: Final = "> not online"
"""Part of a message that states that a client is not connected."""

SUSPICIOUS_PATTERN: Final = (
    r"(?i)pass|pwd|secret|credential|token|key|signature|auth|bearer|://|akia|ltai|eyj|socks"
)
"""Lines that may hold a secret, which tables do not."""

ROOM_AND_BROKER_PATTERN: Final = r"\A[^@]*@[^@]+@*\z"
"""`room@broker` as Java splits it: two parts, ignoring empty parts at the end."""

RELEASE_OF_ROOMS_PATTERN: Final = r"^(4[.]([89]|[1-9][0-9])|[5-9]|[1-9][0-9])[.]"
"""The release from which MACHINE_ROOM divides only the queues of its rooms."""

KNOWN_RELEASE_PATTERN: Final = r"^(4[.][1-9][0-9]{0,2}|5[.][0-9]{1,3})[.][0-9]{1,3}(-SNAPSHOT|-incubating)?$"
"""Releases of the Java client of which the rules are known: 4.1.0 and later, before 6."""

STRATEGIES_OF_REASON: Final[dict[str, tuple[str, ...]]] = {
    "not_in_config_list": ("CONFIG",),
    "queue_not_in_route": ("CONFIG", "MIXED"),
    "room_without_clients": ("MACHINE_ROOM",),
    "mixed_strategies": ("MIXED",),
    "pop_mode": ("POP",),
}
"""Reason -> the only strategies that can have it."""

STRATEGIES_THAT_LEAVE_NOTHING_OUT: Final = ("AVG", "AVG_BY_CIRCLE", "BROADCASTING", "POP")
"""Strategies that assign every queue to a member."""

OWNER_REASONS: Final = tuple(vocabulary.OwnerReason)
"""The closed list of `queue_assignment.reason`."""

DOUBTFUL_OWNER_REASONS: Final = (*UNKNOWN_OWNER_REASONS, "strategy_failed")
"""Reasons with which a count over the topic may be set or null, because a part of it is known."""

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
    "consumption_disabled": ("critical", "warning"),
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
"""Causes that disappear without intervention; they reduce a critical kind to a warning."""

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

`finding.py` decides what findings on brokers explain, from other tables.
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
"""Causes that make the findings on queues of a group, over all of its topics, one problem."""

MOST_LISTED: Final = 5
"""The maximum number of texts in a list of a finding (`examples`, `seen_values`), and of names in its sentence."""

MEASURES_OF_KIND: Final[dict[str, tuple[str, ...]]] = {
    "unowned": (
        "queue_count",
        "client_total_count",
        "waiting_message_count",
        "seen_values",
        "examples",
    ),
    "broadcast_queue_not_consumed": (
        "queue_count",
        "client_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "multiple_owners": (
        "queue_count",
        "client_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "unexpected_owner": (
        "queue_count",
        "client_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "assignment_stale": (
        "queue_count",
        "client_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "idle_clients": (
        "client_count",
        "client_total_count",
        "queue_total_count",
        "seen_values",
    ),
    "load_imbalanced": (
        "max_queues_per_client",
        "mean_queues_per_client",
        "min_queues_per_client",
        "client_total_count",
        "queue_total_count",
        "seen_values",
    ),
    "strategy_changed": (
        "queue_count",
        "queue_total_count",
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "mixed_strategies": (
        "client_total_count",
        "value_count",
        "seen_values",
    ),
    "group_offline": ("topic_count",),
    "members_unknown": (
        "topic_count",
        "seen_values",
    ),
    "client_unreachable": (
        "client_count",
        "client_total_count",
        "examples",
    ),
    "member_lists_differ": (
        "client_total_count",
        "value_count",
    ),
    "consumption_disabled": (
        "value_count",
        "seen_values",
        "examples",
    ),
    "duplicate_client_id": (
        "process_count",
        "value_count",
    ),
    "subscriptions_differ": (
        "client_count",
        "client_total_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "mixed_request_modes": (
        "client_count",
        "client_total_count",
        "examples",
    ),
    "server_load_balancer_off": (
        "client_count",
        "client_total_count",
        "examples",
    ),
    "request_modes_differ": (
        "client_count",
        "client_total_count",
    ),
    "strategy_unknown_to_broker": (
        "client_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "consumption_stalled": (
        "queue_count",
        "client_count",
        "examples",
    ),
    "order_queue_blocked": (
        "queue_count",
        "examples",
    ),
    "broker_without_master": (
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "route_missing": (
        "group_count",
        "examples",
    ),
    "route_differs": (
        "value_count",
        "seen_values",
        "examples",
    ),
    "order_conf_differs": (
        "value_count",
        "seen_values",
    ),
    "order_conf_unreadable": (
        "value_count",
        "seen_values",
    ),
    "record_rejected": (
        "record_count",
        "seen_values",
    ),
    "record_repeated": (
        "record_count",
        "seen_values",
        "examples",
    ),
    "source_failed": (
        "record_count",
        "seen_values",
        "examples",
    ),
    "settings_missing": (
        "queue_count",
        "topic_count",
        "client_total_count",
        "seen_values",
        "examples",
    ),
    "strategy_unknown": (
        "queue_count",
        "topic_count",
        "seen_values",
        "examples",
    ),
    "broker_missing_on_nameserver": (
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "write_route_differs": (
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "broker_address_differs": (
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "route_config_differs": (
        "topic_count",
        "value_count",
        "seen_values",
        "examples",
    ),
    "offset_files_corrupt": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_shared": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_recovered": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_lost": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_undecided": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_stale": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "offset_file_unused": (
        "process_count",
        "seen_values",
        "examples",
    ),
    "broadcast_messages_lost": (
        "queue_count",
        "examples",
    ),
    "broadcast_offset_ahead": (
        "queue_count",
        "examples",
    ),
    "broadcast_offset_regressed": (
        "queue_count",
        "examples",
    ),
    "broadcast_client_stuck": (
        "queue_count",
        "examples",
    ),
}
"""Kind of finding -> the numbers and lists that it may have."""

FINDING_KINDS_OF_CLIENTS: Final = (
    "broadcast_messages_lost",
    "broadcast_offset_regressed",
    "broadcast_client_stuck",
)
"""Kinds that are one problem over all topics of a client."""

DRIFT_FINDING_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "unowned": ("unowned", "broadcast_queue_not_consumed"),
    "multiple_owners": ("multiple_owners",),
    "unexpected_owner": ("unexpected_owner", "assignment_stale"),
}
"""State of `ownership_drift` -> kinds of finding, of which one reports it."""

DRIFT_STATES: Final = tuple(vocabulary.DriftState)
"""The closed list of `ownership_drift.state`."""

DRIFT_CAUSES: Final = tuple(vocabulary.DriftCause)
"""The closed list of `ownership_drift.likely_cause`."""

SOURCE_CAUSES: Final = tuple(vocabulary.SourceCause)
"""Causes of a source that did not answer."""

FINDING_CAUSES: Final = (*DRIFT_CAUSES, "more_clients_than_queues", *SOURCE_CAUSES)
"""The closed list of `finding.likely_cause`, including the causes of idle clients and failed sources, which affect no queue."""

DRIFT_UNKNOWN_REASONS: Final = tuple(vocabulary.UnknownReason)
"""The closed list of `ownership_drift.unknown_reason`."""

UNKNOWN_RULE_REASONS: Final = (
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "strategy_failed",
)
"""Reasons with which a queue is still unowned if every member answered and none holds it."""

REASONS_WITH_A_CAUSE: Final = (
    "room_without_clients",
    "not_in_config_list",
    "mixed_strategies",
    "mixed_clients",
    "mixed_parameters",
    "owner_not_subscribed",
    "duplicate_client_id",
)
"""Reasons of an unowned queue in `queue_assignment` that are evidence of a cause by themselves."""

REQUEST_MODES: Final = tuple(vocabulary.RequestMode)
"""The closed list of `queue_sharing.request_mode`."""

REQUEST_MODE_SOURCES: Final = tuple(vocabulary.RequestModeSource)
"""The closed list of `queue_sharing.request_mode_source`."""

NON_ASCII_PATTERN: Final = r"[^\x00-\x7F]"
"""Characters that Java and clients that sort names by byte may order differently."""

GRPC_CLIENT_ID_PATTERN: Final = r"^(.+@\d+@\d+@-?[0-9a-z]+|.+@\d+#\d+_\d+|[^@:]*[A-Za-z][^@:]*@\d+#\d{1,6})$"
"""The id pattern of gRPC clients, which have no process table to query."""

GROUP_STATES: Final = tuple(vocabulary.GroupState)
"""The closed list of `group_state`."""

GROUP_STATE_REASONS: Final = tuple(vocabulary.GroupStateReason)
"""The closed list of `group_state_reason`: why the state is unknown."""

PROXY_HEARTBEAT_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
"""The group whose members are the proxies."""

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
"""Prefixes of RocketMQ system groups."""

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
"""RocketMQ system groups without such a prefix, of all releases from 4.7.1 to 5.5.0."""

OFFSET_FILE_STATES: Final = tuple(vocabulary.OffsetFileState)
"""The closed list of `broadcast_offset_file.state`."""

UNREAD_OFFSET_FILE_STATES: Final = ("orphan_dir", "clustering_group_with_file")
"""States of files that no client reads."""

MOST_OFFSET_FILE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of an offset file that is read."""

MOST_KEPT_OFFSET_FILE_BYTES: Final = 256 * 1024
"""Maximum size of an offset file of which the gate must be given the bytes."""

OFFSET_FILE_STALE_AFTER_MS: Final = 3_600_000
"""Age from which files of an online client are stale; a running client writes every 5 s."""

OFFSET_FILE_ORPHAN_AFTER_MS: Final = 7 * 24 * 3_600_000
"""Age from which files of an offline client are abandoned."""

PROCESS_BOUND_CLIENT_ID_PATTERN: Final = r"^[^@]*@([0-9]+#[0-9]+|[^@]+@[0-9]+@[0-9]{9,})(@|$)"
"""Client ids with the id of the process and a time (`pid#time`, rocketmq-spring's `nameserver@pid@nanoTime`): no later process has them."""

COLLECTED_CLIENT_LANGUAGES: Final = ("GO", "JAVA")
"""Languages of clients whose offset files are collected."""

ASSUMED_CLIENT_LANGUAGE: Final = "JAVA"
"""Language of a client that no broker lists."""

ASSUMED_CLIENT_VERSION: Final = "5.3.3"
"""Release of a client of whose group no member reports one."""

CONSUME_FROM_LAST_SETTINGS: Final = (
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
"""Deprecated settings that a push consumer takes for CONSUME_FROM_LAST_OFFSET."""

BROADCAST_OFFSET_STATES: Final = tuple(vocabulary.BroadcastOffsetState)
"""The closed list of `broadcast_offset.state`."""

RESTARTS_WITH_STORED_OFFSET: Final = (
    "stored",
    "corrected_by_broker_to_min",
    "corrected_by_broker_to_max",
    "queue_skipped",
)
"""Reasons in `broadcast_offset.restart_reason` that require a stored offset."""

RESTARTS_WITHOUT_STORED_OFFSET: Final = (
    "default_last",
    "default_first",
    "default_timestamp",
    "fails_to_start",
)
"""Reasons that require that there is no stored offset."""

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
"""State of `broadcast_offset_file` -> kind of finding that reports it."""

UNDECIDED_OFFSET_FILE_KIND: Final = "offset_file_undecided"
"""The kind that reports a file of state `unknown` whose bytes and release do not determine how a client reads it."""

BROADCAST_FINDING_KINDS: Final[dict[str, str]] = {
    "behind_min": "broadcast_messages_lost",
    "ahead_of_max": "broadcast_offset_ahead",
    "regressed": "broadcast_offset_regressed",
    "stale": "broadcast_client_stuck",
}
"""State of `broadcast_offset` -> kind of finding that reports it."""

REBALANCE_GRACE_MS: Final = 60_000
"""Maximum age of a client whose start may cause a difference: three rebalance rounds of 20 s each."""

ROUTE_DIFFERENCES: Final = tuple(vocabulary.RouteDifference)
"""The closed list of the elements of `route_divergence.differences`."""

DIVERGENCE_STATES: Final = tuple(vocabulary.DivergenceState)
"""The closed list of `route_divergence.state`."""

FINDING_KINDS_WITHOUT_SUBJECT: Final = ("record_rejected", "record_repeated", "source_failed")
"""Kinds that may affect a name server or a file, for which `finding` has no subject column."""

OWN_TOPIC_PREFIXES: Final = ("%RETRY%", "%DLQ%", "rmq_sys_")
"""Prefixes of RocketMQ's own topics: retries, dead letters, system topics."""

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
"""Names that `TopicValidator` reserves, of all releases from 4.7.1 to 5.5.0."""

REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
"""Suffix of a cluster's reply topic, after the cluster name. Cluster and brokers also have topics of their own name."""

RATIO_TOLERANCE: Final = 1e-9
"""Maximum difference between a published ratio and its recomputation, relative to the larger of 1 and the ratio."""

MOST_REJECTED_RATIO: Final = 0.01
"""Maximum share of unreadable lines in an export; above it the gate warns."""

MOST_NOT_COMPARED_RATIO: Final = 0.5
"""Maximum share of the answers of a kind that the tables are not compared with; above it the gate warns."""

LEAST_ROW_COUNT_LIKENESS: Final = 0.5
"""Minimum ratio of the smaller to the larger row count of a table on two days; below it the gate warns."""

LEAST_COMPARED_ROW_COUNT: Final = 100
"""Row counts below this on both days are not compared, because a few rows more can double them."""

UNEVENNESS_JUMP: Final = 1.5
"""Ratio of max_over_mean to that of the baseline day from which the gate warns."""

MOST_QUARANTINED_RATIO: Final = 0.25
"""Maximum share of quarantined groups; an error in more of them is an error of the whole day."""

MOST_EXAMPLES: Final = 10
"""Maximum number of examples per expectation, the first in the order of their text."""


def names_in_table(strategies: frozenset[str]) -> tuple[str, ...]:
    """Return the names of a set of strategies in the `strategy` column, sorted.

    The column has `MACHINE_ROOM_NEARBY` as `MACHINE_ROOM_NEARBY-<inner>` (`AllocateMachineRoomNearby.getName()`), which
    keeps a guarantee only if its inner strategy does.
    """
    names = set(strategies)
    if "MACHINE_ROOM_NEARBY" in strategies:
        names |= {f"MACHINE_ROOM_NEARBY-{inner}" for inner in strategies}
    return tuple(sorted(names))
