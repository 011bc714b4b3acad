"""The part of a cluster's settings that the gate judges by: severities, limits, findings that block, waivers.

Belongs here: the model of these settings. Does not belong here: the list of expectations (`expectations`), and how they are evaluated.
Names of expectations and findings are checked against the names that the caller passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date  # noqa: TC003 - pydantic reads it at run time
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from rebalance_ledger.suggestion import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["block", "warn"]
"""`block`: a failure keeps the day from being published; `warn`: it is published and reported."""

_MOST_NEAR_NAMES = 3


class Strict(BaseModel):
    """Unknown keys are refused and values are not coerced, so that a typing error cannot change a number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class GateNames:
    """The names that a settings file may use, provided by the gate.

    Attributes:
        expectations: ids of expectations.
        waivable: ids that a waiver may name: `expectations`, and the expectations that exist only if the settings have limits.
        limited: ids of those that have a limit of their own, other than "none".
        findings: kinds of findings.
    """

    expectations: frozenset[str]
    waivable: frozenset[str]
    limited: frozenset[str]
    findings: frozenset[str]


class FairnessLimits(Strict):
    """How uneven a group may be: the most queues of a client of a topic, divided by the mean.

    Attributes:
        warn: above it the day is published with a warning.
        block: above it the day is not published.
    """

    warn: float | None = Field(default=None, ge=1)
    block: float | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> FairnessLimits:
        if self.warn is None and self.block is None:
            raise ValueError("give warn, block or both")
        if self.warn is not None and self.block is not None and self.warn > self.block:
            raise ValueError(f"warn ({self.warn:g}) is above block ({self.block:g})")
        return self


class GateRule(Strict):
    """The gate policy of a cluster, or of some of its groups.

    Attributes:
        severities: expectation -> the effect of its failure.
        findings: kind of finding -> the effect of its presence; `ignore` cancels the cluster's setting for a group.
        max_over_mean: how uneven a group may be; None for no limit.
    """

    severities: dict[str, Severity] = Field(default_factory=dict)
    findings: dict[str, Literal["block", "warn", "ignore"]] = Field(default_factory=dict)
    max_over_mean: FairnessLimits | None = None

    @field_validator("severities")
    @classmethod
    def _known_expectations(
        cls, severities: dict[str, Severity], info: ValidationInfo
    ) -> dict[str, Severity]:
        names = _names(info)
        if names is not None:
            _check("expectation", severities, names.expectations)
        return severities

    @field_validator("findings")
    @classmethod
    def _known_findings(cls, findings: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        names = _names(info)
        if names is not None:
            _check("kind of finding", findings, names.findings)
        return findings


class Waiver(Strict):
    """A known exception, which expires.

    Attributes:
        expectation: the expectation whose failure is excused; or
        finding: the kind of finding that is excused.
        consumer_group: only affected subjects of this group are excused.
        topic: only affected subjects of this topic.
        broker_name: only affected subjects of this broker.
        expires_on: the last day (`ds`) that is excused.
        approved_by: Who approved it.
        reason: Why it was approved.
    """

    expectation: str | None = None
    finding: str | None = None
    consumer_group: str | None = Field(default=None, min_length=1)
    topic: str | None = Field(default=None, min_length=1)
    broker_name: str | None = Field(default=None, min_length=1)
    expires_on: date
    approved_by: str = Field(min_length=1)
    reason: str = Field(min_length=1)

    @field_validator("expectation")
    @classmethod
    def _known_expectation(cls, expectation: str | None, info: ValidationInfo) -> str | None:
        names = _names(info)
        if names is not None and expectation is not None:
            _check("expectation", [expectation], names.waivable)
        return expectation

    @field_validator("finding")
    @classmethod
    def _known_finding(cls, finding: str | None, info: ValidationInfo) -> str | None:
        names = _names(info)
        if names is not None and finding is not None:
            _check("kind of finding", [finding], names.findings)
        return finding

    @model_validator(mode="after")
    def _one_thing(self) -> Waiver:
        if (self.expectation is None) == (self.finding is None):
            raise ValueError("give either expectation or finding")
        return self


class GateSettings(GateRule):
    """The gate policy of a cluster, in addition to the defaults.

    Attributes:
        limits: expectation -> the number that replaces its default limit.
        groups: name of a group, or pattern (`*`, `?`, `[…]`) -> the rule that applies to it instead. A name takes precedence over
            patterns, and a longer pattern over a shorter one.
        waivers: known exceptions.
        quarantine_groups: whether a day that is refused for some groups alone is published without them.
    """

    limits: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    groups: dict[str, GateRule] = Field(default_factory=dict)
    waivers: list[Waiver] = Field(default_factory=list)
    quarantine_groups: bool = False

    @field_validator("limits")
    @classmethod
    def _with_limits(cls, limits: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        names = _names(info)
        if names is not None:
            _check("expectation", limits, names.expectations)
            _check("expectation with a limit", limits, names.limited)
        return limits

    def of_group(self, consumer_group: str | None) -> GateRule:
        """Return the rule that applies to a group: the cluster's own if no name or pattern matches, and for violations without a group."""
        if consumer_group is None:
            return self
        if consumer_group in self.groups:
            return self.groups[consumer_group]
        fitting = [pattern for pattern in self.groups if fnmatchcase(consumer_group, pattern)]
        return self.groups[min(fitting, key=lambda pattern: (-len(pattern), pattern))] if fitting else self


def _names(info: ValidationInfo) -> GateNames | None:
    return info.context if isinstance(info.context, GateNames) else None


def _check(what: str, names: Iterable[str], valid_names: frozenset[str]) -> None:
    for name in names:
        if name not in valid_names:
            advice = (
                did_you_mean(name, valid_names, most=_MOST_NEAR_NAMES, cutoff=0.4)
                or "docs/gate.md lists them"
            )
            raise ValueError(f"{name!r} is no {what} ({advice})")
