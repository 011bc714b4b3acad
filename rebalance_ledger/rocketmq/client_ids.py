"""Kinds of clients by their client ids.

Belongs here: the forms of ids. Does not belong here: what a client does (`rebalance`, `pop`).

Source: `ClientConfig.buildMQClientId` (remoting: `ip@instance`, `ip@instance@unit`, `…@STREAM`), and of `rocketmq-clients` (gRPC) `ClientId` of
Java and most languages (`host@pid@index@nanos`, the last in base 36), `clientId` in `cpp/source/rocketmq/ClientImpl.cpp`
(`host@pid#index_millis`) and `Client::generate_client_id` in `rust/src/client.rs` (`host@pid#index`).
"""

from __future__ import annotations

import re
from typing import Final

GRPC_CLIENT_ID_PATTERN: Final = r"^(.+@\d+@\d+@-?[0-9a-z]+|.+@\d+#\d+_\d+|[^@:]*[A-Za-z][^@:]*@\d+#\d{1,6})$"
"""The form of a gRPC client's id. A remoting client has it only if somebody gave it such an instance name.

A Rust client's id differs from a Java remoting client's `ip@pid#nanos`, from 4.9.0 on, in the host name, which is no address, and in the short
number.
"""

_GRPC_CLIENT_ID: Final = re.compile(GRPC_CLIENT_ID_PATTERN, re.ASCII)


def is_grpc_client_id(client_id: str) -> bool:
    """Return whether a client id has the form of the ids that gRPC clients generate."""
    return _GRPC_CLIENT_ID.fullmatch(client_id) is not None
