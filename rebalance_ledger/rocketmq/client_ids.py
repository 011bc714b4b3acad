"""Kinds of clients by their client ids.

Belongs here: the forms of ids. Does not belong here: what a client does (`rebalance`, `pop`).

Source: `ClientConfig.buildMQClientId` (remoting: `ip@instance`, `ip@instance@unit`, `…@STREAM`), and `ClientId` of
`rocketmq-clients` 5.0 (gRPC, all languages: `host@pid@index@nanos`, the last in base 36).
"""

from __future__ import annotations

import re
from typing import Final

GRPC_CLIENT_ID_PATTERN: Final = r"^.+@\d+@\d+@-?[0-9a-z]+$"
"""The form of a gRPC client's id. A remoting client has it only if somebody gave it such an instance name."""

_GRPC_CLIENT_ID: Final = re.compile(GRPC_CLIENT_ID_PATTERN, re.ASCII)


def is_grpc_client_id(client_id: str) -> bool:
    """Return whether a client id has the form of the ids that gRPC clients generate."""
    return _GRPC_CLIENT_ID.fullmatch(client_id) is not None
