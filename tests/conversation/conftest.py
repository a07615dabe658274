"""The real bus and a real store."""

from __future__ import annotations

from tests.support.sqlite import store
from tests.support.valkey import names, redis, valkey

__all__ = ["names", "redis", "store", "valkey"]
