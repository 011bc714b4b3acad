"""Texts on which readers of offset files differ, and the result of each reader.

Belongs here: one text for each rule. The tests without Java check the readers against these results, and the comparison
with the Java classes uses the same texts, so every result is verified.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.offset_file_checks import REFUSED

RELEASES = ("4.7.1", "4.9.3", "4.9.7", "5.3.3", "5.5.0")
FASTJSON_1 = RELEASES[:-1]
FASTJSON_2 = RELEASES[-1:]
GO = ("GO",)
EVERY_CLIENT = RELEASES + GO

QUEUE = '{"brokerName":"b","queueId":0,"topic":"T"}'
QUEUE_AS_TEXT = QUEUE.replace('"', '\\"')
READ = [["T", "b", 0, 7]]


class Example(NamedTuple):
    """A text, and its results other than `REFUSED` by reader: a table, or a name as in the golden files."""

    what: str
    text: str
    read: dict[tuple[str, ...], object]


EXAMPLES = [
    Example("as fastjson 1 and 2 write it", f'{{"offsetTable":{{{QUEUE}:7}}}}', {RELEASES: READ}),
    Example("as Go writes it", f'{{"offsetTable":{{"{QUEUE_AS_TEXT}":7}}}}', {FASTJSON_1 + GO: READ}),
    Example("an empty table", '{"offsetTable":{}}', {EVERY_CLIENT: []}),
    Example("no table at all", "{}", {EVERY_CLIENT: []}),
    Example("a null table", '{"offsetTable":null}', {RELEASES: "null_table", GO: []}),
    Example("null", "null", {RELEASES: "null", GO: []}),
    Example("blanks alone", " \n", {FASTJSON_1: "null"}),
    Example("an empty string", '""', {RELEASES: "null"}),
    Example("an empty array", "[]", {FASTJSON_1: "null"}),
    Example("a table that is an array", '{"offsetTable":[]}', {}),
    Example("zero bytes, as after a loss of power", "\0" * 64, {}),
    # Around the file.
    Example("a byte order mark", f'\ufeff{{"offsetTable":{{{QUEUE}:7}}}}', {RELEASES: READ}),
    Example("a zero byte behind", f'{{"offsetTable":{{{QUEUE}:7}}}}\0', {RELEASES: READ}),
    Example("a word behind", f'{{"offsetTable":{{{QUEUE}:7}}}} x', {}),
    Example("a brace too many", f'{{"offsetTable":{{{QUEUE}:7}}}}}}', {}),
    Example("a brace too few", f'{{"offsetTable":{{{QUEUE}:7}}', {}),
    Example("a comment before", f'// c\n{{"offsetTable":{{{QUEUE}:7}}}}', {RELEASES: READ}),
    Example("a comment in it", f'{{"offsetTable":{{{QUEUE}:/* c */7}}}}', {RELEASES: READ}),
    # Names.
    Example(
        "single quotes",
        "{'offsetTable':{{'brokerName':'b','queueId':0,'topic':'T'}:7}}",
        {RELEASES: READ},
    ),
    Example(
        "names without quotes",
        '{offsetTable:{{brokerName:"b",queueId:0,topic:"T"}:7}}',
        {FASTJSON_1: READ},
    ),
    Example("a name in capitals", f'{{"OFFSETTABLE":{{{QUEUE}:7}}}}', {FASTJSON_1: READ}),
    Example("a name with an underscore", f'{{"offset_table":{{{QUEUE}:7}}}}', {FASTJSON_1: READ}),
    Example("a name that nobody knows", '{"x":[{"y":1}],"offsetTable":{}}', {EVERY_CLIENT: []}),
    # Queues.
    Example("a queue without fields", '{"offsetTable":{{}:7}}', {RELEASES: [[None, None, 0, 7]]}),
    Example(
        "a queue of nulls",
        '{"offsetTable":{{"queueId":null,"topic":null}:7}}',
        {RELEASES: [[None, None, 0, 7]]},
    ),
    Example("a queue id as a text", '{"offsetTable":{{"queueId":"5"}:7}}', {RELEASES: [[None, None, 5, 7]]}),
    Example("a queue id past 31 bits", '{"offsetTable":{{"queueId":2147483648}:7}}', {}),
    Example("null for a queue", '{"offsetTable":{null:7}}', {}),
    Example("a word for a queue", '{"offsetTable":{"T":7}}', {}),
    Example("a queue twice", f'{{"offsetTable":{{{QUEUE}:1,{QUEUE}:7}}}}', {RELEASES: READ}),
    Example("a comma too many", f'{{"offsetTable":{{{QUEUE}:7,}}}}', {RELEASES: READ}),
    # Offsets.
    Example("a fraction", f'{{"offsetTable":{{{QUEUE}:7.9}}}}', {RELEASES: READ}),
    Example("an exponent", f'{{"offsetTable":{{{QUEUE}:0.7e1}}}}', {RELEASES: READ}),
    Example("a text", f'{{"offsetTable":{{{QUEUE}:"7"}}}}', {RELEASES: READ}),
    Example("true", f'{{"offsetTable":{{{QUEUE}:true}}}}', {("4.9.3", "5.3.3", "5.5.0"): [["T", "b", 0, 1]]}),
    Example("null", f'{{"offsetTable":{{{QUEUE}:null}}}}', {}),
    Example("past 63 bits", f'{{"offsetTable":{{{QUEUE}:9223372036854775808}}}}', {}),
    Example("an object", f'{{"offsetTable":{{{QUEUE}:{{}}}}}}', {}),
    # Texts that make fastjson load classes.
    Example(
        "the queue's own type",
        '{"offsetTable":{{"@type":"org.apache.rocketmq.common.message.MessageQueue","topic":"T"}:7}}',
        {RELEASES: [["T", None, 0, 7]]},
    ),
    Example(
        "another type for the whole",
        f'{{"@type":"java.util.Date","offsetTable":{{{QUEUE}:7}}}}',
        {FASTJSON_2: READ},
    ),
]


def expected(example: Example, client: str) -> object:
    """Return the result of an example for a release, or for `GO`."""
    return next((result for clients, result in example.read.items() if client in clients), REFUSED)
