"""The lists of models that providers gave, in Redis: all workers and surfaces of a cluster read the same."""

from __future__ import annotations

from shared.bus.base import Bus
from shared.bus.keys import Names


class ModelLists:
    """One hash, a field a provider; what stands in it is JSON of who asked."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._names = bus, names

    async def read(self) -> dict[str, bytes]:
        """All of them, by provider."""
        found = await self._bus.command("HGETALL", self._names.model_lists)
        pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
        return {name.decode(): data for name, data in pairs}

    async def write(self, provider: str, data: str) -> None:
        """Keep one; who looked for it need not wait any longer."""
        await self._bus.command("HSET", self._names.model_lists, provider, data)
        await self._bus.command("DEL", self._names.model_asker(provider))

    async def claim(self, provider: str, seconds: int) -> bool:
        """Whether we are to ask this provider; for so long nobody else does."""
        key = self._names.model_asker(provider)
        return bool(await self._bus.command("SET", key, "1", "NX", "EX", seconds))
