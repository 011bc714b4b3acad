"""Advice for findings: the sentences of the column `finding.advice`.

`docs/findings/<kind>.md` and `docs/findings/causes.md` contain the same sentences in their sections "Do"; a test compares them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ADVICE_BY_CAUSE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mixed_strategies": "Give every client of the group the same allocateMessageQueueStrategy, and restart those that differ.",
        "mixed_clients": "Bring all clients of the group to one language and release: theirs divide by different rules.",
        "mixed_parameters": "Give every client of the group the same parameters, and restart those that differ.",
        "queue_not_in_route": "Remove the queue from the list, or bring broker or queue back.",
        "old_machine_room": "Use Java clients of 4.8.0 or later, or another strategy: older clients, and Go, leave queues of the rooms without an owner.",
        "duplicate_client_id": "If several processes run under the id, give each an instanceName of its own: all take one share, and the other shares have no owner. A dead connection disappears within two minutes.",
        "subscriptions_differ": "Let every member subscribe to the same topics with the same expressions, or put those that differ in another group.",
        "route_views_differ": "Compare mqadmin topicRoute by name server, and repair the registration of the broker that differs.",
        "room_without_clients": "Add the broker's room to the group's consumeridcs, or use MACHINE_ROOM_NEARBY.",
        "not_in_config_list": "Add the queue to exactly one client's list: retry queues too have no owner unless a list has them.",
        "config_list_overlap": "Remove the queue from all lists but one.",
        "member_lists_differ": "Compare mqadmin consumerConnection by broker; a dead connection disappears within two minutes.",
        "route_missing": "Bring the broker back or unsubscribe: without a route clients keep the queues that they hold.",
        "permission_denied": "Grant the account that collects the actions Get and List (mqadmin updateAcl) on the resources that the evidence names; with ACL 1 check its keys and its white list.",
        "connection_failed": "Bring the broker, proxy or name server back, or open the way to it; mqadmin clusterList shows which brokers are registered. What it would have answered is unknown, not zero.",
        "timed_out": "Look at the load of the broker, proxy or name server, or raise call_timeout_ms in the settings; what it would have answered is unknown, not zero.",
        "parameters_differ": "Give every client of the group the same parameters; deviating_client_id of ownership_drift names the one that differs.",
        "mixed_request_modes": "Give all members of the group one kind of client (gRPC or remoting), one way to connect and the same clientRebalance.",
        "server_load_balancer_off": "Set serverLoadBalancerEnable=true on every broker (mqadmin updateBrokerConfig), or clientRebalance=true in all members of the group.",
        "not_yet_rebalanced": "Look again after a minute: a client has just started or is releasing the queue.",
    }
)
"""Cause of `ownership_drift` -> what to do, for those that an owner's mistake can have."""

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mixed_strategies": ADVICE_BY_CAUSE["mixed_strategies"],
        "mixed_request_modes": ADVICE_BY_CAUSE["mixed_request_modes"],
        "server_load_balancer_off": ADVICE_BY_CAUSE["server_load_balancer_off"],
        "request_modes_differ": "Set one request mode and popShareQueueNum on every broker (mqadmin setConsumeMode -c CLUSTER -t TOPIC -g GROUP).",
        "strategy_unknown_to_broker": "Use AVG or AVG_BY_CIRCLE in these clients, or let them divide for themselves (clientRebalance=true).",
        "duplicate_client_id": "Give each process an instanceName of its own (or an address of its own): they take the same queues and leave others without an owner, and in a broadcasting group they overwrite each other's offsets.",
        "subscriptions_differ": ADVICE_BY_CAUSE["subscriptions_differ"],
        "unowned": "No client consumes these queues: compare mqadmin consumerStatus of the members with expected_client_ids of ownership_drift.",
        "broadcast_queue_not_consumed": "Compare mqadmin consumerStatus of the members, and restart those without the queue.",
        "multiple_owners": "Messages of these queues are consumed more than once: compare routes and member lists of the owners.",
        "unexpected_owner": "Within seconds of a change this is normal; if it stays, compare routes and member lists of that client.",
        "assignment_stale": ADVICE_BY_CAUSE["route_missing"],
        "idle_clients": "Add queues to the topic or remove clients: an idle client only takes over when another one ends.",
        "load_imbalanced": "Compare the strategies in assignment_fairness; AVG differs by one queue at most.",
        "group_offline": "Start its consumers, or confirm with its owners that it is retired.",
        "members_unknown": "Repair the brokers or the access to them, and take the next export; export_record has their errors.",
        "client_unreachable": "Repair what keeps the members from answering; export_record has the errors. The queues that they should own are unknown until then.",
        "member_lists_differ": ADVICE_BY_CAUSE["member_lists_differ"],
        "settings_missing": "Give its parameters (list, rooms or virtual nodes) in the settings file: no client reports them.",
        "strategy_unknown": "Add the strategy by an entry point; see docs/strategies.md.",
        "route_differs": ADVICE_BY_CAUSE["route_views_differ"],
        "route_missing": ADVICE_BY_CAUSE["route_missing"],
        "write_route_differs": "Set the permission again (mqadmin addWritePerm -n of that name server), or restart the broker.",
        "order_conf_differs": "Set it again on every name server (mqadmin updateOrderConf): producers shard by different lists until then.",
        "order_conf_unreadable": "Set it again (mqadmin updateOrderConf) as broker:count;broker:count: producers that start now throw, those that run keep their old list.",
        "broker_missing_on_nameserver": "Check namesrvAddr of the broker and its connection to that name server; mqadmin clusterList asks each.",
        "broker_address_differs": "Check brokerIP1 and old registrations: clients of one name server connect to an address that may be gone.",
        "route_config_differs": "Compare mqadmin topicRoute with the broker's topics; a broker registers its topics again every 30 s.",
        "strategy_changed": "If the change was not meant, give the clients back their allocateMessageQueueStrategy; check that parameters in the settings file are those of the new strategy.",
        "consumption_stalled": "Resume the consumer if it was suspended; else look at its threads (mqadmin consumerStatus -s) and what its listener waits for.",
        "order_queue_blocked": "Look at the message at head_offset of queue_order_lock (mqadmin queryMsgByOffset) and at what the listener does with it: the queue goes on when it is acknowledged.",
        "broker_without_master": "Start the master again, or make a slave the master (brokerId=0, brokerRole of a master). Permissions that routes show without writing follow from this.",
        "offset_files_corrupt": "Put a good offsets.json there, or move both files away to begin where consumeFromWhere says, before the client restarts.",
        "offset_file_shared": "Give each process an instanceName of its own: the last writer wins, and a restart takes the progress of another one.",
        "offset_file_recovered": "Copy offsets.json.bak over offsets.json while the client is down; look for a full disk or a hard kill.",
        "offset_file_lost": "See restart_offset in broadcast_offset for what a restart skips or repeats; look for what removed the file.",
        "offset_file_undecided": "Look at the file on the host: no client writes such a file. Put a good one there, or move it away, before the client restarts.",
        "offset_file_stale": "Look for a full disk, missing rights or a shipper that stopped; a client writes its file every 5 s.",
        "offset_file_unused": "Confirm with its owners that no client will start under this client id again.",
        "broadcast_messages_lost": "Start the client more often than fileReservedTime, or keep messages longer; the lost ones cannot be read again.",
        "broadcast_offset_ahead": "Find out whether the log was made anew or the file is from elsewhere: the broker sets the client to the end, and it skips.",
        "broadcast_offset_regressed": "Look for a restored file, a reset or a second writer: a restart repeats these messages.",
        "broadcast_client_stuck": "Check that it runs, and its listener: a broadcasting client does not retry, and no other one takes its place.",
        "record_rejected": "See rejected_record for the text; what depends on it is unknown.",
        "record_repeated": "Look for captures that were put together by hand or for a collector that ran twice; see docs/odd-input.md for which answer counts.",
        "source_failed": "Repair the source: what it would have answered is unknown, not zero; export_record has the errors.",
    }
)
"""Kind of finding -> what to do, where no cause has its own advice."""

DELETE_GROUP: Final = (
    "Start its consumers; if those who own it confirm that it is retired, delete it (mqadmin deleteSubGroup)."
)
"""The advice on a group that two days show to be offline, and no offset of it to have moved between them."""

ASK_PROXIES: Final = "Let the collector ask every proxy (collect.proxies in the settings), or ask them by hand: mqadmin consumerConnection -b PROXY:8080 -g GROUP."
AWAIT_OFFSETS: Final = "Look at the group's consumers; the next day tells whether its offsets move."
AWAIT_CONNECTIONS: Final = (
    "Compare mqadmin consumerConnection again after two minutes: dead connections are gone then. If the id is still listed several times, "
    "give each process an instanceName of its own."
)
GIVE_STRATEGY: Final = "Give the group's strategy in the settings file; until then only what is held is known, not who should hold it."

ADVICE_OF_CASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "group_offline": (DELETE_GROUP,),
        "members_unknown": (ASK_PROXIES, AWAIT_OFFSETS),
        "duplicate_client_id": (AWAIT_CONNECTIONS,),
        "settings_missing": (GIVE_STRATEGY,),
    }
)
"""Kind of finding -> further advice that it may have, by what the row shows."""

KINDS_WITH_ADVICE_BY_CAUSE: Final = (
    "unowned",
    "broadcast_queue_not_consumed",
    "multiple_owners",
    "unexpected_owner",
    "source_failed",
)
"""Kinds whose advice is that of the likely cause, if that has one."""
