"""The paths in a warehouse.

```
<warehouse>/silver/<table>, gold/<table>        published Delta tables, partitioned by cluster and ds
<warehouse>/staging/<cluster>/<ds>/<attempt>/     one computation of a day, as Parquet; judged before it is published (see `staging`)
<warehouse>/quarantine/gate_result              verdicts of days that were refused
<warehouse>/approvals/<cluster>/<ds>.json       who approved the refused computation of a day, and why
<warehouse>/data_docs/<cluster>/<ds>/           pages of the gate and the report of a day (see `pages`)
```
A warehouse is a folder or a location in an object store (`s3a://…`). This module only joins names, and opens nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rebalance_ledger.storage.location import InvalidLocationError, location_of

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.tables import Table


_CHANGED_BY_DELTA: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")
"""What delta-rs 1.6 decodes, takes for a separator or refuses in the path of a table."""

OFFSET_READINGS: Final = "offset_reading"
"""Name of the intermediate result with the offset files as the build read them."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The root of a warehouse, as a local path or a URI (`s3a://…`) without a trailing slash."""

    root: str

    @classmethod
    def at(cls, place: str) -> Warehouse:
        """Return the warehouse at a path or URI; a path is made absolute, so that all processes use the same one.

        Raises:
            InvalidLocationError: The URI is not that of an object store, or delta-rs cannot use the path as it is.
        """
        root = str(location_of(place))
        changed = _CHANGED_BY_DELTA.search(root)
        if changed is not None:
            raise InvalidLocationError(
                f"{root} cannot be a warehouse: Delta's library does not keep {changed.group()!r} in a path. Choose a location "
                "without backslashes, control characters, and `%` before two hexadecimal digits."
            )
        return cls(root)

    @property
    def lock_file(self) -> str:
        """The file on a disk whose lock excludes other writers."""
        return f"{self.root}/.publishing"

    def published(self, table: Table) -> str:
        """Return the place of the published table."""
        return f"{self.root}/{table.layer}/{table.name}"

    def attempts(self, cluster: str, ds: date) -> str:
        """Return the folder of all computations of one day of one cluster."""
        return f"{self.root}/staging/{path_segment(cluster)}/{ds.isoformat()}"

    def stage(self, cluster: str, ds: date, attempt: str) -> StagingArea:
        """Return the stage of one computation of a day."""
        return StagingArea(self.attempts(cluster, ds), attempt)

    def quarantine(self, table: Table) -> str:
        """Return the place of the rows of refused days."""
        return f"{self.root}/quarantine/{table.name}"

    def approval(self, cluster: str, ds: date) -> str:
        """Return the file with the approval of a refused computation of a day."""
        return f"{self.root}/approvals/{path_segment(cluster)}/{ds.isoformat()}.json"

    @property
    def data_docs(self) -> str:
        """The folder of all pages; see `pages`."""
        return f"{self.root}/data_docs"

    def pages(self, cluster: str, ds: date) -> str:
        """Return the folder of a day's pages."""
        return f"{self.data_docs}/{path_segment(cluster)}/{ds.isoformat()}"

    def data_docs_index(self, cluster: str, ds: date) -> str:
        """Return the first page of a day's Data Docs."""
        return f"{self.pages(cluster, ds)}/index.html"


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The folder of one computation of a day.

    Attributes:
        attempts: Folder of all computations of the day.
        attempt: Name of this one.
    """

    attempts: str
    attempt: str

    @property
    def root(self) -> str:
        """The folder of this computation."""
        return f"{self.attempts}/{self.attempt}"

    def table(self, table: Table) -> str:
        """Return the place of the staged rows of a table."""
        return f"{self.root}/{table.layer}.{table.name}"

    def work(self, name: str) -> str:
        """Return the place of an intermediate result that several steps of the computation read."""
        return f"{self.root}/intermediate/{name}"

    @property
    def offset_readings(self) -> str:
        """The offset files of broadcasting clients as the build read them; the gate reads them again."""
        return self.work(OFFSET_READINGS)

    @property
    def baseline(self) -> str:
        """The files of the baseline that the build read, as JSON; missing without a baseline."""
        return f"{self.root}/baseline.json"

    @property
    def gate_verdict(self) -> str:
        """The gate's verdict on this stage and its results; a JSON file."""
        return f"{self.root}/gate_verdict.json"

    @property
    def inventory(self) -> str:
        """The files that the build wrote, with their hashes; a JSON file."""
        return f"{self.root}/inventory.json"

    @property
    def build(self) -> str:
        """The input of the computation, as JSON. It is written last, so a stage with it is complete."""
        return f"{self.root}/build.json"

    @property
    def lock(self) -> str:
        """Held (flock) by the process that computes, on a local disk."""
        return f"{self.root}/lock"


MOST_SEGMENT_CHARACTERS: Final = 224
"""File systems limit names to 255 bytes, and file names are up to 31 longer than the segment that they contain."""


def path_segment(name: str) -> str:
    """Return a cluster's name as one safe segment of a path: `prod/eu` becomes `prod%2Feu`, `..` becomes `%2E%2E`."""
    return quote(name, safe="").replace(".", "%2E") if set(name) <= {"."} else quote(name, safe="")
