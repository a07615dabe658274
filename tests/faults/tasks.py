"""Backend dies in the middle of tasks: what its tools did is done once, and its children end with it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.faults.checker import Findings, Mark, check
from tests.faults.cluster import Cluster, happens
from tests.faults.model import NAP
from tests.faults.person import Person
from tests.faults.workload import Load
from tests.tools.ground import git, repository

TAG = "tk"
# Task number n dies after the effect of this call of Backend, before its result is stored: a command, a new
# file, a change of it; the last one is killed from outside while its command runs.
CALLS = ("1.1", "2.1", "3.1")
ENVIRONMENT: dict[str, Any] = {
    "PROMPTDOCK_FAULT": ",".join(f"effect done@{TAG}-o{n}-0.1.1.{call}" for n, call in enumerate(CALLS))
}


async def link(cluster: Cluster, person: Person) -> Path:
    """A repository of the person, which the cluster knows."""
    path = await asyncio.to_thread(repository, cluster.folder / "work", {"README.md": "# Work\n"})
    arguments = {"source": "link", "path": str(path.path), "name": "work", "kind": "both"}
    told = await person.client.command("add_repo", arguments, "owner", patience=20)
    assert "error" not in told, told
    return path.path


async def kill_backend(cluster: Cluster, person: Person, repo: Path) -> Findings:
    """Four tasks, one after the other, each of which kills its worker once."""
    since = await Mark.now(cluster)
    load = Load(cluster, own=0, plain=0, tag=TAG)
    async with cluster.kept("backend"):
        for number in range(len(CALLS)):
            await load.send(f"{TAG}-o{number}", "task", 0, force=True)
        assert await happens(lambda: _ended(person, cluster, len(CALLS)), 60), "not all tasks ended"
        await load.send(f"{TAG}-o{len(CALLS)}", "nap", 0, force=True)
        assert await happens(_naps, 20), "the command does not run"
        await cluster.kill(cluster.replicas("backend")[0], again=False)
        assert await happens(lambda: _ended(person, cluster, len(CALLS) + 1), 40), "it was not taken over"
    found = await check(cluster, since, load, row="kill_backend", person=person)
    found.faults = len(CALLS) + 1
    found.notes += [f"a child still runs: {pid}" for pid in _napping()]
    for number in range(len(CALLS) + 1):
        found.notes += _made(cluster, repo, number)
    found.effects = len(found.notes)
    return found


async def _ended(person: Person, cluster: Cluster, count: int) -> bool:
    """So many outcomes of tasks were told."""
    return len(await outcomes(cluster)) >= count


async def outcomes(cluster: Cluster) -> list[dict[str, Any]]:
    entries = await cluster.bus.command("XRANGE", f"{cluster.queues['chatter'].prefix}out", "-", "+")
    said = [json.loads(fields[1]) for _, fields in entries]
    return [output for output in said if output.get("task")]


async def _naps() -> bool:
    return bool(await asyncio.to_thread(_napping))


def _napping() -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if NAP in " ".join(process.info["cmdline"] or []):
            found.append(process.pid)
    return found


def _made(cluster: Cluster, repo: Path, number: int) -> list[str]:
    """What is wrong with the branch of a task: an effect missing or twice, a commit missing or twice."""
    kind = "task" if number < len(CALLS) else "nap"
    name = f"{kind}-{TAG}-o{number}-0"
    rows = cluster.site.query("select * from tasks where user_id = ?", f"{TAG}-o{number}")
    if len(rows) != 1:
        return [f"{name}: {len(rows)} rows"]
    branch, wrong = f"promptdock/{rows[0]['slug']}", []
    steps = git(repo, "log", "--format=%(trailers:key=PromptDock-Step,valueonly)", f"HEAD..{branch}").split()
    if not steps or max(Counter(steps).values()) > 1:
        wrong.append(f"{name}: the commits are of the steps {steps}")
    if git(repo, "show", f"{branch}:{name}.txt") != "one\ntwo and two":
        wrong.append(f"{name}: its file is wrong")
    files = git(repo, "ls-tree", "--name-only", branch).split()
    lines = git(repo, "show", f"{branch}:effects.txt").split() if "effects.txt" in files else []
    if lines != ([name] if kind == "task" else []):
        wrong.append(f"{name}: its command left {lines}")
    return wrong


def refused(cluster: Cluster) -> list[str]:
    """What Backend's tools answered with an error, as its model was told it."""
    told = []
    for body in cluster.api.requests:
        for message in body.get("messages", []):
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result" and block.get("is_error"):
                    told.append(str(block["content"]))
    return list(dict.fromkeys(told))
