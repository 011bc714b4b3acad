"""An `OffsetSerializeWrapper` as fastjson 1 reads it.

Belongs here: the reader that fastjson generates for the class. Does not belong here: what it shares with that of
`MessageQueue` (`bean`), and the table (`table`).
"""

from __future__ import annotations

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.bean import BeanDeserializer, FieldMatch
from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.table import TableDeserializer
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import Wrapper


class WrapperDeserializer(BeanDeserializer[Wrapper]):
    """The reader that fastjson generates for `OffsetSerializeWrapper`."""

    type_name = "org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper"
    bean_class = Wrapper
    fields = ("offsetTable",)

    def _read_in_order(self, bean: Wrapper, read_fields: set[str]) -> bool:
        lexer = self._lexer
        if not lexer.match_field('"offsetTable":'):
            return False
        read_fields.add("offsetTable")
        table = TableDeserializer(self._parser).read("offsetTable")
        self._contexts.give_reference_to(bean)
        bean.offsetTable = table
        if lexer.token != Token.RBRACE:
            return False
        lexer.close_bean()
        return True

    def _match_field(self, name: str) -> FieldMatch | None:
        return FieldMatch(name, None, is_read=False) if self._lexer.match_field(f'"{name}":') else None

    def _has_other_name(self) -> bool:
        return True

    def _read_field(self, bean: Wrapper, name: str) -> None:
        """`DefaultFieldDeserializer.parseField` of `offsetTable`."""
        table = TableDeserializer(self._parser).read(name)
        if self._contexts.awaits_reference:
            self._contexts.give_reference_to(bean)
        else:
            bean.offsetTable = table
