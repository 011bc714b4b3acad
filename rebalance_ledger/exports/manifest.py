"""The manifest of an export: what it says, and its bytes.

An export is `<exports>/<cluster>/<ds>/` with a `manifest.json` that lists every file. Belongs here: where exports lie, the manifest's
values, and reading and encoding its file. Does not belong here: the files that it lists (`survey`), and whether they are those that
were sealed (`sealing`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.exports.contract import CONTRACT_VERSION
from rebalance_ledger.exports.export_files import open_regular, printable, reason_of
from rebalance_ledger.storage.location import Location, ObjectPath
from rebalance_ledger.suggestion import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MANIFEST_NAME: Final = "manifest.json"

MAX_MANIFEST_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of a manifest's file."""

_Root = TypeVar("_Root", Path, ObjectPath, Location)

ATTACHMENT: Final = "attachment"
"""Kind, in a manifest, of a file outside the contract: sealed with the rest, but never read."""

QUALITIES: Final = ("complete", "degraded", "failed")
"""Values of `quality`, the best first."""

_MAX_NEIGHBOURS: Final = 5


class ExportError(ValueError):
    """A directory is not an export, or cannot be sealed or written as one.

    Attributes:
        problems: One sentence each: file, line, problem and remedy.
    """

    def __init__(self, summary: str, problems: list[str]) -> None:
        super().__init__("\n".join([f"{summary}:", *(f"- {problem}" for problem in problems)]))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """The entry of one file in a manifest.

    Attributes:
        path: Path in the export, with `/` as separator.
        kind: Kind of the lines of a file of envelopes, kind of the index for an indexed file, otherwise `attachment`.
        line_count: Number of envelopes; None for a file without envelopes.
        error_count: Number of envelopes with an error; None for a file without envelopes.
        size_bytes: Size of the file.
        sha256: SHA-256 of the content, in lower-case hexadecimal digits.
    """

    path: str
    kind: str
    line_count: int | None
    error_count: int | None
    size_bytes: int
    sha256: str

    @property
    def holds_envelopes(self) -> bool:
        """Whether the file is one of the contract's files of envelopes."""
        return self.line_count is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The entry of a manifest about redacted values.

    Attributes:
        policy_version: Version of the redaction rules.
        value_counts: File -> number of redacted values, only for files that have any.
        replaces_sha256: SHA-256 of the manifest of the sealed export that this one is the redacted copy of; None if the
            export was redacted before its first seal.
    """

    policy_version: int
    value_counts: Mapping[str, int]
    replaces_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureAttempt:
    """One attempt at a capture, and the quality of the export after it.

    Attributes:
        attempt: Number of the attempt, from 1.
        started_at: Start (UTC).
        ended_at: End (UTC).
        quality: `complete`, `degraded` or `failed`.
        asked_count: Number of questions in the export after the attempt, answered or failed.
        failed_count: Number of failed questions.
    """

    attempt: int
    started_at: datetime
    ended_at: datetime
    quality: str
    asked_count: int
    failed_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of an export.

    Attributes:
        contract_version: Version of the contract that the export conforms to.
        cluster: Cluster of every envelope.
        ds: UTC day of every capture.
        first_captured_at: Earliest capture (UTC).
        last_captured_at: Latest capture (UTC).
        files: Every file except the manifest, sorted by path.
        attempts: Attempts at the capture, in order; empty if the collector does not record them.
        sha256: SHA-256 of the manifest file, which identifies the export, in lower-case hexadecimal digits.
        redaction: Redacted values; None in an export of a release without redaction.
    """

    contract_version: int
    cluster: str
    ds: date
    first_captured_at: datetime
    last_captured_at: datetime
    files: tuple[ManifestFile, ...]
    sha256: str
    redaction: Redaction | None = None
    attempts: tuple[CaptureAttempt, ...] = ()

    @property
    def quality(self) -> str | None:
        """Quality of the capture after its last attempt; None if the collector does not record attempts."""
        return self.attempts[-1].quality if self.attempts else None

    @property
    def size_bytes(self) -> int:
        """Size of all files of the export without the manifest."""
        return sum(file.size_bytes for file in self.files)

    @property
    def envelope_files(self) -> tuple[ManifestFile, ...]:
        """Files with envelopes, at most one per kind; a kind without a file is a missing source."""
        return tuple(file for file in self.files if file.holds_envelopes)

    @property
    def attachments(self) -> tuple[ManifestFile, ...]:
        """Files outside the contract, which are never read."""
        return tuple(file for file in self.files if file.kind == ATTACHMENT)


def export_directory(exports_root: _Root, cluster: str, ds: date) -> _Root:
    """Return the location of the export of a cluster and day, whether or not it exists.

    Raises:
        ExportError: The cluster's name cannot be a folder's name.
    """
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise ExportError("No such export", [f"the cluster's name {problem}; give the name of one cluster"])
    return exports_root / cluster / ds.isoformat()


def export_day(folder_name: str) -> date | None:
    """Return the day of an export's folder, as `export_directory` names it; None for any other name."""
    try:
        day = date.fromisoformat(folder_name)
    except ValueError:
        return None
    return day if day.isoformat() == folder_name else None


def problems_of_day(manifest: Manifest, cluster: str | None, ds: date | None) -> list[str]:
    """Return a sentence for each of cluster and day that is not the expected one; None expects any."""
    problems = []
    if cluster is not None and cluster != manifest.cluster:
        problems.append(f"{MANIFEST_NAME}: cluster is {manifest.cluster!r}, but {cluster!r} is wanted")
    if ds is not None and ds != manifest.ds:
        problems.append(f"{MANIFEST_NAME}: ds is {manifest.ds}, but {ds} is wanted")
    return problems


def load_manifest(directory: Location, *, cluster: str | None = None, ds: date | None = None) -> Manifest:
    """Read only the manifest, without verifying the files.

    Args:
        directory: The directory.
        cluster: Expected cluster, if any.
        ds: Expected UTC day, if any.

    Raises:
        ExportError: The manifest is missing or malformed, its contract version is unknown, or it is of another cluster or day.
    """
    summary = f"{directory} is not an export"
    try:
        if not directory.is_dir():
            problem = "there is no such directory; collect the cluster on that day, or copy its export"
            raise ExportError(summary, [problem + _siblings_clause(directory)])
        with open_regular(directory / MANIFEST_NAME) as file:
            content = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        problem = f"there is no {MANIFEST_NAME}; collect the day, then seal it with `ledger exports seal`"
        raise ExportError(summary, [problem]) from None
    except OSError as error:
        raise ExportError(summary, [f"{MANIFEST_NAME} cannot be read: {reason_of(error)}"]) from error
    try:
        manifest = _decode_manifest(content)
    except _ManifestError as error:
        problem = f"{MANIFEST_NAME}: {error}; verify the files' origin and seal them again"
        raise ExportError(summary, [problem]) from error
    problems = problems_of_day(manifest, cluster, ds)
    if problems:
        raise ExportError(f"{directory} is not the export of that day", problems)
    return manifest


def _siblings_clause(directory: Location) -> str:
    """Return the existing siblings of a missing `<exports>/<cluster>/<ds>` on disk, as a clause: clusters, or days of the cluster."""
    if not isinstance(directory, Path):
        return ""
    of_cluster = directory.parent.is_dir()
    folder = directory.parent if of_cluster else directory.parent.parent
    if not folder.is_dir():
        return ""
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if of_cluster:
        names = [name for name in names if export_day(name) is not None]
    suggestion = "" if of_cluster else did_you_mean(directory.parent.name, names, most=1, cutoff=0.6)
    hint = f"; {suggestion}" if suggestion else ""
    sibling_text = ", ".join(names[-_MAX_NEIGHBOURS:]) or "none"
    return f" ({'newest days' if of_cluster else 'clusters'} in {folder}: {sibling_text}){hint}"


class _ManifestError(ValueError):
    """The content of a manifest file is invalid; the message is a clause without the file's name."""


def attempt_of(document: object, number: int) -> CaptureAttempt:
    """Return the attempt that the payload of a line about it describes.

    Args:
        document: The parsed payload.
        number: Number of the attempt.

    Raises:
        ValueError: The payload describes none.
    """
    return _attempt(_Fields(document), number)


def encode_manifest(
    cluster: str,
    ds: date,
    capture_times: tuple[datetime, datetime],
    files: tuple[ManifestFile, ...],
    attempts: tuple[CaptureAttempt, ...],
    redaction: Redaction | None,
) -> bytes:
    """Return the content of the manifest's file; the same values give the same bytes."""
    # Manifests without attempts must keep their bytes, so the fields are absent.
    capture: dict[str, object] = {}
    if attempts:
        capture["quality"] = attempts[-1].quality
        capture["attempts"] = [
            {
                "attempt": attempt.attempt,
                "started_at": instant_text(attempt.started_at),
                "ended_at": instant_text(attempt.ended_at),
                "quality": attempt.quality,
                "asked_count": attempt.asked_count,
                "failed_count": attempt.failed_count,
            }
            for attempt in attempts
        ]
    document: dict[str, object] = {
        "contract_version": CONTRACT_VERSION,
        "cluster": cluster,
        "ds": ds.isoformat(),
        "first_captured_at": instant_text(capture_times[0]),
        "last_captured_at": instant_text(capture_times[1]),
        **capture,
        "files": [
            {
                "path": file.path,
                "kind": file.kind,
                "line_count": file.line_count,
                "error_count": file.error_count,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
            }
            for file in files
        ],
    }
    if redaction is not None:
        document["redaction"] = {
            "policy_version": redaction.policy_version,
            "value_counts": dict(sorted(redaction.value_counts.items())),
            **({} if redaction.replaces_sha256 is None else {"replaces_sha256": redaction.replaces_sha256}),
        }
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def _decode_manifest(content: bytes) -> Manifest:
    if len(content) > MAX_MANIFEST_BYTES:
        raise _ManifestError(f"longer than {MAX_MANIFEST_BYTES} bytes")
    try:
        document: object = json.loads(content.decode(), object_pairs_hook=_without_repeated_names)
    except _ManifestError:
        raise
    except (ValueError, RecursionError):
        raise _ManifestError("not JSON; it may be cut") from None
    fields = _Fields(document)
    version = fields.integer("contract_version")
    if version not in _DECODERS:
        versions = ", ".join(str(versions) for versions in _DECODERS)
        raise _ManifestError(
            f"contract version {version} is not known to this release, which reads {versions}; read the export with a "
            "release that knows it, or collect it with a collector of this one"
        )
    return _DECODERS[version](fields, hashlib.sha256(content).hexdigest())


def _without_repeated_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse repeated names, because JSON parsers differ in which value they take."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise _ManifestError(f"duplicate key {printable(next(n for n in names if names.count(n) > 1))}")
    return document


def _decode_manifest_v1(fields: _Fields, sha256: str) -> Manifest:
    ds = export_day(fields.text("ds"))
    if ds is None:
        raise _ManifestError("'ds' is not a day")
    cluster = fields.text("cluster")
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise _ManifestError(f"the cluster's name {problem}")
    files = tuple(
        ManifestFile(
            path=file.text("path"),
            kind=file.text("kind"),
            line_count=file.integer_or_none("line_count"),
            error_count=file.integer_or_none("error_count"),
            size_bytes=file.integer("size_bytes"),
            sha256=file.text("sha256"),
        )
        for file in fields.objects("files")
    )
    repeated_paths = [path for path, count in Counter(file.path for file in files).items() if count > 1]
    if repeated_paths:
        raise _ManifestError(f"'files' names {printable(repeated_paths[0])} twice")
    return Manifest(
        contract_version=1,
        cluster=cluster,
        ds=ds,
        first_captured_at=fields.instant("first_captured_at"),
        last_captured_at=fields.instant("last_captured_at"),
        files=files,
        attempts=tuple(
            _attempt(attempt, attempt.integer("attempt")) for attempt in fields.objects_or_none("attempts")
        ),
        sha256=sha256,
        redaction=_decode_redaction(fields.object_or_none("redaction")),
    )


def _decode_redaction(fields: _Fields | None) -> Redaction | None:
    if fields is None:
        return None
    counts = fields.object_or_none("value_counts")
    return Redaction(
        policy_version=fields.integer("policy_version"),
        value_counts={} if counts is None else counts.integers(),
        replaces_sha256=fields.text_or_none("replaces_sha256"),
    )


def _attempt(fields: _Fields, number: int) -> CaptureAttempt:
    quality = fields.text("quality")
    if quality not in QUALITIES:
        raise _ManifestError(f"'quality' is not one of {', '.join(QUALITIES)}")
    return CaptureAttempt(
        attempt=number,
        started_at=fields.instant("started_at"),
        ended_at=fields.instant("ended_at"),
        quality=quality,
        asked_count=fields.integer("asked_count"),
        failed_count=fields.integer("failed_count"),
    )


class _Fields:
    """Typed access to the fields of one object of a manifest."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise _ManifestError("an object is expected where there is none")
        self._document: dict[str, object] = document

    def text(self, name: str) -> str:
        value = self._document.get(name)
        if not isinstance(value, str):
            raise _ManifestError(f"{name!r} is not text")
        return value

    def integer(self, name: str) -> int:
        value = self._document.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise _ManifestError(f"{name!r} is not a whole number, 0 or more")
        return value

    def integer_or_none(self, name: str) -> int | None:
        return None if self._document.get(name) is None else self.integer(name)

    def instant(self, name: str) -> datetime:
        text = self.text(name)
        try:
            instant = datetime.strptime(text, _INSTANT_FORMAT).replace(tzinfo=UTC)
        except ValueError:
            raise _ManifestError(f"{name!r} is not an instant such as 2026-11-16T01:58:38.273000Z") from None
        return instant

    def text_or_none(self, name: str) -> str | None:
        return None if self._document.get(name) is None else self.text(name)

    def integers(self) -> dict[str, int]:
        return {name: self.integer(name) for name in self._document}

    def object_or_none(self, name: str) -> _Fields | None:
        value = self._document.get(name)
        return None if value is None else _Fields(value)

    def objects_or_none(self, name: str) -> list[_Fields]:
        return [] if self._document.get(name) is None else self.objects(name)

    def objects(self, name: str) -> list[_Fields]:
        value = self._document.get(name)
        if not isinstance(value, list):
            raise _ManifestError(f"{name!r} is not a list")
        return [_Fields(element) for element in value]


_DECODERS: Final[dict[int, Callable[[_Fields, str], Manifest]]] = {1: _decode_manifest_v1}
"""Decoder of each contract version. A version must remain supported as long as its exports are retained."""

_INSTANT_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


def instant_text(instant: datetime) -> str:
    """Return a UTC instant as manifests and messages write it, with microseconds."""
    return instant.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
