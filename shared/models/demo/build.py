"""The demo's way from a sentence to a merged change: the plan, what its workers write, and the merge.

Three small files come of any sentence: data and a page, which are made side by side, and a page of words that
needs both. The page is left unfinished at first, so that a check fails and its agent corrects it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from shared.models.demo.scene import Planned, Scene, clip

Arguments = dict[str, Any]

_LOOKED = 6  # tasks that are looked at
WRITE = "Plan this, and write the tasks:"  # how Chatter asks the Planner for tasks rather than advice
FOUND = "[The task's checks were run"  # how a worker's turn is told what its checks found
_VERB = re.compile(
    r"^\W*(?:(?:please|can you|could you|i want you to|let's|we should)\s+)*"
    r"(?:build|implement|add|fix|create|make)\s+(?:(?:me|us)\s+)?",
    re.I,
)
_WHERE = re.compile(r"\s*\b(?:in|of) (?:the |my )?repo(?:sitory)? [`'\"“]?([\w.-]*\w)[`'\"”]?", re.I)
_FILE = re.compile(r"`(demo/[\w.-]+/(data\.json|index\.html|README\.md))`")
_TASK = re.compile(r"^\[task ([\w-]+)\]")
_PAGE = re.compile(r"^(?:an?|the|some)\s+(?:web\s*)?pages?\s+(?:for|about|of|with)\s+", re.I)
_LEAST = re.compile(r"^(?:an?|the|some)\s+", re.I)
_MORE = re.compile(r"\s(?:with|for|that|and|which|to|in|on|of|where|so)\s.*", re.I)


def subject(sentence: str) -> str:
    """What is to be built, without the words around it."""
    line = _WHERE.sub("", " ".join(sentence.split()))
    return clip(_VERB.sub("", line, count=1).rstrip(" .!?") or line or "something", 70)


def where(sentence: str) -> Arguments:
    """The repository that the person named, as tools take it; {} where none is named."""
    found = _WHERE.search(sentence)
    return {"repo": found[1]} if found else {}


def slug(title: str) -> str:
    """A title as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:50].strip("-") or "task"


def plan(sentence: str) -> list[Arguments]:
    """Three tasks: two side by side, and one that needs both. Each brings the check that proves it."""
    what = subject(sentence)
    folder = f"demo/{slug(' '.join(_MORE.sub('', _LEAST.sub('', what)).split()[:3]))}"
    tasks = [
        _task("backend", f"Data for {what}", f"{folder}/data.json", "entries", []),
        _task("frontend", f"Page for {_PAGE.sub('', what)}", f"{folder}/index.html", "</html>", []),
        _task("backend", f"Put together {what}", f"{folder}/README.md", "data.json", [0, 1]),
    ]
    return [task | where(sentence) for task in tasks]


def _task(agent: str, title: str, path: str, holds: str, needs: list[int]) -> Arguments:
    return {
        "title": title,
        "description": f"Write `{path}`.",
        "agent": agent,
        "depends_on": needs,
        "acceptance": [f"{path} is there and whole"],
        "checks": [f"grep -q '{holds}' {path}"],
    }


@dataclass(frozen=True)
class File:
    """What a worker writes."""

    path: str
    content: str


def file(command: str, corrected: bool) -> File | None:
    """The file of a planned task; None for a command file that is not of the demo's own plan."""
    found = _FILE.search(command)
    if found is None:
        return None
    heading = re.search(r"^#+\s+(?:Data for|Page for|Put together)\s+(\S.*)$", command, re.MULTILINE)
    what = heading[1] if heading else "the demo"
    # The task's name is in it, so that who asks for the same thing twice gets a change twice.
    task = _TASK.search(command)
    return File(found[1], _CONTENT[found[2]](what, task[1] if task else "demo", corrected))


def _data(_what: str, task: str, _corrected: bool) -> str:
    return json.dumps({"entries": [{"by": task, "text": "Hello."}]}, indent=2) + "\n"


def _page(what: str, task: str, corrected: bool) -> str:
    title = re.sub(r"[<>&]", "", what).capitalize()
    head = f'<!doctype html>\n<html lang="en">\n<meta name="generator" content="{task}">\n'
    page = f'{head}<title>{title}</title>\n<h1>{title}</h1>\n<ul id="entries"></ul>\n'
    return page + ("</html>\n" if corrected else "")


def _words(what: str, task: str, _corrected: bool) -> str:
    made = f"Made by the demo model for the task {task}: `index.html` shows what is in `data.json`."
    return f"# {what.capitalize()}\n\n{made}\n"


_CONTENT = {"data.json": _data, "index.html": _page, "README.md": _words}


def last(planned: tuple[Planned, ...]) -> tuple[Planned, ...]:
    """The tasks whose branches hold the work of all: those that no other one needs."""
    needed = {index for task in planned for index in task.needs}
    return tuple(task for index, task in enumerate(planned) if index not in needed)


def states(scene: Scene) -> dict[str, str]:
    """The state of each task that was listed."""
    call = scene.good("list_tasks")
    rows = call.data.get("tasks") if call and isinstance(call.data, dict) else None
    return {str(row.get("id")): str(row.get("status")) for row in rows or [] if isinstance(row, dict)}


def unmerged(scene: Scene) -> list[str]:
    """The tasks that were looked at and hold something which their default branch does not."""
    return list(_brought(scene))


def done(states: dict[str, str]) -> list[str]:
    """The newest tasks whose work may wait to be merged."""
    return [name for name, state in states.items() if state in ("COMPLETED", "AWAITING_APPROVAL")][:_LOOKED]


def fullest(scene: Scene) -> list[str]:
    """Of those that were looked at, the one that brings most: what it was built on comes with it."""
    looked = _brought(scene)
    return [max(looked, key=lambda name: looked[name])] if looked else []


def _brought(scene: Scene) -> dict[str, int]:
    """How many files a merge of each of the tasks that were looked at would bring; of what is merged, nothing."""
    looked = [call.data for call in scene.called("review_task") if isinstance(call.data, dict)]
    return {
        str(data["task_id"]): len(data["files"])
        for data in looked
        if data.get("files") and not data.get("merged")
    }
