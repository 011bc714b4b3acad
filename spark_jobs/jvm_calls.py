"""Fewer calls from PySpark to the driver's JVM.

Py4J sends every call through a socket and waits for the answer, and another call releases the result: about 0.25 ms of CPU time for both, on
both sides. A small day's plans are built with 20,000 calls; without this module there would be another 40,000.

Belongs here: answers that are kept, and several calls sent as one. Does not belong here: the session (`spark_jobs/session.py`).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import JavaClass, JavaMember, JavaObject
from py4j.protocol import STATIC_PREFIX, register_input_converter

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import GatewayClient, JVMView

_CLASSES_OF_FUNCTIONS: Final = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
)
"""JVM names that PySpark 4 uses; an unused name has no effect."""

_FUNCTIONS_OF_VALUES: Final = ("col", "lit")
"""Functions whose result is an unchangeable expression without a position in a plan."""

_KEPT_TYPES: Final = (str, int, bool, type(None))
"""Types of the arguments whose result is kept. Other values may be equal and differ, as 0.0 and -0.0, or their hash is a call to the JVM."""

_MOST_KEPT_RESULTS: Final = 4096
_MOST_ARGUMENTS: Final = 10
"""Longest list of `java.util.List.of` whose elements are arguments."""


def save_calls(jvm: JVMView) -> None:
    """Keep the classes behind PySpark's functions, their members, and columns and literals, and send lists in one call.

    Without classes and members, Py4J asks the JVM for each function call what the name of the class is, and what that of its method: the JVM
    searches every jar of Spark for the one and all methods of the class for the other.
    """
    for name in _CLASSES_OF_FUNCTIONS:
        java_class = getattr(jvm, name)
        if not isinstance(java_class, _KeptMembers):
            setattr(jvm, name, _KeptMembers(java_class))
    _register_list_converter()


class _KeptMembers:
    """A Java class whose static members are looked up once."""

    def __init__(self, java_class: JavaClass) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a method, or the value of a constant
        member = getattr(self._java_class, name)
        if name in _FUNCTIONS_OF_VALUES:
            member = _with_kept_results(member)
        setattr(self, name, member)
        return member


def _with_kept_results(function: JavaMember) -> Callable[[object], JavaObject]:
    """Return a function of one value that calls the JVM once for each string, integer, boolean and None."""

    @lru_cache(_MOST_KEPT_RESULTS, typed=True)
    def kept(value: object) -> JavaObject:
        return function(value)

    def result(value: object) -> JavaObject:
        return kept(value) if type(value) in _KEPT_TYPES else function(value)

    return result


@cache
def _register_list_converter() -> None:
    register_input_converter(_ListConverter(), prepend=True)


class _ListConverter:
    """Send a list of strings or Java objects to the JVM in one call for ten elements, instead of one for each element."""

    def can_convert(self, value: object) -> bool:
        """Return whether Py4J may use this converter for an argument; it asks the next one otherwise."""
        return type(value) is list and bool(value) and all(type(each) in {str, JavaObject} for each in value)

    def convert(self, value: list[str | JavaObject], gateway_client: GatewayClient) -> JavaObject:
        """Return the list as a `java.util.List`, which is unchangeable if it has up to ten elements."""
        list_of = JavaMember("of", None, f"{STATIC_PREFIX}java.util.List", gateway_client)
        parts = [
            list_of(*value[start : start + _MOST_ARGUMENTS])
            for start in range(0, len(value), _MOST_ARGUMENTS)
        ]
        if len(parts) == 1:
            return parts[0]
        whole = JavaClass("java.util.ArrayList", gateway_client)(parts[0])
        for part in parts[1:]:
            whole.addAll(part)
        return whole
