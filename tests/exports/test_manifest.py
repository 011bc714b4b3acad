"""A sealed directory is verified against its manifest. An invalid directory is refused and nothing is written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports import sealing
from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.exports.file_facts import Expected
from rebalance_ledger.exports.manifest import (
    ATTACHMENT,
    MANIFEST_NAME,
    ExportError,
    export_directory,
    load_manifest,
)
from rebalance_ledger.exports.sealing import check_unchanged, seal, verify
from rebalance_ledger.exports.survey import MAX_PROBLEM_COUNT

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples" / "exports").glob("*/*"))
DS = date(2026, 11, 16)
OFFSETS = "offset_files/10.1.1.21/c@DEFAULT/g/offsets.json"


def envelope(kind: str, **fields: object) -> dict[str, object]:
    """Return a valid line of this kind."""
    keys = {key: 0 if key == "moment" else f"some-{key}" for key in KIND_BY_NAME[kind].keys}
    base = {"kind": kind, "cluster": "prod", "captured_at": "2026-11-16T12:00:00Z"} | keys
    content = {} if "sha256" in fields or "error" in fields else {"payload": "{}"}
    return base | content | fields


def append(directory: Path, line: dict[str, object]) -> None:
    file = directory / KIND_BY_NAME[str(line["kind"])].file_name
    with file.open("a") as lines:
        lines.write(json.dumps(line) + "\n")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a small directory that can be sealed: all required files, an error, an offset file and its index."""
    export = tmp_path / "exports" / "prod" / "2026-11-16"
    export.mkdir(parents=True)
    append(export, envelope("nameserver_topic_list", captured_at="2026-11-16T00:00:00Z"))
    append(export, envelope("nameserver_route"))
    append(export, envelope("nameserver_route", error={"type": "MQClientException", "message": "CODE: 17"}))
    append(export, envelope("consumer_connection", captured_at="2026-11-16T23:59:59.999999Z"))
    add_offset_file(export, OFFSETS, b"{}")
    return export


def add_offset_file(directory: Path, path: str, content: bytes, **changes: object) -> None:
    (directory / path).parent.mkdir(parents=True, exist_ok=True)
    (directory / path).write_bytes(content)
    entry = {
        "path": path,
        "size": len(content),
        "mtime": "2026-11-01T00:00:00Z",
        "sha256": sha256(content).hexdigest(),
    }
    append(directory, envelope("offset_file", **(entry | changes)))


def refused(action: Callable[..., object], *arguments: object, **options: object) -> list[str]:
    """Return the problems that an action raises."""
    with pytest.raises(ExportError) as caught:
        action(*arguments, **options)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    assert not any("\n" in problem for problem in caught.value.problems)
    return caught.value.problems


def refused_unsealed(directory: Path, **options: object) -> list[str]:
    """Return the problems that sealing raises, and assert that nothing was written."""
    before = sorted(directory.rglob("*"))
    problems = refused(seal, directory, **options)
    assert sorted(directory.rglob("*")) == before
    return problems


class TestSeal:
    def test_names_every_file_with_its_counts_and_hash(self, directory: Path) -> None:
        manifest = seal(directory)
        assert (manifest.contract_version, manifest.cluster, manifest.ds) == (1, "prod", DS)
        assert manifest.first_captured_at == datetime(2026, 11, 16, tzinfo=UTC)
        assert manifest.last_captured_at == datetime(2026, 11, 16, 23, 59, 59, 999_999, tzinfo=UTC)
        assert [(file.path, file.kind, file.line_count, file.error_count) for file in manifest.files] == [
            ("consumer_connections.jsonl", "consumer_connection", 1, 0),
            ("nameserver_routes.jsonl", "nameserver_route", 2, 1),
            ("nameserver_topic_lists.jsonl", "nameserver_topic_list", 1, 0),
            (OFFSETS, "offset_file", None, None),
            ("offset_files_index.jsonl", "offset_file", 1, 0),
        ]
        for file in manifest.files:
            content = (directory / file.path).read_bytes()
            assert (file.size_bytes, file.sha256) == (len(content), sha256(content).hexdigest())
        assert [file.path for file in manifest.envelope_files] == sorted(
            path.name for path in directory.glob("*.jsonl")
        )

    def test_the_manifest_can_be_read_back_and_its_hash_is_that_of_its_bytes(self, directory: Path) -> None:
        manifest = seal(directory)
        assert load_manifest(directory) == verify(directory, cluster="prod", ds=DS) == manifest
        assert manifest.sha256 == sha256((directory / MANIFEST_NAME).read_bytes()).hexdigest()

    def test_the_same_files_give_the_same_bytes(self, directory: Path, tmp_path: Path) -> None:
        copy = tmp_path / "elsewhere" / "2026-11-16"
        shutil.copytree(directory, copy)
        first = seal(directory)
        written = (directory / MANIFEST_NAME).stat()
        assert seal(copy) == seal(directory) == first
        assert (copy / MANIFEST_NAME).read_bytes() == (directory / MANIFEST_NAME).read_bytes()
        assert (directory / MANIFEST_NAME).stat().st_mtime_ns == written.st_mtime_ns

    def test_a_changed_directory_is_sealed_again_only_if_asked(self, directory: Path) -> None:
        first = seal(directory)
        append(directory, envelope("nameserver_route", topic="new"))
        problems = refused(seal, directory)
        assert "already there and says otherwise" in problems[0]
        assert problems[1].startswith("nameserver_routes.jsonl has ")
        assert load_manifest(directory) == first
        assert seal(directory, replace=True) == verify(directory) != first

    def test_a_broken_manifest_is_replaced_only_if_asked(self, directory: Path) -> None:
        (directory / MANIFEST_NAME).write_text("{")
        assert "manifest.json: not JSON; it may be cut" in refused(seal, directory)[1]
        assert seal(directory, replace=True) == verify(directory)

    @pytest.mark.parametrize("payload", ["", "{", "\u0000", '{"a":', "[" * 1000, "\ud800"])
    def test_the_content_of_payloads_is_not_validated(self, directory: Path, payload: str) -> None:
        append(directory, envelope("nameserver_route", payload=payload))
        assert seal(directory) == verify(directory)

    def test_accepts_any_cluster_name_that_is_valid_for_a_folder(self, directory: Path) -> None:
        for file in directory.glob("*.jsonl"):
            file.write_text(file.read_text().replace('"prod"', json.dumps("集群 '; drop")))
        assert seal(directory).cluster == verify(directory).cluster == "集群 '; drop"

    def test_unknown_files_are_attachments(self, directory: Path) -> None:
        (directory / "mqadmin").mkdir()
        (directory / "mqadmin" / "clusterList.txt").write_text("#Cluster Name")
        (directory / "notes\n\x1b[31m.jsonl").write_text('{"kind":"of my own"}\n')
        assert [file.path for file in seal(directory).attachments] == [
            "mqadmin/clusterList.txt",
            "notes\n\x1b[31m.jsonl",
        ]
        assert {file.kind for file in verify(directory).attachments} == {ATTACHMENT}

    def test_events_may_be_from_the_evening_before(self, directory: Path) -> None:
        event = {
            "kind": "event",
            "cluster": "prod",
            "at": "2026-11-15T23:00:00Z",
            "event": "broker-a stopped",
        }
        append(directory, event)
        assert seal(directory).first_captured_at == datetime(2026, 11, 16, tzinfo=UTC)

    def test_an_optional_file_may_be_empty_or_absent(self, directory: Path) -> None:
        (directory / "consume_stats.jsonl").touch()
        counts = {file.kind: file.line_count for file in seal(directory).envelope_files}
        assert counts["consume_stats"] == 0
        assert "consumer_running_info" not in counts

    def test_uses_the_given_day_if_the_folder_name_is_not_a_day(self, directory: Path) -> None:
        renamed = directory.rename(directory.with_name("capture"))
        assert "capture is not a day" in refused_unsealed(renamed)[0]
        assert seal(renamed, ds=DS, cluster="prod").ds == DS

    def test_memory_does_not_grow_with_the_lines(self, directory: Path) -> None:
        line = json.dumps(envelope("nameserver_route", payload="x" * 10_000)) + "\n"
        with (directory / "nameserver_routes.jsonl").open("a") as file:
            file.writelines(line for _ in range(2_000))
        tracemalloc.start()
        try:
            seal(directory)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 2_000_000


class TestRefusals:
    """Each fault is reported with its position, and leaves no manifest and no temporary file."""

    @pytest.mark.parametrize("name", ["nameserver_topic_lists", "nameserver_routes", "consumer_connections"])
    def test_a_required_file_that_is_missing_or_empty(self, directory: Path, name: str) -> None:
        (directory / f"{name}.jsonl").write_text("")
        assert refused_unsealed(directory)[0].startswith(f"{name}.jsonl is empty")
        (directory / f"{name}.jsonl").unlink()
        assert refused_unsealed(directory) == [f"{name}.jsonl is missing; no export is complete without it"]

    def test_a_line_of_another_day(self, directory: Path) -> None:
        append(directory, envelope("nameserver_route", captured_at="2026-11-17T00:00:00Z"))
        assert refused_unsealed(directory) == [
            (
                "nameserver_routes.jsonl line 3: captured_at is 2026-11-17T00:00:00.000000Z, "
                "which is not on 2026-11-16 UTC; move it to its own day"
            )
        ]

    def test_a_line_of_another_cluster(self, directory: Path) -> None:
        append(directory, envelope("nameserver_route", cluster="test"))
        assert refused_unsealed(directory) == [
            (
                "nameserver_routes.jsonl line 3: cluster is 'test', but consumer_connections.jsonl line 1 is of 'prod'; "
                "an export holds one cluster"
            )
        ]
        assert (
            "cluster is 'prod', but this export is of 'test'"
            in refused_unsealed(directory, cluster="test")[0]
        )

    def test_a_line_that_is_no_envelope(self, directory: Path) -> None:
        append(directory, envelope("nameserver_route", payload="{}", error={"type": "X", "message": ""}))
        with (directory / "nameserver_topic_lists.jsonl").open("ab") as file:
            file.write(b"\xff\n\n")
        assert refused_unsealed(directory) == [
            "nameserver_routes.jsonl line 3: 'payload' and 'error' are both there; a source either answers or fails",
            "nameserver_topic_lists.jsonl line 2: byte 1 is not UTF-8; write the file as UTF-8",
            "nameserver_topic_lists.jsonl line 3: the line is empty; remove it",
        ]

    def test_a_truncated_file(self, directory: Path) -> None:
        file = directory / "nameserver_routes.jsonl"
        file.write_bytes(file.read_bytes()[:-1])
        assert refused_unsealed(directory) == [
            "nameserver_routes.jsonl line 2: does not end with a line feed, so it may be cut; write it again"
        ]

    def test_a_line_that_is_too_long(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sealing, "Expected", partial(Expected, max_line_bytes=1000))
        append(directory, envelope("nameserver_route", payload="x" * 2000))
        assert refused_unsealed(directory) == [
            "nameserver_routes.jsonl line 3: longer than 1000 bytes; no source answers that much"
        ]

    def test_an_index_that_differs_from_the_files(self, directory: Path) -> None:
        add_offset_file(directory, "offset_files/a", b"abc", size=4)
        add_offset_file(directory, "offset_files/b", b"abc", sha256="0" * 64)
        add_offset_file(directory, "offset_files/c", b"abc")
        (directory / "offset_files" / "c").unlink()
        add_offset_file(directory, "offset_files/d", b"abc")
        add_offset_file(directory, "offset_files/d", b"abc")
        (directory / "offset_files" / "e").write_bytes(b"")
        (directory / "broker_files").mkdir()
        (directory / "broker_files" / "topics.json").write_bytes(b"{}")
        problems = refused_unsealed(directory)
        assert sorted(problems) == sorted(
            [
                "offset_files/a has 3 bytes, but offset_files_index.jsonl line 2 says 4",
                f"offset_files/b has SHA-256 {sha256(b'abc').hexdigest()}, but offset_files_index.jsonl line 3 says {'0' * 64}",
                "offset_files/c is named by offset_files_index.jsonl line 4, but is not there; collect it, or remove the line",
                "offset_files_index.jsonl line 6: 'offset_files/d' is already named by offset_files_index.jsonl line 5",
                "offset_files/e is in no line of offset_files_index.jsonl; add its line, or remove it",
                "broker_files/topics.json needs a line in broker_files_index.jsonl, which is not there",
            ]
        )

    def test_an_index_that_leads_out_of_the_directory(self, directory: Path) -> None:
        outside = directory.parent / "secret"
        outside.write_bytes(b"secret")
        append(
            directory,
            envelope(
                "offset_file",
                path="offset_files/../../secret",
                size=6,
                mtime="2026-11-01T00:00:00Z",
                sha256=sha256(b"secret").hexdigest(),
            ),
        )
        assert "without '.' or '..' on the way" in refused_unsealed(directory)[0]

    @pytest.mark.parametrize("target", ["file", "folder", "nowhere"])
    def test_a_symbolic_link(self, directory: Path, tmp_path: Path, target: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_bytes(b"{}")
        (directory / "link").symlink_to(tmp_path / target)
        assert refused_unsealed(directory) == ["link is a symbolic link; put the file itself there"]

    def test_an_indexed_file_that_is_a_symbolic_link(self, directory: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").write_bytes(b"{}")
        (directory / OFFSETS).unlink()
        (directory / OFFSETS).symlink_to(tmp_path / "outside")
        assert f"{OFFSETS} is a symbolic link; put the file itself there" in refused_unsealed(directory)

    @pytest.mark.timeout(30)
    def test_a_pipe_is_not_waited_for(self, directory: Path) -> None:
        os.mkfifo(directory / "consume_stats.jsonl")
        assert refused_unsealed(directory) == [
            "consume_stats.jsonl is neither a file nor a folder; remove it"
        ]

    def test_a_name_that_is_not_text(self, directory: Path) -> None:
        Path(os.fsdecode(os.fsencode(directory) + b"/a\xff")).touch()
        assert refused_unsealed(directory) == ["'a\\udcff' is not named in UTF-8; rename it"]

    @pytest.mark.parametrize(
        "name", ["nameserver_route.jsonl", "old/nameserver_routes.jsonl", "nameserver_routes.jsonl.1"]
    )
    def test_valid_lines_under_an_unknown_file_name(self, directory: Path, name: str) -> None:
        (directory / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(directory / "nameserver_routes.jsonl", directory / name)
        assert refused_unsealed(directory) == [
            f"{name} holds lines of kind 'nameserver_route'; only nameserver_routes.jsonl is read for them"
        ]

    def test_lines_of_another_kind(self, directory: Path) -> None:
        shutil.copyfile(directory / "nameserver_routes.jsonl", directory / "consume_stats.jsonl")
        assert (
            "kind is 'nameserver_route', but this file is for 'consume_stats'"
            in refused_unsealed(directory)[0]
        )

    def test_a_directory_whose_name_is_another_day(self, directory: Path) -> None:
        assert refused_unsealed(directory, ds=date(2026, 11, 17)) == [
            "2026-11-16 is the directory's name, but the day given is 2026-11-17; one of them is wrong"
        ]

    @pytest.mark.parametrize("action", [seal, verify])
    def test_a_path_that_is_not_a_directory(self, tmp_path: Path, action: Callable[..., object]) -> None:
        (tmp_path / "file").touch()
        for name in ("absent", "file"):
            assert "director" in refused(action, tmp_path / name)[0]

    def test_many_problems_are_cut_to_a_readable_number(self, directory: Path) -> None:
        for kind in (
            "nameserver_topic_list",
            "nameserver_route",
            "consumer_connection",
            "consume_stats",
            "broker_config",
        ):
            for _ in range(50):
                append(directory, envelope(kind, cluster="test"))
        problems = refused_unsealed(directory, cluster="prod")
        assert len(problems) == MAX_PROBLEM_COUNT
        # The problems of one file must not hide those of others.
        assert len({problem.split()[0] for problem in problems}) >= 4


class TestKilled:
    """An interrupted seal leaves a complete manifest or none."""

    def test_a_failing_disk_leaves_no_manifest(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        assert refused_unsealed(directory) == ["manifest.json cannot be written: No space left on device"]

    def test_a_process_that_dies_while_writing_leaves_no_manifest(self, directory: Path) -> None:
        program = (
            "import os, sys; from pathlib import Path; from rebalance_ledger.exports.sealing import seal\n"
            "os.fsync = lambda descriptor: os._exit(9)\n"
            "seal(Path(sys.argv[1]))"
        )
        ended = subprocess.run([sys.executable, "-c", program, str(directory)], cwd=ROOT, check=False)
        assert ended.returncode == 9
        assert not (directory / MANIFEST_NAME).exists()
        assert "there is no manifest.json" in refused(verify, directory)[0]
        # Files that the dead process left are not part of the export.
        assert seal(directory) == verify(directory)


class TestVerify:
    @pytest.fixture
    def sealed(self, directory: Path) -> Path:
        seal(directory)
        return directory

    def test_an_export_of_another_cluster_or_day_than_expected(self, sealed: Path) -> None:
        assert refused(verify, sealed, cluster="test") == [
            "manifest.json: cluster is 'prod', but 'test' is wanted"
        ]
        assert refused(verify, sealed, ds=date(2026, 11, 17)) == [
            "manifest.json: ds is 2026-11-16, but 2026-11-17 is wanted"
        ]

    def test_a_file_truncated_at_a_line(self, sealed: Path) -> None:
        file = sealed / "nameserver_routes.jsonl"
        whole = file.read_bytes()
        file.write_bytes(whole[: whole.index(b"\n") + 1])
        assert refused(verify, sealed) == [
            f"nameserver_routes.jsonl has {file.stat().st_size} bytes, but {len(whole)} were sealed; copy the export again"
        ]

    @pytest.mark.parametrize("name", ["nameserver_routes.jsonl", OFFSETS])
    def test_one_changed_byte(self, sealed: Path, name: str) -> None:
        file = sealed / name
        content = bytearray(file.read_bytes())
        content[0] ^= 1
        file.write_bytes(content)
        assert refused(verify, sealed) == [
            f"{name} has other bytes than were sealed (SHA-256 differs); copy the export again"
        ]

    def test_a_missing_file(self, sealed: Path) -> None:
        (sealed / OFFSETS).unlink()
        (sealed / "nameserver_routes.jsonl").unlink()
        assert refused(verify, sealed) == [
            "nameserver_routes.jsonl is in manifest.json, but not in the directory; copy the export again",
            f"{OFFSETS} is in manifest.json, but not in the directory; copy the export again",
        ]

    @pytest.mark.parametrize("name", ["notes.txt", "consume_stats.jsonl", "new/file"])
    def test_an_additional_file(self, sealed: Path, name: str) -> None:
        (sealed / name).parent.mkdir(exist_ok=True)
        (sealed / name).touch()
        assert refused(verify, sealed) == [
            f"{name} is not in manifest.json; a sealed export does not change, so remove it"
        ]

    def test_a_file_replaced_by_a_link(self, sealed: Path) -> None:
        (sealed / OFFSETS).rename(sealed.parent / "moved")
        (sealed / OFFSETS).symlink_to(sealed.parent / "moved")
        assert refused(verify, sealed)

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (
                {"contract_version": 2},
                "contract version 2 is not known to this release, which reads 1; read the export with a release",
            ),
            ({"contract_version": 10**400}, "'contract_version' is not a whole number"),
            ({"contract_version": "1"}, "'contract_version' is not a whole number"),
            ({"cluster": "a/b"}, "cannot be the name of a folder"),
            ({"cluster": "test"}, "cluster is 'prod', but this export is of 'test'"),
            ({"ds": "2026-11-17"}, "which is not on 2026-11-17 UTC"),
            ({"ds": "20261116"}, "'ds' is not a day"),
            (
                {"first_captured_at": "2026-11-16T00:00:00.000001Z"},
                "the capture times are not those of the lines",
            ),
            ({"last_captured_at": "yesterday"}, "'last_captured_at' is not an instant"),
            ({"files": {}}, "'files' is not a list"),
            ({"files": [1]}, "an object is expected"),
            ({"files": []}, "is not in manifest.json"),
        ],
    )
    def test_an_edited_manifest(self, sealed: Path, change: dict[str, object], problem: str) -> None:
        file = sealed / MANIFEST_NAME
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        assert problem in refused(verify, sealed)[0]

    def test_a_manifest_that_names_a_file_or_a_field_twice(self, sealed: Path) -> None:
        file = sealed / MANIFEST_NAME
        whole = json.loads(file.read_text())
        path = whole["files"][0]["path"]
        for second in (whole["files"][0], whole["files"][0] | {"sha256": "0" * 64}):
            file.write_text(json.dumps(whole | {"files": [*whole["files"], second]}))
            [problem] = refused(verify, sealed)
            assert problem.startswith(f"manifest.json: 'files' names {path} twice; ")
        for text in (
            json.dumps(whole).replace('"files": ', '"files": [], "files": ', 1),
            json.dumps(whole).replace('"sha256": ', '"sha256": "", "sha256": ', 1),
        ):
            file.write_text(text)
            assert "duplicate key" in refused(verify, sealed)[0]

    @pytest.mark.parametrize(
        ("field", "value"),
        [("line_count", 3), ("error_count", 0), ("kind", "consume_stats"), ("line_count", None)],
    )
    def test_a_manifest_with_wrong_counts(self, sealed: Path, field: str, value: object) -> None:
        file = sealed / MANIFEST_NAME
        document = json.loads(file.read_text())
        document["files"][1][field] = value
        file.write_text(json.dumps(document))
        assert refused(verify, sealed) == [
            "nameserver_routes.jsonl is described wrongly in manifest.json (kind, line or error count); seal the directory again"
        ]

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"[" * 100_000, b"9" * 5000])
    def test_an_invalid_manifest(self, sealed: Path, content: bytes) -> None:
        (sealed / MANIFEST_NAME).write_bytes(content)
        assert refused(load_manifest, sealed)[0].startswith("manifest.json: ")

    def test_a_handwritten_manifest_for_malformed_lines(self, directory: Path) -> None:
        append(directory, envelope("nameserver_route"))
        seal(directory)
        file = directory / "nameserver_routes.jsonl"
        content = file.read_bytes().replace(b'"payload": "{}"', b'"payload": {"a"}', 1)
        document = json.loads((directory / MANIFEST_NAME).read_text())
        document["files"][1] |= {"size_bytes": len(content), "sha256": sha256(content).hexdigest()}
        file.write_bytes(content)
        (directory / MANIFEST_NAME).write_text(json.dumps(document))
        assert "nameserver_routes.jsonl line 1: not JSON" in refused(verify, directory)[0]


class TestDirectories:
    def test_an_export_lies_under_its_cluster_and_day(self, directory: Path) -> None:
        assert export_directory(directory.parent.parent, "prod", DS) == directory

    @pytest.mark.parametrize("cluster", ["..", "a/../b", "/etc", ""])
    def test_no_cluster_name_leads_out_of_the_exports(self, tmp_path: Path, cluster: str) -> None:
        assert refused(export_directory, tmp_path, cluster, DS)[0].startswith("the cluster's name ")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_the_samples_are_valid_exports(sample: Path) -> None:
    manifest = verify(sample, cluster=sample.parent.name, ds=date.fromisoformat(sample.name))
    assert manifest.attachments == ()
    assert manifest == seal(sample)


def test_the_samples_contain_the_errors_of_their_sources() -> None:
    last = load_manifest(SAMPLES[-1])
    error_counts = {file.kind: file.error_count for file in last.envelope_files}
    assert error_counts["consumer_connection"] == 18
    assert error_counts["nameserver_route"] == 2


class TestUnchanged:
    """A check that a sealed export did not change while it was used."""

    def test_unchanged_bytes_are_no_change(self, directory: Path) -> None:
        manifest = seal(directory)
        (directory / OFFSETS).write_bytes(b"{}")

        check_unchanged(directory, manifest)

    @pytest.mark.parametrize("path", [OFFSETS, "nameserver_routes.jsonl"])
    def test_a_file_with_other_bytes_is_named(self, directory: Path, path: str) -> None:
        manifest = seal(directory)
        content = bytearray((directory / path).read_bytes())
        content[0] ^= 1
        (directory / path).write_bytes(content)

        assert refused(check_unchanged, directory, manifest) == [
            f"{path} has other bytes than were sealed (SHA-256 differs); copy the export again"
        ]

    def test_a_missing_file_is_named(self, directory: Path) -> None:
        manifest = seal(directory)
        (directory / OFFSETS).unlink()

        assert refused(check_unchanged, directory, manifest) == [
            f"{OFFSETS} cannot be read: No such file or directory"
        ]

    def test_another_export_of_the_day_is_a_change(self, directory: Path) -> None:
        manifest = seal(directory)
        append(directory, envelope("nameserver_route"))
        seal(directory, replace=True)

        with pytest.raises(ExportError, match="landed again while it was read"):
            check_unchanged(directory, manifest)


def test_a_manifest_of_another_cluster_or_day_is_refused(directory: Path) -> None:
    seal(directory)

    assert refused(load_manifest, directory, cluster="dev", ds=date(2026, 11, 17)) == [
        "manifest.json: cluster is 'prod', but 'dev' is wanted",
        "manifest.json: ds is 2026-11-16, but 2026-11-17 is wanted",
    ]
