"""The bus on Redis and Valkey; the only room that imports redis."""

from shared.bus.redis.client import RedisBus

__all__ = ["RedisBus"]
