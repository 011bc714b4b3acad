"""`ledger sql` without a statement: an interactive shell with history and completion.

Belongs here: reading statements and commands. Does not belong here: running a statement. Each statement runs as `ledger sql` in a separate
process, so that Ctrl-C ends the query but not the shell, and each query has its own memory limit.
"""

from __future__ import annotations

import re
import readline
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rebalance_ledger.cli.ask import list_questions, question_names, question_sql
from rebalance_ledger.cli.sql import show_tables
from rebalance_ledger.cli.user_state import state_folder
from rebalance_ledger.printable import visible
from rebalance_ledger.tables import GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_HELP: Final = r"""A statement ends with ; at the end of a line. Tab completes tables, columns and keywords.
  \tables [NAME]   tables and views, or the columns of one
  \ask [QUESTION]  questions, or the answer to one
  \help            this text
  \quit            leave (Ctrl-D does too); Ctrl-C ends a query or drops the line
"""
_KEYWORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "QUALIFY", "LIMIT", "JOIN", "LEFT JOIN", "USING", "WITH", "count(*)",
    "DISTINCT", "DESCRIBE", "SUMMARIZE", "EXPLAIN", "AND", "OR", "NOT", "IS NULL", "DATE",
)  # fmt: skip
_COMMANDS: Final = (r"\tables", r"\ask", r"\help", r"\quit")
_HISTORY_LINES: Final = 2000
_WORD_BREAKS: Final = " \t\n,()=<>"
_TABLE: Final = re.compile(r"\b(?:FROM|JOIN)\s+([\w.]+)", re.IGNORECASE)


def run_shell(warehouse: str, options: Sequence[str]) -> None:
    """Read and answer statements until the end of input.

    Args:
        warehouse: Root of the warehouse, a local path or a URI.
        options: Options of `ledger sql` for each statement.
    """
    state = state_folder()
    history = state / "history" if state else None
    _prepare_readline(history)
    sys.stdout.write(f"rebalance-ledger on {visible(warehouse)}. \\help shows the commands.\n")
    lines: list[str] = []
    try:
        while True:
            try:
                line = input("ledger> " if not lines else "   ...> ")
            except KeyboardInterrupt:
                sys.stdout.write("\n")
                lines = []
                continue
            if not lines and line.strip().startswith("\\"):
                if not _run_command(line.strip(), warehouse, options):
                    return
                continue
            lines.append(line)
            statement = "\n".join(lines).strip()
            if statement.endswith(";") or not statement:
                lines = []
                if statement:
                    _run_statement(statement.rstrip("; \n"), options)
    except EOFError:
        sys.stdout.write("\n")
    finally:
        if history:
            with suppress(OSError):  # A home that cannot be written costs the history and nothing else.
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(history)


def completions(line: str, word: str) -> list[str]:
    """Return the completions of a word, sorted.

    Args:
        line: The statement so far; columns of the tables after its FROM and JOIN come before all others.
        word: The word to complete, in any case.
    """
    if line.startswith("\\ask "):
        return [name for name in question_names() if name.startswith(word)]
    if line.startswith("\\"):
        names = [table.name for table in (*GOLD_TABLES, *SILVER_TABLES)] if " " in line else _COMMANDS
        return sorted(name for name in names if name.startswith(word))
    tables = {table.name: table for table in (*GOLD_TABLES, *SILVER_TABLES)}
    tables_of_line = [
        tables[name.rpartition(".")[2]] for name in _TABLE.findall(line) if name.rpartition(".")[2] in tables
    ]
    columns = {column.name for table in tables_of_line or tables.values() for column in table.all_columns}
    schemas = [f"{schema}.{name}" for schema in ("latest", "previous") for name in tables]
    candidates: Iterable[str] = {
        *columns,
        *tables,
        *schemas,
        *(table.qualified_name for table in tables.values()),
        *_KEYWORDS,
    }
    return sorted(name for name in candidates if name.lower().startswith(word.lower()))


def _run_command(text: str, warehouse: str, options: Sequence[str]) -> bool:
    """Run a command of the shell; return whether to go on."""
    command, _, argument = text.partition(" ")
    argument = argument.strip(" ;")
    try:
        match command:
            case "\\quit" | "\\q":
                return False
            case "\\tables" | "\\d":
                show_tables(warehouse, argument or None)
            case "\\ask" if argument:
                _run_statement(question_sql(argument), options)
            case "\\ask":
                list_questions()
            case "\\help" | "\\?":
                sys.stdout.write(_HELP)
            case _:
                sys.stdout.write(f"There is no command {visible(command)}: \\help lists them.\n")
    except QueryError as error:
        sys.stdout.write(f"{visible(str(error))}\n")
    return True


def _run_statement(statement: str, options: Sequence[str]) -> None:
    command = [sys.executable, "-m", "rebalance_ledger.cli.app", "sql", *options, "--", statement]
    sys.stdout.flush()
    # Ctrl-C reaches both processes: the query ends, the shell goes on.
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(command, check=False)  # noqa: S603  # an argument list, never a shell
    finally:
        signal.signal(signal.SIGINT, previous)


def _prepare_readline(history: Path | None) -> None:
    readline.set_completer_delims(_WORD_BREAKS)
    readline.set_completer(_nth_completion)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(_HISTORY_LINES)
    if history:
        with suppress(OSError):
            readline.read_history_file(history)


def _nth_completion(word: str, number: int) -> str | None:
    names = completions(readline.get_line_buffer(), word)
    return names[number] if number < len(names) else None
