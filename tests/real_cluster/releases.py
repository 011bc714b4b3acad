"""The releases of RocketMQ that a test is repeated on.

Belongs here: the selection, and the mark of the repetitions that continuous integration leaves to `make e2e`. Does not
belong here: the releases that can be started (`java_program.VERSIONS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from .java_program import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest.mark import ParameterSet

IN_CI: Final = "5.3.3"
"""The release of the real clusters that continuous integration starts."""


def each_release(versions: Sequence[str] = VERSIONS) -> list[ParameterSet]:
    """Return the releases as parameters; all except `IN_CI` are marked `every_release`."""
    return [
        pytest.param(version, marks=[] if version == IN_CI else pytest.mark.every_release)
        for version in versions
    ]
