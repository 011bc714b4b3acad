"""The content of the documents is valid: links, commands, findings, reasons, settings, examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from expectations.suites.thresholds import FINDING_CAUSES, FINDING_KIND_SEVERITIES, FINDING_KINDS
from rebalance_ledger.cli.app import app
from rebalance_ledger.settings import LedgerSettings, load_settings
from rebalance_ledger.tables import GOLD_TABLES
from rebalance_ledger.tables.finding_advice import ADVICE, ADVICE_BY_CAUSE
from spark_jobs.assignment.allocation import REASONS
from strategies import strategy_names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        ROOT / "samples" / "README.md",
        ROOT / "tests" / "README.md",
        ROOT / "tests" / "golden" / "README.md",
    ]
)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fenced(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(path), re.MULTILINE | re.DOTALL)


def sections(path: Path) -> list[str]:
    """Return the headings of a document, without those in examples."""
    prose = re.sub(r"^```.*?^```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ (.*)$", prose, re.MULTILINE)


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(path: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not link.startswith("https://")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_an_existing_file_and_section(path: Path) -> None:
    broken = []
    for link in links(path):
        file, _, section = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        is_there = target.exists() and (not section or section in map(anchor, sections(target)))
        if not is_there:
            broken.append(link)
    assert broken == []


def shown_commands(path: Path) -> list[list[str]]:
    """Return the words of every `make …` and `ledger …` that stands in code, each up to its line's end."""
    code = re.findall(r"^```(?:sh|bash)?\n(.*?)^```", text_of(path), re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    code += re.findall(r"^ {4}(.*)$", prose, re.MULTILINE)
    code += re.findall(r"`([^`\n]+)`", prose)
    lines = [line.strip() for block in code for line in block.splitlines()]
    starts = r"(?:setup/in-environment )?(?:\.venv/bin/)?((?:make|ledger) .*)"
    return [match[1].partition("#")[0].split() for line in lines if (match := re.fullmatch(starts, line))]


def is_target_of_make(words: list[str]) -> bool:
    targets = set(re.findall(r"^([a-z0-9-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    return all(word in targets or "=" in word for word in words[1:])


def is_command_of_ledger(words: list[str]) -> bool:
    """Return whether the sub-commands and the options exist."""
    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while hasattr(command, "commands"):
        if not rest or rest[0] in {"…", "<stage>"}:
            return True
        if any(name not in command.commands for name in rest[0].split("|")):
            return False
        command, rest = command.commands[rest[0].split("|")[0]], rest[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    given = [word.strip("[]").partition("=")[0] for word in rest]
    # After a lone `--` comes the query.
    given = given[: given.index("--")] if "--" in given else given
    return all(word in options for word in given if word.startswith("--"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_shown_exists(path: Path) -> None:
    is_there = {"make": is_target_of_make, "ledger": is_command_of_ledger}
    assert [words for words in shown_commands(path) if not is_there[words[0]](words)] == []


def test_the_check_of_commands_detects_unknown_commands() -> None:
    assert is_command_of_ledger(["ledger", "sql", "--format", "csv"])
    assert not is_command_of_ledger(["ledger", "sql", "--colour", "red"])
    assert not is_command_of_ledger(["ledger", "exports", "unseal", "DIR"])
    assert not is_target_of_make(["make", "coffee"])
    assert ["make", "run"] in shown_commands(ROOT / "README.md")
    assert any(words[:2] == ["ledger", "sql"] for words in shown_commands(ROOT / "README.md"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_sql_file_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"\bsql/(?:questions|views)/\w+\.sql", text_of(path)))
    assert {name for name in named if not (ROOT / name).exists()} == set()


FINDINGS = DOCS / "findings"
CAUSES = FINDINGS / "causes.md"


def test_pages_of_findings_are_exactly_those_of_the_kinds() -> None:
    pages = {path.stem for path in FINDINGS.glob("*.md")} - {"README", CAUSES.stem}
    assert sorted(pages) == sorted(FINDING_KINDS)


@pytest.mark.parametrize("kind", FINDING_KINDS)
def test_the_page_of_a_finding_describes_cause_confirmation_and_fix(kind: str) -> None:
    page = text_of(FINDINGS / f"{kind}.md")
    parts = re.split(r"^- \*\*(\w[\w ]*)\.\*\*", page, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))

    assert page.startswith(f"# `{kind}`\n")
    assert list(sections) == ["How it arises", "Evidence", "Confirm", "Do"]
    assert "mqadmin" in sections["Confirm"]
    assert re.search(r"`\w+(_count|_per_client|_values)`", sections["Evidence"])


@pytest.mark.parametrize("kind", FINDING_KINDS)
def test_the_page_of_a_finding_names_existing_columns(kind: str) -> None:
    columns = {column.name for table in GOLD_TABLES for column in table.columns}
    evidence = text_of(FINDINGS / f"{kind}.md").split("**Evidence.**")[1].partition("\n- **")[0]

    assert set(re.findall(r"`(\w+_count|\w+_per_client|\w+_values|examples)`", evidence)) - columns == set()


def sentence(markdown: str) -> str:
    """Return a text on one line, without the marks of code."""
    return " ".join(markdown.replace("`", "").split())


@pytest.mark.parametrize("kind", FINDING_KINDS)
def test_the_page_of_a_finding_gives_the_advice_that_the_table_gives(kind: str) -> None:
    page = text_of(FINDINGS / f"{kind}.md")
    assert sentence(ADVICE[kind]) in sentence(page.split("- **Do.**")[1])


@pytest.mark.parametrize("cause", ADVICE_BY_CAUSE)
def test_the_section_of_a_cause_gives_the_advice_that_the_table_gives(cause: str) -> None:
    section = text_of(CAUSES).split(f"## `{cause}`\n")[1].partition("\n## ")[0]
    assert sentence(ADVICE_BY_CAUSE[cause]) in sentence(section.split("- **Do.**")[1])


@pytest.mark.parametrize("kind", FINDING_KINDS)
def test_the_page_of_a_finding_and_the_list_name_its_possible_severities(kind: str) -> None:
    """By itself: the gate holds the table to the same list."""
    head = text_of(FINDINGS / f"{kind}.md").partition("\n- **How it arises")[0]
    line = next(
        line for line in text_of(FINDINGS / "README.md").splitlines() if line.startswith(f"| [`{kind}`](")
    )

    severities = FINDING_KIND_SEVERITIES[kind]
    assert tuple(re.findall(r"\*\*(critical|warning|info)\*\*", head)) == severities
    assert line.split("|")[2].strip() == severities[0]


def test_advice_never_asks_to_delete_a_group_a_topic_or_its_progress() -> None:
    commands = re.compile(
        r"deleteSubGroup|deleteTopic|resetOffsetByTime|skipAccumulatedMessage|cloneGroupOffset"
    )
    texts = [*ADVICE.values(), *ADVICE_BY_CAUSE.values(), *(text_of(page) for page in FINDINGS.glob("*.md"))]
    assert [text for text in texts if commands.search(text)] == []


def test_explained_causes_are_exactly_the_likely_causes_with_their_evidence() -> None:
    explained = [heading.strip("`") for heading in sections(CAUSES) if heading.startswith("`")]
    with_evidence = re.findall(r"^\| \[`(\w+)`\]", text_of(CAUSES), re.MULTILINE)

    assert sorted(explained) == sorted(with_evidence) == sorted(FINDING_CAUSES)


@pytest.mark.parametrize("cause", FINDING_CAUSES)
def test_the_section_of_a_cause_describes_confirmation_and_fix(cause: str) -> None:
    section = text_of(CAUSES).split(f"## `{cause}`\n")[1].partition("\n## ")[0]
    assert "mqadmin" in section.split("**Confirm.**")[1].split("**Do.**")[0]


def test_explained_reasons_are_exactly_those_for_unowned_queues() -> None:
    section = text_of(DOCS / "strategies.md").split("## Why a queue has no owner\n")[1].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(REASONS)


def test_the_guide_to_strategies_names_every_strategy() -> None:
    guide = text_of(DOCS / "strategies.md")
    assert [name for name in strategy_names() if f"| `{name}` |" not in guide] == []


def test_the_examples_of_the_library_run() -> None:
    examples = fenced(DOCS / "strategies.md", "python")
    assert examples
    for example in examples:
        exec(example, {"__name__": "example"})  # noqa: S102  our own documents


def test_the_examples_of_settings_are_accepted(tmp_path: Path) -> None:
    examples = fenced(DOCS / "settings.md", "yaml")
    assert examples
    strategies = set()
    for example in examples:
        file = tmp_path / "ledger.yaml"
        file.write_text(example, encoding="utf-8")
        loaded: LedgerSettings = load_settings(file)
        assert set(loaded.clusters) == set(yaml.safe_load(example).get("clusters", {}))
        strategies |= {
            group.strategy for cluster in loaded.clusters.values() for group in cluster.groups.values()
        }
    assert strategies >= {"CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONFIG", "AVG"}


@pytest.mark.parametrize("folder", [DOCS, DOCS / "adr", FINDINGS], ids=["docs", "docs/adr", "docs/findings"])
def test_the_index_lists_every_document_of_its_folder(folder: Path) -> None:
    index = set(links(folder / "README.md"))
    assert {path.name for path in folder.glob("*.md")} - {"README.md"} - index == set()


def test_the_readme_shows_the_columns_of_the_summary() -> None:
    header = next(line for line in text_of(ROOT / "README.md").splitlines() if line.startswith("cluster "))
    query = text_of(ROOT / "sql" / "summary.sql")
    assert header.split()
    assert [
        column for column in header.split() if not re.search(rf"\b{column},?$", query, re.MULTILINE)
    ] == []
