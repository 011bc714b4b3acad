"""A small published warehouse, built once."""

from __future__ import annotations

import pytest

from tests.support.published_sample import publish_shop_days


@pytest.fixture(scope="session")
def shop_warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the root of a warehouse with two days of `shop-prod` and one of `pay-prod`. Tests only read it."""
    return publish_shop_days(tmp_path_factory.mktemp("shop") / "warehouse")
