"""A worker's way to the cluster: the bus, the names of what lies there, who is present, and the agents' queues."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.presence import Presence
from shared.bus.signing import Signer
from shared.turns.queue import Queue


@dataclass
class Connection:
    """One process's; `lease_ms` is how long a claimed turn is its own without a sign of life."""

    bus: Bus
    names: Names
    signer: Signer
    lease_ms: int
    presence: Presence = field(init=False)
    _queues: dict[str, Queue] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.presence = Presence(self.bus, self.names, self.signer)

    def queue(self, agent: str) -> Queue:
        """The queue of an agent, ours or another's."""
        if agent not in self._queues:
            self._queues[agent] = Queue(
                self.bus, self.names, agent, lease_ms=self.lease_ms, signer=self.signer
            )
        return self._queues[agent]
