"""Pauses before Redis is tried again: longer each time, and by chance, so that not all come back at one moment.

For lines that are kept for ever. A call that is made again until it succeeds, or patience is over, is tenacity's.
"""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """Of one line; `failures` in a row so far."""

    def __init__(self, first: float = 0.05, most: float = 1.0) -> None:
        self._first, self._most = first, most
        self.failures = 0

    def reset(self) -> None:
        """The line stands."""
        self.failures = 0

    async def pause(self) -> None:
        """Count a failure, and wait."""
        self.failures += 1
        await asyncio.sleep(random.uniform(0.02, self.longest))

    @property
    def longest(self) -> float:
        """Seconds that the next pause takes at most."""
        return min(self._most, self._first * 2.0 ** min(self.failures, 8))
