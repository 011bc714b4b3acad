"""Pinned jars: what a pin file says, and that nothing else is ever put onto a class path."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from setup import maven_jars
from setup.maven_jars import Pins
from setup.steps import SetUpError

if TYPE_CHECKING:
    from pathlib import Path

ONE = hashlib.sha256(b"one").hexdigest()
TWO = hashlib.sha256(b"two").hexdigest()


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pins:
    monkeypatch.setattr(maven_jars, "FOLDER", tmp_path / "maven")
    file = tmp_path / "jars.txt"
    file.write_text(
        f"# what they are for\n4.0 org.a one 1 {ONE}\n5.0 org.a one 1 {ONE}\n5.0 org.b two 2.0 {TWO}\n"
    )
    return Pins(file)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    monkeypatch.setenv("LEDGER_JARS_DIR", str(folder))
    return folder


def test_a_class_path_is_one_set_in_the_order_of_the_file(pins: Pins, tmp_path: Path) -> None:
    folder = tmp_path / "maven"
    assert pins.class_path("5.0") == [folder / "org.a" / "one-1.jar", folder / "org.b" / "two-2.0.jar"]
    assert pins.class_path("4.0") == [folder / "org.a" / "one-1.jar"]


def test_an_unknown_set_and_a_malformed_line_are_reported_in_one_sentence(pins: Pins) -> None:
    with pytest.raises(SetUpError, match=r"jars\.txt pins no jars of 6\.0\.$"):
        pins.class_path("6.0")
    pins.file.write_text("# comment\n5.0 org.a one 1\n")
    with pytest.raises(SetUpError, match=r"jars\.txt, line 2 is not a pin"):
        pins.jars()


def test_given_jars_are_taken_and_nothing_is_fetched(pins: Pins, given: Path, tmp_path: Path) -> None:
    (given / "one-1.jar").write_bytes(b"one")
    (given / "org.b").mkdir()
    (given / "org.b" / "two-2.0.jar").write_bytes(b"two")
    pins.ensure(tmp_path / "no-java")
    assert [path.read_bytes() for path in pins.class_path("5.0")] == [b"one", b"two"]


def test_a_damaged_existing_copy_is_replaced(pins: Pins, given: Path, tmp_path: Path) -> None:
    (given / "one-1.jar").write_bytes(b"one")
    (damaged,) = pins.class_path("4.0")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"cut sh")
    pins.ensure(tmp_path / "no-java", "4.0")
    assert damaged.read_bytes() == b"one"


def test_complete_jars_are_not_downloaded_again(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = _stand_in_for_ivy(monkeypatch, {"one": b"one", "two": b"two"})
    pins.ensure(tmp_path, "4.0")
    pins.ensure(tmp_path)
    pins.ensure(tmp_path)
    assert asked == [["one"], ["two"]]


def test_jars_downloaded_before_a_failure_are_kept_and_only_the_others_are_retried(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = _stand_in_for_ivy(monkeypatch, {"one": b"one"})
    with pytest.raises(SetUpError, match="not found"):
        pins.ensure(tmp_path)
    assert asked[1:] == [["two"], ["two"]]


def test_another_content_than_the_pinned_is_never_kept(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stand_in_for_ivy(monkeypatch, {"one": b"one", "two": b"tampered"})
    with pytest.raises(
        SetUpError, match=r"two-2\.0\.jar, did not come with the SHA-256 that .*jars\.txt pins"
    ):
        pins.ensure(tmp_path)
    assert [path.name for path in (tmp_path / "maven").glob("*/*")] == ["one-1.jar"]


def test_pinning_a_set_anew_keeps_the_other_sets_and_the_comments(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stand_in_for_ivy(monkeypatch, {"two": b"two, again"})
    pins.write("5.0", ["org.b:two:2.1"], tmp_path)
    again = hashlib.sha256(b"two, again").hexdigest()
    assert pins.file.read_text() == f"# what they are for\n4.0 org.a one 1 {ONE}\n5.0 org.b two 2.1 {again}\n"


def _stand_in_for_ivy(monkeypatch: pytest.MonkeyPatch, has: dict[str, bytes]) -> list[list[str]]:
    """Maven Central with these artifacts; the list that is returned fills with what is asked of it."""
    asked: list[list[str]] = []

    def run(wanted: object, folder: Path, _java_home: Path, *, with_dependencies: bool) -> None:
        artifacts = sorted({(organisation, name, revision) for _, organisation, name, revision in wanted})  # type: ignore[attr-defined]
        asked.append([name for _, name, _ in artifacts])
        for organisation, name, revision in artifacts:
            if name in has:
                path = folder / "jars" / organisation / f"{name}__{revision}__.jar"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(has[name])
        if any(name not in has for _, name, _ in artifacts):
            raise SetUpError("not found")

    monkeypatch.setattr(maven_jars, "_run_ivy", run)
    return asked
