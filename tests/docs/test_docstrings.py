"""Docstrings of functions begin with an imperative: "Return …", not "The …", "What …", "Returns …" or "int64[S]: …"."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = (
    "bench",
    "dags",
    "deploy",
    "expectations",
    "rebalance_ledger",
    "setup",
    "spark_jobs",
    "strategies",
    "tests",
    "tools",
)

WORD = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)?")
"""An imperative at the beginning of a sentence. `int64[S]`, `AVG`, `1`, `(a)`, `Java's` and `A` are none."""

_ARTICLES_AND_PRONOUNS = (
    r"All|An|Another|Any|Both|Each|Either|Every|Everything|Few|Four|He|Her|His|It|Its|Many|"
    r"More|Most|My|Neither|No|Nobody|None|Nothing|One|Other|Our|Several|She|Some|Such|That|"
    r"The|Their|These|They|This|Those|Three|Two|We|Your"
)
_QUESTION_WORDS = r"How|What|When|Where|Whether|Which|Who|Whose|Why"
_PREPOSITIONS_AND_ADVERBS = (
    r"After|Always|Among|As|At|Because|Before|Behind|Below|Beside|Between|By|Down|During|For|"
    r"From|If|In|Inside|Into|Like|Mostly|Not|Of|Off|On|Once|Only|Out|Outside|Over|Since|So|"
    r"Than|Then|There|Through|Till|To|Under|Until|Up|While|With|Within|Without"
)
_NOUNS = (
    r"Addresses|Array|Arrays|Bits|Blanks|Bytes|Client|Clients|Column|Columns|Dictionary|Digest|"
    r"False|Files|Groups|Ids|Keys|Leased|Lists|Mapping|Members|Messages|Nanoseconds|Null|Pairs|"
    r"Parameters|Path|Paths|Positions|Progress|Queues|Row|Rows|Seconds|Short|Staged|States|"
    r"String|Strings|Struct|Structs|Tables|Text|Texts|Topic|Topics|True|Tuple|Tuples"
)
_THIRD_PERSON = (
    r"Accepts|Adds|Allocates|Answers|Appends|Applies|Asks|Assigns|Begins|Binds|Brings|Builds|"
    r"Calls|Checks|Clears|Closes|Collects|Compares|Completes|Computes|Configures|Consumes|"
    r"Contains|Converts|Copies|Counts|Creates|Decides|Decodes|Defines|Deletes|Derives|Describes|"
    r"Determines|Divides|Does|Draws|Drops|Emits|Encodes|Ends|Evaluates|Excludes|Executes|Expects|"
    r"Fails|Fetches|Fills|Finds|Formats|Gets|Gives|Groups|Handles|Has|Holds|Initialises|"
    r"Initializes|Inserts|Is|Joins|Judges|Keeps|Lands|Leaves|Lets|Loads|Locks|Logs|Looks|"
    r"Maintains|Makes|Marks|Matches|Measures|Merges|Moves|Names|Notifies|Opens|Packs|Parses|"
    r"Passes|Picks|Prepares|Prints|Publishes|Puts|Quotes|Raises|Reads|Receives|Records|Redacts|"
    r"Refuses|Registers|Releases|Removes|Renames|Renders|Replaces|Represents|Reserves|Resolves|"
    r"Restores|Returns|Runs|Saves|Says|Scans|Seals|Sees|Selects|Sends|Serves|Sets|Shows|Skips|"
    r"Sorts|Splits|Stages|Starts|Stops|Stores|Submits|Takes|Tells|Translates|Tries|Turns|"
    r"Updates|Uses|Validates|Verifies|Waits|Walks|Warns|Wraps|Writes|Yields"
)
NOT_IMPERATIVE = re.compile(
    f"{_ARTICLES_AND_PRONOUNS}|{_QUESTION_WORDS}|{_PREPOSITIONS_AND_ADVERBS}|{_NOUNS}|{_THIRD_PERSON}"
)


def is_imperative(docstring: str) -> bool:
    """Return whether a docstring begins with an imperative, or with the name of the mirrored method in backquotes."""
    opening = docstring.split(maxsplit=1)[0].rstrip(",.;:")
    return docstring.startswith("`") or bool(
        WORD.fullmatch(opening) and not NOT_IMPERATIVE.fullmatch(opening)
    )


def other_openings(source: str) -> list[tuple[str, str]]:
    """Return the name and first line of each function whose docstring begins otherwise; properties have noun phrases, tests statements."""
    functions = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [
        (function.name, docstring.splitlines()[0])
        for function in functions
        if not function.name.startswith("test_")
        and not any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
        and (docstring := ast.get_docstring(function))
        and not is_imperative(docstring)
    ]


def test_every_docstring_of_a_function_begins_with_an_imperative() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *(f"{folder}/**.py" for folder in FOLDERS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    names = [name for name in listed if name]
    assert {name.partition("/")[0] for name in names} == set(FOLDERS)
    found = [
        f"{name}:{function}: {sentence}"
        for name in names
        for function, sentence in other_openings((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, "Begin these with an imperative, such as Return, Build or Find:\n" + "\n".join(found)


def test_other_openings_are_detected() -> None:
    source = '''
def counts(): """int64[S]: how many queues each subscription has."""
async def owner(): """For each queue the number of the client that takes it."""
def share(): """AVG over some queues."""
def queue(): """A queue."""
class Group:
    def seal(self): """Returns the manifest."""
    @property
    def name(self): """The group's name."""
    @cached_property
    def owners(self): """Each queue's owner."""
    def parse_field(self): """`parseField`: the field."""
    def topic(self): """Return what `topic` names."""
    def link(self): """Hard-link a file."""
    def close(self): pass
def test_owner(): """No queue has two owners."""
'''
    assert [name for name, _ in other_openings(source)] == ["counts", "owner", "share", "queue", "seal"]
