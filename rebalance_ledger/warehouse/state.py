"""The version of every published table that readers see, kept in the log of `gold.publication`.

The commit that publishes a day has a Delta `txn` action with the version of each table. A reader that opens `publication` therefore knows
the current state of all tables without reading rows, and the cost does not grow with history. Delta keeps `txn` actions in its
checkpoints.

Two further actions describe the record itself:

- `gold.publication`: the version of `publication` with which the state was recorded. If `publication` has another version, a release
  without this record or another program has written it, and its rows must be read too.
- `ledger.definitions`: a hash of the definitions to which the tables were updated. If it is the hash of this release, all columns are up
  to date, and no table needs to be opened for this check.

Belongs here: writing and reading these actions. Does not belong here: restoring and evolving tables (`commits`).
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
    """The state of the other tables that the log of `publication` records.

    Attributes:
        versions: Qualified name -> Delta version that readers see, for the tables that were published so far.
        is_current: Whether it was recorded with the open version of `publication`. Otherwise rows of `publication` may have later
            versions.
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
        # If another writer commits first, this commit gets a later version, and the record is not current.
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
