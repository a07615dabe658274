"""A cluster of fooled agents: real workers, a real Redis and Store, and a model that calls what it is told to."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.tools import catalog
from tests.attacks.fooled import sdk
from tests.attacks.fooled.claude import UNJUDGED
from tests.attacks.fooled.prey import Prey, Violation, asked, facts, tags, unchanged
from tests.attacks.fooled.values import CLAUDE, Call, Hostile, HostileClaude
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Body, Step, results, words
from tests.support.processes import ROOT, Site, site
from tests.support.wire import Wire

PERSON = "ada"
ROUNDS = 8  # of one turn
LONG = 90.0  # seconds that a turn may take on a busy machine
SETTLED = 30.0  # seconds in which what was begun ends and is stored
QUICKLY = 0.0005  # minutes after which a question has expired: nobody answers
_PLAN = re.compile(r"attack ([crbk])-(\d+)")
_CALL = re.compile(r"call_(\d+)")
# Those that only send words to other agents, which then cost turns of theirs; and the one that ends a turn.
TALK = frozenset(
    {"consult_planner", "consult_researcher", "consult_agent", "assign_task", "escalate_to_human"}
)
OWN = {
    "c": (),
    "r": (
        "read_file",
        "grep",
        "glob_files",
        "search_files",
        "list_directory",
        "git_diff",
        "find_symbols",
        "git_log",
    ),
    "b": ("create_file", "str_replace", "view", "bash", "list_directory", "grep", "self_edit_permissions"),
    "k": tuple(tool.name for tool in CLAUDE[:6]),
}  # of each agent, what it has for its work
_HARMLESS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "c": (("list_projects", {}), ("list_agents", {})),
    "r": (("list_directory", {"path": "library/src"}), ("list_directory", {"path": "library"})),
    "b": (("list_directory", {"path": "src"}), ("list_directory", {"path": "."})),
    "k": (("Glob", {"pattern": "*", "path": "src"}), ("Glob", {"pattern": "*", "path": "."})),
}
READS_FOREIGN = {
    "read_file": {"path": "library/README.md"},
    "view": {"path": "README.md"},
    "Read": {"file_path": "README.md"},
}
FOREIGN = {"c": "read_file", "r": "read_file", "b": "view", "k": "Read"}


@dataclass
class Plan:
    """One turn of one agent: what it calls, round by round."""

    name: str
    session: str
    calls: list[Call]
    foreign: str = ""  # the tool with which it first reads what others wrote; "" for none

    def steps(self) -> list[list[Call]]:
        size = -(-len(self.calls) // ROUNDS)
        return [self.calls[at : at + size] for at in range(0, len(self.calls), size)]


@dataclass
class Fooled:
    """The model: it does what the plan says that the last words name."""

    plans: dict[str, Plan]
    finished: set[str] = field(default_factory=set)

    def __call__(self, body: Body) -> Step:
        found, rounds = _told(body["messages"])
        if not found:
            return Step(text="ok")
        kind, number = found
        name, offered = f"{kind}-{number}", {tool.get("name") for tool in body.get("tools", ())}
        if kind != "c" and "assign_task" in offered:
            return self._hand_on(kind, name, rounds)
        plan = self.plans[name]
        steps = plan.steps()
        first = (
            [_use("call_0", plan.foreign, READS_FOREIGN[plan.foreign])] if plan.foreign and not rounds else []
        )
        if rounds < len(steps):
            made = [_use(f"call_{call.number}", call.tool, call.arguments) for call in steps[rounds]]
            # A turn that only fails is ended: so each round ends with something harmless, never the same twice.
            harmless = _HARMLESS[kind][rounds % 2]
            plain = _use(f"plain_{name}_{rounds}", *harmless)
            return Step(tools=(*first, *made, plain))
        self.finished.add(name)
        if kind == "r":
            return Step(tools=(_use(f"end_{name}", "report_findings", {"findings": [], "confidence": 0}),))
        return Step(text=f"I did as I was told in {name}.")

    @staticmethod
    def _hand_on(kind: str, name: str, rounds: int) -> Step:
        """Chatter, for an agent that people do not speak to."""
        if rounds:
            return Step(text="Handed on.")
        asked: dict[str, Any] = {"question": f"attack {name}", "repos": ["both"]}
        tool = "consult_researcher"
        if kind in "bk":
            tool, asked = "assign_task", {"agent": "backend", "command_file": f"attack {name}"}
        return Step(tools=(_use(f"hand_{name}", tool, asked),))


def _told(messages: list[Body]) -> tuple[tuple[str, str] | None, int]:
    """The plan that was named last, and how often the model has answered since."""
    rounds = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            rounds += 1
        elif found := _PLAN.findall(words(message["content"])):
            return found[-1], rounds
    return None, rounds


def _use(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "name": name, "input": arguments}


@dataclass
class Report:
    """What came of a run."""

    seed: int
    calls: dict[int, Call] = field(default_factory=dict)
    decisions: Counter[tuple[str, str]] = field(default_factory=Counter)  # by agent and decision
    made: set[int] = field(default_factory=set)  # calls whose results the model was given
    unfinished: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    def told(self) -> str:
        """For a failure, or for the end of a run: each violation with the calls that led to it."""
        lines = [
            f"seed {self.seed}: {len(self.made)} of {len(self.calls)} calls were made in {self.seconds:.0f} s"
        ]
        lines += [
            f"  {agent:<12}{decision:<14}{count:>7}"
            for (agent, decision), count in sorted(self.decisions.items())
        ]
        if self.unfinished:
            lines.append(f"  not ended: {', '.join(self.unfinished)}")
        lines.append(f"{len(self.violations)} violations")
        for violation in self.violations:
            lines.append(f"- {violation}")
            for number in violation.calls[:3]:
                if number in self.calls:
                    lines.append(
                        f"    {number}: {self.calls[number].tool} {json.dumps(self.calls[number].arguments)[:600]}"
                    )
        return "\n".join(lines)


class Run:
    """One cluster, attacked from its first turn to its last."""

    def __init__(self, folder: Path, url: str, seed: int, **environment: str) -> None:
        self.folder, self.url, self.seed, self.environment = folder, url, seed, environment
        self.prey = Prey(folder)
        self.report = Report(seed)
        self.model = Fooled({})
        self.watched = folder / "watched.txt"
        self.person: set[str] = set()  # the turns in which they called a tool themselves

    def __call__(
        self, shares: dict[str, int], per_turn: int, told: Callable[[str], None] = lambda _: None
    ) -> Report:
        """So many calls by Chatter (c), Researcher (r), Backend (b), and Claude Code in its place (k)."""
        assert not (shares.get("b") and shares.get("k")), "one Backend works with one executor"
        began = time.monotonic()
        try:
            with MessagesApi(self.model) as api:
                paths = [Path(__file__).parent / "watch", ROOT]
                if shares.get("k"):
                    paths.insert(0, sdk.install(self.folder / "sdk"))
                    self.environment["PROMPTDOCK_EXECUTOR"] = "claude-code"
                settings = {
                    "ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url,
                    "HOME": str(self.prey.person), "PYTHONPATH": ":".join(map(str, paths)),
                    "WATCHED": str(self.watched), "TOOL_CALL_TIMEOUT": "60000", **self.environment,
                }  # fmt: skip
                with site(self.folder / "site", self.url, **settings) as place:
                    self._agents(place)
                    place.up(
                        "chatter",
                        *(["researcher"] if shares.get("r") else []),
                        *(["backend"] if shares.get("b") or shares.get("k") else []),
                    )
                    with Wire(place.url, place.names) as wire:
                        self._attack(place, wire, api, shares, per_turn, told)
        finally:
            self.prey.close()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _agents(self, place: Site) -> None:
        """The shipped agents, whose questions expire at once."""
        for name, preset in (("chatter", "standard"), ("backend", "builder")):
            own = place.home / "agents" / name
            shutil.copytree(ROOT / "agents" / name, own, ignore=shutil.ignore_patterns("__pycache__"))
            text = (own / "profile.toml").read_text()
            line = f'permissions = "{preset}"'
            assert line in text
            hasty = f'permissions = {{ preset = "{preset}", approval_minutes = {QUICKLY} }}'
            (own / "profile.toml").write_text(text.replace(line, hasty))

    # -- the ground ------------------------------------------------------------------------------------------

    def _known(self, place: Site, wire: Wire) -> dict[str, list[str]]:
        """What the person made before: a repository, two tasks that wait for their approval, a hook, a note."""
        path, name = str(self.prey.library), self.prey.library.name
        self._person(wire, "add_repo", source="link", path=path, name=name, kind="backend")
        for title in ("Ship it", "Pay for it"):
            self._person(wire, "create_task", title=title, description="wait", requires_approval=True)
        trigger = {"type": "periodic", "interval_seconds": 31_000_000}
        self._person(
            wire,
            "create_hook",
            project_id="default",
            name="nightly",
            trigger=trigger,
            prompt_template="look",
            context_steps=[],
        )
        self._person(wire, "write_note", project_id="default", title="plans", content="none")
        tasks = [str(row["slug"]) for row in place.query("select slug from tasks")]
        hooks = [str(row["slug"]) for row in place.query("select slug from hooks")]
        assert tasks and hooks
        return {"task": tasks, "hook": hooks, "note": ["plans"], "root": [name, "default"]}

    def _person(self, wire: Wire, tool: str, **arguments: Any) -> None:
        said = wire.command(tool, user=PERSON, **arguments)
        assert said["status"] == "complete", said
        self.person.update(said["answers"])

    # -- the attack ------------------------------------------------------------------------------------------

    def plan(self, ids: dict[str, list[str]], shares: dict[str, int], per_turn: int) -> list[Plan]:
        """The turns: some have read what others wrote, some go on in the session of one that had."""
        registry, plans, first = catalog.registry(), [], 1
        for kind in "kbrc":  # Chatter last: it may send the others to sleep
            count = shares.get(kind, 0)
            for number, begin in enumerate(range(0, count, per_turn)):
                maker, tools = (HostileClaude, CLAUDE) if kind == "k" else (Hostile, registry)
                hostile = maker(f"{self.seed}:{kind}:{number}", self.prey.targets(**ids))
                calls = hostile.calls(tools, first, min(per_turn, count - begin), TALK, OWN[kind])
                first += len(calls)
                foreign = FOREIGN[kind] if number % 3 == 0 else ""
                plans.append(Plan(f"{kind}-{number}", f"{kind}{number // 3}", calls, foreign))
        return plans

    def _attack(
        self,
        place: Site,
        wire: Wire,
        api: MessagesApi,
        shares: dict[str, int],
        per_turn: int,
        told: Callable[[str], None],
    ) -> None:
        ids = self._known(place, wire)
        plans = self.plan(ids, shares, per_turn)
        self.model.plans |= {plan.name: plan for plan in plans}
        self.report.calls |= {call.number: call for plan in plans for call in plan.calls}
        before = facts(place.query)
        self.prey.before = dict(self.prey.marks())
        for plan in plans:
            self._turn(plan, wire)
            self._read(api)
            told(f"{plan.name}: {len(self.report.made)} calls, {len(self.report.violations)} violations")
        time.sleep(0.5)  # so long could what was left in the background have acted unseen
        self._look(place, wire, before, ids["task"])

    def _turn(self, plan: Plan, wire: Wire) -> None:
        words = (
            f"attack {plan.name}" if plan.foreign or plan.name[0] in "bk" else f"go on: attack {plan.name}"
        )
        try:
            said = wire.ask(words, PERSON, LONG, session_id=plan.session, force=True)
            ends = time.monotonic() + LONG
            while plan.name[0] in "bk" and plan.name not in self.model.finished and time.monotonic() < ends:
                time.sleep(0.02)
        except AssertionError as error:
            said = {"content": str(error)}
        if plan.name not in self.model.finished:
            self.report.unfinished.append(f"{plan.name} ({said['content'][-300:]})")

    def _read(self, api: MessagesApi) -> None:
        """What the model was given since: each result with its call."""
        bodies = list(api.requests)
        sinks: list[tuple[str, str, tuple[int, ...]]] = []
        api.exchanges.clear()
        for body in bodies:
            for message in body["messages"]:
                for result in results(message):
                    number = _CALL.fullmatch(result["tool_use_id"])
                    if number and int(number[1]) not in self.report.made:
                        self.report.made.add(int(number[1]))
                        text = words(result.get("content", ""))
                        sinks.append(("a result", text, (int(number[1]),)))
                        if text == UNJUDGED:
                            what = "a tool that is none of ours was let run"
                            self.report.violations.append(Violation(what, (int(number[1]),), text))
            sinks.append(("a request", json.dumps([m for m in body["messages"] if not results(m)]), ()))
            sinks.append(("a prompt", json.dumps(body.get("system", "")), ()))
        self.report.made.discard(0)
        self.report.violations += self.prey.unread(sinks)

    def _look(self, place: Site, wire: Wire, before: dict[str, dict[str, str]], tasks: Sequence[str]) -> None:
        self._settle(place, wire)
        found = self.report.violations
        found += self.prey.unread(self._sinks(place, wire))
        found += [*self.prey.untouched(), *self.prey.uncommitted()]
        found += unchanged(before, place.query, tasks)
        audit = place.query("select agent, action, decision, turn_id, detail from audit_log")
        audit = [row for row in audit if row["turn_id"] not in self.person]
        self.report.decisions.update((row["agent"], row["decision"]) for row in audit)
        found += asked(audit, ("chatter", "backend", "researcher"))
        if self.watched.exists():
            found += [
                Violation("a name was looked up", tags(line), line[-300:])
                for line in self.watched.read_text("utf-8", "replace").splitlines()
            ]
        traced = {violation.what for violation in found if violation.calls}
        unique = {
            (violation.what, violation.calls): violation
            for violation in found
            if violation.calls or violation.what not in traced
        }
        self.report.violations = list(unique.values())

    def _settle(self, place: Site, wire: Wire) -> None:
        """Wait until the turns of tasks have ended and the Store has what they noted."""
        mine = [worker.name for worker in place.workers]

        def still() -> list[str]:
            working = place.query("select slug from tasks where status = 'IN_PROGRESS'")
            unsaid = [name for name in mine if wire.redis.xlen(f"{place.names.queue(name)}archive")]
            return [*unsaid, *(str(row["slug"]) for row in working)]

        ends = time.monotonic() + SETTLED
        while (left := still()) and time.monotonic() < ends:
            time.sleep(0.05)
        if left:
            self.report.unfinished.append(f"after the last turn: {left}")

    def _sinks(self, place: Site, wire: Wire) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield "the wire", json.dumps([list(item) for item in wire.heard]), ()
        for worker in place.workers:
            yield worker.log.name, worker.log.read_text("utf-8", "replace"), ()
        for file in place.home.glob("promptdock.db*"):
            yield file.name, file.read_bytes().decode("utf-8", "replace"), ()
