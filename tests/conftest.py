"""Tests run in several processes: those of one file stay together, and all of the store's share one Postgres."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.parent.name
        item.add_marker(
            pytest.mark.xdist_group(folder if folder in ("cli", "store") else f"{folder}/{item.path.stem}")
        )
