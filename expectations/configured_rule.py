"""The strategy settings as plain rows, from which the gate recomputes owners without `strategies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rebalance_ledger.settings import ClusterSettings

_ROOM_RULE: Final = "struct<names: map<string, string>, prefixes: map<string, string>, separator: string>"

CONFIGURED_RULE_SCHEMA: Final = (
    "consumer_group string, strategy string, has_member_parameters boolean, virtual_node_count int, consumer_idcs array<string>, "
    f"inner_strategy string, broker_room {_ROOM_RULE}, consumer_room {_ROOM_RULE}, "
    "lists_of_clients array<struct<client_id: string, topic: string, broker_name: string, queue_ids: array<int>>>"
)
"""The settings of a group or, if the group is null, of a strategy that is computed for every group; unset values are null."""


def configured_rules(settings: ClusterSettings) -> list[dict[str, Any]]:
    """Return the rows of `CONFIGURED_RULE_SCHEMA`: one for each group of the settings and each strategy to try."""
    rules: list[tuple[str | None, dict[str, Any]]] = [
        *((group, of_group.model_dump()) for group, of_group in settings.groups.items()),
        *((None, to_try.model_dump()) for to_try in settings.hypothetical),
    ]
    return [
        {
            "consumer_group": group,
            "strategy": rule["strategy"],
            "has_member_parameters": bool(rule.get("members")),
            "virtual_node_count": rule.get("virtual_node_count"),
            "consumer_idcs": rule.get("consumer_idcs"),
            "inner_strategy": rule.get("inner", {}).get("strategy"),
            "broker_room": rule.get("broker_room"),
            "consumer_room": rule.get("consumer_room"),
            "lists_of_clients": [
                {"client_id": client_id} | part
                for client_id, parts in rule.get("clients", {}).items()
                for part in parts
            ],
        }
        for group, rule in rules
    ]
