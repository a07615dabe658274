"""A turn's events as AG-UI has them: a run with text, thinking, calls of tools, subagents and interrupts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ag_ui import core

from shared.client.turn import TurnEvent

_ENDED = {
    "answered": "",
    "late": "it answered late",
    "timeout": "it did not answer in time",
    "offline": "it is away",
}


class Translator:
    """One run. What ends the run sets `ended`; a request for permission ends it too, and the turn waits."""

    def __init__(self, thread: str, run: str) -> None:
        self._thread, self._run = thread, run
        self._message, self._open = 0, False
        self._subagents: set[str] = set()
        self.ended = False

    def begin(self, warnings: list[str]) -> Iterator[core.BaseEvent]:
        """The start of the run."""
        yield core.RunStartedEvent(thread_id=self._thread, run_id=self._run)
        if warnings:
            yield core.CustomEvent(name="warnings", value=warnings)

    def take(self, event: TurnEvent) -> Iterator[core.BaseEvent]:
        """What one event of the turn is here."""
        if act := self._acts().get(event.kind):
            yield from act(event.payload)

    def _acts(self) -> dict[str, Callable[[dict[str, Any]], Iterator[core.BaseEvent]]]:
        return {
            "chunk": self._chunk,
            "thinking": self._thinking,
            "tool_call": self._call,
            "tool_result": self._result,
            "consult": self._consult,
            "progress": self._progress,
            "task_update": self._progress,
            "restart": lambda _: self._close(),
            "approval": self._interrupt,
            "done": self._done,
            "error": self._error,
        }

    @property
    def _id(self) -> str:
        return f"{self._run}.{self._message}"

    def _chunk(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        if not self._open:
            self._open = True
            self._message += 1
            yield core.TextMessageStartEvent(message_id=self._id, role="assistant")
        if payload["content"]:
            yield core.TextMessageContentEvent(message_id=self._id, delta=payload["content"])

    def _close(self) -> Iterator[core.BaseEvent]:
        if self._open:
            self._open = False
            yield core.TextMessageEndEvent(message_id=self._id)

    def _thinking(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        if words := str(payload.get("content") or ""):
            yield core.ReasoningMessageChunkEvent(message_id=f"{self._run}.thinking", delta=words)

    def _call(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        yield from self._close()
        call = str(payload["call_id"])
        yield core.ToolCallStartEvent(tool_call_id=call, tool_call_name=str(payload["tool"]))
        yield core.ToolCallArgsEvent(tool_call_id=call, delta=_json(payload.get("arguments")))
        yield core.ToolCallEndEvent(tool_call_id=call)

    def _result(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        call = str(payload["call_id"])
        content = payload.get("content")
        text = content if isinstance(content, str) else _json(content)
        yield core.ToolCallResultEvent(message_id=f"{call}.result", tool_call_id=call, content=text)

    def _consult(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        request, state = str(payload["request_id"]), str(payload.get("state"))
        if request not in self._subagents and state not in _ENDED:
            self._subagents.add(request)
            yield core.SubagentStartedEvent(subagent_run_id=request, name=str(payload["agent"]))
        elif request in self._subagents and state in _ENDED:
            self._subagents.discard(request)
            if _ENDED[state]:
                yield core.SubagentErrorEvent(subagent_run_id=request, message=_ENDED[state])
            else:
                yield core.SubagentFinishedEvent(subagent_run_id=request)

    def _progress(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        yield core.CustomEvent(
            name=str(payload.get("status") or "progress"), value=payload.get("content", "")
        )

    def _interrupt(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        yield from self._close()
        yield from self._leave("it waits for a permission")
        card = payload.get("approval") or {}
        asked = core.Interrupt(
            id=str(card.get("id") or payload.get("id")),
            reason="permission",
            message=str(payload.get("content") or ""),
            response_schema={
                "type": "object",
                "properties": {
                    "decision": {"enum": card.get("options") or ["allow_once", "always", "deny"]},
                    "reason": {"type": "string"},
                },
            },
        )
        self.ended = True
        outcome = core.RunFinishedInterruptOutcome(interrupts=[asked])
        yield core.RunFinishedEvent(thread_id=self._thread, run_id=self._run, outcome=outcome)

    def _leave(self, why: str) -> Iterator[core.BaseEvent]:
        """Subagents whose end this run does not see."""
        for request in sorted(self._subagents):
            yield core.SubagentErrorEvent(subagent_run_id=request, message=why)
        self._subagents.clear()

    def _done(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        yield from self._close()
        yield from self._leave("its answer was not awaited")
        told = ("status", "model", "usage", "cost", "total_time_ms", "question", "options", "stopped")
        result = {name: payload[name] for name in told if payload.get(name) is not None}
        self.ended = True
        yield core.RunFinishedEvent(
            thread_id=self._thread, run_id=self._run, result=result, outcome=core.RunFinishedSuccessOutcome()
        )

    def _error(self, payload: dict[str, Any]) -> Iterator[core.BaseEvent]:
        yield from self._close()
        self.ended = True
        yield core.RunErrorEvent(message=str(payload["error"]), code=str(payload.get("code") or 1))


def _json(value: object) -> str:
    return json.dumps(value if value is not None else {}, ensure_ascii=False, default=str)
