"""A `MessageQueue` as fastjson 1 reads it.

Belongs here: the reader that fastjson generates for the class. Does not belong here: what it shares with that of
`OffsetSerializeWrapper` (`bean`).
"""

from __future__ import annotations

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.bean import BeanDeserializer, FieldMatch
from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.codecs import read_int, read_text
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Match
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import Queue


class QueueDeserializer(BeanDeserializer[Queue]):
    """The reader that fastjson generates for `MessageQueue`."""

    type_name = "org.apache.rocketmq.common.message.MessageQueue"
    bean_class = Queue
    fields = ("brokerName", "queueId", "topic")

    def _read_in_order(self, bean: Queue, read_fields: set[str]) -> bool:
        lexer = self._lexer
        for name in self.fields:
            field = self._match_field(name)
            if lexer.match == Match.NOT_MATCH:
                return False
            if field is not None:
                self._put_match(bean, field, read_fields)
            if lexer.match == Match.END:
                return True
        return False

    def _match_field(self, name: str) -> FieldMatch | None:
        prefix = f'"{name}":'
        value: str | int | None
        if name == "queueId":
            value = self._lexer.scan_int_field(prefix)
        else:
            value = self._lexer.scan_string_field(prefix)
        return FieldMatch(name, value, is_read=True) if self._lexer.match > 0 else None

    def _has_other_name(self) -> bool:
        return self._lexer.match == Match.NOT_MATCH_NAME

    def _read_field(self, bean: Queue, name: str) -> None:
        if name == "queueId":
            queue_id = read_int(self._parser)
            if queue_id is not None:
                bean.queueId = queue_id
        else:
            setattr(bean, name, read_text(self._parser))
