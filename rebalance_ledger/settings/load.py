"""Loading the settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from rebalance_ledger.settings.model import LedgerSettings

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    from rebalance_ledger.settings.gate import GateNames


class SettingsError(ValueError):
    """The settings file cannot be used. `str()` is one sentence for a person."""


class _OneMeaningLoader(yaml.SafeLoader):
    """YAML in which a key stands once: PyYAML takes the last of two, and the other would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:  # noqa: FBT001, FBT002 - as PyYAML has it
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_settings(path: Path, names: GateNames | None = None) -> LedgerSettings:
    """Read and check a settings file (YAML).

    Args:
        path: the file.
        names: the expectations and findings that there are; None leaves their names unchecked.

    Raises:
        SettingsError: the file is absent, is not YAML, or says something that the model does not allow; the
            sentence names the file, the key and what to do.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _OneMeaningLoader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read ({error.strerror}): give another with --settings."
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML lets the ValueError of a date such as 2026-13-45 through.
        where = " ".join(str(error).split())
        raise SettingsError(f"The settings file {path} is not valid YAML: {where}.") from error
    try:
        return LedgerSettings.model_validate({} if document is None else document, context=names)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise SettingsError(
            f"In the settings file {path}, {key}: {first['msg']}; correct it or see docs/settings.md."
        ) from error
