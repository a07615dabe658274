"""A person with a gateway: the client's line through a proxy of its own, and all that it hears."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from pydantic import SecretStr

from shared.bus.messages import CLOSING
from shared.client import Client
from shared.settings import Settings
from tests.faults.cluster import Cluster
from tests.faults.proxy import Proxy


class Person:
    """Hears everything that Chatter says, and notes it."""

    def __init__(self, client: Client, proxy: Proxy) -> None:
        self.client, self.proxy = client, proxy
        self.heard: set[str] = set()  # ids of closing outputs

    async def listen(self, ready: asyncio.Event) -> None:
        """Until cancelled."""
        async with self.client.outputs() as outputs:
            ready.set()
            async for said in outputs:
                if said.output.status in CLOSING:
                    self.heard.add(said.output.id)


@contextlib.asynccontextmanager
async def person(cluster: Cluster) -> AsyncIterator[Person]:
    """Somebody who listens from here on."""
    async with Proxy(cluster.server.url) as proxy:
        fields: dict[str, Any] = {
            "redis_url": SecretStr(proxy.url),
            "home": cluster.folder / "person",
            "namespace": cluster.names.namespace,
            "lease_ms": cluster.lease,
        }
        async with Client(Settings.model_construct(**fields)) as client:
            made, ready = Person(client, proxy), asyncio.Event()
            listening = asyncio.create_task(made.listen(ready))
            try:
                async with asyncio.timeout(20):
                    await ready.wait()
                yield made
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
