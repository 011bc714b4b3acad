"""Sentences for the errors of a settings file, in the words of its author instead of the validator's.

Belongs here: what pydantic and YAML report, and how it reads. Does not belong here: reading the file (`load`), and the rules (`model`).
"""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import yaml

from rebalance_ledger.settings.model import LedgerSettings
from rebalance_ledger.suggestion import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MAPPING: Final = "must be a mapping (`key: value`)"
_SENTENCES: Final = {
    "dict_type": _MAPPING,
    "missing": "is missing",
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    # The deadlines are the only values with a pattern.
    "string_pattern_mismatch": 'must be a time such as "08:30", up to "47:59"',
    "union_tag_not_found": "`strategy` is missing",
}
"""Sentences in place of pydantic's, by the type of an error."""
_REWORDED: Final = (
    ("Value error, ", ""),
    ("Input should be", "must be"),
    ("String should have", "must have"),
    ("valid boolean", "boolean (true or false)"),
    ("a valid integer", "an integer"),
    ("a valid ", "a "),
)
"""Parts of pydantic's sentences, and what they become after the name of a key."""
_KEY: Final = "[key]"
"""The last part of an error's location if a key is wrong and not its value."""


def not_yaml(error: yaml.YAMLError | ValueError | RecursionError) -> str:
    """Return why a file is not YAML, with the line and column if YAML's parser knows them."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        what = " ".join(filter(None, (error.context, error.problem)))
        return f"{what} (line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
    return " ".join(str(error).split())


def problem(error: ErrorDetails, document: object) -> str:
    """Return where in the file an error is, and what is wrong; for an unknown name also the nearest known one.

    Args:
        error: An error of pydantic.
        document: The content of the file.
    """
    location = _location(error, document)
    if _is_about_key(error):
        location.pop()
    if error["type"] == "extra_forbidden":
        what = _no_such_setting(location, document)
    else:
        what = _what_is_wrong(error)
    return f"{'.'.join(location) or 'the whole file'}: {what}"


def _location(error: ErrorDetails, document: object) -> list[str]:
    """Return the keys that lead to an error; pydantic also has the name of a chosen strategy between them, which is no key of the file."""
    keys = []
    inside: Any = document
    for part in error["loc"]:
        is_mapping = isinstance(inside, dict)
        if part == _KEY or (is_mapping and part not in inside and inside.get("strategy") == part):
            continue
        keys.append(str(part))
        try:
            inside = inside[part]
        except (KeyError, IndexError, TypeError):
            inside = None
    return keys


def _is_about_key(error: ErrorDetails) -> bool:
    return error["type"] == "invalid_key" or error["loc"][-1:] == (_KEY,)


def _no_such_setting(location: list[str], document: object) -> str:
    """Return what is wrong with an unknown key: that its strategy does not have it, or the nearest known ones."""
    *above, name = location
    inside: Any = document
    try:
        for key in above:
            inside = inside[int(key) if isinstance(inside, list) else key]
    except (KeyError, IndexError, TypeError, ValueError):
        inside = None
    strategy = inside.get("strategy") if isinstance(inside, dict) else None
    sentence = f"the strategy {strategy} has no such setting" if strategy else "there is no such setting"
    if name in _known_keys():
        return sentence if strategy else f"{sentence} here"
    suggestion = did_you_mean(name, _known_keys(), most=2, cutoff=0.6)
    return f"{sentence}; {suggestion}" if suggestion else sentence


def _what_is_wrong(error: ErrorDetails) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    if _is_about_key(error):
        return f"a name must be a string, and YAML reads one as {_as_yaml(error['input'])}: put it in quotes"
    if error["type"] == "union_tag_invalid":
        return f"there is no strategy {context['tag']}; it must be one of {context['expected_tags']}"
    if error["type"] == "string_type" and error["input"] is None:
        return "must be a string, and has no value: write one, or remove the key"
    if error["type"] == "string_type" and not isinstance(error["input"], (dict, list)):
        return f"must be a string, and YAML reads {_as_yaml(error['input'])}: put it in quotes"
    sentence = _SENTENCES.get(error["type"], error["msg"])
    for beginning, replacement in _REWORDED:
        sentence = sentence.replace(beginning, replacement, 1)
    return sentence


def _as_yaml(value: object) -> str:
    """Return how YAML reads a value without quotes that the author may have meant as text."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (as {'yes and on' if value else 'no and off'})"
    if isinstance(value, date):
        return f"the date {value}"
    return f"the number {value}" if isinstance(value, (int, float)) else f"{value!r}"


@cache
def _known_keys() -> tuple[str, ...]:
    """Return the names of all settings, of all models."""
    schema = LedgerSettings.model_json_schema()
    models = [schema, *schema.get("$defs", {}).values()]
    return tuple(sorted({key for model in models for key in model.get("properties", {})}))
