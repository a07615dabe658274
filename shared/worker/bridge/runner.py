"""One request to a bridge: from claim to answer. A question that a bridge died with is asked again, a task is not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

from shared import failpoints, log
from shared.bus import messages
from shared.errors import PromptDockError
from shared.guard.permissions import marks
from shared.profiles.bridged import Bridged
from shared.turns.records import BegunRecord, FinalRecord
from shared.turns.turn import Turn
from shared.worker.bridge import command
from shared.worker.permissions.approver import asked_by
from shared.worker.resources import CoreResources
from shared.worker.runners import closing
from shared.worker.runners.closing import Replies
from shared.worker.runners.task_run import Payload, TaskRun

_PROGRESS = 10.0  # seconds after which the asker hears that it still runs


class BridgeRunner:
    """Runs one request. Made anew for each turn."""

    def __init__(self, resources: CoreResources, bridged: Bridged, turn: Turn) -> None:
        self._resources, self._bridged, self._turn = resources, bridged, turn
        self._request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        self._replies = Replies(resources.connection, bridged.name)
        parts = (resources.connection, resources.store, False, bridged.name, turn, self._request)
        self._task = TaskRun(*parts) if self._request.type == "task" else None
        activity, asked = turn.activity, asked_by(self._request)
        activity.kind, activity.title = "question", str(self._request.payload.get("question") or "")
        if self._task is not None:
            activity.kind, activity.task, activity.title = "task", self._task.id, self._task.title
        activity.user, activity.session = asked.user_id, asked.session

    @property
    def deadline(self) -> int:
        """When the answer is worth nothing any more."""
        return self._turn.given[0].deadline

    @property
    def limit(self) -> int:
        """When it is ended, though it runs."""
        return self.deadline

    async def run(self) -> None:
        """From claim to finish."""
        log.get().info(f"Received {self._request.type} from {self._request.sender}")
        if self._task is not None:
            await self._resources.open_existing()
            await self._task.load()
            self._turn.task_id = self._task.row.id if self._task.row is not None else None
        kept = self._turn.records.final
        if kept is None:
            kept = await self._answer()
            failpoints.point("worked", self._turn.id)
            await self._turn.step(FinalRecord(payload=kept))
        await self._close(kept)
        log.get().info(f"Answered {self._request.sender}")

    async def stopped(self) -> None:
        """Whoever asked does not want the answer any more."""
        held = self._task is not None and await self._task.held()
        card = self._task.card("held" if held else "stopped") if self._task is not None else {}
        await self._close({"status": "stopped", **card, "error": "cancelled"}, state="stopped")

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The request cannot be answered; the asker is told why."""
        await self._close(self._failure(**error.as_dict()), dead=dead)

    async def _answer(self) -> Payload:
        text = str(self._request.payload.get("question") or self._request.payload.get("command_file") or "")
        if self._request.type not in ("question", "task") or not text.strip():
            takes = f"{self._bridged.name} takes questions and tasks"
            return self._failure(error=takes, fix="give question or command_file")
        if self._task is not None and self._turn.records.first(BegunRecord):
            # It may have done anything until then, and may not do it twice.
            return self._failure(error="the bridge died while the task ran; what it did is not known")
        # Nobody knows what a program has read.
        marks.note(self._turn.records, self._turn.keep, f"the words of {self._bridged.name}", "in this turn")
        await self._turn.step(BegunRecord(at=int(time.time() * 1000)))
        if self._task is not None:
            await self._task.move("assigned", owner=self._bridged.name)
            await self._task.move("started")
        telling = asyncio.create_task(self._tell())
        try:
            done = await command.carry_out(self._bridged, self._request, text)
        finally:
            telling.cancel()
        ended = command.told(done, self._bridged.seconds)
        if self._task is None:
            return ended | {"answer": done.stdout}
        card = self._task.card("completed" if done.ok else "timeout" if done.timed_out else "failed")
        # What it says of itself is not verified by anybody.
        return card | ended | {"summary": done.stdout, "verified": "unverified"}

    def _failure(self, **why: str) -> Payload:
        return {**(self._task.card("failed") if self._task is not None else {}), **why}

    async def _tell(self) -> None:
        begun = time.monotonic()
        while True:
            await asyncio.sleep(_PROGRESS)
            text = f"{self._bridged.name} still works, for {time.monotonic() - begun:.0f} s"
            with contextlib.suppress(PromptDockError):
                await self._replies.progress(self._request, text)

    async def _close(self, payload: Payload, state: str = "", dead: str = "") -> None:
        """Deliver the answer, then close the request: a successor delivers the same one again, and it counts once."""
        if self._task is not None:
            payload = await self._task.judged(payload)
        error = payload.get("error")
        await self._replies.deliver(self._request, "error" if error else "response", payload)
        await closing.close(
            *(None, "", self._bridged.name, self._turn, state or ("error" if error else "complete")),
            *(str(error) if error else None, dead),
            more=await self._task.ends(payload) if self._task is not None else [],
        )
