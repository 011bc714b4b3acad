"""Values in fastjson's text format, and Hypothesis strategies for such values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from rebalance_ledger.rocketmq.json import ObjectMap

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.json import RocketMQValue

LAYOUTS = ("compact", "fastjson1_pretty", "fastjson2_pretty")

# fastjson escapes these as JSON does, other control characters by number, and leaves all other characters unchanged.
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def written(value: RocketMQValue, layout: str, *, escape_all: bool = False, depth: int = 0) -> str:
    r"""Return the text of a value. `escape_all` writes non-ASCII characters as `\uXXXX`, as name servers do since 4.9.4."""

    def inner(child: RocketMQValue) -> str:
        return written(child, layout, escape_all=escape_all, depth=depth + 1)

    if isinstance(value, str):
        return json.dumps(value) if escape_all else _string(value)
    if isinstance(value, list):
        return _enclosed("[]", [inner(each) for each in value], layout, depth)
    if isinstance(value, (dict, ObjectMap)):
        entries = [f"{inner(key)}:{inner(each)}" for key, each in value.items()]
        return _enclosed("{}", entries, layout, depth)
    return json.dumps(value)


def _string(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c if c >= " " else f"\\u{ord(c):04X}") for c in text) + '"'


def _enclosed(brackets: str, parts: list[str], layout: str, depth: int) -> str:
    opening, closing = brackets
    if layout == "compact" or not parts:
        return opening + ",".join(parts) + closing
    line, last_line = "\n" + "\t" * (depth + 1), "\n" + "\t" * depth
    if layout == "fastjson2_pretty":
        return opening + line + ("," + line).join(parts) + last_line + closing
    # fastjson 1 breaks lines only before keys that are names.
    broken = [part if part.startswith("{") or part[0] in "-0123456789" else line + part for part in parts]
    return opening + ",".join(broken) + last_line + closing


# No unpaired surrogates: they are read as U+FFFD, which has its own test.
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_names = _texts.filter(lambda name: name != "$ref")
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    _texts,
)


def _keys(children: st.SearchStrategy[RocketMQValue]) -> st.SearchStrategy[RocketMQValue]:
    return st.dictionaries(_names, st.one_of(_scalars, children), min_size=1, max_size=3)


values: st.SearchStrategy[RocketMQValue] = st.recursive(
    _scalars,
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.dictionaries(_names, children, max_size=4),
        st.dictionaries(st.integers(-5, 2**63 - 1), children, max_size=4),
        st.lists(st.tuples(_keys(children), children), min_size=1, max_size=3).map(ObjectMap),
    ),
    max_leaves=20,
)
"""Values as in RocketMQ's records, with names, integers or objects as keys."""
