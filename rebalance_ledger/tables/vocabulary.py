"""Published words: the closed lists of states, reasons, causes and kinds that columns hold.

Each list is written once. A column names its list (`Column.values`); the gate checks it, and `docs/tables.md` shows it. A word
has one meaning in all lists.
"""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding, the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class FindingKind(StrEnum):
    """Kind of a finding; `docs/findings/` has a page for each."""

    MIXED_STRATEGIES = "mixed_strategies"
    MIXED_REQUEST_MODES = "mixed_request_modes"
    SERVER_LOAD_BALANCER_OFF = "server_load_balancer_off"
    REQUEST_MODES_DIFFER = "request_modes_differ"
    STRATEGY_UNKNOWN_TO_BROKER = "strategy_unknown_to_broker"
    DUPLICATE_CLIENT_ID = "duplicate_client_id"
    SUBSCRIPTIONS_DIFFER = "subscriptions_differ"
    UNOWNED = "unowned"
    BROADCAST_QUEUE_NOT_CONSUMED = "broadcast_queue_not_consumed"
    MULTIPLE_OWNERS = "multiple_owners"
    UNEXPECTED_OWNER = "unexpected_owner"
    ASSIGNMENT_STALE = "assignment_stale"
    IDLE_CLIENTS = "idle_clients"
    LOAD_IMBALANCED = "load_imbalanced"
    GROUP_OFFLINE = "group_offline"
    MEMBERS_UNKNOWN = "members_unknown"
    CLIENT_UNREACHABLE = "client_unreachable"
    MEMBER_LISTS_DIFFER = "member_lists_differ"
    CONSUMPTION_DISABLED = "consumption_disabled"
    SETTINGS_MISSING = "settings_missing"
    STRATEGY_UNKNOWN = "strategy_unknown"
    STRATEGY_CHANGED = "strategy_changed"
    CONSUMPTION_STALLED = "consumption_stalled"
    ORDER_QUEUE_BLOCKED = "order_queue_blocked"
    ROUTE_DIFFERS = "route_differs"
    ROUTE_MISSING = "route_missing"
    WRITE_ROUTE_DIFFERS = "write_route_differs"
    ORDER_CONF_DIFFERS = "order_conf_differs"
    ORDER_CONF_UNREADABLE = "order_conf_unreadable"
    BROKER_MISSING_ON_NAMESERVER = "broker_missing_on_nameserver"
    BROKER_ADDRESS_DIFFERS = "broker_address_differs"
    ROUTE_CONFIG_DIFFERS = "route_config_differs"
    BROKER_WITHOUT_MASTER = "broker_without_master"
    OFFSET_FILES_CORRUPT = "offset_files_corrupt"
    OFFSET_FILE_SHARED = "offset_file_shared"
    OFFSET_FILE_RECOVERED = "offset_file_recovered"
    OFFSET_FILE_LOST = "offset_file_lost"
    OFFSET_FILE_UNDECIDED = "offset_file_undecided"
    OFFSET_FILE_STALE = "offset_file_stale"
    OFFSET_FILE_UNUSED = "offset_file_unused"
    BROADCAST_MESSAGES_LOST = "broadcast_messages_lost"
    BROADCAST_OFFSET_AHEAD = "broadcast_offset_ahead"
    BROADCAST_OFFSET_REGRESSED = "broadcast_offset_regressed"
    BROADCAST_CLIENT_STUCK = "broadcast_client_stuck"
    RECORD_REJECTED = "record_rejected"
    RECORD_REPEATED = "record_repeated"
    SOURCE_FAILED = "source_failed"


class DriftState(StrEnum):
    """How the observed owners of a queue compare with the expected ones."""

    MATCH = "match"
    UNOWNED = "unowned"
    MULTIPLE_OWNERS = "multiple_owners"
    UNEXPECTED_OWNER = "unexpected_owner"
    SHARED = "shared"
    UNKNOWN = "unknown"


class DriftCause(StrEnum):
    """Likely cause of a queue's state; `docs/findings/causes.md` explains each."""

    GROUP_OFFLINE = "group_offline"
    ROUTE_MISSING = "route_missing"
    MIXED_REQUEST_MODES = "mixed_request_modes"
    DUPLICATE_CLIENT_ID = "duplicate_client_id"
    SERVER_LOAD_BALANCER_OFF = "server_load_balancer_off"
    ROOM_WITHOUT_CLIENTS = "room_without_clients"
    NOT_IN_CONFIG_LIST = "not_in_config_list"
    CONFIG_LIST_OVERLAP = "config_list_overlap"
    QUEUE_NOT_IN_ROUTE = "queue_not_in_route"
    SUBSCRIPTIONS_DIFFER = "subscriptions_differ"
    MIXED_STRATEGIES = "mixed_strategies"
    MIXED_CLIENTS = "mixed_clients"
    MIXED_PARAMETERS = "mixed_parameters"
    OLD_MACHINE_ROOM = "old_machine_room"
    MEMBER_LISTS_DIFFER = "member_lists_differ"
    ROUTE_VIEWS_DIFFER = "route_views_differ"
    NOT_YET_REBALANCED = "not_yet_rebalanced"
    PARAMETERS_DIFFER = "parameters_differ"


class SourceCause(StrEnum):
    """Why a source did not answer."""

    PERMISSION_DENIED = "permission_denied"
    CONNECTION_FAILED = "connection_failed"
    TIMED_OUT = "timed_out"


class UnknownReason(StrEnum):
    """Why the state of a queue is `unknown`."""

    ROUTE_UNKNOWN = "route_unknown"
    MEMBERS_UNKNOWN = "members_unknown"
    CLIENT_UNREACHABLE = "client_unreachable"
    PULL_CONSUMER_REPORTS_NO_QUEUES = "pull_consumer_reports_no_queues"
    ASSIGNED_BY_HAND = "assigned_by_hand"
    STRATEGY_NOT_REPORTED = "strategy_not_reported"
    PROCESS_COUNT_UNKNOWN = "process_count_unknown"
    SETTINGS_MISSING = "settings_missing"
    STRATEGY_UNKNOWN = "strategy_unknown"
    MEMBER_STRATEGY_UNKNOWN = "member_strategy_unknown"
    RELEASE_UNKNOWN = "release_unknown"
    STRATEGY_FAILED = "strategy_failed"
    MAY_BE_BEHIND_A_PROXY = "may_be_behind_a_proxy"
    POP_MODE = "pop_mode"
    MIXED_REQUEST_MODES = "mixed_request_modes"
    REQUEST_MODES_DIFFER = "request_modes_differ"
    REQUEST_MODE_UNKNOWN = "request_mode_unknown"
    SERVER_OFF = "server_off"
    STRATEGY_UNKNOWN_TO_BROKER = "strategy_unknown_to_broker"


class OwnerReason(StrEnum):
    """Why a queue has no owner, or an owner that the strategy did not choose."""

    GROUP_OFFLINE = "group_offline"
    MEMBERS_UNKNOWN = "members_unknown"
    DUPLICATE_CLIENT_ID = "duplicate_client_id"
    ROOM_WITHOUT_CLIENTS = "room_without_clients"
    NOT_IN_CONFIG_LIST = "not_in_config_list"
    MIXED_STRATEGIES = "mixed_strategies"
    MIXED_CLIENTS = "mixed_clients"
    MIXED_PARAMETERS = "mixed_parameters"
    OWNER_NOT_SUBSCRIBED = "owner_not_subscribed"
    SETTINGS_MISSING = "settings_missing"
    STRATEGY_UNKNOWN = "strategy_unknown"
    RELEASE_UNKNOWN = "release_unknown"
    MEMBER_STRATEGY_UNKNOWN = "member_strategy_unknown"
    STRATEGY_FAILED = "strategy_failed"
    NOT_ASSIGNED_BY_STRATEGY = "not_assigned_by_strategy"
    POP_MODE = "pop_mode"
    MIXED_REQUEST_MODES = "mixed_request_modes"
    REQUEST_MODES_DIFFER = "request_modes_differ"
    REQUEST_MODE_UNKNOWN = "request_mode_unknown"
    SERVER_OFF = "server_off"
    STRATEGY_UNKNOWN_TO_BROKER = "strategy_unknown_to_broker"
    ROUTE_MISSING = "route_missing"
    QUEUE_NOT_IN_ROUTE = "queue_not_in_route"


class StrategySource(StrEnum):
    """Where the strategy of a row comes from."""

    OBSERVED = "observed"
    CONFIGURED = "configured"
    HYPOTHETICAL = "hypothetical"


class RequestMode(StrEnum):
    """How members that leave the division to the broker fetch messages."""

    POP = "POP"
    PULL = "PULL"
    CLIENT = "CLIENT"


class RequestModeSource(StrEnum):
    """Where a request mode comes from."""

    ENTRY = "entry"
    BROKER_DEFAULT = "broker_default"
    RETRY_RULE = "retry_rule"
    SERVER_OFF = "server_off"


class GroupState(StrEnum):
    """Whether a consumer group is connected."""

    ONLINE = "online"
    BROADCASTING = "broadcasting"
    OFFLINE = "offline"
    UNKNOWN = "unknown"


class GroupStateReason(StrEnum):
    """Why the state of a group is `unknown`."""

    BROKER_NOT_ASKED = "broker_not_asked"
    ONLINE_AT_OTHER_BROKERS = "online_at_other_brokers"
    MAY_BE_BEHIND_A_PROXY = "may_be_behind_a_proxy"
    POP_RETRY_TOPIC_EXISTS = "pop_retry_topic_exists"
    MESSAGES_IN_FLIGHT = "messages_in_flight"
    OFFSETS_MOVED = "offsets_moved"


class OffsetFileState(StrEnum):
    """State of a broadcasting client's offset files."""

    OK = "ok"
    RECOVERED_FROM_BAK = "recovered_from_bak"
    CORRUPT_BOTH = "corrupt_both"
    EMPTY = "empty"
    MISSING = "missing"
    STALE = "stale"
    ORPHAN_DIR = "orphan_dir"
    SHARED_FILE = "shared_file"
    CLUSTERING_GROUP_WITH_FILE = "clustering_group_with_file"
    UNKNOWN = "unknown"


class BroadcastOffsetState(StrEnum):
    """State of a broadcasting client's offset in one queue."""

    OK = "ok"
    REGRESSED = "regressed"
    BEHIND_MIN = "behind_min"
    AHEAD_OF_MAX = "ahead_of_max"
    ORPHAN_QUEUE = "orphan_queue"
    STALE = "stale"
    NO_OFFSET = "no_offset"
    UNUSED = "unused"
    UNKNOWN = "unknown"


class RestartReason(StrEnum):
    """Why a broadcasting client that restarts continues where it does."""

    STORED = "stored"
    CORRECTED_BY_BROKER_TO_MIN = "corrected_by_broker_to_min"
    CORRECTED_BY_BROKER_TO_MAX = "corrected_by_broker_to_max"
    QUEUE_SKIPPED = "queue_skipped"
    DEFAULT_LAST = "default_last"
    DEFAULT_FIRST = "default_first"
    DEFAULT_TIMESTAMP = "default_timestamp"
    FAILS_TO_START = "fails_to_start"
    UNKNOWN = "unknown"


class RouteDifference(StrEnum):
    """What name servers or a broker's own configuration describe differently."""

    BROKER_MISSING = "broker_missing"
    READ_QUEUES = "read_queues"
    WRITE_QUEUES = "write_queues"
    PERM = "perm"
    ORDER_CONF = "order_conf"
    ADDRESSES = "addresses"
    CONFIG_READ_QUEUES = "config_read_queues"
    CONFIG_WRITE_QUEUES = "config_write_queues"
    CONFIG_PERM = "config_perm"
    NOT_CONFIGURED = "not_configured"
    NOT_ROUTED = "not_routed"


class DivergenceState(StrEnum):
    """Whether a name server's route agrees with the others and with the broker."""

    SAME = "same"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class ChurnState(StrEnum):
    """Whether a group's assignment can be compared with the baseline."""

    COMPARED = "compared"
    NO_BASELINE = "no_baseline"
    UNKNOWN_NOW = "unknown_now"
    ABSENT_ON_BASELINE = "absent_on_baseline"
    UNKNOWN_ON_BASELINE = "unknown_on_baseline"


class Outcome(StrEnum):
    """Outcome of an expectation."""

    PASSED = "passed"
    WAIVED = "waived"
    APPROVED = "approved"
    FAILED = "failed"
    SKIPPED = "skipped"


class GateVerdict(StrEnum):
    """Verdict of the gate on a day; a refused day is not published."""

    PASSED = "passed"
    PASSED_WITH_WARNINGS = "passed_with_warnings"
    PASSED_WITH_QUARANTINE = "passed_with_quarantine"
    APPROVED = "approved"
    REFUSED = "refused"


class PublishSource(StrEnum):
    """Where producers take their list of queues from."""

    ROUTE = "route"
    ORDER_CONFIGURATION = "order_configuration"
    STATIC_TOPIC = "static_topic"
