"""When something is tried again, and when nobody tries any more."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

DAYS = 3
_DEAD = timedelta(days=DAYS)
# Seconds after the first try, the second and so on; then the last one again and again.
_PAUSES = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600)


def again(tries: int, created: datetime, at: datetime, least: int = 0) -> datetime | None:
    """The moment of the next try after so many; None where it has been tried for days."""
    if at - created >= _DEAD:
        return None
    pause = max(least, _PAUSES[min(tries, len(_PAUSES)) - 1] * random.uniform(0.9, 1.1))
    return at + timedelta(seconds=pause)
