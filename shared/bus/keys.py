"""Every key and channel name, in one place (docs/wire.md for channels; keys are internal)."""

from __future__ import annotations

import hashlib
import re

from shared.errors import UsageError

HUMAN_INPUT = "human-input"
CHATTER_OUTPUT = "chatter-output"
STATUS = "agent:status"
BROADCAST = "broadcast"
CHATTER = "chatter"
TASKS = "@tasks"  # the topic of live events that tell of tasks: no session's id begins with @
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


class QueueKeys:
    """The keys of one agent's queue (docs/bus.md), all under its prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.inbox = f"{prefix}inbox"
        self.outputs = f"{prefix}out"
        self.dead_letters = f"{prefix}dead"
        self.outbox = f"{prefix}archive"  # rows on their way to the Store
        self.outbox_holder = f"{prefix}archive:owner"
        self.stored_output = f"{prefix}archive:said"  # the last output that the Store has
        self.idle = f"{prefix}idle"
        self.load = f"{prefix}load"
        self.full = f"{prefix}full"
        self.marker = f"{prefix}ear"  # a channel, before the namespace: numberings of plain messages
        self.wake_up = f"{prefix}bell"  # a channel, before the namespace: wakes the agent's workers
        self.channels = f"{prefix}channels"  # a sorted set: channels with threads, by their last word
        self.owners_known = f"{prefix}owners"  # set once the owners of the Store's sessions are here

    def named(self, name: str) -> str:
        """The key that docs/bus.md calls `P name`."""
        return f"{self.prefix}{name}"

    def handoff(self, worker: str) -> str:
        """The channel on which a worker is given turns, before the namespace."""
        return f"{self.prefix}seat:{worker}"

    def message(self, id: str) -> str:
        """What became of a message."""
        return f"{self.prefix}msg:{id}"

    def call(self, request: str) -> str:
        """The session that waits for the answer to a request."""
        return f"{self.prefix}call:{request}"

    def turn(self, session: str) -> str:
        """The hash of the turn that runs in a session."""
        return f"{self.prefix}turn:{session}"

    def given(self, session: str) -> str:
        """The list of the messages that the turn answers."""
        return f"{self.prefix}given:{session}"

    def window(self, session: str) -> str:
        """The list of the newest records of a conversation."""
        return f"{self.prefix}window:{session}"

    def thread(self, session: str) -> str:
        """The hash of a session's place in a channel: channel, number, first words."""
        return f"{self.prefix}thread:{session}"

    def owner(self, session: str) -> str:
        """Whose a session is."""
        return f"{self.prefix}owner:{session}"

    def asker(self, session: str) -> str:
        """For whom a session's requests are made, as JSON."""
        return f"{self.prefix}who:{session}"

    def open_requests(self, session: str) -> str:
        """The hash of the requests for permission that are open in a session."""
        return f"{self.prefix}asks:{session}"

    def unseen(self, session: str) -> str:
        """The stream of outputs that the person was not shown."""
        return f"{self.prefix}untold:{session}"

    def events(self, session: str) -> str:
        """The stream that keeps a session's live events for readers who reconnect."""
        return f"{self.prefix}events:{session}"


class SpendingKeys:
    """The keys of the ledger, all under its prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.projects = f"{prefix}project"  # a hash: dollars of all time

    def day(self, day: str) -> str:
        """The hash of a day's totals."""
        return f"{self.prefix}day:{day}"

    def raised(self, scope: str, name: str) -> str:
        """By how much a person raised a budget."""
        return f"{self.prefix}raised:{scope}:{name}"


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
        self.model_lists = f"{self.root}models"  # a hash: what each provider of models said it has
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

    def keys(self, agent: str) -> QueueKeys:
        """The keys of one agent's queue; UsageError for what no agent can be called."""
        return QueueKeys(self.queue(agent))

    def lease(self, name: str) -> str:
        """The prefix of a lease's keys: no agent's name begins with @."""
        return f"{self.root}{{@{name}}}:"

    def spending(self) -> SpendingKeys:
        """The totals of what was spent."""
        return SpendingKeys(f"{self.root}{{@money}}:")

    def model_asker(self, provider: str) -> str:
        """Set while somebody asks a provider which models it has."""
        return f"{self.root}models:asked:{provider}"

    def undrawn(self) -> str:
        """The sorted set of conversations from which memories are to be drawn, by when."""
        return f"{self.root}memory:undrawn"

    def unsummarised(self) -> str:
        """The sorted set of an agent and a conversation that is to be summarised, by when."""
        return f"{self.root}summary:due"

    def question(self, task: str) -> str:
        """The hash of a task's question to its person, and of its answers."""
        return f"{self.root}question:{task}"

    def host_request(self, host: str, request: str) -> str:
        """Who takes it serves the request of a host."""
        return f"{self.root}home:{host}:{request}"

    def changed_path(self, repo: str, path: str) -> str:
        """The sorted set of tasks that change a file of a repository, by the moment when they said so."""
        digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return f"{self.root}paths:{repo}:{digest}"

    def overlaps(self, repo: str, task: str) -> str:
        """The list of what others have begun to change that the task changes too."""
        return f"{self.root}paths:{repo}:told:{task}"

    def approval(self, id: str) -> str:
        """The hash of one question to a person: its card, and its one answer."""
        return f"{self.root}approval:{id}"

    def stream(self, session: str) -> str:
        """The stream that keeps a session's live events for readers who reconnect."""
        return self.keys(CHATTER).events(session)
