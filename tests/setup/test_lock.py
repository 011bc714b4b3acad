"""What may be installed: exactly what the lock files name, by hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from setup import python_environment
from setup.python_environment import BOOTSTRAP, LOCK
from setup.steps import SetUpError

if TYPE_CHECKING:
    from pathlib import Path

_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[a-z0-9,_-]+\])?==(?P<version>[^\s;\\]+)")


def _requirements(lock: Path) -> list[str]:
    """Return each requirement with what belongs to it, on one line."""
    text = re.sub(r"\\\n", " ", lock.read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("lock", [LOCK, BOOTSTRAP], ids=lambda path: path.name)
def test_each_requirement_has_one_version_and_a_hash_for_each_of_its_files(lock: Path) -> None:
    requirements = _requirements(lock)

    assert requirements
    for requirement in requirements:
        assert _REQUIREMENT.match(requirement), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", requirement), requirement
        # An address would take a package from elsewhere, whatever registry the machine is set up with.
        assert "://" not in requirement
        assert " @ " not in requirement


def test_a_package_that_is_not_the_one_that_was_locked_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (locked,) = (line for line in _requirements(LOCK) if line.startswith("typing-extensions=="))
    forged = tmp_path / "lock.txt"
    forged.write_text(
        re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", locked.partition(";")[0].split("#")[0])
    )
    monkeypatch.setattr(python_environment, "LOCK", forged)
    monkeypatch.setattr(python_environment, "VENV", tmp_path / "venv")

    with pytest.raises(SetUpError, match=r"Expected:\s+sha256:0{64}"):
        python_environment._sync()  # the very command of set-up

    assert not list((tmp_path / "venv").rglob("typing_extensions*"))
