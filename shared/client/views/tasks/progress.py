"""A turn as it is watched: who was asked what, for how long, whether they are alive, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from shared.bus.messages import Output
from shared.bus.presence import LIFE_MS
from shared.client.text.safe import line
from shared.client.views.status import Pulse

NEWS = 10.0  # seconds without news after which the last activity is shown
_ENDED = {
    "answered": "answered",
    "late": "answered late",
    "timeout": "did not answer in time",
    "offline": "is offline",
}


@dataclass
class ConsultProgress:
    """One request to another agent."""

    agent: str
    request_id: str
    question: str
    since: float
    state: str = "sent"
    ms: int = 0
    pulse: Pulse | None = None

    @property
    def open(self) -> bool:
        """Whether its answer is awaited."""
        return self.state in ("sent", "working")

    def told(self, now: float, width: int = 100) -> str:
        """It as one line: how long, who, alive or not, asked what or doing what by now, how it ended."""
        if not self.open:
            spent = f" in {self.ms / 1000:.1f} s" if self.ms else ""
            return line(f"{self.agent} {_ENDED.get(self.state, self.state)}{spent}", width)
        waited = now - self.since
        news = self.pulse.doing if self.pulse is not None and waited > NEWS else ""
        head = " ".join([f"{waited:.0f} s", self.agent, *self._health(waited)])  # what may not be cut
        return line(f"{head}: {news or self.question or 'asked'}", width)

    def silent(self, now: float) -> bool:
        """Whether it was looked at, and has given no sign of life for longer than one lives."""
        return self.pulse is not None and self._late(self.pulse) and now - self.since > LIFE_MS / 1000

    def _late(self, pulse: Pulse) -> bool:
        return pulse.beat_ms is None or pulse.beat_ms > LIFE_MS

    def _health(self, waited: float) -> list[str]:
        if self.pulse is None:
            return []
        if self._late(self.pulse):
            return ["silent" if waited > LIFE_MS / 1000 else "no heartbeat yet"]
        return ["alive"]


@dataclass
class TurnProgress:
    """What the events of one session say about its newest turn."""

    turn: str = ""  # that runs, or ran last
    running: bool = False
    consults: dict[str, ConsultProgress] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)  # that the turn assigned
    _asked: dict[str, str] = field(default_factory=dict)

    def take(self, kind: str, payload: dict[str, Any]) -> ConsultProgress | None:
        """Take an event in; the consult that it changed, if it was one."""
        match kind:
            case "start":
                self.turn, self.running = str(payload.get("turn_id", "")), True
                self.consults.clear()
                self.tasks.clear()
            case "tool_result":
                self._result(payload.get("content"))
            case "tool_call":
                self._call(str(payload.get("tool", "")), payload.get("arguments"))
            case "consult":
                return self._consult(payload)
            case "done" | "error":
                if payload.get("turn_id") in (None, self.turn):  # else of another turn, which ran beside it
                    self.running = False
        return None

    def end(self) -> None:
        """The turn is closed, whether or not its last events came."""
        self.running = False
        for consult in self.open:
            consult.state = "stopped"

    def _call(self, tool: str, arguments: Any) -> None:
        if isinstance(arguments, dict) and tool.startswith("consult_"):
            agent = str(arguments.get("agent") or tool.removeprefix("consult_"))
            self._asked[agent] = str(arguments.get("question", ""))

    def _result(self, content: Any) -> None:
        if isinstance(content, dict) and content.get("status") == "assigned" and content.get("task_id"):
            self.tasks.append(str(content["task_id"]))

    def _consult(self, payload: dict[str, Any]) -> ConsultProgress:
        agent, request = str(payload.get("agent", "")), str(payload.get("request_id", ""))
        consult = self.consults.get(request)
        if consult is None:
            consult = ConsultProgress(agent, request, self._asked.get(agent, ""), time.monotonic())
            self.consults[request] = consult
        consult.state, consult.ms = str(payload.get("state", "sent")), int(payload.get("ms") or 0)
        return consult

    def footer(self, output: Output, seconds: float | None) -> str:
        """What an answer took: time, where it is known, tokens and money; who was asked, and the tasks assigned.

        First whose it is, where that is not Chatter.
        """
        usage = output.usage or {}
        parts = [output.agent] if output.agent else []
        parts += [f"{seconds:.1f} s"] if seconds is not None else []
        parts.append(f"{usage.get('input', 0)} tokens in, {usage.get('output', 0)} out")
        parts.append(f"${float(usage.get('cost') or 0):.4f}")
        if self.turn in output.answers:
            parts += [f"{one.agent} {one.ms / 1000:.1f} s" for one in self.consults.values() if not one.open]
            parts += [f"task {name}" for name in self.tasks]
        return " · ".join([*parts, *(output.footer or ())])

    @property
    def open(self) -> list[ConsultProgress]:
        """The consults whose answers are awaited."""
        return [consult for consult in self.consults.values() if consult.open]
