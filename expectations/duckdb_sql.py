"""Translation of the gate's statements from Spark SQL to DuckDB's SQL.

The suites are written in Spark SQL, the language of the build. DuckDB measures a staged day with a fraction of Spark's CPU time
(docs/adr/0024-gate-measured-by-duckdb.md). sqlglot translates most of a statement; this module translates what both engines define
differently: null logic of lists, positions from 0 or 1, JSON, and empty aggregates.

Belongs here: differences of the two languages. Does not belong here: any expectation.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlglot import exp, parse_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

_TYPES: Final = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "timestamp": "TIMESTAMPTZ",
    "date": "DATE",
    "binary": "BLOB",
}

_ELEMENT: Final = "_element"
"""Name of an unnested struct before it is cut into columns."""

_MACROS: Final = (
    # Spark's JSON reader accepts names without quotes, as RocketMQ writes numbers. Strings are not touched.
    r"""requoted(x) AS array_to_string(list_transform(
        regexp_extract_all(x, '"(?:[^"\\]|\\.)*"|[^"]+'),
        lambda part: CASE WHEN starts_with(part, '"') THEN replace(part, chr(9), '\t')
          ELSE regexp_replace(part, '([{,]\s*)(-?[A-Za-z0-9_$]+)(\s*:)', '\1"\2"\3', 'g') END), '')""",
    "plain_json(x) AS CASE WHEN json_valid(x) THEN x ELSE CAST(try(json(requoted(x))) AS VARCHAR) END",
    "get(items, place) AS CASE WHEN place >= 0 THEN items[CAST(place AS BIGINT) + 1] END",
    "place_of(items, item) AS CASE WHEN items IS NOT NULL AND item IS NOT NULL THEN coalesce(list_position(items, item), 0) END",
    # Java compares UTF-16 code units: characters from U+E000 to U+FFFF sort after those beyond, which are pairs of units.
    r"utf16_key(x) AS regexp_replace(x, '([\x{E000}-\x{FFFF}])', chr(1114111) || '\1', 'g')",
    # `epoch_ms` rounds.
    "unix_millis(x) AS epoch_us(x) // 1000",
    "signed_hash(x) AS CAST(x >> 1 AS BIGINT)",
)
"""DuckDB macros that translated statements use."""


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the functions that translated statements use, and set the time zone to UTC as in Spark's session, for all cursors too."""
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Rows are measured in any order. Lines of an export are long, so vectors of them are not filled up.
    connection.execute("SET GLOBAL preserve_insertion_order = FALSE")
    connection.execute("SET GLOBAL enable_caching_operators = FALSE")
    connection.create_function("crc32", _crc32, ["VARCHAR"], "BIGINT")
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _crc32(text: str) -> int:
    return zlib.crc32(text.encode())


@cache
def duckdb_sql(statement: str) -> str:
    """Return a statement of the suites in DuckDB's SQL.

    Args:
        statement: Spark SQL that uses the functions known here.

    Raises:
        ValueError: The statement uses a function in a form that is not known here.
    """
    tree = parse_one(statement, read="spark")
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    # Inner expressions first: their translation is part of the outer one. Nothing is copied that has one place only: sqlglot's builders copy
    # by default, and a query in which others are nested would be copied once for each level.
    for node in reversed(list(tree.walk())):
        translated = _translated(node)
        if translated is not node:
            node.replace(translated)
    return tree.sql(dialect="duckdb", copy=False)


def json_structure(ddl: str) -> str:
    """Return a Spark schema (`a int, b array<string>`, or a type) as the structure that DuckDB's `from_json` takes."""
    return json.dumps(_structure(ddl))


def _structure(ddl: str) -> object:
    text = ddl.strip()
    if re.match(r"(array|map|struct)<", text):
        return _structure_of_type(text)
    return {name: _structure_of_type(kind) for name, kind in _fields(text)}


def _structure_of_type(kind: str) -> object:
    if kind.startswith("array<"):
        return [_structure_of_type(kind[len("array<") : -1].strip())]
    if kind.startswith("struct<"):
        return {name: _structure_of_type(of) for name, of in _fields(kind[len("struct<") : -1])}
    return _type(kind)


def _type(kind: str) -> str:
    if kind.startswith("array<"):
        return f"{_type(kind[len('array<') : -1].strip())}[]"
    if kind.startswith("map<"):
        key, value = _parts(kind[len("map<") : -1])
        return f"MAP({_type(key)}, {_type(value)})"
    if kind.startswith("struct<"):
        fields = ", ".join(f'"{name}" {_type(of)}' for name, of in _fields(kind[len("struct<") : -1]))
        return f"STRUCT({fields})"
    return _TYPES[kind]


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for part in _parts(text):
        match = re.fullmatch(r"`?(\w+)`?\s*:?\s*(.+)", part, re.DOTALL)
        if match is None:
            raise ValueError(f"{part!r} is no field of a schema")
        yield match[1], match[2].strip()


def _parts(text: str) -> list[str]:
    """Split a text at the commas that are not within `<` and `>`."""
    depth, parts = 0, [""]
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())


def _translated(node: exp.Expr) -> exp.Expr:
    """Return the translation of an expression whose parts are translated; the expression itself where sqlglot knows it."""
    if isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.Filter, exp.Window)):
        return _list_aggregate(node)
    if isinstance(node, exp.Anonymous):
        translate = _BY_NAME.get(node.name.lower())
        return translate(node.expressions) if translate else node
    if isinstance(node, exp.Literal) and node.is_string:
        # A code point in a regular expression: of Java, then of RE2.
        text = re.sub(r"\\u([0-9a-fA-F]{4})", r"\\x{\1}", node.name)
        return node if text == node.name else _text(text)
    known = _BY_TYPE.get(type(node))
    return known(node) if known else node


def _list_aggregate(node: exp.Expr) -> exp.Expr:
    """Translate `collect_list` and `collect_set`, which leave out nulls, and are empty, not null, without any value."""
    aggregate = node.this if isinstance(node, exp.Window) else node
    condition = None
    if isinstance(aggregate, exp.Filter):
        aggregate, condition = aggregate.this, aggregate.expression.this
    is_part = isinstance(node.parent, (exp.Filter, exp.Window)) and node.arg_key == "this"
    if is_part or not isinstance(aggregate, (exp.ArrayAgg, exp.ArrayUniqueAgg)):
        return node
    value = aggregate.this
    is_given = exp.Not(this=_is_null(value))
    counted = exp.Distinct(expressions=[value]) if isinstance(aggregate, exp.ArrayUniqueAgg) else value
    values: exp.Expr = exp.Filter(
        this=_call("list", counted),
        expression=exp.Where(
            this=is_given if condition is None else exp.and_(is_given, condition, copy=False)
        ),
    )
    if isinstance(node, exp.Window):
        window = node.copy()
        window.set("this", values)
        values = window
    return exp.Coalesce(this=values, expressions=[exp.Array()])


def _of_elements(function: str, items: exp.Expr, condition: exp.Expr, empty: exp.Expr) -> exp.Expr:
    """Return whether a condition holds for any, or for all, elements; null for a null list."""
    return exp.Coalesce(
        this=_call(function, _call("list_transform", items, condition)),
        expressions=[exp.Case(ifs=[exp.If(this=_is_null(items), true=exp.Null())], default=empty)],
    )


def _count_if(node: exp.Expr) -> exp.Expr:
    """Translate `count_if`; DuckDB's is null, not 0, where no condition is known."""
    return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=node.this))


def _encode(node: exp.Expr) -> exp.Expr:
    """Translate `encode`: UTF-16 is used to sort only, and DuckDB keeps texts in UTF-8."""
    return _call("utf16_key", node.this) if node.args["charset"].name == "UTF-16BE" else node.this


def _sorted_list(node: exp.Expr) -> exp.Expr:
    if node.args.get("expression") is not None:
        raise ValueError("array_sort is translated without a comparator only")
    is_descending = node.args.get("asc") is not None and not node.args["asc"].this
    return _call("list_sort", node.this, _text("DESC" if is_descending else "ASC"), _text("NULLS LAST"))


def _aggregate(node: exp.Expr) -> exp.Expr:
    """Add up elements at once, because `list_reduce` takes one after another. No element may be null; no element gives null."""
    start, step = node.args["initial"], node.args["merge"]
    total, element = step.expressions
    if step.this != exp.Add(this=total, expression=element) or not isinstance(start, exp.Cast):
        return node
    return exp.Add(this=start, expression=exp.Cast(this=_call("list_sum", node.this), to=start.to))


def _slice(node: exp.Expr) -> exp.Expr:
    """Translate `slice`, which takes a position and a number of elements; DuckDB takes the first and the last position."""
    start, length = exp.paren(node.args["start"], copy=False), exp.paren(node.args["end"], copy=False)
    last = exp.Sub(this=exp.Add(this=start.copy(), expression=length), expression=exp.Literal.number(1))
    return _call("list_slice", node.this, start, last)


def _exists(node: exp.Expr) -> exp.Expr:
    condition = node.args.get("expression")
    return node if condition is None else _of_elements("list_bool_or", node.this, condition, exp.false())


def _with_positions_from_0(function: str) -> Callable[[exp.Expr], exp.Expr]:
    """Translate lambdas whose second parameter is the element's position: from 0 in Spark, from 1 in DuckDB."""

    def translate(node: exp.Expr) -> exp.Expr:
        condition = node.expression
        for parameter in condition.expressions[1:]:
            for part in list(condition.this.walk()):
                is_name = isinstance(part, exp.Identifier) and not isinstance(
                    part.parent, (exp.Column, exp.Dot)
                )
                if (is_name or isinstance(part, exp.Column)) and part.name == parameter.name:
                    position = exp.Sub(
                        this=exp.to_identifier(parameter.name), expression=exp.Literal.number(1)
                    )
                    part.replace(exp.paren(position, copy=False))
        return _call(function, node.this, condition)

    return translate


def _from_json(node: exp.Expr) -> exp.Expr:
    schema = node.args.get("schema", node.expression)
    return _call("from_json", _call("plain_json", node.this), _text(json_structure(schema.name)))


def _concat(node: exp.Expr) -> exp.Expr:
    """Translate `concat`, which is null if a part is null; DuckDB's `concat` would leave the part out."""
    first, *others = node.expressions
    for other in others:
        first = exp.DPipe(this=first, expression=other)
    return exp.paren(first, copy=False)


def _whole_row(node: exp.Expr) -> exp.Expr:
    """Translate `struct(*)` to the row of the one relation of its query."""
    if not (len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)):
        return node
    query = node.find_ancestor(exp.Select)
    source = None if query is None else query.find(exp.From)
    if source is None:
        raise ValueError("struct(*) is not in a query of a relation")
    return exp.column(source.this.alias_or_name)


def _substring_index(node: exp.Expr) -> exp.Expr:
    if node.args["count"].name != "1":
        raise ValueError("substring_index is translated for the first part only")
    return _call("split_part", node.this, node.args["delimiter"], node.args["count"])


def _regexp_replace(node: exp.Expr) -> exp.Expr:
    r"""Translate a group in the replacement: `$1` in Java, `\1` in RE2."""
    replacement = node.args.get("replacement")
    if isinstance(replacement, exp.Literal):
        node.set("replacement", _text(re.sub(r"\$(\d)", r"\\\1", replacement.name)))
    return node


def _inline(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.Lateral):
        return node
    return _call(
        "unnest", node.this, exp.PropertyEQ(this=exp.to_identifier("recursive"), expression=exp.true())
    )


def _select(node: exp.Expr) -> exp.Expr:
    """Unnest lists in the select list of a subquery: DuckDB joins a lateral's rows with all columns that its list is made of.

    Laterals over a join stay as they are, because the columns of its relations may have qualifiers.
    """
    source, laterals = node.args.get("from_"), node.args.get("laterals")
    if source is None or not laterals or node.args.get("joins"):
        return node
    relation, name = source.this, source.this.alias_or_name
    for lateral in laterals:
        relation = _with_elements(relation, lateral).subquery(name or None, copy=False)
    source.set("this", relation)
    node.set("laterals", [])
    return node


def _with_elements(relation: exp.Expr, lateral: exp.Lateral) -> exp.Select:
    """Return a query for the columns of a relation and those of `LATERAL VIEW`."""
    generator, names = lateral.this, [column.name for column in lateral.args["alias"].columns]
    elements = _call("unnest", generator.this)
    if isinstance(generator, exp.Inline):
        rows = exp.select("*", exp.alias_(elements, _ELEMENT, copy=False)).from_(relation, copy=False)
        fields = (
            exp.alias_(_call("struct_extract_at", exp.column(_ELEMENT), exp.Literal.number(place)), name)
            for place, name in enumerate(names, 1)
        )
        return exp.select(exp.Star(except_=[exp.to_identifier(_ELEMENT)]), *fields).from_(
            rows.subquery(_ELEMENT, copy=False), copy=False
        )
    places = []
    if isinstance(generator, exp.Posexplode):
        place, *names = names
        places = [exp.alias_(_call("unnest", _call("range", _call("len", generator.this.copy()))), place)]
    [name] = names
    return exp.select("*", *places, exp.alias_(elements, name, copy=False)).from_(relation, copy=False)


def _lateral(node: exp.Expr) -> exp.Expr:
    """Translate `LATERAL VIEW OUTER`, which has a row with a null for an empty list."""
    if node.args.get("outer"):
        generator = node.this
        items = generator.this
        has_items = exp.GT(this=exp.ArraySize(this=items.copy()), expression=exp.Literal.number(0))
        nothing = exp.Array(expressions=[exp.Null()])
        generator.set("this", exp.Case(ifs=[exp.If(this=has_items, true=items.copy())], default=nothing))
        node.set("outer", None)
    return node


def _ignore_nulls(node: exp.Expr) -> exp.Expr:
    return (
        exp.IgnoreNulls(this=exp.LastValue(this=node.this.this)) if isinstance(node.this, exp.Last) else node
    )


def _pmod(parts: list[exp.Expr]) -> exp.Expr:
    value, divisor = (exp.paren(part, copy=False) for part in parts)
    rest = exp.paren(exp.Mod(this=value, expression=divisor), copy=False)
    positive = exp.paren(exp.Add(this=rest, expression=divisor.copy()), copy=False)
    return exp.paren(exp.Mod(this=positive, expression=divisor.copy()), copy=False)


def _renamed(name: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: _call(name, node.this)


_BY_TYPE: Final[dict[type, Callable[[exp.Expr], exp.Expr]]] = {
    exp.ArrayFilter: _with_positions_from_0("list_filter"),
    exp.ArrayPosition: lambda node: _call("place_of", node.this, node.expression),
    exp.ArraySlice: _slice,
    exp.ArraySort: _sorted_list,
    exp.Concat: _concat,
    exp.CountIf: _count_if,
    exp.ConcatWs: lambda node: _call("concat_ws", *node.expressions),
    exp.Encode: _encode,
    exp.Exists: _exists,
    exp.FromJson: _from_json,
    exp.IgnoreNulls: _ignore_nulls,
    exp.Inline: _inline,
    exp.Lateral: _lateral,
    exp.MapContainsKey: lambda node: _call("map_contains", node.this, node.args["key"]),
    exp.RegexpReplace: _regexp_replace,
    exp.Reduce: _aggregate,
    exp.Select: _select,
    exp.SHA2: _renamed("sha256"),
    exp.SafeAdd: lambda node: _call("try", exp.Add(this=node.this, expression=node.expression)),
    exp.SafeSubtract: lambda node: _call("try", exp.Sub(this=node.this, expression=node.expression)),
    exp.Struct: _whole_row,
    exp.SubstringIndex: _substring_index,
    exp.Transform: _with_positions_from_0("list_transform"),
    exp.UnixMicros: _renamed("epoch_us"),
    exp.UnixMillis: _renamed("unix_millis"),
}

_BY_NAME: Final[dict[str, Callable[[list[exp.Expr]], exp.Expr]]] = {
    "array_union": lambda parts: _call("list_distinct", _call("list_concat", *parts)),
    "arrays_overlap": lambda parts: _call("list_has_any", *parts),
    "conv": lambda parts: exp.Cast(
        this=exp.paren(exp.DPipe(this=_text("0x"), expression=parts[0]), copy=False),
        to=exp.DataType.build("UBIGINT", dialect="duckdb"),
    ),
    "forall": lambda parts: _of_elements("list_bool_and", parts[0], parts[1], exp.true()),
    "format_number": lambda parts: _call(
        "format",
        _text(f"{{:,.{parts[1].name}f}}"),
        exp.Cast(this=parts[0], to=exp.DataType.build("DOUBLE", dialect="duckdb")),
    ),
    "is_valid_utf8": lambda parts: exp.Not(this=_is_null(_call("try", _call("decode", parts[0])))),
    "pmod": _pmod,
    "xxhash64": lambda parts: _call("signed_hash", _call("hash", *parts)),
}
