"""Spark starts on a machine whose own name has no address."""

from __future__ import annotations

import socket

import pytest

from rebalance_ledger.host_name import variables_without_address


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("localhost", {}),
        ("no-such-host.invalid", {"SPARK_LOCAL_IP": "127.0.0.1"}),  # RFC 6761
        ("a..b", {"SPARK_LOCAL_IP": "127.0.0.1"}),
    ],
)
def test_a_name_without_an_address_is_replaced_by_loopback(
    name: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)

    assert variables_without_address() == variables
