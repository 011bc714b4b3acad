"""Loading the settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml
from pydantic import ValidationError

from rebalance_ledger.settings.model import LedgerSettings
from rebalance_ledger.settings.problems import not_yaml, problem

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    from rebalance_ledger.settings.gate import GateNames


_MAX_PROBLEMS: Final = 20
"""How many errors of a file are listed."""


class SettingsError(ValueError):
    """The settings file cannot be used. `str()` names each wrong key and the error."""


class _OneMeaningLoader(yaml.SafeLoader):
    """A loader that refuses duplicate keys, of which PyYAML silently uses the last, and reads escapes of JSON.

    JSON escapes a character beyond U+FFFF as a surrogate pair, which PyYAML reads as two characters.
    """

    def compose_scalar_node(self, anchor: dict[str, yaml.Node]) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise yaml.constructor.ConstructorError(
                None, None, "an escape is half of a surrogate pair, which is no character", node.start_mark
            ) from None
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:  # noqa: FBT001, FBT002 - as PyYAML has it
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"duplicate key {key.value}", key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def load_settings(path: Path, names: GateNames | None = None) -> LedgerSettings:
    """Read and check a settings file (YAML).

    Args:
        path: the file.
        names: known expectations and findings; None to skip the check of their names.

    Raises:
        SettingsError: the file is absent, is not YAML, or contains a value that the model does not allow; the
            sentence names the file, the key and what to do.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _OneMeaningLoader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read ({error.strerror}): give another with --settings."
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML does not catch the ValueError of a date such as 2026-13-45.
        raise SettingsError(f"The settings file {path} is not valid YAML: {not_yaml(error)}.") from error
    except (KeyError, AttributeError) as error:
        # PyYAML raises these for `!!bool x` and `!!timestamp x`.
        raise SettingsError(
            f"The settings file {path} is not valid YAML: a value is not of the type that its tag (`!!…`) names."
        ) from error
    try:
        return LedgerSettings.model_validate({} if document is None else document, context=names)
    except ValidationError as error:
        raise SettingsError(_sentence(path, error, document)) from error


def load_cluster_names(path: Path) -> list[str]:
    """Return the names of all clusters in the settings file, sorted.

    Raises:
        SettingsError: the file names no cluster, or `load_settings` refuses it.
    """
    names = sorted(load_settings(path).clusters)
    if not names:
        raise SettingsError(f"{path} names no cluster; add one below `clusters:`.")
    return names


def _sentence(path: Path, error: ValidationError, document: object) -> str:
    """Return every error of the file."""
    problems = [problem(one, document) for one in error.errors(include_url=False)]
    if len(problems) == 1:
        return f"In the settings file {path}, {problems[0]}; correct it or see docs/settings.md."
    problem_lines = "".join(f"\n  {line}" for line in problems[:_MAX_PROBLEMS])
    more = f"\n  and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    return f"The settings file {path} has {len(problems)} errors; correct them or see docs/settings.md:{problem_lines}{more}"
