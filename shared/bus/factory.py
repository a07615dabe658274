"""Makes the bus; called by the composition roots alone."""

from __future__ import annotations

from shared.bus.base import Bus
from shared.settings import Settings

_SILENCE = 0.75  # of a lease: after so long without an answer, a connection is dead


def make_bus(address: str, settings: Settings, client_name: str) -> Bus:
    """The bus on the server at this address; nothing is connected yet.

    The watchdog follows from the lease (12 s gives 9 s), so that a test can run both faster.
    """
    from shared.bus.redis import RedisBus

    return RedisBus(address, silence=settings.lease_ms * _SILENCE / 1000, client_name=client_name)
