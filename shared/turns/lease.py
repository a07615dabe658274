"""A lease on something that one worker at a time may do, with an epoch that fences the holders before."""

from __future__ import annotations

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.turns import scripts


class Lease:
    """One name, one holder. `take` both takes and renews."""

    def __init__(self, bus: Bus, names: Names, name: str, holder: str, ms: int) -> None:
        self._bus, self._holder, self.ms = bus, holder, ms
        self._key = names.lease(name)

    async def take(self) -> int:
        """The epoch under which it is ours for `ms` from now on; 0 while another holds it."""
        return int(await self._bus.script(scripts.TAKE_LEASE, self._key, self._holder, self.ms))

    async def drop(self) -> None:
        """Let another have it at once."""
        await self._bus.script(scripts.DROP_LEASE, self._key, self._holder)
