"""Which agents run in a home, and how often: written down by `up`, read by the supervisor while it runs.

An agent of one's own is a folder `<home>/agents/NAME` with a `profile.toml`. In the user's data folder it is started
with the others. A `.promptdock` beside a project may come from anybody who made the project: what lies in it is
started only where it is asked for by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from shared.bus.keys import is_agent
from shared.errors import UsageError
from shared.folders import HOME_NAME
from shared.guard.files import atomic

AGENTS = ("chatter", "planner", "researcher", "frontend", "backend")
SERVICES = ("web",)  # gateways that run beside the agents, once
HOST = "host"  # the process that runs all agents that are rows
MOST = 64  # replicas of one agent
_FILE = "plan.json"


@dataclass(frozen=True)
class ClusterPlan:
    """Agents that were asked for, those that were left out, and how many replicas of some."""

    agents: tuple[str, ...] = AGENTS
    without: tuple[str, ...] = ()
    scale: Mapping[str, int] = field(default_factory=dict)

    def changed(self, added: Iterable[str], without: Iterable[str], scale: Mapping[str, int]) -> ClusterPlan:
        """With these agents too, without those, with so many replicas."""
        left, more = tuple(dict.fromkeys(without)), tuple(dict.fromkeys([*added, *scale]))
        kept = [name for name in (*self.agents, *more) if name not in (*left, *SERVICES)]
        out = [name for name in (*self.without, *left) if name not in more]
        counts = {name: count for name, count in {**self.scale, **scale}.items() if name not in left}
        return replace(
            self, agents=tuple(dict.fromkeys(kept)), without=tuple(dict.fromkeys(out)), scale=counts
        )

    def names(self, home: Path) -> list[str]:
        """The agents to run."""
        mine = [] if home.name == HOME_NAME else own(home)
        return [name for name in dict.fromkeys([*self.agents, *mine]) if name not in self.without]

    def services(self) -> list[str]:
        """The gateways to run."""
        return [name for name in SERVICES if name not in self.without]

    def replicas(self, home: Path) -> list[str]:
        """The processes to run: the first of an agent has its name, the others `NAME#2` and so on."""
        return [
            called(name, number)
            for name in self.names(home)
            for number in range(1, self.scale.get(name, 1) + 1)
        ]

    def checked(self, home: Path) -> ClusterPlan:
        """UsageError where it names an agent that there is not, or both wants and leaves out one."""
        there = [*AGENTS, *(name for name in own(home) if name not in AGENTS)]
        named = {*self.agents, *self.scale, *self.without}
        unknown = sorted(named - {*there, *SERVICES, HOST} | {*self.scale, *self.agents} & {*SERVICES, HOST})
        if unknown:
            raise UsageError(
                f"there is no agent called {', '.join(unknown)}",
                f"there are: {', '.join(there)}",
                f"an agent of your own is a folder in {home / 'agents'} (docs/agents.md)",
            )
        return self


def called(agent: str, number: int) -> str:
    """The name of one process of an agent."""
    return agent if number == 1 else f"{agent}#{number}"


def agent_of(replica: str) -> str:
    """The agent that a process runs."""
    return replica.partition("#")[0]


def own(home: Path) -> list[str]:
    """The agents of one's own in this home."""
    try:
        folders = sorted((home / "agents").iterdir())
    except OSError:
        return []
    return [one.name for one in folders if is_agent(one.name) and (one / "profile.toml").is_file()]


def counts(given: Iterable[str]) -> dict[str, int]:
    """`NAME=NUMBER` of each; UsageError where it is not that."""
    found = {}
    for one in given:
        name, _, number = one.partition("=")
        if not (name and number.isdigit() and 1 <= int(number) <= MOST):
            raise UsageError(
                f"{one!r} is no number of replicas",
                f"from 1 to {MOST} can run",
                "write it as --scale backend=2",
            )
        found[name] = int(number)
    return found


def read(home: Path) -> ClusterPlan | None:
    """What was written down; None where there is nothing, or nothing that can be read."""
    try:
        kept = json.loads((home / _FILE).read_text("utf-8"))
        scale = {str(name): min(MOST, max(1, int(count))) for name, count in kept["scale"].items()}
        return ClusterPlan(tuple(map(str, kept["agents"])), tuple(map(str, kept["without"])), scale)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def kept(home: Path) -> ClusterPlan:
    """What was asked for last where nobody ended the cluster: it was killed, or the machine went down.

    Beside a project the shipped agents alone: the files there may have come with the project.
    """
    found = read(home) if (home / "cluster.json").exists() else None
    if found is None:
        return ClusterPlan()
    there = {*AGENTS, *(() if home.name == HOME_NAME else own(home))}
    scale = {name: count for name, count in found.scale.items() if name in there}
    agents = [one for one in found.agents if one in there]
    without = [one for one in found.without if one in {*there, *SERVICES, HOST}]
    return ClusterPlan(tuple(agents), tuple(without), scale)


def words(plan: ClusterPlan) -> list[str]:
    """The options of `up` that ask for it."""
    lines = [f"--scale {name}={count}" for name, count in plan.scale.items() if count > 1]
    lines += [f"--with {name}" for name in plan.agents if name not in (*AGENTS, *plan.scale)]
    return lines + [f"--without {name}" for name in plan.without]


def write(home: Path, plan: ClusterPlan) -> None:
    """Write it down, whole or not at all."""
    atomic.put(home / _FILE, json.dumps(asdict(plan)))


def stamp(home: Path) -> int:
    """What changes when the plan is written anew."""
    try:
        return (home / _FILE).stat().st_mtime_ns
    except OSError:
        return 0


def edited(home: Path, agent: str) -> tuple[int, ...]:
    """What changes when somebody edits an agent of their own."""
    found = []
    for name in ("profile.toml", "prompt.md"):
        try:
            found.append((home / "agents" / agent / name).stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)
