"""Output of mqadmin, brokers and the admin API of three releases; see `tests/data/offline/README.md`."""

from __future__ import annotations

import atexit
import gzip
import json
import re
import shutil
import tarfile
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

_DATA = Path(__file__).resolve().parents[1] / "data" / "offline"
RELEASES = ("4.9.7", "5.3.3", "5.5.0")
DS = date(2026, 11, 21)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)

LONG_TOPICS = tuple(
    f"a-topic-whose-name-has-more-characters-than-mqadmin-shows-in-its-tables-{number}" for number in (1, 2)
)
LONG_BROKER = "sh@broker-b-whose-name-has-more-than-32-characters"
HOSTILE_ID = "10.1.0.52@$(touch x); '<b>\""


@cache
def capture(release: str) -> Path:
    """Return a folder with the capture of a release, extracted once and removed at exit; file names are those of the cluster."""
    folder = Path(mkdtemp(prefix=f"offline-{release}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with tarfile.open(_DATA / f"{release}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def lay_out(release: str, part: str, place: Path) -> Path:
    """Copy a part of a release's capture to a folder."""
    return Path(
        shutil.copytree(capture(release) / part, place, dirs_exist_ok=True, copy_function=shutil.copyfile)
    )


def text(release: str, name: str) -> str:
    """Return a text of `more/` or `mqadmin/`."""
    return (capture(release) / name).read_bytes().decode()


def answer_to(release: str, name: str, *words: str) -> str:
    """Return the command whose line contains all these words, with its output, from a text with several commands."""
    commands = re.split(r"(?m)^(?=# [0-9T:-]+Z$)", text(release, name))[1:]
    (found,) = [each for each in commands if set(words) <= set(each.split("\n")[1].split())]
    return found


def admin_api(release: str) -> list[dict[str, Any]]:
    """Return the answers of the admin API: kind, request parameters, and payload or error."""
    with gzip.open(capture(release) / "admin_api.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
