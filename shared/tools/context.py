"""What a tool is handed beside its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from shared import failpoints
from shared.conversation.past import History
from shared.errors import Missing, ToolError
from shared.guard.permissions.presets import Policies
from shared.guard.processes.process import Lock
from shared.guard.sandbox.addresses import PUBLIC, Reach
from shared.guard.sandbox.sandbox import Sandbox
from shared.notify.sealing import Seal
from shared.store.base import Store
from shared.store.origin import PERSON, Origin
from shared.store.records import Hook, Task
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.registry import Registry, Result
from shared.turns.threads import Thread

# Whom the consults of the contract ask: who plans a task, and who checks it, before one is assigned.
CONSULTED = {"consult_planner": "planner", "consult_researcher": "researcher"}


class ClusterCalls(Protocol):
    """The other agents, as a tool sees them from inside a turn."""

    async def ask(self, agent: str, payload: dict[str, Any], key: str) -> dict[str, Any]:
        """Ask an agent and await its answer: its payload, or an `error` that says offline, silent or late."""

    async def send(self, agent: str, payload: dict[str, Any], key: str) -> int:
        """Deliver a task whose outcome comes to this session later; how many wait before it."""

    async def status(self, agent: str) -> dict[str, Any]:
        """Whether it is online, since when, what it works on, how much waits for it."""

    async def works_on(self, agent: str) -> frozenset[str] | None:
        """The kinds of repositories whose tasks an agent takes, none if it takes none; None: nobody knows it."""

    async def stop(self, agent: str, request_id: str) -> str:
        """Take a request back: `withdrawn` before it ran, `running` (it is told to stop), or `gone`."""

    async def roster(self) -> dict[str, str]:
        """The agents that are known, with what they are for."""

    async def forget(self, agent: str) -> bool:
        """Take an agent off the roster; False where it is here, or something lies in its queue."""

    @property
    def channel(self) -> str:
        """The channel of a surface in which this conversation is held; "" for none."""

    async def threads(self, channel: str = "") -> list[Thread]:
        """The threads of a channel, or of all, into which the person of this turn may come."""

    async def kill(self, thread: Thread, key: str) -> None:
        """End what runs in a thread, and take back what waits there."""

    async def post(self, channel: str, text: str, key: str) -> int:
        """Send a text to a channel of a surface (`discord:<id>`) by its gateway; how many heard it."""

    async def answer(self, task: str, person: str, text: str) -> str:
        """Answer the open question of a task; the question."""

    async def read_at(
        self, home: str, tool: str, arguments: dict[str, Any], project: str, key: str
    ) -> dict[str, Any]:
        """Run a tool that reads on the disk that has the files, and await its result."""

    async def restart(self, reason: str) -> int:
        """Tell all workers to hand over and end, so that they are started again; how many heard it."""


class WorkerServices(Protocol):
    """What the worker of conversations does for their tools."""

    @property
    def seal(self) -> Seal:
        """What opens a gateway's orders about notifications."""

    async def show_prompt(self, agent: str) -> Result:
        """The request of an agent or profile, as its next turn would send it."""

    async def fire_hook(self, hook: Hook, here: Context, key: str) -> Result:
        """Launch a hook now, whatever its cooldown; `key` names this launch."""

    async def preview_hook(self, hook: Hook, key: str) -> Result:
        """What a run of it would find and say."""


class KnowsModels(Protocol):
    """The models that the configured providers have."""

    demo: bool

    async def need(self, model: str) -> None:
        """ModelUnusable, with the nearest names, where there is no model of that name."""

    def warmest(self, model: str) -> float:
        """The highest temperature that its provider takes."""


@dataclass(frozen=True)
class Own:
    """What a tool that changes an agent is told of it, and whose word stands behind the call."""

    folder: Policies  # the agent's permissions as its folder says
    person: str  # at whose request it works; "" for nobody
    approver: bool  # whether they claim one of APPROVER_ROLES
    tell: Callable[[str], Awaitable[None]]  # all workers of an agent that it was changed
    fixed_permissions: str = ""  # why a change of these would have no effect
    fixed_model: str = ""


async def _silent(_text: str) -> None:
    return None


def _not_paused(_waits: bool) -> None:
    """Nobody counts the time of this turn."""


@dataclass(frozen=True)
class PackageRegistries:
    """Where packages may be installed from: `hosts` as the owner named them, none where nothing is open."""

    hosts: frozenset[str] = frozenset()
    reach: Reach = PUBLIC


@dataclass(frozen=True)
class TaskWorktree:
    """How the tools of a turn are bound to the worktree of its task; of a turn without one, nothing is."""

    lock: Lock | None = None  # fences it
    changing: Callable[[str], Awaitable[None]] = _silent  # told each path before it is changed; may refuse it
    paused: Callable[[bool], None] = _not_paused  # told when a person is waited for, and when no longer
    registries: PackageRegistries = PackageRegistries()


async def _unwritten(_intent: dict[str, Any]) -> None:
    return None


@dataclass(frozen=True)
class Root:
    """A checkout that the tools of this turn may touch: a repository, a mirror at a commit, a worktree."""

    name: str
    path: Path
    kind: str = "both"  # frontend | backend | both
    commit: str = ""
    writable: bool = False


@dataclass(frozen=True)
class Context:
    """One call's surroundings. `step_id` is the same when the call is replayed after a crash."""

    agent: str
    session_id: str
    turn_id: str
    store: Store
    step_id: str = ""
    user_id: str = ""
    on_behalf: tuple[str, str] = ("", "")  # the person for whom another agent asks, and their conversation
    project_id: str = "default"
    force: bool = False
    roots: Mapping[str, Root] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], Awaitable[None]] = _silent
    cluster: ClusterCalls | None = None
    consulted: Callable[[], frozenset[str]] = frozenset  # agents that answered in this session
    talks: bool = False  # a model in a conversation calls, and nobody decided that work is to begin
    roles: Callable[[], frozenset[str]] = frozenset  # that all people claim whose words led to this turn
    foreign: Callable[[], str] = str  # what the turn has read by now that others wrote
    permissions: str = ""  # the name of the rules that judge the call
    allowed_by: str = ""  # the person who allowed this very call
    registry: Registry | None = None  # of all tools that there are; the executor hands it over
    hidden: frozenset[str] = frozenset()  # tools that the permissions deny whatever they are called with
    bound: Mapping[str, str] = field(default_factory=dict)  # the facts for which this call was allowed
    own: Own | None = None
    sandbox: Sandbox | None = None
    repos: Mirrors | None = None  # the repositories of this home
    task: Task | None = None  # whose turn this is
    worktree: TaskWorktree = TaskWorktree()
    models: KnowsModels | None = None
    past: History | None = None  # what this turn of a conversation goes on from
    services: WorkerServices | None = None
    # A tool of effect `once` that `probes` journals by `intend` what it is about to do. If its worker dies
    # then, whoever runs the call again finds it in `intended`, and looks whether it was done.
    intend: Callable[[dict[str, Any]], Awaitable[None]] = _unwritten
    intended: Mapping[str, Any] | None = None

    @property
    def owner(self) -> tuple[str | None, str | None]:
        """The person and the conversation that what is made here belongs to, and where its news are told."""
        person, conversation = self.on_behalf
        if person:
            return person, conversation or self.session_id or None
        return self.user_id or None, self.session_id or None

    def unasked(self) -> list[str]:
        """Who has to answer in this conversation before work may begin, and has not; a person can do without."""
        return [] if self.force else sorted(set(CONSULTED.values()) - self.consulted())

    @property
    def by_person(self) -> bool:
        """Whether a person's own command calls, and no model."""
        return self.agent == PERSON

    def need_person(self) -> str:
        """The person whose own command this is; ToolError for everybody else."""
        if not (self.by_person and self.user_id) and not failpoints.without("mark-person"):
            raise ToolError("only a person may say this", "it is their own command alone", "ask them to")
        return self.user_id

    def need_word(self, what: str, fix: str) -> None:
        """ToolError where no person stands behind this call: they did not make it, and nobody allowed it."""
        if not (self.by_person or self.allowed_by):
            raise ToolError(what, "it waits for a person, and no rule may decide it for them", fix)

    @property
    def origin(self) -> Origin:
        """Of what this call makes: a person's own words are nobody else's, whatever was read before them."""
        person, conversation = self.owner
        foreign = "" if self.by_person else self.foreign()
        return Origin(self.agent, person or "", conversation or "", self.permissions, foreign)

    def locate(self, path: str) -> tuple[Root, str]:
        """The root that `path` means, and the rest of the path.

        A path begins with a root's name; where there is only one root, the name may be left out.
        """
        if not self.roots:
            raise ToolError(
                "no repository is registered", "", "ask the person to run: promptdock repo add PATH|URL"
            )
        head, _, rest = path.partition("/")
        if head in self.roots:
            return self.roots[head], rest
        if len(self.roots) == 1:
            return next(iter(self.roots.values())), path
        name = head or path
        within = [root for root in self.roots.values() if path.startswith(f"{root.path}/")]
        if within:
            name = f"{within[0].name}{path.removeprefix(str(within[0].path))}"
            raise ToolError(f"{path!r} does not begin with a repository", "paths do", f"Write {name!r}")
        missing = Missing.named("repository", name, self.roots, "A path begins with the name of one")
        raise ToolError(f"{path!r} does not begin with a repository", missing.why, missing.fix)
