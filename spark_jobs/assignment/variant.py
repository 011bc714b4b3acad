"""The properties of a group member that decide which allocation rule it follows.

Belongs here: the value and its order. Does not belong here: reading it from a batch (`arrow_batch`) and its strategy
(`strategy_settings`).
"""

from __future__ import annotations

from typing import NamedTuple


class Variant(NamedTuple):
    """The properties of a member that select its allocation rule.

    Attributes:
        strategy: Strategy that the member reports; None if it reports none or did not answer.
        language: Client language that brokers list; None if unknown.
        version: RocketMQ release; None if unknown.
        has_answered: Whether the member answered. Go clients answer and report no strategy.
        member_settings: Position in `StrategySettings.member_settings`; -1 for the settings of the group.
    """

    strategy: str | None = None
    language: str | None = None
    version: str | None = None
    has_answered: bool = True
    member_settings: int = -1

    @property
    def sort_key(self) -> tuple[str, str, str, bool, int]:
        """Return a key that orders variants; None sorts as the empty string."""
        return (
            self.strategy or "",
            self.language or "",
            self.version or "",
            self.has_answered,
            self.member_settings,
        )
