"""Errors of RocketMQ's rules, and the error for an unknown name.

Belongs here: the exception types that callers of this package catch.
Does not belong here: when they are raised; that is part of each rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RocketMQError(Exception):
    """What a RocketMQ client would have thrown.

    Attributes:
        java_class: The simple name of the Java exception class, for example ``IllegalArgumentException``.
            For the C++ client it is the name of its exception class.
    """

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(message)
        self.java_class = java_class

    def __reduce__(self) -> tuple[type[RocketMQError], tuple[str, str]]:
        """Keep both arguments when the error crosses from a Spark worker to the driver."""
        return type(self), (self.java_class, str(self))


def illegal_argument(message: str) -> RocketMQError:
    """Return Java's ``IllegalArgumentException``, with a text that RocketMQ itself wrote."""
    return RocketMQError("IllegalArgumentException", message)


def null_pointer(message: str) -> RocketMQError:
    """Return Java's ``NullPointerException``; unless RocketMQ wrote the text, it names what was null."""
    return RocketMQError("NullPointerException", message)


class UnknownNameError(ValueError):
    """A strategy, client language or client version that this library has no rules for."""


def unknown_name(kind: str, given: object, known: Iterable[str]) -> UnknownNameError:
    """Return an error that names the requested value and lists the valid ones."""
    return UnknownNameError(f"Unknown {kind} {given!r}: there is {', '.join(known)}.")
