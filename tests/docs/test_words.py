"""The project's words: none of its former dialect in product code, help, messages and documents."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_WORDS = (
    r"un_?told|told|unwell|mend(?:s|ed|ing)?|forsaken|whisper(?:s|ed|ing)?|whoever|twins?|reckon(?:s|ed|ing)?|"
    r"comes to|come to|own words|whose turn|our turn|last words"
)
# Parts of names count as words: `is_untold`, `_told`.
DIALECT = re.compile(rf"(?<![a-z])(?:{_WORDS})(?![a-z])", re.IGNORECASE)

QUOTATIONS = {
    "docs/migrating.md": re.compile(r"^\| .* \| .* \|$"),
}
"""File -> lines in which the words are quoted: a table of former names."""

READ = ("*.py", "*.sql", "*.md", "*.yml", "*.yaml", "*.j2", "*.sh", "*.conf", "Makefile", ".env.example")
NOT_READ = ("samples/exports/", "tests/", "tools/rocketmq_java/")


def lines_with_dialect() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *READ], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [
        f"{name}:{number}: {line.strip()}"
        for name in listed
        if name and not name.startswith(NOT_READ)
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if DIALECT.search(line) and not (name in QUOTATIONS and QUOTATIONS[name].search(line))
    ]


def test_no_line_has_a_word_of_the_former_dialect() -> None:
    assert lines_with_dialect() == []


def test_the_words_are_detected_alone_and_in_names() -> None:
    assert all(map(DIALECT.search, ("is_untold", "Told twice", "whoever reads", "what it comes to")))
    assert not any(map(DIALECT.search, ("recommend", "amendment", "stolden", "becomes total")))
