"""What a cluster's settings ask of the gate, joined with what the gate asks by itself.

What belongs here: which severity, limit and waiver counts for an expectation and a group on a day. What does not: the
file's form (`settings`), the evaluation (`evaluation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from expectations.assignment_fairness import EVEN_ENOUGH
from expectations.finding import kind_of
from expectations.suites import EXPECTATIONS
from expectations.thresholds import FINDING_KINDS
from rebalance_ledger.settings import GateNames

if TYPE_CHECKING:
    from datetime import date

    from expectations.model import Expectation
    from rebalance_ledger.settings import FairnessLimits, GateRule, GateSettings, Severity, Waiver

GATE_NAMES: Final = GateNames(
    expectations=frozenset(
        name for name, expectation in EXPECTATIONS.items() if expectation.severity is not None
    ),
    waivable=frozenset(name for name, expectation in EXPECTATIONS.items() if kind_of(expectation) is None),
    limited=frozenset(name for name, expectation in EXPECTATIONS.items() if expectation.has_limit),
    findings=frozenset(FINDING_KINDS),
)
"""What a settings file may name."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts for one cluster on one day.

    Attributes:
        settings: the gate's part of the cluster's settings.
        ds: the day that is judged; waivers end by it and not by a clock, so that a re-run says the same.
    """

    settings: GateSettings
    ds: date

    def severity(self, expectation: Expectation, consumer_group: str | None = None) -> Severity | None:
        """What an offender of a group, or one of no group, comes to; None where nobody minds."""
        return self._severity_by(self.settings.of_group(consumer_group), expectation)

    def severest(self, expectation: Expectation) -> Severity | None:
        """The severest that counts for any group; None for an expectation that nobody asks for."""
        rules = (self.settings, *self.settings.groups.values())
        found = {self._severity_by(rule, expectation) for rule in rules}
        return "block" if "block" in found else "warn" if "warn" in found else None

    def _severity_by(self, rule: GateRule, expectation: Expectation) -> Severity | None:
        """What one rule makes of an expectation; what it leaves out, the cluster says, and then the expectation."""
        cluster = self.settings
        kind = kind_of(expectation)
        if kind is not None:
            asked = rule.findings.get(kind) or cluster.findings.get(kind)
            return None if asked == "ignore" else asked
        if expectation is EVEN_ENOUGH:
            limits = rule.max_over_mean or cluster.max_over_mean
            return None if limits is None else "warn" if limits.block is None else "block"
        name = expectation.expectation_id
        return rule.severities.get(name) or cluster.severities.get(name) or expectation.severity

    def thresholds(self, expectation: Expectation) -> tuple[float | None, float | None]:
        """Least and greatest number allowed; the settings' limit takes the place of the one that there is."""
        limit = self.settings.limits.get(expectation.expectation_id)
        if limit is None:
            return expectation.threshold_min, expectation.threshold_max
        return (limit, None) if expectation.threshold_min is not None else (None, limit)

    def max_over_mean(self, consumer_group: str | None) -> FairnessLimits | None:
        """How uneven a group may be."""
        return self.settings.of_group(consumer_group).max_over_mean or self.settings.max_over_mean

    def waivers(self, expectation: Expectation) -> list[Waiver]:
        """The waivers of an expectation, ended ones too."""
        kind = kind_of(expectation)
        return [
            waiver
            for waiver in self.settings.waivers
            if waiver.expectation == expectation.expectation_id
            or (kind is not None and waiver.finding == kind)
        ]

    def is_in_force(self, waiver: Waiver) -> bool:
        """Whether a waiver counts on the day that is judged; its last day is one of them."""
        return self.ds <= waiver.expires_on
