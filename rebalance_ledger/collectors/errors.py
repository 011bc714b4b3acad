"""Errors of collecting a live cluster. The `str()` of each is one sentence for the user."""

from __future__ import annotations


class CollectError(ValueError):
    """The cluster cannot be collected with these arguments; a retry would fail in the same way."""


class UnusableConnectionError(CollectError):
    """The admin client refuses credentials, certificates or an address."""


class UnreachableError(Exception):
    """No server returned the topics, brokers or groups of the cluster. A retry may succeed."""


class AdminClientError(Exception):
    """The admin client's JVM does not start, or has stopped. A retry may succeed."""
