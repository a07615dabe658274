"""AutoGen core's distributed runtime: two worker runtimes, and between them a host, all over gRPC."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from autogen_core import AgentId, MessageContext, RoutedAgent, rpc, try_get_known_serializers_for_type
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

from benchmarks.side import WORDS, Side


@dataclass
class Question:
    """What is asked."""

    id: str
    question: str


@dataclass
class Reply:
    """What is answered."""

    in_reply_to: str
    content: str


class Replier(RoutedAgent):  # type: ignore[misc] # its package is not in our environment
    """The agent that answers."""

    @rpc  # type: ignore[untyped-decorator]
    async def reply(self, message: Question, _context: MessageContext) -> Reply:
        """At once."""
        return Reply(message.id, WORDS)


class AutoGen(Side):
    """No Redis, and nothing is kept; the host is a process of its own, as a server is."""

    name, about = "autogen", "core's gRPC runtime, host in a process of its own, uvloop; kept nowhere"
    address = f"127.0.0.1:{os.environ.get('BENCH_HUB', '0')}"

    async def hub(self) -> None:
        """The host."""
        GrpcWorkerAgentRuntimeHost(address=self.address).start()
        await asyncio.Event().wait()

    async def _runtime(self) -> GrpcWorkerAgentRuntime:
        runtime = GrpcWorkerAgentRuntime(host_address=self.address)
        for kind in (Question, Reply):
            runtime.add_message_serializer(try_get_known_serializers_for_type(kind))
        await runtime.start()
        return runtime

    async def serve(self) -> None:
        runtime = await self._runtime()
        await Replier.register(runtime, "replier", lambda: Replier("answers"))
        await asyncio.Event().wait()

    async def open(self) -> None:
        self._open = await self._runtime()

    async def ask(self) -> None:
        request = next(self._ids)
        answer = await self._open.send_message(Question(request, WORDS), AgentId("replier", "default"))
        assert answer.in_reply_to == request, answer

    async def send(self, request: str) -> None:
        raise NotImplementedError("its client asks and waits in one")

    async def close(self) -> None:
        await self._open.stop()


side = AutoGen
