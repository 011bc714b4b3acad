"""`gold.ownership_drift`: the expected and the observed owners of each queue, with the likely cause of a mismatch."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, GROUP_STATE_REASON, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import DriftCause, DriftState, GroupState, UnknownReason

OWNERSHIP_DRIFT = Table(
    name="ownership_drift",
    layer="gold",
    grain="group x topic x queue: the queues of the topic's route, and other queues that a client holds",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column(
            "state",
            "string",
            "`match`: one process holds the queue and the strategy chose its client (BROADCASTING: every member holds it); `shared`: members pop it, so no client owns it, see queue_sharing; `unowned`: no process holds it (BROADCASTING: a member that answered does not); `multiple_owners`: several processes hold it (never BROADCASTING), or one pulls it while others pop it; `unexpected_owner`: one process holds it, and the strategy did not choose its client; `unknown`: see `unknown_reason`. See docs/ownership-drift.md.",
            nullable=False,
            values=tuple(DriftState),
        ),
        Column(
            "likely_cause",
            "string",
            "The likely cause of a mismatch, from a closed list, if the columns below are evidence of it; see docs/findings/causes.md. Null for `match` and `unknown`, and without evidence.",
            values=tuple(DriftCause),
        ),
        Column(
            "unknown_reason",
            "string",
            "Why the state is `unknown`: `route_unknown`, `members_unknown`, `client_unreachable` (a client that should own it did not answer), `pull_consumer_reports_no_queues` (`DefaultMQPullConsumer` does not report its queues), `assigned_by_hand` (the application chooses its queues: `DefaultLitePullConsumer.assign`), `strategy_not_reported` (every member answered, none with a strategy, and the settings name none), `process_count_unknown` (the chosen client holds it, and brokers list several connections of its id: one process or several), `settings_missing`, `strategy_unknown`, `release_unknown`, `member_strategy_unknown`, `strategy_failed`; `may_be_behind_a_proxy` (proxies did not report their members, which would read it as well), `pop_mode` (members pop, and none was observed to pop this queue), `mixed_request_modes`, `request_modes_differ`, `request_mode_unknown`, `server_off`, `strategy_unknown_to_broker`: see queue_assignment. Null for every other state.",
            values=tuple(UnknownReason),
        ),
        Column(
            "strategy",
            "string",
            "The effective strategy as in queue_assignment; null without one: group offline, members unknown, or no member answered.",
        ),
        Column(
            "expected_client_ids",
            "array<string>",
            "The clients that should own the queue, by the effective strategy and the language and version of each member; empty if no client should (see `expected_reason`) or no route has the queue; null if unknown.",
        ),
        Column(
            "expected_reason",
            "string",
            "`reason` of the effective rows of queue_assignment: why no client should own it, or `route_missing`.",
        ),
        Column(
            "observed_client_ids",
            "array<string>",
            "The clients that have the queue in their process table and have not released it; with POP, those that pop it. Empty if no client that answered has it.",
            nullable=False,
        ),
        Column(
            "observed_process_count",
            "int",
            "Processes that hold the queue. Processes that share a client id count separately if each was queried directly; an answer through a broker counts as one process. Connections are not counted.",
            nullable=False,
            unit="processes",
        ),
        Column(
            "is_routed",
            "boolean",
            "Whether the queue is readable in the route that the ledger uses for the topic.",
            nullable=False,
        ),
        Column(
            "route_state",
            "string",
            "`known`; `none`: no name server that answered has a readable queue of the topic; `unknown`: no name server answered.",
            nullable=False,
        ),
        Column(
            "group_state",
            "string",
            "`online`, `broadcasting`, `offline` or `unknown`, as in assignment_fairness.",
            nullable=False,
            values=tuple(GroupState),
        ),
        GROUP_STATE_REASON,
        Column(
            "client_count",
            "int",
            "Members on the list that the ledger uses, each id once; null if unknown.",
            unit="clients",
        ),
        Column(
            "unasked_client_count",
            "int",
            "Members that did not answer which queues they hold, or whose answer does not contain it (pull consumers).",
            unit="clients",
        ),
        Column(
            "absent_client_count",
            "int",
            "Members that another broker reports as not connected.",
            unit="clients",
        ),
        Column(
            "shared_client_id_count",
            "int",
            "Members whose id several processes share, according to the processes' answers.",
            unit="client ids",
        ),
        Column(
            "repeated_client_id_count",
            "int",
            "Members that every broker listing them lists more than once, while no process was queried directly: one process with dead connections, or several.",
            unit="client ids",
        ),
        Column(
            "unsubscribed_client_count",
            "int",
            "Members that do not subscribe to the topic; gRPC clients, which read no `%RETRY%<group>`, are not counted.",
            unit="clients",
        ),
        Column(
            "member_list_count",
            "int",
            "Different lists of members among the brokers of the topic's route.",
            unit="lists",
        ),
        Column(
            "divergent_broker_count",
            "int",
            "Brokers of the topic whose readable queues differ between name servers; see route_divergence.",
            nullable=False,
            unit="brokers",
        ),
        Column("strategy_count", "int", "Different strategies that the members report.", unit="strategies"),
        Column("language_count", "int", "Different languages of the members' clients.", unit="languages"),
        Column(
            "version_count", "int", "Different RocketMQ releases of the members' clients.", unit="versions"
        ),
        Column(
            "newest_client_age_ms",
            "bigint",
            "Milliseconds from the start of the group's youngest member, by its clock, to its answer; negative if its clock is ahead. Of several members, the value nearest to zero; null if unknown.",
            unit="ms",
        ),
        Column(
            "is_being_released",
            "boolean",
            "Whether a client has marked the queue as `droped`: released, but not yet removed.",
            nullable=False,
        ),
        Column(
            "deviating_client_id",
            "string",
            "For the cause `parameters_differ`: the one member that does not hold the queues that the strategy gives it with the group's parameters.",
        ),
        Column(
            "deviating_parameters",
            "string",
            "Parameters with which the strategy gives this member exactly the queues that it holds, for example `consumeridcs = hz`.",
        ),
    ),
)
