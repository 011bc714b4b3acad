"""What set-up finds on the machine: Java, the rights to install it, and Delta's jars."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from setup import delta_jars, java, python_environment, system_packages
from setup.steps import SetUpError

if TYPE_CHECKING:
    from pathlib import Path


def a_java(home: Path, banner: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Da=b' >&2\necho '{banner}' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def no_other_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_DISTRIBUTION_FOLDER", tmp_path / "jvm")


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_412"', 8),
        ("Unrecognized option", None),
    ],
)
def test_javas_version_is_what_it_says(tmp_path: Path, banner: str, version: int | None) -> None:
    assert java.major_version(a_java(tmp_path / "jdk", banner)) == version


@pytest.mark.usefixtures("no_other_java")
def test_a_java_that_spark_cannot_use_is_passed_over_for_one_that_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", 'java version "11.0.2"')))
    usable = a_java(tmp_path / "jvm" / "java-21", 'openjdk version "21.0.1"')
    assert java.find() == usable


@pytest.mark.usefixtures("no_other_java")
def test_without_java_and_without_rights_the_message_is_the_command_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system_packages, "_root_prefix", lambda: None)
    monkeypatch.setattr(
        system_packages.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "apt-get" else None
    )
    with pytest.raises(SetUpError, match=r"Type: sudo apt-get install .*openjdk-17-jre-headless"):
        java.ensure()


def test_another_python_is_refused_with_the_way_to_name_the_right_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_environment.sys, "version_info", (3, 12, 1))
    with pytest.raises(SetUpError, match=r"Python 3\.11 is needed.*PYTHON="):
        python_environment.check_interpreter()


class TestGivenJars:
    """A folder of jars given by the user stands in for the network."""

    @pytest.fixture
    def given(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        pinned = delta_jars.Jar("delta-x", "1", hashlib.sha256(b"jar").hexdigest())
        monkeypatch.setattr(delta_jars, "PINNED", (pinned,))
        monkeypatch.setattr(delta_jars, "JARS", tmp_path / "jars")
        folder = tmp_path / "given"
        folder.mkdir()
        monkeypatch.setenv("LEDGER_JARS_DIR", str(folder))
        return folder

    def test_it_is_taken(self, given: Path, tmp_path: Path) -> None:
        (given / "delta-x-1.jar").write_bytes(b"jar")
        delta_jars.step(tmp_path / "no-java").run()
        assert [path.name for path in (tmp_path / "jars").iterdir()] == ["delta-x-1.jar"]

    def test_another_content_is_refused(self, given: Path, tmp_path: Path) -> None:
        (given / "delta-x-1.jar").write_bytes(b"tampered")
        with pytest.raises(SetUpError, match=r"no delta-x-1\.jar with SHA-256"):
            delta_jars.step(tmp_path / "no-java").run()
        assert list((tmp_path / "jars").iterdir()) == []

    def test_a_damaged_copy_in_place_is_replaced(self, given: Path, tmp_path: Path) -> None:
        (given / "delta-x-1.jar").write_bytes(b"jar")
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "delta-x-1.jar").write_bytes(b"cut sh")
        delta_jars.step(tmp_path / "no-java").run()
        assert (tmp_path / "jars" / "delta-x-1.jar").read_bytes() == b"jar"
