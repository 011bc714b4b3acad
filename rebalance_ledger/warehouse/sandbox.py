"""A duckdb that sees what it is shown and nothing else. What does not belong here: what it is shown, and what it is asked."""

from __future__ import annotations

from typing import Final

SANDBOX_CONFIG: Final = {
    "enable_external_access": "false",
    "allow_persistent_secrets": "false",
    # They would be in the home directory, and the catalog exposes its path.
    "secret_directory": "",
    "extension_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GB",
}
"""Nothing but what is registered can be read; nothing is written, not even to spill."""
