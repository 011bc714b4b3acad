"""Secrets are removed from directories before sealing, and atomically from exports that an older release sealed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app
from rebalance_ledger.exports.landing import land
from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, load_manifest
from rebalance_ledger.exports.redact_sealed import redact_sealed
from rebalance_ledger.exports.redaction import POLICY_VERSION, REDACTED
from rebalance_ledger.exports.sealing import seal, verify
from rebalance_ledger.exports.writer import partial_folder
from rebalance_ledger.storage.location import ObjectPath

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = "hunter2-hunter2"
CAPTURED = {"cluster": "prod", "captured_at": "2026-11-16T12:00:00Z"}
BROKER = {"broker": "broker-a", "broker_addr": "10.0.0.1:10911"}
SETTINGS = f'brokerName=broker-a\ninitAuthenticationUser={{"username":"admin","password":"{PLANTED}"}}\nstorePath=/{PLANTED}\n'
ACL = f"accounts:\n- accessKey: a\n  secretKey: {PLANTED}\n".encode()
TOPICS = b'{"topicConfigTable":{"token":{"perm":6}}}'


def collected(directory: Path, *, secret: str = PLANTED) -> Path:
    """Return an unsealed directory with secrets, as a collector without redaction would write it."""
    (directory / "broker_files" / "broker-a").mkdir(parents=True)
    (directory / "offset_files" / "host-1").mkdir(parents=True)
    lines_by_kind: dict[str, list[dict[str, object]]] = {
        "nameserver_topic_list": [{"nameserver": "ns:1", "payload": '{"topicList":["token"]}'}],
        "nameserver_route": [{"nameserver": "ns:1", "topic": "token", "error": {"type": "E", "message": f"secretKey={secret}"}}],
        "consumer_connection": [{**BROKER, "group": "password-reset", "payload": "{}"}],
        "broker_config": [{**BROKER, "payload": SETTINGS.replace(PLANTED, secret)}],
        "consumer_running_info": [
            {"group": "g", "client_id": "c", "payload": f'{{"properties":{{"accessKey":"{secret}","consumerGroup":"g"}}}}'}
        ],
    }  # fmt: skip
    files = {
        "broker_file": (
            "broker_files/broker-a/plain_acl.yml",
            ACL.replace(PLANTED.encode(), secret.encode()),
        ),
        "offset_file": ("offset_files/host-1/offsets.json", b'{"offsetTable":{}}'),
    }
    for kind, (path, content) in files.items():
        (directory / path).write_bytes(content)
        lines_by_kind[kind] = [
            {
                **({"broker": "broker-a"} if kind == "broker_file" else {"moment": 0, "host": "h", "client_id": "c", "group": "g"}),
                "path": path,
                "size": len(content),
                "mtime": "2026-11-15T00:00:00Z",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ]  # fmt: skip
    (directory / "broker_files" / "broker-a" / "topics.json").write_bytes(TOPICS)
    lines_by_kind["broker_file"].append(
        {
            "broker": "broker-a",
            "path": "broker_files/broker-a/topics.json",
            "size": len(TOPICS),
            "mtime": "2026-11-15T00:00:00Z",
            "sha256": hashlib.sha256(TOPICS).hexdigest(),
        }
    )
    names = {"broker_file": "broker_files_index", "offset_file": "offset_files_index"}
    for kind, lines in lines_by_kind.items():
        text = "".join(json.dumps({"kind": kind, **CAPTURED, **line}) + "\n" for line in lines)
        (directory / f"{names.get(kind, f'{kind}s')}.jsonl").write_text(text)
    (directory / "notes.txt").write_text(f"password: {secret}\nrestarted broker-a\n")
    return directory


def sealed_before(directory: Path, *, secret: str = PLANTED) -> Path:
    """Return an export with secrets, sealed as by a release without redaction."""
    seal(collected(directory, secret=secret), is_redacted=True)
    manifest = json.loads((directory / MANIFEST_NAME).read_text())
    del manifest["redaction"]
    (directory / MANIFEST_NAME).write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
    return directory


def has_secret(folder: Path) -> bool:
    return any(PLANTED.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def payload(directory: Path, file_name: str) -> str:
    return str(json.loads((directory / file_name).read_text().splitlines()[0])["payload"])


def test_a_seal_redacts_and_reports_it(tmp_path: Path) -> None:
    directory = collected(tmp_path / "2026-11-16")
    manifest = seal(directory)
    assert not has_secret(tmp_path)
    assert manifest.redaction is not None
    assert manifest.redaction.policy_version == POLICY_VERSION
    assert manifest.redaction.replaces_sha256 is None
    assert manifest.redaction.value_counts == {
        "broker_configs.jsonl": 2,
        "broker_files/broker-a/plain_acl.yml": 1,
        "consumer_running_infos.jsonl": 1,
        "nameserver_routes.jsonl": 1,
        "notes.txt": 1,
    }
    assert payload(directory, "broker_configs.jsonl") == (
        f"brokerName=broker-a\ninitAuthenticationUser={REDACTED}\nstorePath={REDACTED}\n"
    )
    assert (directory / "broker_files/broker-a/topics.json").read_bytes() == TOPICS
    assert verify(directory) == manifest
    assert load_manifest(directory) == manifest


def test_sealing_again_changes_nothing(tmp_path: Path) -> None:
    directory = collected(tmp_path / "2026-11-16")
    first = seal(directory)
    content = (directory / MANIFEST_NAME).read_bytes()
    assert seal(directory) == first
    assert (directory / MANIFEST_NAME).read_bytes() == content


def test_a_clean_export_of_an_earlier_release_is_unchanged(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "2026-11-16", secret="")
    seal(
        directory, replace=True
    )  # Redaction rules for notes and files without values may differ between releases.
    manifest = json.loads((directory / MANIFEST_NAME).read_text())
    del manifest["redaction"]
    (directory / MANIFEST_NAME).write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
    content = (directory / MANIFEST_NAME).read_bytes()
    assert seal(directory).redaction is None
    assert verify(directory).redaction is None
    assert (directory / MANIFEST_NAME).read_bytes() == content


def test_a_sealed_export_with_secrets_does_not_land_in_an_object_store(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "2026-11-16")
    with pytest.raises(ExportError, match="ledger exports redact"):
        land(directory, ObjectPath.of("s3a://bucket/exports"))


def test_a_sealed_export_with_secrets_is_redacted_only_on_request(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "2026-11-16")
    with pytest.raises(ExportError, match="ledger exports redact"):
        seal(directory)
    old = verify(directory)
    new_manifest = seal(directory, replace=True)
    assert new_manifest.redaction is not None
    assert new_manifest.redaction.replaces_sha256 == old.sha256
    assert not has_secret(tmp_path)


def test_the_command_counts_before_it_redacts_and_never_shows_a_value(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "prod" / "2026-11-16")
    old = verify(directory)
    command = ["exports", "redact", "--exports", str(tmp_path), "--cluster", "prod"]

    counted = CliRunner().invoke(app, [*command, "--all"])
    assert counted.exit_code == 0
    assert "6 values would be redacted in broker_configs.jsonl (2), " in counted.output
    assert verify(directory) == old

    done = CliRunner().invoke(app, [*command, "--ds", "2026-11-16", "--apply"])
    assert done.exit_code == 0
    assert "6 values redacted" in done.output
    assert PLANTED not in counted.output + done.output
    new = verify(directory)
    assert new.redaction is not None
    assert new.redaction.replaces_sha256 == old.sha256
    assert (new.first_captured_at, new.last_captured_at) == (old.first_captured_at, old.last_captured_at)
    assert [file.line_count for file in new.files] == [file.line_count for file in old.files]
    assert not has_secret(tmp_path)
    assert [path.name for path in (tmp_path / "prod").iterdir()] == ["2026-11-16"]

    again = CliRunner().invoke(app, [*command, "--all", "--apply"])
    assert "has nothing to redact" in again.output
    assert verify(directory) == new


def test_one_damaged_day_does_not_prevent_the_redaction_of_others(tmp_path: Path) -> None:
    damaged = sealed_before(tmp_path / "prod" / "2026-11-16")
    (damaged / "notes.txt").write_text("other")
    other = tmp_path / "prod" / "2026-11-17"
    sealed_before(tmp_path / "2026-11-16").rename(other)
    for path in [*other.glob("*.jsonl"), other / MANIFEST_NAME]:
        path.write_text(path.read_text().replace("2026-11-16", "2026-11-17"))
    (other / MANIFEST_NAME).unlink()
    seal(other, is_redacted=True)
    command = ["exports", "redact", "--exports", str(tmp_path), "--cluster", "prod", "--all", "--apply"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert isinstance(done.exception, ExportError)
    assert "2026-11-16" in str(done.exception)
    assert not has_secret(other)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--exports", "s3a://bucket/exports", "--all"], "object store"),
        (["--exports", "x"], "either --ds"),
        (["--exports", "x", "--all", "--ds", "2026-11-16"], "either --ds"),
    ],
)
def test_what_cannot_be_redacted_is_refused(options: list[str], sentence: str) -> None:
    refused = CliRunner().invoke(app, ["exports", "redact", "--cluster", "prod", *options])
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.output.split())


def test_a_kill_at_any_time_leaves_the_old_or_the_new_export(tmp_path: Path) -> None:
    states: list[str] = []
    for killed_at in range(10_000):
        exports = tmp_path / str(killed_at)
        directory = sealed_before(exports / "prod" / "2026-11-16")
        old = verify(directory).sha256
        is_killed = killed_in_child(directory, killed_at)
        manifest = verify(directory)
        assert (manifest.sha256 == old) is has_secret(directory)
        states.append("old" if manifest.sha256 == old else "new")
        redact_sealed(directory, is_applied=True)
        assert not has_secret(exports)
        assert [path.name for path in (exports / "prod").iterdir()] == ["2026-11-16"]
        if not is_killed:
            break
    assert states[0] == "old"
    assert states[-2:] == ["new", "new"]
    assert states == sorted(states, reverse=True)


def killed_in_child(directory: Path, event_count: int) -> bool:
    """Redact in a process that is killed after this number of changes; return whether it was killed."""
    child = os.fork()
    if child == 0:
        remaining = event_count

        def kill(event: str, args: tuple[Any, ...]) -> None:
            nonlocal remaining
            is_writing = event == "open" and bool(args[2] & (os.O_WRONLY | os.O_RDWR))
            if is_writing or event.startswith(("os.", "shutil.rmtree", "ctypes.call", "ctypes.dlsym")):
                remaining -= 1
                if remaining < 0:
                    signal.raise_signal(signal.SIGKILL)

        sys.addaudithook(kill)
        redact_sealed(directory, is_applied=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
    return os.WIFSIGNALED(status)


def test_an_export_that_is_being_written_is_not_redacted(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "prod" / "2026-11-16")
    other = directory.rename(tmp_path / "prod" / "elsewhere")
    manifest = load_manifest(other)
    with partial_folder(directory):
        other.rename(directory)
        with pytest.raises(ExportError, match="being written"):
            redact_sealed(directory, is_applied=True)
        assert verify(directory) == manifest


def test_files_of_an_export_are_not_readable_by_every_user(tmp_path: Path) -> None:
    directory = sealed_before(tmp_path / "prod" / "2026-11-16")
    redact_sealed(directory, is_applied=True)
    for name in (MANIFEST_NAME, "broker_configs.jsonl", "notes.txt"):
        assert (directory / name).stat().st_mode & 0o007 == 0
