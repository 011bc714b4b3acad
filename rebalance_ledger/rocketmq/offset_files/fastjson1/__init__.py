"""fastjson 1, the JSON library of Java clients before 5.4.0: an offset file as `JSON.parseObject` of its releases reads it.

This follows the classes step by step, because what they accept is decided by their steps:

| Java | here |
|---|---|
| `JSON.parseObject`, `LocalFileOffsetStore.load` | `offset_file` |
| the readers that are generated for a class, `JavaBeanDeserializer`, `MapDeserializer`, `LongCodec`, `TypeUtils` | `deserializers` |
| `DefaultJSONParser`, `ParseContext`, `ResolveTask` | `parsing` |
| `JSONScanner`, `JSONLexerBase`, `JSONToken` | `lexing` |
| `ParserConfig`, and what differs between releases | `dialect` |

| RocketMQ | fastjson |
|---|---|
| 4.7.1 | 1.2.69 |
| 4.9.3 | 1.2.76 |
| 4.9.7 | 1.2.69_noneautotype |
| 5.3.3 | 1.2.83 |

Belongs here: text to table, in releases of fastjson 1. Does not belong here: which client has which release (`releases`),
bytes and charsets.
"""
