"""The strategy settings as plain rows, from which the gate recomputes owners without `strategies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rebalance_ledger.settings import ClusterSettings

_ROOM_RULE: Final = "struct<names: map<string, string>, prefixes: map<string, string>, separator: string>"

_PARAMETERS: Final = {
    "virtual_node_count": "int",
    "consumer_idcs": "array<string>",
    "inner_strategy": "string",
    "broker_room": _ROOM_RULE,
    "consumer_room": _ROOM_RULE,
}
"""Parameter -> its type; the number of virtual nodes of an inner ring is the rule's own."""

CONFIGURED_RULE_SCHEMA: Final = (
    "consumer_group string, strategy string, has_member_parameters boolean, "
    + "".join(f"{name} {ddl}, " for name, ddl in _PARAMETERS.items())
    + "members array<struct<client_id: string, rule: struct<"
    + ", ".join(f"{name}: {ddl}" for name, ddl in _PARAMETERS.items())
    + ">>>, lists_of_clients array<struct<client_id: string, topic: string, broker_name: string, queue_ids: array<int>>>"
)
"""The settings of a group or, if the group is null, of a strategy that is computed for every group; unset values are null.

`members` holds all parameters of each member that has others than its group.
"""

RULE_PARAMETERS: Final = ", ".join(_PARAMETERS)
"""SQL list of the columns that a member's rule has as well."""


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
            **_parameters(rule),
            "members": [
                {"client_id": client_id, "rule": _parameters(rule | _changes(own))}
                for client_id, own in rule.get("members", {}).items()
            ],
            "lists_of_clients": [
                {"client_id": client_id} | part
                for client_id, parts in rule.get("clients", {}).items()
                for part in parts
            ],
        }
        for group, rule in rules
    ]


def _parameters(rule: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a rule; null for those that its strategy does not have."""
    inner = rule.get("inner", {})
    return {
        "virtual_node_count": rule.get("virtual_node_count", inner.get("virtual_node_count")),
        "consumer_idcs": rule.get("consumer_idcs"),
        "inner_strategy": inner.get("strategy"),
        "broker_room": rule.get("broker_room"),
        "consumer_room": rule.get("consumer_room"),
    }


def _changes(own: dict[str, Any]) -> dict[str, Any]:
    """Return what a member has other than its group."""
    return {name: value for name, value in own.items() if value is not None}
