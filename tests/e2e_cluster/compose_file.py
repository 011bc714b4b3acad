"""docker-compose.yml with no environment variables set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

COMPOSE_FILE = Path(__file__).resolve().parents[2] / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(?P<name>\w+):(?P<kind>[-?+])(?P<rest>[^}]*)\}")


def services() -> dict[str, dict[str, Any]]:
    """Return all services, with unexpanded variables."""
    named: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))["services"]
    return named


def service(name: str) -> dict[str, Any]:
    """Return one service, with its variables' defaults."""
    found: dict[str, Any] = _with_defaults(services()[name])
    return found


def required_variables() -> set[str]:
    """Return the variables without a default, which the services need to start."""
    text = COMPOSE_FILE.read_text(encoding="utf-8")
    return {found["name"] for found in _VARIABLE.finditer(text) if found["kind"] == "?"}


def _with_defaults(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _with_defaults(value) for name, value in part.items()}
    if isinstance(part, list):
        return [_with_defaults(value) for value in part]
    return _VARIABLE.sub(lambda found: found["rest"] if found["kind"] == "-" else "", str(part))
