"""The real bus."""

from __future__ import annotations

from tests.support.valkey import names, redis, valkey

__all__ = ["names", "redis", "valkey"]
