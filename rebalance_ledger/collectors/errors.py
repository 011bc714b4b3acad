"""Why a live cluster is not collected. Each exception's `str()` is one sentence for a person."""

from __future__ import annotations


class CollectError(ValueError):
    """Nothing can be collected as it was asked; another attempt would say the same."""


class UnusableConnectionError(CollectError):
    """The admin client refuses credentials, certificates or an address."""


class UnreachableError(Exception):
    """Nobody says what there is to ask. Another attempt may go better."""


class AdminClientError(Exception):
    """The admin client's JVM does not start, or has ended. Another attempt may go better."""
