"""Loading the settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from settings.model import LedgerSettings

if TYPE_CHECKING:
    from pathlib import Path


class SettingsError(ValueError):
    """The settings file cannot be used. `str()` is one sentence for a person."""


def load_settings(path: Path) -> LedgerSettings:
    """Read and check a settings file (YAML).

    Raises:
        SettingsError: the file is absent, is not YAML, or says something that the model does not allow; the
            sentence names the file, the key and what to do.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read ({error.strerror}): give another with --settings."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())
        raise SettingsError(f"The settings file {path} is not valid YAML: {where}.") from error
    try:
        return LedgerSettings.model_validate({} if document is None else document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise SettingsError(
            f"In the settings file {path}, {key}: {first['msg']}; correct it or see docs/settings.md."
        ) from error
