"""Ignored values, as fastjson 1 reads them, contexts and references: `DefaultJSONParser`.

| Java | here |
|---|---|
| `parseObject(Map, Object)` | `object_parser` |
| `parse`, `parseArray` | `value_parser` |
| `ParseContext`, `ResolveTask` | `contexts` |

Belongs here: what fastjson reads without a class to go by, and the state of a parser. Does not belong here: objects of a
class, and the fields and offsets that are wanted (`deserializers`).
"""
