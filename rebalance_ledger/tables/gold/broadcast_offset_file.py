"""`gold.broadcast_offset_file`: the state of each broadcasting client's offset files, and what a client would do with them when it starts."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import OffsetFileState

BROADCAST_OFFSET_FILE = Table(
    name="broadcast_offset_file",
    layer="gold",
    grain="host x client x group with landed or expected offset files",
    key=(
        "host",
        "client_id",
        "consumer_group",
    ),
    columns=(
        Column(
            "host",
            "string",
            "The host that the files lie on; null for an online client of a broadcasting group whose host landed no files.",
        ),
        CLIENT_ID,
        CONSUMER_GROUP,
        Column(
            "state",
            "string",
            "`ok`, `recovered_from_bak`, `corrupt_both`, `empty`, `missing`, `stale`, `orphan_dir`, `shared_file`, `clustering_group_with_file` or `unknown`; see docs/broadcast-offsets.md.",
            nullable=False,
            values=tuple(OffsetFileState),
        ),
        Column("reason", "string", "The result of reading the files, or why it is unknown, in one sentence."),
        Column(
            "start_outcome",
            "string",
            "What a client would do if it started now: `stored` (continue from stored offsets), `default` (begin as its settings define), `fails_to_start`; null if unknown.",
        ),
        Column(
            "start_from",
            "string",
            "The file that decides `start_outcome`: `main` or `bak`; null if neither has offsets.",
        ),
        Column(
            "main_state",
            "string",
            "How the client reads `offsets.json` (Go: `offset.json`): `offsets`, `no_table` (it reads `null`), `empty`, `refused` (reading it throws), `undecided` (bytes and release do not determine the result), `missing`; null if it was not read.",
        ),
        Column("bak_state", "string", "The same for its `.bak` file."),
        Column("main_size_bytes", "bigint", "Size of the main file; null if there is none.", unit="bytes"),
        Column("bak_size_bytes", "bigint", "Size of the `.bak` file; null if there is none.", unit="bytes"),
        Column(
            "main_modified_at", "timestamp", "When the main file was last written (UTC), by its host's clock."
        ),
        Column(
            "bak_modified_at",
            "timestamp",
            "When the `.bak` file was last written (UTC), by its host's clock.",
        ),
        Column(
            "main_entry_count",
            "int",
            "Queues in the main file; null if it does not hold a table.",
            unit="queues",
        ),
        Column(
            "bak_entry_count",
            "int",
            "Queues in the `.bak` file; null if it does not hold a table.",
            unit="queues",
        ),
        Column(
            "age_ms",
            "bigint",
            "From the last write of either file to the snapshot (milliseconds). A running client writes every 5 s.",
            unit="ms",
        ),
        Column("moment", "int", "Number of the newest snapshot, which this row describes; null without one."),
        Column("captured_at", "timestamp", "When that snapshot was taken (UTC)."),
        Column("snapshot_count", "int", "Snapshots of the day.", nullable=False, unit="snapshots"),
        Column(
            "landed_file_count", "int", "Files that landed, over all snapshots.", nullable=False, unit="files"
        ),
        Column(
            "failed_file_count",
            "int",
            "Files that failed to land, over all snapshots.",
            nullable=False,
            unit="files",
        ),
        Column(
            "earlier_snapshots",
            "array<string>",
            "The day's earlier snapshots, as `moment: main_state/bak_state`.",
            nullable=False,
        ),
        Column(
            "message_model",
            "string",
            "`BROADCASTING` or `CLUSTERING`, as brokers and members of the group report; null if none is online.",
        ),
        Column(
            "is_online",
            "boolean",
            "Whether the client is connected to a broker or a proxy; null if one of them that may have it did not answer.",
        ),
        Column(
            "process_count",
            "int",
            "Processes with this client id: from their own answers, else 1 if a broker lists it once; 0 if it is offline. Null if unknown: several connections may be several processes, or dead connections.",
            unit="processes",
        ),
        Column(
            "host_count", "int", "Hosts with files of this client id and group.", nullable=False, unit="hosts"
        ),
        Column("client_language", "string", "The language of the applied reader."),
        Column("client_version", "string", "The release of the applied reader."),
        Column(
            "client_version_source",
            "string",
            "Where the release is from: `client`, `group` (the newest that a member of the group reports), `assumed` (no member reports one).",
        ),
        Column(
            "previous_ds",
            "date",
            "Day of the newest earlier sealed export, of the last three, that has these files; null if none has.",
        ),
        Column("previous_start_outcome", "string", "`start_outcome` of the newest snapshot of that day."),
        Column(
            "previous_modified_at", "timestamp", "When either file was last written (UTC), as seen that day."
        ),
    ),
)
