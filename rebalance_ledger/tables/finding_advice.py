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
        "mixed_clients": "Use one language and release for all clients of the group: languages and releases differ in how they allocate queues.",
        "mixed_parameters": "Give every client of the group the same parameters, and restart those that differ.",
        "queue_not_in_route": "Remove the queue from the list, or restore the broker or the queue.",
        "old_machine_room": "Use Java clients of 4.8.0 or later, or another strategy: older Java clients and Go clients leave queues of these rooms without an owner.",
        "duplicate_client_id": "If several processes use the id, give each its own instanceName: all of them take the same share, and the other shares have no owner. A dead connection disappears within two minutes.",
        "subscriptions_differ": "Subscribe every member to the same topics with the same expressions, or move those that differ to another group.",
        "route_views_differ": "Compare mqadmin topicRoute by name server, and repair the registration of the broker that differs.",
        "room_without_clients": "Add the broker's room to the group's consumeridcs, or use MACHINE_ROOM_NEARBY.",
        "not_in_config_list": "Add the queue to exactly one client's list: retry queues also have no owner unless a list contains them.",
        "config_list_overlap": "Remove the queue from all lists but one.",
        "member_lists_differ": "Compare mqadmin consumerConnection by broker; a dead connection disappears within two minutes.",
        "route_missing": "Restore the broker, or unsubscribe: without a route, clients keep the queues that they hold.",
        "permission_denied": "Grant the account that collects the actions Get and List (mqadmin updateAcl) on the resources that the evidence names; with ACL 1 check its keys and its white list.",
        "connection_failed": "Start the broker, proxy or name server again, or open the network path to it; mqadmin clusterList shows which brokers are registered. Its answers are unknown, not zero.",
        "timed_out": "Check the load of the broker, proxy or name server, or increase call_timeout_ms in the settings; its answers are unknown, not zero.",
        "parameters_differ": "Give every client of the group the same parameters; deviating_client_id of ownership_drift names the one that differs.",
        "mixed_request_modes": "Use one kind of client (gRPC or remoting), one way to connect and the same clientRebalance for all members of the group.",
        "server_load_balancer_off": "Set serverLoadBalancerEnable=true on every broker (mqadmin updateBrokerConfig), or clientRebalance=true in all members of the group.",
        "not_yet_rebalanced": "Check again after a minute: a client has just started or is releasing the queue.",
    }
)
"""Likely cause -> advice, for findings on owners and on failed sources."""

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mixed_strategies": ADVICE_BY_CAUSE["mixed_strategies"],
        "mixed_request_modes": ADVICE_BY_CAUSE["mixed_request_modes"],
        "server_load_balancer_off": ADVICE_BY_CAUSE["server_load_balancer_off"],
        "request_modes_differ": "Set one request mode and popShareQueueNum on every broker (mqadmin setConsumeMode -c CLUSTER -t TOPIC -g GROUP -m MODE -q COUNT).",
        "strategy_unknown_to_broker": "Use AVG or AVG_BY_CIRCLE in these clients, or let them allocate queues themselves (clientRebalance=true).",
        "duplicate_client_id": "Give each process its own instanceName (or its own address): they take the same queues and leave others without an owner, and in a broadcasting group those on one host overwrite each other's offsets.",
        "subscriptions_differ": ADVICE_BY_CAUSE["subscriptions_differ"],
        "unowned": "No client consumes these queues: compare mqadmin consumerStatus of the members with expected_client_ids of ownership_drift.",
        "broadcast_queue_not_consumed": "Compare mqadmin consumerStatus of the members, and restart those without the queue.",
        "multiple_owners": "Messages of these queues are consumed more than once: compare routes and member lists of the owners.",
        "unexpected_owner": "Within seconds of a change this is normal; if it persists, compare routes and member lists of that client.",
        "assignment_stale": ADVICE_BY_CAUSE["route_missing"],
        "idle_clients": "Add queues to the topic or remove clients: an idle client only takes over when another one ends.",
        "load_imbalanced": "Compare the strategies in assignment_fairness; with AVG, shares differ by at most one queue.",
        "group_offline": "Start its consumers, or confirm with its owners that it is retired.",
        "members_unknown": "Repair the brokers or the access to them, and export again; export_record has their errors.",
        "client_unreachable": "Fix what prevents the members from answering; export_record has the errors. The queues that they should own are unknown until then.",
        "member_lists_differ": ADVICE_BY_CAUSE["member_lists_differ"],
        "consumption_disabled": "If this is not intended, allow it on these brokers (mqadmin updateSubGroup -b BROKER -g GROUP -s true -d true): an option that the command is not given gets its default.",
        "settings_missing": "Configure its parameters (list, rooms or virtual nodes) in the settings file: no client reports them.",
        "strategy_unknown": "Add the strategy by an entry point; see docs/strategies.md.",
        "route_differs": ADVICE_BY_CAUSE["route_views_differ"],
        "route_missing": ADVICE_BY_CAUSE["route_missing"],
        "write_route_differs": "If the write permission was removed: mqadmin addWritePerm -n of that name server, which makes all topics of the broker readable and writable, or restart the broker. If numbers of queues differ: mqadmin updateTopic again.",
        "order_conf_differs": "Set it again on every name server (mqadmin updateOrderConf): until then, producers shard by different lists.",
        "order_conf_unreadable": "Set it again (mqadmin updateOrderConf) as broker:count;broker:count: producers and consumers that start now fail, and running ones keep what they have.",
        "broker_missing_on_nameserver": "Check namesrvAddr of the broker and its connection to that name server; compare mqadmin clusterList -n of each.",
        "broker_address_differs": "Check brokerIP1 and old registrations: clients of one name server connect to an address that may no longer exist.",
        "route_config_differs": "Compare mqadmin topicRoute with the broker's topics; after a change, a broker registers within 30 s.",
        "strategy_changed": "If the change was not intended, restore the clients' allocateMessageQueueStrategy; otherwise check that the parameters in the settings file are those of the new strategy.",
        "consumption_stalled": "Resume the consumer if it was suspended; otherwise check its threads (mqadmin consumerStatus -s), what its listener waits for, and its log for refused pulls.",
        "order_queue_blocked": "Look at the message at head_offset of queue_order_lock (mqadmin queryMsgByOffset) and at what the listener does with it: consumption of the queue continues when it is acknowledged.",
        "broker_without_master": "Start the master again, or make a slave the master (brokerId=0, brokerRole of a master). Routes without write permission are a consequence of this.",
        "offset_files_corrupt": "Before the client restarts, replace offsets.json with a valid copy, or move both files away to start where consumeFromWhere says.",
        "offset_file_shared": "Give each process its own instanceName: the last writer wins, and a restart continues from another process's progress.",
        "offset_file_recovered": "Copy offsets.json.bak over offsets.json while the client is down; look for a full disk or a hard kill.",
        "offset_file_lost": "See restart_offset in broadcast_offset for what a restart skips or repeats; look for what removed the file.",
        "offset_file_undecided": "Look at the file on the host: no client writes such a file. Before the client restarts, replace it with a valid copy, or move it away.",
        "offset_file_stale": "Look for a full disk, missing permissions or a shipper that stopped; a client writes its file every 5 s.",
        "offset_file_unused": "Confirm with its owners that no client will start under this client id again.",
        "broadcast_messages_lost": "Start the client more often than fileReservedTime, or keep messages longer; removed messages cannot be read again.",
        "broadcast_offset_ahead": "Find out whether the log was recreated or the file comes from elsewhere: the broker sets the client to the end of the queue, and it skips messages.",
        "broadcast_offset_regressed": "Look for a restored file, a reset or a second writer: a restart may repeat these messages.",
        "broadcast_client_stuck": "Check that the client runs, and check its listener: a broadcasting client does not retry, and no other client takes over its messages.",
        "record_rejected": "See rejected_record for the text; what depends on it is unknown.",
        "record_repeated": "Look for captures that were combined by hand or for a collector that ran twice; docs/odd-input.md says which answer counts.",
        "source_failed": "Repair the source: its answers are unknown, not zero; export_record has the errors.",
    }
)
"""Kind of finding -> what to do, where no cause has its own advice."""

DELETE_GROUP: Final = (
    "Start its consumers; if those who own it confirm that it is retired, delete it (mqadmin deleteSubGroup)."
)
"""The advice on a group that two days show to be offline, and no offset of it to have moved between them."""

ASK_PROXIES: Final = "Let the collector ask every proxy (collect.proxies in the settings), or ask them by hand: mqadmin consumerConnection -b PROXY:8080 -g GROUP."
AWAIT_OFFSETS: Final = "Check the group's consumers; the next day shows whether its offsets move."
AWAIT_CONNECTIONS: Final = (
    "Compare mqadmin consumerConnection again after two minutes: dead connections have disappeared by then. If the id is still listed several times, "
    "give each process its own instanceName."
)
GIVE_STRATEGY: Final = "Configure the group's strategy in the settings file; until then, the owners are known, but not the expected owners."
SEPARATE_PROCESSES: Final = "Give each process its own instanceName if several use the id; otherwise export again: the client was restarted between two answers."

ADVICE_OF_CASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "group_offline": (DELETE_GROUP,),
        "members_unknown": (ASK_PROXIES, AWAIT_OFFSETS),
        "duplicate_client_id": (AWAIT_CONNECTIONS,),
        "settings_missing": (GIVE_STRATEGY,),
        "strategy_unknown": (SEPARATE_PROCESSES,),
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
