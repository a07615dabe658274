"""A lease on something that one worker at a time may do, with an epoch that fences the holders before."""

from __future__ import annotations

from shared.bus.base import Bus, Script
from shared.bus.keys import Names

# token ms -> the epoch of the lease if it is ours, else 0. Each new holder gets a higher epoch.
_TAKE = Script(
    "lease",
    """#!lua
local holder = redis.call('GET', KEYS[1]..'holder')
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1]..'holder', ARGV[1], 'PX', ARGV[2])
if not holder then return redis.call('INCR', KEYS[1]..'epoch') end
return tonumber(redis.call('GET', KEYS[1]..'epoch'))
""",
)
_DROP = Script(
    "lease-drop",
    """#!lua
if redis.call('GET', KEYS[1]..'holder') == ARGV[1] then return redis.call('DEL', KEYS[1]..'holder') end
return 0
""",
)


class Lease:
    """One name, one holder. `take` both takes and renews."""

    def __init__(self, bus: Bus, names: Names, name: str, holder: str, ms: int) -> None:
        self._bus, self._holder, self.ms = bus, holder, ms
        self._key = f"{names.root}{{@{name}}}:"  # no agent's name begins with @

    async def take(self) -> int:
        """The epoch under which it is ours for `ms` from now on; 0 while another holds it."""
        return int(await self._bus.script(_TAKE, self._key, self._holder, self.ms))

    async def drop(self) -> None:
        """Let another have it at once."""
        await self._bus.script(_DROP, self._key, self._holder)
