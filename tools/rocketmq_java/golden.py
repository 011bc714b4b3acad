"""The golden files in `tests/golden`: their inputs do not change, and RocketMQ's classes compute the expected results.

Belongs here: reading and writing the files, and grouping the answers of the releases.
Does not belong here: comparing anything with them (see `tests/strategies`).
"""

from __future__ import annotations

import gzip
import io
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from setup.steps import ROOT
from tools.rocketmq_java.gateway import VERSIONS, RocketMQ, running

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDER: Final = ROOT / "tests" / "golden"

FAMILIES: Final = {
    "allocate": VERSIONS,
    "hash": VERSIONS,
    "offsets_file": VERSIONS,
    "pop": ("5.3.3", "5.5.0"),
    "producer_select": VERSIONS,
    "queues_from_route": ("4.9.7", "5.3.3", "5.5.0"),
    "rebalance": VERSIONS,
}
"""Family -> the releases whose results its file contains."""


def read(family: str) -> list[dict[str, Any]]:
    """Read the cases of a golden file."""
    with gzip.open(FOLDER / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def as_text(cases: Iterable[dict[str, Any]]) -> str:
    """Return the content of a golden file: one case per line, ASCII only."""
    return "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)


def answered(
    family: str, cases: Sequence[dict[str, Any]], releases: Iterable[RocketMQ]
) -> list[dict[str, Any]]:
    """Return the cases with the results of each release as `expect`. Releases with equal results share one element."""
    expected: list[list[dict[str, Any]]] = [[] for _ in cases]
    for release in releases:
        for answers, answer in zip(expected, release.answer(family, cases), strict=True):
            if answer is None:
                continue
            same = next(
                (known for known in answers if known == {"versions": known["versions"], **answer}), None
            )
            if same is None:
                answers.append({"versions": [release.version], **answer})
            else:
                same["versions"].append(release.version)
    return [case | {"expect": answers} for case, answers in zip(cases, expected, strict=True)]


def write(added: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Rewrite every golden file.

    Args:
        added: Family -> cases without `expect` to append to those of the file.

    Returns:
        Family -> the new number of cases in its file.

    Raises:
        SetUpError: The Java classes cannot be run.
    """
    counts = {}
    with ExitStack() as stack:
        releases = [stack.enter_context(running(version)) for version in VERSIONS]
        for family, versions in FAMILIES.items():
            asked = [release for release in releases if release.version in versions]
            cases = answered(family, [*read(family), *added.get(family, [])], asked)
            (FOLDER / f"{family}.jsonl.gz").write_bytes(_zipped(as_text(cases)))
            counts[family] = len(cases)
    return counts


def _zipped(text: str) -> bytes:
    """Compress a text without a name or a time, so that equal contents give equal files."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode("ascii"))
    return buffer.getvalue()
