"""Many tasks over several repositories, done by several real workers and merged by a person: what came of it.

Every task of a repository changes its own line of one shared file and writes a file of its own; the repository's
check has to pass, and the branch is merged as soon as the task is completed.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.types import Receive, Scope, Send

from tests.support.messages_api import Exchange, MessagesApi
from tests.support.messages_script import Body, Step, results
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

COUNTER, CHECK = "counter.txt", "grep -q done counter.txt"
_BETWEEN = "\n" * 7  # so that git merges changes of neighbouring lines by itself
_SLUG = re.compile(r"\[task ([a-z0-9-]+)\]")


@dataclass(frozen=True)
class Size:
    """How much there is to do, and by how many."""

    tasks: int
    repositories: int
    workers: int
    thinking: float  # seconds that each answer of the model takes


class TimedApi(MessagesApi):
    """The endpoint, with the seconds that each task's answers took it: from the request to the last byte."""

    def __init__(self, size: Size) -> None:
        super().__init__(lambda body: answer(size, body))
        self.took: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.time()
        await super()._answer(exchange, scope, receive, send)
        if found := _SLUG.search(json.dumps(exchange.body.get("messages", ""))):
            self.took[found[1]].append((began, time.time()))

    def twice(self) -> int:
        """How many of the requests were made before."""
        bodies = [json.dumps(body, sort_keys=True) for body in self.requests]
        return len(bodies) - len(set(bodies))


def answer(size: Size, body: Body) -> Step:
    """The model: it changes its line, again where that was refused since others change the file too, and ends."""
    found = re.search(r"# Do line (\d+)", json.dumps(body["messages"]))
    assert found, body["messages"]
    name, last = found[1], results(body["messages"][-1])
    edit = {"path": COUNTER, "old_str": f"task {name}: open", "new_str": f"task {name}: done"}
    calls = [{"name": "str_replace", "input": edit}]
    if not last:
        own = {"path": f"own/{name}.txt", "content": f"task {name}\n"}
        calls.append({"name": "create_file", "input": own})
    elif not any(result.get("is_error") for result in last):
        return Step(text=f"Line {name} is done.", delay=size.thinking)
    return Step(tools=tuple(calls), delay=size.thinking)


@dataclass
class Span:
    """One task, as times in seconds since 1970."""

    slug: str
    number: int
    ready: float = 0.0
    assigned: float = 0.0
    started: float = 0.0
    answered: float = 0.0  # its outcome was told
    completed: float = 0.0
    merging: float = 0.0  # seconds that its merge took
    model: list[tuple[float, float]] = field(default_factory=list)

    @property
    def thinking(self) -> float:
        """Seconds that the model took."""
        return sum(end - begin for begin, end in self.model)


def git(folder: Path, *arguments: str) -> str:
    """git as anybody runs it."""
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(
        ["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Board:
    """One run: `prepare`, then `run`, then look at `folders` and `spans`."""

    def __init__(self, size: Size, site: Site, wire: Wire, api: TimedApi) -> None:
        self.size, self.site, self.wire, self.api = size, site, wire, api
        self.folders: list[Path] = []
        self.workers: list[Worker] = []
        self.spans: dict[str, Span] = {}
        self.wall = 0.0

    def prepare(self) -> None:
        """The repositories, Chatter and the workers, and all tasks, before the scheduler may begin them."""
        for number in range(self.size.repositories):
            self.folders.append(self._repository(f"repo{number}", number))
        workers = ["backend"] * self.size.workers
        _, *self.workers = self.site.up("chatter", *workers)
        self._did("orchestrator_control", action="pause")
        self._did("edit_project", project_id="default", max_concurrent_agents=self.size.workers)
        for folder in self.folders:
            self._did("add_repo", source="link", path=str(folder), name=folder.name, kind="backend")
        for number in range(self.size.tasks):
            title = f"Do line {number:03}"
            repo = self.folders[number % self.size.repositories].name
            made = self._did("create_task", title=title, description=f"# {title}", repo_id=repo)
            self.spans[str(made["created"])] = Span(str(made["created"]), number)

    def _repository(self, name: str, number: int) -> Path:
        folder = self.site.folder / name
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        mine = range(number, self.size.tasks, self.size.repositories)
        (folder / COUNTER).write_text(_BETWEEN.join(f"task {one:03}: open" for one in mine) + "\n")
        (folder / "promptdock.toml").write_text(f'[checks]\ncommands = ["{CHECK}"]\n')
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "Begin")
        return folder

    def _did(self, tool: str, **arguments: Any) -> dict[str, Any]:
        said = self.wire.command(tool, user="ann", **arguments)
        assert said["status"] == "complete", said
        return dict(said["result"])

    def run(self, patience: float) -> None:
        """Let the scheduler begin, and merge what is completed, until all of it is."""
        begun, merged = time.time(), set[str]()
        self._did("orchestrator_control", action="resume")
        while len(merged) < self.size.tasks:
            assert time.time() < begun + patience, self._told()
            rows = self.site.query("select slug, status from tasks")
            assert not [row for row in rows if row["status"] in ("FAILED", "BLOCKED")], self._told()
            done = [row["slug"] for row in rows if row["status"] == "COMPLETED" and row["slug"] not in merged]
            for slug in done:
                before = time.monotonic()
                self._did("merge_task", task_id=slug)
                self.spans[slug].merging = time.monotonic() - before
                merged.add(slug)
            if not done:
                time.sleep(0.1)
        self.wall = time.time() - begun
        self._times(begun)

    def _told(self) -> Any:
        rows = self.site.query("select slug, status, error from tasks where status != 'COMPLETED'")
        return rows, *(worker.tail()[-1500:] for worker in self.workers)

    def _times(self, begun: float) -> None:
        sql = "select t.slug, e.event, e.created_at as at from task_events e join tasks t on t.id = e.task_id"
        times: dict[str, dict[str, float]] = defaultdict(dict)
        for row in self.site.query(f"{sql} order by e.created_at"):
            times[row["slug"]][row["event"]] = _seconds(row["at"])
        until(lambda: len(self._outcomes()) == self.size.tasks, what="all outcomes")
        told = self._outcomes()
        for slug, span in self.spans.items():
            span.ready, span.assigned = begun, times[slug]["assigned"]
            span.started, span.completed = times[slug]["started"], times[slug]["passed"]
            span.answered, span.model = told[slug], self.api.took[slug]

    def _outcomes(self) -> dict[str, float]:
        """When the worker of each task told what came of it."""
        heard = self.wire.on("agent:chatter")
        return {
            str(message["payload"]["task_id"]): _seconds(message["timestamp"])
            for message in heard
            if message.get("type") in ("response", "error") and message["payload"].get("task_id")
        }

    # -- what must hold --------------------------------------------------------------------------------------

    def check(self) -> None:
        """No update was lost, each task's commit is there once, and no worktree held work of two tasks."""
        for number, folder in enumerate(self.folders):
            mine = list(range(number, self.size.tasks, self.size.repositories))
            lines = [line for line in (folder / COUNTER).read_text().split("\n") if line]
            assert lines == [f"task {one:03}: done" for one in mine]
            assert sorted(file.name for file in (folder / "own").iterdir()) == [
                f"{one:03}.txt" for one in mine
            ]
            subjects = git(folder, "log", "--no-merges", "--format=%s", "main").split("\n")
            assert sorted(subjects) == sorted(["Begin", *(f"Do line {one:03}" for one in mine)])
            assert git(folder, "status", "--porcelain") == ""
        for span in self.spans.values():
            folder = self.folders[span.number % self.size.repositories]
            branch = f"promptdock/{span.slug}"
            changed = git(folder, "show", "--name-only", "--format=", branch).split("\n")
            assert changed == [COUNTER, f"own/{span.number:03}.txt"], (span.slug, changed)
        assert self.api.twice() == 0, "each answer was bought once"
        sql = "select event, count(*) as n from task_events where task_id != project_id group by event"
        history = self.site.query(sql)
        counted = {row["event"]: row["n"] for row in history}
        wanted = ("created", "assigned", "started", "completed", "passed", "merged")
        assert counted == dict.fromkeys(wanted, self.size.tasks)
        assert self.at_once() <= self.size.workers

    def at_once(self) -> int:
        """The most tasks that were worked on at one moment."""
        edges = [(s.started, 1) for s in self.spans.values()] + [
            (s.answered, -1) for s in self.spans.values()
        ]
        most = now = 0
        for _, step in sorted(edges):
            now += step
            most = max(most, now)
        return most


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
