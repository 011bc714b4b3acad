"""The version of every published table that readers see, kept in the log of `gold.publication`.

The commit that publishes a day carries a Delta `txn` action for each table, with the table's version. So a reader that opens
`publication` knows the current state of all tables without a row of it being read: the cost does not grow with history.
Delta keeps `txn` actions in its checkpoints.

Two further actions say how far the state can be trusted:

- `gold.publication`: the version of `publication` that the state was recorded with. If `publication` is at another version, a
  release without this record or another program has written it, and its rows must be read as well.
- `ledger.definitions`: a hash of the table definitions that the tables were brought to. If it is the hash of this release,
  no table needs to be opened to know that its columns are up to date.

What belongs here: these actions, written and read. What does not: restoring and evolving tables (`commits`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from deltalake import CommitProperties, Schema, Transaction

from rebalance_ledger.tables import PUBLICATION
from rebalance_ledger.warehouse.arrow_schema import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalake import DeltaTable

    from rebalance_ledger.tables import Table

_DEFINITIONS: Final = "ledger.definitions"


class State(NamedTuple):
    """What the log of `publication` records of the other tables.

    Attributes:
        versions: Qualified name -> Delta version that readers see, for the tables that were published so far.
        is_current: Whether it was recorded with the open version of `publication`. If not, rows of `publication` may name
            later versions.
        definitions: Hash of the definitions that the tables have; None if unknown.
    """

    versions: dict[str, int]
    is_current: bool
    definitions: int | None


def read_state(publication: DeltaTable, tables: Iterable[Table]) -> State:
    """Return the recorded state of some tables."""
    names = [table.qualified_name for table in tables]
    versions = {
        name: version for name in names if (version := publication.transaction_version(name)) is not None
    }
    is_current = publication.transaction_version(PUBLICATION.qualified_name) == publication.version()
    return State(versions, is_current, publication.transaction_version(_DEFINITIONS) if is_current else None)


def state_properties(version: int, versions: Mapping[str, int], definitions: int) -> CommitProperties:
    """Return the properties of the next commit to `publication`, which record a state.

    Args:
        version: The version that this commit makes.
        versions: Qualified name -> Delta version, for every table that exists.
        definitions: See `definitions_hash`.
    """
    recorded = {
        **versions,
        _DEFINITIONS: definitions,
        # Where another writer is faster, the commit gets a later version, and the record counts as not current.
        PUBLICATION.qualified_name: version,
    }
    return CommitProperties(
        app_transactions=[Transaction(name, version) for name, version in recorded.items()]
    )


def definitions_hash(tables: Iterable[Table]) -> int:
    """Return a hash of everything that a table's Delta metadata takes from its definition; it fits Delta's bigint."""
    digest = hashlib.sha256()
    for table in tables:
        schema = Schema.from_arrow(arrow_schema(table)).to_json()
        digest.update(f"{table.qualified_name}\0{table.grain}\0{schema}\0".encode())
    return int.from_bytes(digest.digest()[:7])
