"""fastjson2, the JSON library of Java clients since 5.4.0: an offset file as 2.0.59 reads it (5.5.0), with the features that are on by default.

| Java | here |
|---|---|
| `JSON.parseObject`; the readers of `OffsetSerializeWrapper`, its table and `MessageQueue` | `offset_file` |
| `JSONReader`: `readInt64Value`, `readInt32Value`, `readString` for what is wanted, `skipValue` for all else | `reader` |
| `readNumber0`; `getNumber`, `getInt64Value`, `getInt32Value` | `number_reader`; `number` |
| `readFieldNameHashCode`, strings and words | `text_reader` |
| `next`, `nextIfMatch`, `skipComment`; `JSONReaderASCII` or `JSONReaderUTF16` | `characters` |

Belongs here: text to table, in fastjson2. Does not belong here: which client has it (`releases`), bytes and charsets.
"""
