"""The characters and tokens of fastjson 1: `JSONLexerBase` and `JSONScanner` of 1.2.69 to 1.2.83, with the features that are on by default.

| Java | here |
|---|---|
| the shortcuts for generated readers: `scanType`, `matchField`, `scanFieldInt`, `scanFieldString` | `lexer` |
| `nextToken` and its kin of `JSONLexerBase` | `tokenizer` |
| `scanString`, `scanSymbol`, `scanNumber` and the values of these | `literals`, `escapes` |
| `next`, `charAt`, `skipWhitespace`, `skipComment` | `characters` |
| `JSONToken`, `matchStat` | `tokens` |

fastjson's lexer keeps more state than it needs, and what it accepts depends on that: the character in hand (`ch`) and
the place (`position`) may part, a value that a shortcut has taken leaves the token from before it, and U+001A stands for
the end of the text wherever it is. So the state is the same here.

Belongs here: how a text is cut into tokens. Does not belong here: what the tokens make (`parsing` and `deserializers`).
"""
