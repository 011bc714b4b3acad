"""The gate policy of a cluster: its settings over the defaults of the gate.

Belongs here: which severity, limit and waiver applies to an expectation and a group on a day. Does not belong here: the format of the
file (`settings`), the evaluation (`evaluation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.assignment_fairness import EVEN_ENOUGH
from expectations.suites.finding import kind_of
from expectations.suites.thresholds import FINDING_KINDS
from rebalance_ledger.settings import GateNames

if TYPE_CHECKING:
    from datetime import date

    from expectations.suites.model import Expectation
    from rebalance_ledger.settings import FairnessLimits, GateRule, GateSettings, Severity, Waiver

GATE_NAMES: Final = GateNames(
    expectations=frozenset(
        name for name, expectation in EXPECTATIONS.items() if expectation.severity is not None
    ),
    waivable=frozenset(name for name, expectation in EXPECTATIONS.items() if kind_of(expectation) is None),
    limited=frozenset(name for name, expectation in EXPECTATIONS.items() if expectation.has_limit),
    findings=frozenset(FINDING_KINDS),
)
"""The names that a settings file may contain."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """The policy of one cluster on one day.

    Attributes:
        settings: Gate section of the cluster's settings.
        ds: Day that is judged. Waivers expire by it and not by the clock, so that a rerun gives the same verdict.
    """

    settings: GateSettings
    ds: date

    def severity(self, expectation: Expectation, consumer_group: str | None = None) -> Severity | None:
        """Return the severity for a group, or for no group; None if the policy ignores it."""
        return self._severity_by(self.settings.of_group(consumer_group), expectation)

    def severest(self, expectation: Expectation) -> Severity | None:
        """Return the highest severity for any group; None if the policy ignores the expectation."""
        rules = (self.settings, *self.settings.groups.values())
        severities = {self._severity_by(rule, expectation) for rule in rules}
        return "block" if "block" in severities else "warn" if "warn" in severities else None

    def _severity_by(self, rule: GateRule, expectation: Expectation) -> Severity | None:
        """Return the severity by one rule, with the cluster's rule and the expectation itself as fallbacks."""
        cluster = self.settings
        kind = kind_of(expectation)
        if kind is not None:
            level = rule.findings.get(kind) or cluster.findings.get(kind)
            return None if level == "ignore" else level
        if expectation is EVEN_ENOUGH:
            limits = rule.max_over_mean or cluster.max_over_mean
            return None if limits is None else "warn" if limits.block is None else "block"
        name = expectation.expectation_id
        return rule.severities.get(name) or cluster.severities.get(name) or expectation.severity

    def thresholds(self, expectation: Expectation) -> tuple[float | None, float | None]:
        """Return the minimum and maximum number allowed; a limit of the settings replaces the default."""
        limit = self.settings.limits.get(expectation.expectation_id)
        if limit is None:
            return expectation.threshold_min, expectation.threshold_max
        return (limit, None) if expectation.threshold_min is not None else (None, limit)

    def max_over_mean(self, consumer_group: str | None) -> FairnessLimits | None:
        """Return the fairness limits of a group."""
        return self.settings.of_group(consumer_group).max_over_mean or self.settings.max_over_mean

    def waivers(self, expectation: Expectation) -> list[Waiver]:
        """Return the waivers of an expectation, including expired ones."""
        kind = kind_of(expectation)
        return [
            waiver
            for waiver in self.settings.waivers
            if waiver.expectation == expectation.expectation_id
            or (kind is not None and waiver.finding == kind)
        ]

    def is_in_force(self, waiver: Waiver) -> bool:
        """Return whether a waiver is in force on the judged day; its last day is included."""
        return self.ds <= waiver.expires_on
