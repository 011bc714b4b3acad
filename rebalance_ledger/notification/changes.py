"""Find the changes to notify: new and resolved critical findings since the last notification, and a refused day.

`<warehouse>/notifications/<cluster>.json` records the last notification. It is written after the destination has accepted the notification,
so a run that is killed in between sends it twice, but none is lost. Runs of one cluster wait for each other.
"""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.printable import visible
from rebalance_ledger.report.published_day import find_day
from rebalance_ledger.report.queries import notification_query
from rebalance_ledger.storage.location import location_of
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import Warehouse, path_segment
from rebalance_ledger.warehouse.query import open_tables
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from rebalance_ledger.notification.destination import Destination
    from rebalance_ledger.storage.location import Location

Row = dict[str, Any]

_MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one cluster.

    Attributes:
        cluster: Name of the cluster.
        ds: Newest published UTC day; None if there is none.
        new: Critical findings that were not notified, or that were less severe or explained by another since, by id.
        resolved: Notified critical findings that the day does not have, by id.
        unchanged: Notified critical findings that the day has, or that are unknown because the group is quarantined, by id.
        dormant: Ids of unchanged findings that the day has, but less severe or explained by another finding: they are not resolved.
        refused_ds: Newest refused day, later than every published day; None if there is none.
        refusals: Failed expectations of this day; empty if they were notified.
        refused_run_id: Run of the refused day.
    """

    cluster: str
    ds: date | None
    new: dict[str, Row]
    resolved: dict[str, Row]
    unchanged: dict[str, Row]
    dormant: list[str]
    refused_ds: date | None
    refusals: list[Row]
    refused_run_id: str | None

    @property
    def are_any(self) -> bool:
        """Whether there is something to notify."""
        return bool(self.new or self.resolved or self.refusals)

    @property
    def subject(self) -> str:
        """The changes in one line."""
        counts = [
            f"{len(findings)} critical finding{'s' if len(findings) > 1 else ''} {word}"
            for findings, word in ((self.new, "new"), (self.resolved, "resolved"))
            if findings
        ]
        parts = [f"{self.ds}: {', '.join(counts)}"] if counts else []
        parts += [f"the gate refused {self.refused_ds}"] if self.refusals else []
        return visible(f"{self.cluster}: {'; '.join(parts)}")

    @property
    def text(self) -> str:
        """The changes for people; the first line is the subject."""
        lines = [self.subject]
        lines += _listed(self.new, lambda row: f"NEW {_sentence(row)} {row['advice']}")
        lines += _listed(self.resolved, lambda row: f"RESOLVED {_sentence(row)}")
        lines += [
            f"REFUSED {self.refused_ds}: {row['expectation']} ({row['expectation_id']})"
            + (f"; for example {row['examples'][0]}" if row["examples"] else "")
            for row in self.refusals[:_MOST_LISTED]
        ]
        if self.refusals:
            lines.append(
                f"Readers still see the day before. Details: ledger gate show --cluster {self.cluster} --ds {self.refused_ds}"
            )
        if self.new:
            lines.append(f"Details: ledger ask open_findings --cluster {self.cluster}")
        return "\n".join(visible(line) for line in lines)

    @property
    def facts(self) -> dict[str, Any]:
        """The changes for programs."""
        return {
            "cluster": self.cluster,
            "ds": None if self.ds is None else self.ds.isoformat(),
            "new": list(self.new.values()),
            "resolved": list(self.resolved.values()),
            "refused_ds": self.refused_ds.isoformat() if self.refused_ds and self.refusals else None,
            "refusals": [
                {name: row[name] for name in ("expectation_id", "expectation", "examples")}
                for row in self.refusals
            ],
        }


def notify(root: str, cluster: str, destination: Destination) -> Changes:
    """Send the changes of a cluster since its last notification, and record them.

    Args:
        root: Root of the warehouse, a local path or a URI.
        cluster: Name of the cluster.
        destination: Destination of the notification.

    Returns:
        The changes; if there are none, nothing was sent.

    Raises:
        QueryError: The warehouse or the record of the last notification cannot be read.
        NotificationError: The notification was not accepted; the next call sends it again.
    """
    file = location_of(f"{Warehouse.at(root).root}/notifications") / f"{path_segment(cluster)}.json"
    Snapshot(root)  # A warehouse that does not exist gets no lock.
    with _exclusive(file):
        notified = _read(file)
        changes = _changes(Snapshot(root), cluster, notified)
        if changes.are_any:
            destination.send(changes.subject, changes.text, changes.facts)
        if changes.are_any or changes.dormant != notified["dormant"]:
            _write(file, changes)
    return changes


@contextmanager
def _exclusive(file: Location) -> Iterator[None]:
    """Exclude other notifications of the cluster: runs of several days end at the same time, and each would send the same changes."""
    if not isinstance(file, Path):
        from rebalance_ledger.storage.lease import hold_lease  # noqa: PLC0415  # a disk needs no client of object stores

        with hold_lease(str(file).removesuffix(".json")):
            yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f".{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _changes(snapshot: Snapshot, cluster: str, notified: Row) -> Changes:
    refusals = _rows(snapshot, "refused_day", {"cluster": cluster})
    refused_ds = refusals[0]["ds"] if refusals else None
    refused_run_id = refusals[0]["run_id"] if refusals else None
    if refused_run_id == notified["refused_run_id"]:
        refusals = []
    is_published = any(day.cluster == cluster for day in snapshot.days)
    if not is_published and refused_ds is None:
        find_day(snapshot, cluster, None)  # It raises: the name is wrong, or nothing was computed.
    known: dict[str, Row] = notified["critical"]
    if not is_published:
        return Changes(
            cluster, None, {}, {}, known, notified["dormant"], refused_ds, refusals, refused_run_id
        )
    day = find_day(snapshot, cluster, None)
    values = {"cluster": cluster, "ds": day.ds}
    current = {row["finding_id"]: row for row in _rows(snapshot, "critical_findings", values)}
    present = {row["finding_id"] for row in _rows(snapshot, "finding_ids", values)}
    quarantined = {row["consumer_group"] for row in _rows(snapshot, "quarantined_groups", values)}
    unchanged = {
        key: row for key, row in known.items() if key in present or row["consumer_group"] in quarantined
    }
    return Changes(
        cluster,
        day.ds,
        {key: row for key, row in current.items() if key not in known or key in notified["dormant"]},
        {key: row for key, row in known.items() if key not in unchanged},
        unchanged,
        sorted(key for key in unchanged if key in present and key not in current),
        refused_ds,
        refusals,
        refused_run_id,
    )


def _rows(snapshot: Snapshot, name: str, values: dict[str, Any]) -> list[Row]:
    text = notification_query(name).text(values)
    with open_tables(snapshot, [text]) as tables:
        return tables.rows(text)


def _read(file: Location) -> Row:
    if not file.is_file():
        return {"critical": {}, "dormant": [], "refused_run_id": None}
    try:
        with file.open("rb") if isinstance(file, Path) else file.open() as stream:
            content = json.load(stream)
        return {
            "critical": dict(content["critical"]),
            "dormant": list(content.get("dormant", [])),
            "refused_run_id": content["refused_run_id"],
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise QueryError(
            f"{file} cannot be read as the record of notifications ({error}): remove it, and open critical findings are notified again."
        ) from error


def _write(file: Location, changes: Changes) -> None:
    content = json.dumps(
        {
            "critical": changes.unchanged | changes.new,
            "dormant": changes.dormant,
            "refused_run_id": changes.refused_run_id,
        },
        indent=1,
        sort_keys=True,
    ).encode()
    if not isinstance(file, Path):
        file.write(content)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as draft:
        draft.write_bytes(content)


def _listed(findings: dict[str, Row], line: Callable[[Row], str]) -> list[str]:
    shown = [line(row) for row in list(findings.values())[:_MOST_LISTED]]
    more = len(findings) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def _sentence(row: Row) -> str:
    subject = ", ".join(
        str(row[name]) for name in ("consumer_group", "topic", "broker_name", "client_id") if row[name]
    )
    return f"{row['kind']} ({subject}): {row['evidence']}"
