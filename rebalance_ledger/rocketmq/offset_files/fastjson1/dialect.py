"""The releases of fastjson 1, and the type names that each allows: `ParserConfig.checkAutoType`.

Belongs here: what differs between releases, and the rules for `@type`. Does not belong here: where a type name may stand
in a text (`parsing.object_parser`, `deserializers.bean`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

_HASH_MAPS: Final = frozenset({"java.util.HashMap", "java.util.LinkedHashMap"})
_LONGEST_TYPE_NAME: Final = 192
# Names that may be in fastjson's lists of classes, or that the client may have read before.
_KNOWN_TYPE: Final = re.compile(
    r"java\.|javax\.|sun\.|com\.alibaba\.|org\.springframework\.|org\.apache\.|org\.joda\.|com\.google\.|org\.javamoney\."
    r"|(?:byte|short|int|long|float|double|boolean|char)$"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between the releases of fastjson 1.

    Attributes:
        release: Its own name.
        is_since_76: Whether it is 1.2.76 or later.
        is_since_83: Whether it is 1.2.83 or later.
        has_type_names: Whether a type name may stand for a class at all: the build of 4.9.7 refuses every one.
    """

    release: str
    is_since_76: bool = False
    is_since_83: bool = False
    has_type_names: bool = True

    def check_bean_type(self, type_name: str, bean_type_name: str) -> None:
        """Return if the type name of a bean has no effect.

        Raises:
            UndecidedError: The client's class path decides.
            RefusedError: The name is not allowed.
        """
        if type_name == bean_type_name or (self.is_since_76 and type_name in _HASH_MAPS):
            return
        may_be_known = type_name in _HASH_MAPS or type_name.startswith("org.apache.rocketmq.")
        if self.has_type_names and (may_be_known or self._ignores(type_name)):
            raise UndecidedError(Doubt.TYPE_NAME)
        raise RefusedError(f"the type {type_name!r} is not allowed")

    def check_member_type(self, type_name: str) -> None:
        """Return if a type name in an ignored value is treated as an ordinary value.

        Raises:
            UndecidedError: The client's class path decides.
            RefusedError: The name is not allowed.
        """
        if not type_name.strip("0123456789"):
            return
        if type_name == "com.alibaba.fastjson.JSONObject" or (self.is_since_76 and type_name in _HASH_MAPS):
            raise UndecidedError(Doubt.TYPE_NAME)
        if self.has_type_names:
            if _KNOWN_TYPE.match(type_name):
                raise UndecidedError(Doubt.TYPE_NAME)
            if self._ignores(type_name):
                return
        raise RefusedError(f"the type {type_name!r} is not allowed")

    def _ignores(self, type_name: str) -> bool:
        """Return whether `checkAutoType` gives no class for the name, and no exception either."""
        is_throwable = type_name.endswith(("Exception", "Error"))
        return self.is_since_83 and is_throwable and len(type_name) < _LONGEST_TYPE_NAME


FASTJSON_1_2_69: Final = Dialect("1.2.69")
FASTJSON_1_2_69_NONEAUTOTYPE: Final = Dialect("1.2.69_noneautotype", has_type_names=False)
FASTJSON_1_2_76: Final = Dialect("1.2.76", is_since_76=True)
FASTJSON_1_2_83: Final = Dialect("1.2.83", is_since_76=True, is_since_83=True)
