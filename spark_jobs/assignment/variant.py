"""The properties of a group member that decide which allocation rule it follows.

What belongs here: the value and its order. What does not: how it is read from a batch (`arrow_batch`) or turned into a
strategy (`strategy_settings`).
"""

from __future__ import annotations

from typing import NamedTuple


class Variant(NamedTuple):
    """What decides by which rule a member divides.

    Attributes:
        strategy: what it reports; None where it does not, or could not be asked.
        language: as brokers list it; None where it is not known.
        version: its RocketMQ release; None where it is not known.
        has_answered: whether it could be asked. Clients in Go answer and report no strategy.
        member_settings: see `StrategySettings.member_settings`; -1 where what counts is its group's.
    """

    strategy: str | None = None
    language: str | None = None
    version: str | None = None
    has_answered: bool = True
    member_settings: int = -1

    @property
    def sort_key(self) -> tuple[str, str, str, bool, int]:
        """Return a key that orders variants, whatever is None."""
        return (
            self.strategy or "",
            self.language or "",
            self.version or "",
            self.has_answered,
            self.member_settings,
        )
