"""What is wanted of an offset file, as fastjson 1 reads it: `OffsetSerializeWrapper`, its table, `MessageQueue` and their fields.

| Java | here |
|---|---|
| the generated readers of `OffsetSerializeWrapper` and `MessageQueue` | `wrapper`, `message_queue` |
| `JavaBeanDeserializer` behind them, for everything else than the expected | `bean` |
| `MapDeserializer`, for the table | `table` |
| `LongCodec`, `IntegerCodec`, `StringCodec`, and `TypeUtils` | `codecs`, `casts` |

Belongs here: objects of a class, and their fields. Does not belong here: ignored values (`parsing`).
"""
