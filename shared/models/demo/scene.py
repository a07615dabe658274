"""What the demo model sees of a request: who is asked, what was said, and what came of the calls since."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.models.base import Block, ModelMessage, Request

SCRATCH = "scratch"  # the demo's own repository
ESCALATE = "escalate_to_human"  # the tool that ends a turn with a question
_FROM = re.compile(r"^\[(?:question from agent|from) [^\]\n]*\]: ?", re.MULTILINE)
_ITEM = re.compile(r"- ([\w.-]+)(?::| \(|$)")  # of a list of agents or repositories
_WAITS = re.compile(r"^The task ([\w-]+) waits for the person's answer", re.MULTILINE)
_NOTE = re.compile(r"\[[^\]]*\]")  # words of the harness, not of a person
# what other agents did, put in words, and what the harness tells of earlier
_TOLD = re.compile(r"\[(?:(?:outcome of a task|late answer)[^\]\n]*\]: |CONVERSATION SUMMARY)")
_OUTCOME = re.compile(
    r"\[outcome of a task[^\]\n]*\]: Task ([\w-]+) \(.*\) by [\w.-]+(?:: completed\.| is done and waits)"
)
_ABSENT = frozenset({"offline", "timeout", "silent", "late"})


@dataclass(frozen=True)
class SceneCall:
    """A tool call since the last message, and its result as text and, where it is JSON, as data."""

    name: str
    input: dict[str, Any]
    text: str = ""
    data: Any = None
    marked: bool = False

    @property
    def error(self) -> str:
        """Why the call failed; "" where it did not."""
        data = self.data if isinstance(self.data, dict) else {}
        if data.get("error"):
            return ": ".join(str(data[name]) for name in ("error", "why") if data.get(name))
        if self.marked:
            return clip(self.text, 300) or "it failed"
        state = str(data.get("status") or data.get("state") or "")
        absent = self.name.startswith("consult_") and state in _ABSENT
        return f"it is {state}" if absent else ""

    @property
    def advice(self) -> str:
        """What the failed tool suggests to do."""
        data = self.data if isinstance(self.data, dict) else {}
        return str(data.get("fix") or data.get("suggestion") or "")


@dataclass(frozen=True)
class Planned:
    """A task that the Planner wrote in this conversation; `needs` are places in its plan."""

    task: str
    title: str
    agent: str
    needs: tuple[int, ...]
    repo: str = ""


@dataclass(frozen=True)
class Scene:
    """One request as the script reads it. `said` is the last message, `before` are those before it."""

    agent: str
    offered: dict[str, dict[str, Any]]  # name to JSON Schema
    said: str
    before: tuple[str, ...] = ()
    added: tuple[str, ...] = ()  # said while the turn ran
    calls: tuple[SceneCall, ...] = ()
    asked: bool = False  # the last message answers a question that the person was asked
    question: str = ""  # that question
    options: tuple[str, ...] = ()  # of that question
    planned: tuple[Planned, ...] = ()  # the newest plan that was written as tasks, in whatever turn
    merged: frozenset[str] = frozenset()  # tasks that were merged in turns before this one, or came along
    told: tuple[str, ...] = ()  # tasks with work that the person was told of, the newest last
    roster: tuple[str, ...] = ()  # the other agents that are or were here
    repositories: tuple[str, ...] = ()  # of the project, without the demo's own where there are others
    waits: tuple[str, ...] = ()  # tasks that wait for the person's answer to a question

    def called(self, name: str) -> list[SceneCall]:
        """The calls of this tool since the last message."""
        return [call for call in self.calls if call.name == name]

    def good(self, name: str) -> SceneCall | None:
        """The last call of this tool that did not fail."""
        return next((call for call in reversed(self.called(name)) if not call.error), None)

    def takes(self, name: str, field: str) -> bool:
        """Whether that tool is offered with that field."""
        return field in self.offered.get(name, {}).get("properties", {})


def read(request: Request) -> Scene:
    """The scene of a request.

    A person's message carries no tool result, except the result of an escalation that it answers; words
    beside other results were added while the turn ran.
    """
    messages = request.messages
    ended = {block["id"] for message in messages for block in _used(message) if block["name"] == ESCALATE}
    places = [at for at, message in enumerate(messages) if _is_said(message, ended)]
    place = places[-1] if places else -1
    said = _spoken(messages[place]) if places else []
    earlier = [text for at in places[:-1] for text in _spoken(messages[at])]
    since = messages[place + 1 :]
    system = (*request.system, *_noted(messages))
    return Scene(
        agent=request.agent,
        offered={tool.name: tool.schema for tool in request.tools},
        said=said[-1] if said else "",
        before=(*earlier, *said[:-1]),
        added=tuple(text for m in since if m["role"] == "user" for text in _spoken(m)),
        calls=tuple(_calls(since)),
        asked=(question := _question(messages[: max(place, 0)])) is not None,
        question=str((question or {}).get("question") or ""),
        options=tuple(str(option) for option in (question or {}).get("options") or ()),
        planned=_planned(messages),
        merged=frozenset(_merged(messages[: max(place, 0)])),
        told=_outcomes(messages),
        roster=tuple(name for name in _listed(system, "Agents on the roster:") if name != request.agent),
        repositories=_others(_listed(system, "Repositories:")),
        waits=tuple(_WAITS.findall(_words(messages[place]))) if places else (),
    )


def _merged(messages: tuple[ModelMessage, ...]) -> Iterator[str]:
    for call in _calls(messages):
        if call.name == "merge_task" and not call.error:
            yield str(call.input.get("task_id"))
            yield from call.data.get("came_with_it", ()) if isinstance(call.data, dict) else ()


def _outcomes(messages: tuple[ModelMessage, ...]) -> tuple[str, ...]:
    words = (_words(message) for message in messages if message["role"] == "user")
    found = [name for text in words for name in _OUTCOME.findall(text)]
    return tuple(reversed(dict.fromkeys(reversed(found))))


def blocks(message: ModelMessage) -> list[Block]:
    """The content of a message as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def clip(text: str, limit: int) -> str:
    """`text` on one line, cut to `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def dig(data: Any, *names: str) -> Any:
    """The first value that is not empty under one of these names, outer levels of nested dicts first."""
    level = [data]
    while level:
        dicts = [item for item in level if isinstance(item, dict)]
        for item in dicts:
            if found := next((item[name] for name in names if item.get(name)), None):
                return found
        level = [value for item in dicts for value in item.values()]
    return None


def _listed(system: tuple[str, ...], heading: str) -> tuple[str, ...]:
    """The names of a list of the system prompt."""
    lines = iter("\n\n".join(system).splitlines())
    below = itertools.takewhile(bool, itertools.dropwhile(lambda line: line != heading, lines))
    return tuple(found[1] for line in below if (found := _ITEM.match(line)))


def _noted(messages: tuple[ModelMessage, ...]) -> list[str]:
    """What a conversation was told last of who and what is there."""
    texts = (block["text"] for message in messages for block in blocks(message) if block["type"] == "text")
    return [text for text in texts if "Agents on the roster:" in text and _NOTE.fullmatch(text)][-1:]


def _others(repositories: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in repositories if name != SCRATCH) or repositories


def _words(message: ModelMessage) -> str:
    return "\n".join(block["text"] for block in blocks(message) if block["type"] == "text")


def _used(message: ModelMessage) -> list[Block]:
    return [block for block in blocks(message) if block["type"] == "tool_use"]


def _is_said(message: ModelMessage, ended: set[str]) -> bool:
    results = {block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"}
    return message["role"] == "user" and results <= ended and bool(_spoken(message))


def _spoken(message: ModelMessage) -> list[str]:
    """What a message says; neighbours that were merged into one come apart at `[from NAME]:` and its like."""
    parts = [
        _asked_in(part.strip())
        for block in blocks(message)
        if block["type"] == "text"
        for part in _FROM.split(block["text"])
    ]
    return [part for part in parts if part and not _NOTE.fullmatch(part) and not _TOLD.match(part)]


def _asked_in(part: str) -> str:
    """What an agent asks is told as the payload of its message: its question is what it says."""
    payload = _json(part) if part.startswith("{") else None
    return str(payload["question"]) if isinstance(payload, dict) and payload.get("question") else part


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if block.get("type") == "text")


def _calls(messages: tuple[ModelMessage, ...]) -> Iterator[SceneCall]:
    results = {
        block["tool_use_id"]: block
        for message in messages
        for block in blocks(message)
        if block["type"] == "tool_result"
    }
    for message in messages:
        for block in _used(message):
            result = results.get(block["id"], {})
            text = _text(result.get("content"))
            marked = bool(result.get("is_error")) or not result
            yield SceneCall(block["name"], dict(block["input"]), text, _json(text), marked)


def _planned(messages: tuple[ModelMessage, ...]) -> tuple[Planned, ...]:
    """The tasks of the newest plan whose result says that they were written."""
    for call in reversed([*_calls(messages)]):
        data = call.data if call.name == "consult_planner" and isinstance(call.data, dict) else {}
        tasks, written = dig(data, "tasks"), data.get("written")
        if isinstance(tasks, list) and isinstance(written, list) and len(tasks) == len(written):
            return tuple(
                Planned(
                    str(row["task_id"]),
                    str(task.get("title", "")),
                    str(task.get("agent", "")),
                    tuple(task.get("depends_on", ())),
                    str(row.get("repo", "")),
                )
                for task, row in zip(tasks, written, strict=True)
            )
    return ()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _question(messages: tuple[ModelMessage, ...]) -> dict[str, Any] | None:
    """What the person was asked last, where nothing was said since."""
    last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    asked = [block["input"] for block in _used(last) if block["name"] == ESCALATE] if last else []
    return dict(asked[0]) if asked else None
