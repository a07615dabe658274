"""A task as it is watched: each state that it comes into, each act of its agent, and what it says."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from shared.bus.activity import act, stream_of
from shared.bus.keys import TASKS
from shared.client.client import Client
from shared.client.text.blocks import TextBlock, Writing
from shared.client.text.times import ago
from shared.client.types import Event
from shared.client.views import lookup
from shared.client.views.tasks.tasks import again_in
from shared.errors import BusUnreachable
from shared.store.records import Task, TaskEvent

_LOOK = 3.0  # seconds between looks at its row that nothing calls for
_BLOCK_MS = 1000
_DONE = {"COMPLETED": True, "AWAITING_APPROVAL": True, "AWAITING_PLAN_APPROVAL": True, "BLOCKED": False}
_ERROR = 200  # characters of what went wrong in a call

NoticeKind = Literal["state", "act", "failed", "said", "question", "again"]


@dataclass(frozen=True)
class Seen:
    """One thing that happened. `text` is for people, `detail` for programs, `block` is what was said."""

    kind: NoticeKind
    text: str
    detail: dict[str, Any] = field(default_factory=dict)
    block: TextBlock | None = None


class TaskWatch:
    """An async iterator over what happens to a task until it has ended; then `ok` says how."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name, self._slug = client, name, name
        self.ok: bool | None = None
        self._told: set[str] = set()  # the changes of its state that were seen
        self._asked = self._again = ""
        self._stream, self._cursor = "", "0"
        self._writing = Writing()

    async def seen(self) -> AsyncGenerator[Seen, None]:
        """What happens, from the beginning of the attempt that runs now."""
        self._slug = slug = await lookup.task(self._client, self._name)
        news = self._client.names.stream(TASKS)
        after = await self._client.mark(TASKS)
        while True:
            row = await self._row(slug)
            if row.assignee and row.request_id:
                self._follow(self._client.names.stream(stream_of(row.assignee, row.request_id)))
            async for one in self._states(row):
                yield one
            if row.status in _DONE or row.archived:
                async for one in self._acts(0):
                    yield one
                self.ok = _DONE.get(row.status, False)
                return
            due, changed = time.monotonic() + _LOOK, False
            while not changed and time.monotonic() < due:
                async for one in self._acts(_BLOCK_MS, news, after):
                    if one.kind == "state":
                        after, changed = one.text, True
                    else:
                        yield one

    async def _row(self, slug: str) -> Task:
        store = await self._client.store()
        return (await store.select(Task, {"slug": slug}, limit=1))[0]

    def _follow(self, stream: str) -> None:
        if stream != self._stream:
            self._stream, self._cursor, self._writing = stream, "0", Writing()

    async def _states(self, row: Task) -> AsyncGenerator[Seen, None]:
        store = await self._client.store()
        events = await store.select(TaskEvent, {"task_id": row.id}, order=[("created_at", "asc")])
        for event in events:
            if str(event.id) in self._told:
                continue
            self._told.add(str(event.id))
            detail = {"change": event.event, "state": event.to_status, "actor": event.actor}
            at = {"at": event.created_at.isoformat()}
            yield Seen("state", f"{event.event} by {event.actor}: {event.to_status}", detail | at)
        if row.status == "WAITING_INPUT" and row.question and row.question != self._asked:
            self._asked = row.question
            fix = f'answer it: promptdock tasks answer {row.slug} "…"'
            yield Seen("question", f"{row.question} ({fix})", {"question": row.question})
        left = again_in(row)
        if left is not None and row.error != self._again:
            self._again = row.error
            told = f"{row.error}; it is tried again in {ago(left)}"
            yield Seen("again", told, {"error": row.error, "again_in": round(left, 1)})

    async def _acts(self, block_ms: int, news: str = "", after: str = "") -> AsyncGenerator[Seen, None]:
        cursors = ({self._stream: self._cursor} if self._stream else {}) | ({news: after} if news else {})
        if not cursors:
            return
        try:
            entries = await self._client.bus.read(cursors, block_ms)
        except BusUnreachable:
            await self._client.moved()
            return
        for entry in entries:
            if entry.stream == news:
                told = _event(entry.fields.get("data", b""), entry.id).payload
                if told.get("state") == "verifying" and told.get("task_id") == self._slug:
                    yield Seen("act", "its checks run", {"event": "verifying"})
                yield Seen("state", entry.id)  # that something changed: the row says what
                continue
            self._cursor = entry.id
            for one in self._happened(_event(entry.fields.get("data", b""), entry.id)):
                yield one

    def _happened(self, event: Event) -> Iterator[Seen]:
        kind, payload = event.kind, event.payload
        if kind == "chunk":
            yield from _said(self._writing.add(str(payload.get("content", ""))))
        elif kind == "tool_call":
            yield from _said(self._writing.pause())
            detail = {"tool": payload.get("tool"), "arguments": payload.get("arguments")}
            yield Seen("act", act(kind, payload), detail)
        elif kind == "tool_result" and payload.get("is_error"):
            content = payload.get("content")
            why = (
                str(content.get("error") or content.get("exit_code"))
                if isinstance(content, dict)
                else str(content)
            )
            yield Seen(
                "failed",
                f"{payload.get('tool')}: {why[:_ERROR]}",
                {"tool": payload.get("tool"), "error": why},
            )
        elif kind in ("waiting", "approval"):
            yield from _said(self._writing.pause())
            yield Seen("act", act(kind, payload), {"event": kind})
        elif kind in ("done", "error", "check", "checks"):  # what comes behind it is another message
            yield from _said(self._writing.pause())


def _said(blocks: list[TextBlock]) -> Iterator[Seen]:
    return (Seen("said", block.text, {"text": block.text}, block) for block in blocks)


def _event(data: bytes, cursor: str) -> Event:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    return (
        Event(str(value.pop("event", "")), value, cursor)
        if isinstance(value, dict)
        else Event("", {}, cursor)
    )
