"""Charts of the report as plain SVG: no script, no style attribute, every mark with its numbers as a title.

Belongs here: geometry. Does not belong here: colours (`page/report.css`) and the data (`sql/report`).
"""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from rebalance_ledger.printable import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]

COLOUR_COUNT: Final = 8
"""Number of colour classes, `c0` to `c7`, in the style sheet."""

MOST_MAP_QUEUES: Final = 64
MOST_MAP_CLIENTS: Final = 24
"""Largest map of queues and clients; larger groups only have the table."""

_CELL: Final = 22
_TWO_POW_32: Final = 2**32


def share_bar(rows: Sequence[Row], label: str, count: str) -> Markup:
    """Return one bar divided by a count.

    Args:
        rows: Rows with the columns `label` and `count`.
        label: Column of the names, which are also the colour classes.
        count: Column of the counts.
    """
    total = sum(row[count] for row in rows)
    if not total:
        return Markup("")
    marks, left = [], 0.0
    for row in rows:
        width = 1000 * row[count] / total
        title = f"{row[label]}: {row[count]} of {total}"
        marks.append(
            Markup('<rect class="{}" x="{}" width="{}" height="28"><title>{}</title></rect>').format(
                row[label], round(left, 1), round(width, 1), title
            )
        )
        left += width
    text = ", ".join(f"{row[count]} {row[label]}" for row in rows)
    return Markup(
        '<svg class="bar" viewBox="0 0 1000 28" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(text, Markup("").join(marks))


def moves_chart(rows: Sequence[Row]) -> Markup:
    """Return two columns for each day: moved queues, and the smallest necessary number of moves."""
    most = max((row["moved_queue_count"] or 0 for row in rows), default=0)
    if not most:
        return Markup("")
    marks = []
    for position, row in enumerate(rows):
        if row["moved_queue_count"] is None:
            continue
        title = f"{row['ds']}: {row['moved_queue_count']} moved, at least {row['least_move_count']} had to"
        columns = Markup("").join(
            _column(name, position * 30 + offset, 120 * int(row[column]) / most)
            for name, column, offset in (("moved", "moved_queue_count", 4), ("least", "least_move_count", 15))
        )
        marks.append(Markup("<g><title>{}</title>{}</g>").format(title, columns))
    width = max(30 * len(rows), 1)
    days = f"{rows[0]['ds']} to {rows[-1]['ds']}"
    return Markup(
        '<svg class="columns" viewBox="0 0 {} 122" width="{}" height="122" role="img" '
        'aria-label="Queues that changed owner, and the fewest that had to, by day: {}; the table below has the numbers">{}</svg>'
    ).format(width, width, days, Markup("").join(marks))


def ownership_map(queues: Sequence[Row], members: Sequence[Row]) -> Markup:
    """Return the map of queues and clients: expected owners, observed owners, and differences.

    Empty if the group is too large for a map, or no queue has or should have an owner.

    Args:
        queues: Rows of `group/queues`.
        members: Rows of `group/members`; a member without a queue has an empty column.
    """
    owners = {name for row in queues for name in (*row["observed_owners"], *(row["expected_owners"] or ()))}
    clients = sorted(owners | {row["client_id"] for row in members})
    if not owners or len(clients) > MOST_MAP_CLIENTS or len(queues) > MOST_MAP_QUEUES:
        return Markup("")
    marks = [
        Markup('<text x="{}" y="16" text-anchor="middle">{}</text>').format(
            _CELL * (column + 0.5), column + 1
        )
        for column in range(len(clients))
    ]
    left = _CELL * len(clients) + 10
    for line, row in enumerate(queues):
        top = _CELL * (line + 1)
        for column, client in enumerate(clients):
            marks.append(_map_cell(row, client, _CELL * column, top))
        name = f"{row['topic']} {row['broker_name']}/{row['queue_id']}"
        marks.append(Markup('<text x="{}" y="{}">{}</text>').format(left, top + 16, visible(name)))
    longest = max(len(f"{row['topic']} {row['broker_name']}/{row['queue_id']}") for row in queues)
    width, height = left + 8 * longest, _CELL * (len(queues) + 1)
    legend = Markup("").join(Markup("<li>{}</li>").format(visible(client)) for client in clients)
    return Markup(
        '<svg class="map" viewBox="0 0 {} {}" width="{}" height="{}" role="img" '
        'aria-label="Map of {} queues and {} clients; the table below has the same facts">{}</svg>'
        '<p>Columns are the clients:</p><ol class="clients">{}</ol>'
    ).format(width, height, width, height, len(queues), len(clients), Markup("").join(marks), legend)


def ring_chart(rows: Sequence[Row]) -> Markup:
    """Return the ring of CONSISTENT_HASH with the arcs of each member; empty if it does not explain all expected owners."""
    if not rows or any(row["explained_queue_count"] != row["queue_count"] for row in rows):
        return Markup("")
    marks = [
        Markup('<path class="c{}" d="{}"><title>{}: {} of the ring</title></path>').format(
            number % COLOUR_COUNT,
            _arc(arc["position"] - arc["width"], arc["width"]),
            visible(row["client_id"]),
            row["ring_share"],
        )
        for number, row in enumerate(rows)
        for arc in row["arcs"]
        if arc["width"] > 0
    ]
    legend = Markup("").join(
        Markup(
            '<li><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="c{}" width="10" height="10"/></svg> {}: {}</li>'
        ).format(number % COLOUR_COUNT, visible(row["client_id"]), row["ring_share"])
        for number, row in enumerate(rows)
    )
    return Markup(
        '<svg class="ring" viewBox="-110 -110 220 220" width="220" height="220" role="img" '
        'aria-label="Ring of CONSISTENT_HASH with each member\'s part; the list beside it has the numbers">{}</svg><ul class="legend">{}</ul>'
    ).format(Markup("").join(marks), legend)


def _column(name: str, left: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="10" height="{}"/>').format(
        name, left, round(121 - height, 1), round(height + 1, 1)
    )


def _map_cell(row: Row, client: str, left: float, top: float) -> Markup:
    is_owner, is_expected = client in row["observed_owners"], client in (row["expected_owners"] or ())
    if not is_owner and not is_expected:
        return Markup("")
    if row["state"] == "shared":
        kind, fact = "unknown", "pops it; members share the queue"
    elif row["expected_owners"] is None:
        kind, fact = "unknown", "owns it; who should is unknown"
    elif is_owner and is_expected:
        kind, fact = "both", "owns it and should"
    elif is_owner:
        kind, fact = "only-owner", "owns it and should not"
    else:
        kind, fact = "only-expected", "should own it and does not"
    size = _CELL - 6
    rectangle = Markup(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{} {}</title></rect>'
    ).format(kind, left + 3, top + 3, size, size, visible(client), fact)
    if kind != "only-owner":
        return rectangle
    # A cross beside the colour, for those who cannot tell the colours apart.
    cross = Markup('<path class="cross" d="M{} {}l{} {}m0 -{}l-{} {}"/>').format(
        left + 6, top + 6, size - 6, size - 6, size - 6, size - 6, size - 6
    )
    return rectangle + cross


def _arc(start: int, width: int) -> str:
    """Return the path of one arc of the ring; positions are fractions of 2^32, clockwise from the top."""
    if width >= _TWO_POW_32:
        width = _TWO_POW_32 - 1
    first, last = (2 * pi * position / _TWO_POW_32 - pi / 2 for position in (start, start + width))
    is_large = int(last - first > pi)
    outer, inner = (
        (radius * cos(angle), radius * sin(angle)) for radius, angle in ((100, first), (60, last))
    )
    outer_end, inner_end = (100 * cos(last), 100 * sin(last)), (60 * cos(first), 60 * sin(first))
    return (
        f"M{outer[0]:.2f} {outer[1]:.2f}A100 100 0 {is_large} 1 {outer_end[0]:.2f} {outer_end[1]:.2f}"
        f"L{inner[0]:.2f} {inner[1]:.2f}A60 60 0 {is_large} 0 {inner_end[0]:.2f} {inner_end[1]:.2f}Z"
    )
