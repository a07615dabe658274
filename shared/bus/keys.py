"""Every key and channel name, in one place (docs/wire.md for channels; keys are internal)."""

from __future__ import annotations

import re

from shared.errors import UsageError

HUMAN_INPUT = "human-input"
CHATTER_OUTPUT = "chatter-output"
STATUS = "agent:status"
BROADCAST = "broadcast"
CHATTER = "chatter"
# What anybody may publish and hear; patterns of an ACL.
PUBLIC = (HUMAN_INPUT, CHATTER_OUTPUT, "agent:*", "events:*", BROADCAST)

SCHEMA = 1  # of the keys; a worker that meets a newer one refuses to start
WIRE = 1  # of the envelopes' field `v`

DAY = 86_400
_AGENT = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def is_agent(name: str) -> bool:
    """Whether an agent may have this name: it becomes part of keys and channels."""
    return _AGENT.fullmatch(name) is not None


def _checked(name: str) -> None:
    if not is_agent(name):
        why = "names are lower case letters, digits, '.', '_' and '-'"
        raise UsageError(f"no agent is called {name[:80]!r}", why, "promptdock status names them")


class Names:
    """Names under one namespace; the empty one gives the contract's channel names."""

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self._prefix = f"{namespace}:" if namespace else ""
        self.root = f"pd:{namespace}:"
        self.presence = f"{self.root}presence"
        self.meta = f"{self.root}meta"
        self.agents = f"{self.root}agents"
        self.clusters = (
            f"{self.root}clusters"  # a channel: which cluster is here; strangers cannot speak on it
        )
        self.board = f"{self.root}board"  # a channel: names of the Store's tables that changed

    def channel(self, name: str) -> str:
        """The channel as it is called on the server."""
        return self._prefix + name

    def bare(self, channel: str) -> str:
        """The channel as the contract calls it."""
        return channel.removeprefix(self._prefix)

    def agent(self, name: str) -> str:
        """The channel of an agent; UsageError for what no agent can be called."""
        _checked(name)
        return self.channel(f"agent:{name}")

    def events(self, session: str) -> str:
        """The channel of a session's live events."""
        return self.channel(f"events:{session}")

    def queue(self, agent: str) -> str:
        """The prefix of all keys of one agent: one hash tag, so that each script touches one slot.

        UsageError for what no agent can be called: a name must not become another key.
        """
        _checked(agent)
        return f"{self.root}{{{agent}}}:"

    def approval(self, id: str) -> str:
        """The hash of one question to a person: its card, and its one answer."""
        return f"{self.root}approval:{id}"

    def stream(self, session: str) -> str:
        """The stream that keeps a session's live events for readers who reconnect."""
        return f"{self.queue(CHATTER)}events:{session}"
