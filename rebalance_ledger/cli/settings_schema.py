"""`docs/settings.schema.json`: the settings file as a JSON schema, for editors that check YAML while it is typed.

`python -m rebalance_ledger.cli.settings_schema` writes it from the model; a test holds the file to it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from rebalance_ledger.gate.policy import GATE_NAMES
from rebalance_ledger.settings import LedgerSettings

SCHEMA_FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "settings.schema.json"


def schema() -> dict[str, Any]:
    """Return the JSON schema of the settings file, with the names of expectations and of findings that there are."""
    document = LedgerSettings.model_json_schema()
    names = {
        ("GateRule", "severities"): GATE_NAMES.expectations,
        ("GateRule", "findings"): GATE_NAMES.findings,
        ("GateSettings", "severities"): GATE_NAMES.expectations,
        ("GateSettings", "findings"): GATE_NAMES.findings,
        ("GateSettings", "limits"): GATE_NAMES.limited,
    }
    for (model, key), known in names.items():
        document["$defs"][model]["properties"][key]["propertyNames"] = {"enum": sorted(known)}
    waiver = document["$defs"]["Waiver"]["properties"]
    for key, known in (("expectation", GATE_NAMES.waivable), ("finding", GATE_NAMES.findings)):
        waiver[key] = {"enum": sorted(known)}
    return document


def main() -> None:
    """Write the file."""
    SCHEMA_FILE.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
