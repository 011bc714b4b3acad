"""What a benchmark says: figures beside a baseline, their ratio, and whether it keeps the promise.

Belongs here: the value that every part returns, and the three ways to show it (terminal, JSON, SVG). Does not belong
here: measuring.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from html import escape
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BYTES_PER_MB: Final = 1e6
_ROW_HEIGHT: Final = 26
_LABEL_WIDTH: Final = 330
_PLOT_WIDTH: Final = 420


def _no_numbers() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing measured against one baseline, in turns.

    Attributes:
        name: short and unique, for example `consistent_hash`; a key of the JSON file.
        what: what was run, in a few words for the table.
        baseline: what it was compared with, in a few words.
        seconds: one figure for each repetition.
        baseline_seconds: the baseline's figure of the same repetition, or a single one where it was measured once.
        bar: the promise about `ratio`; None where nothing is promised.
        direction: `at_most`: `ratio` is ours divided by the baseline and may not exceed the bar; `at_least`: `ratio`
            is the baseline divided by ours, how many times faster we are, and must reach the bar.
        note: one sentence on how to read it, such as what was extrapolated.
        extra: further numbers, units in their names: `row_count`, `driver_peak_bytes`.
        unit: of the figures; `bytes` for a peak of memory.
    """

    name: str
    what: str
    baseline: str
    seconds: tuple[float, ...]
    baseline_seconds: tuple[float, ...]
    bar: float | None = None
    direction: Literal["at_most", "at_least"] = "at_most"
    note: str = ""
    extra: Mapping[str, float] = field(default_factory=_no_numbers)
    unit: Literal["seconds", "bytes"] = "seconds"

    def __post_init__(self) -> None:
        if not self.seconds or len(self.baseline_seconds) not in {1, len(self.seconds)}:
            raise ValueError(
                f"Measurement {self.name} has {len(self.seconds)} figures and {len(self.baseline_seconds)} of its "
                "baseline; give as many of both, or one of the baseline."
            )

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratio of each repetition; see `direction`."""
        baseline = self.baseline_seconds
        if len(baseline) == 1:
            baseline *= len(self.seconds)
        pairs = zip(self.seconds, baseline, strict=True)
        if self.direction == "at_most":
            return tuple(ours / other for ours, other in pairs)
        return tuple(other / ours for ours, other in pairs)

    @property
    def ratio(self) -> float:
        """The median of the ratios, pair by pair: it holds while the machine's speed drifts."""
        return median(self.ratios)

    @property
    def is_met(self) -> bool | None:
        """Whether the ratio keeps the bar; None where there is none."""
        if self.bar is None:
            return None
        return self.ratio <= self.bar if self.direction == "at_most" else self.ratio >= self.bar


def as_table(measured: Sequence[Measurement]) -> Table:
    """Build a table for the terminal: medians, the ratio, and whether it meets its bar."""
    table = Table(title="make bench")
    for heading in ("what", "ours", "beside", "its figure", "ratio", "bar"):
        table.add_column(heading, justify="left" if heading in {"what", "beside"} else "right")
    for one in measured:
        table.add_row(
            one.what,
            _figure(median(one.seconds), one.unit),
            one.baseline,
            _figure(median(one.baseline_seconds), one.unit),
            f"{one.ratio:,.2f}",
            _bar(one),
        )
    return table


def as_json(parts: Mapping[str, Sequence[Measurement]]) -> str:
    """Return everything as JSON, for machines: part -> its measurements."""
    documents = {
        name: [
            # A frozen mapping is nothing that `asdict` can copy.
            {each.name: getattr(one, each.name) for each in fields(one)}
            | {"extra": dict(one.extra), "ratio": one.ratio, "is_met": one.is_met}
            for one in part
        ]
        for name, part in parts.items()
    }
    return json.dumps(documents, indent=1) + "\n"


def from_json(text: str) -> dict[str, list[Measurement]]:
    """Read what `as_json` wrote."""
    names = [each.name for each in fields(Measurement)]
    return {
        part: [
            Measurement(
                **{name: one[name] for name in names}
                | {name: tuple(one[name]) for name in ("seconds", "baseline_seconds")}
            )
            for one in measured
        ]
        for part, measured in json.loads(text).items()
    }


def as_svg(measured: Sequence[Measurement]) -> str:
    """Draw each ratio beside its bar as SVG, on a logarithmic scale, as how much better than the bar it is."""
    judged = [one for one in measured if one.bar is not None]
    margins = [_margin(one) for one in judged]
    reach = max(1.0, *(abs(math.log10(margin)) for margin in margins))
    middle = _LABEL_WIDTH + _PLOT_WIDTH / 2
    height = _ROW_HEIGHT * (len(judged) + 2)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL_WIDTH + _PLOT_WIDTH + 90}" height="{height}" '
            'font-family="sans-serif" font-size="12">'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{middle}" y="16" text-anchor="middle">better than its bar by this factor (log scale); left: worse</text>',
        f'<line x1="{middle}" x2="{middle}" y1="{_ROW_HEIGHT}" y2="{height - 8}" stroke="black"/>',
    ]
    for row, (one, margin) in enumerate(zip(judged, margins, strict=True), start=1):
        length = math.log10(margin) / reach * _PLOT_WIDTH / 2
        top = _ROW_HEIGHT * row + 6
        colour = "#2a7f62" if one.is_met else "#b3261e"
        parts += [
            f'<text x="{_LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{escape(one.name.replace("_", " "))}</text>',
            (
                f'<rect x="{min(middle, middle + length):.1f}" y="{top}" width="{max(abs(length), 1):.1f}" height="16" '
                f'fill="{colour}"/>'
            ),
            f'<text x="{max(middle, middle + length) + 5:.1f}" y="{top + 13}">{margin:,.2f}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _margin(one: Measurement) -> float:
    """Return how many times better than its bar a measurement is: 1 is the bar itself."""
    if one.bar is None:
        raise ValueError(f"Measurement {one.name} has no bar.")
    return one.bar / one.ratio if one.direction == "at_most" else one.ratio / one.bar


def _bar(one: Measurement) -> str:
    if one.bar is None:
        return ""
    sign = "≤" if one.direction == "at_most" else "≥"
    return f"{sign} {one.bar:,g} {'met' if one.is_met else 'MISSED'}"


def _figure(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / _BYTES_PER_MB:,.0f} MB"
    return f"{value * 1000:,.1f} ms" if value < 1 else f"{value:,.1f} s"
