"""A task's turn from claim to finish: its request and its time; with its worktree it is a `TaskCheckout`."""

from __future__ import annotations

import time
from typing import Any

from shared import log
from shared.bus import messages
from shared.errors import (
    BadMessage,
    ConfigurationError,
    Lasting,
    ModelRefused,
    PromptDockError,
    ToolError,
)
from shared.turns.records import BegunRecord, FinalRecord
from shared.turns.turn import Turn
from shared.worker.coding import executor as executing
from shared.worker.coding.attempt import Attempt
from shared.worker.coding.checkout import TaskCheckout
from shared.worker.coding.clock import WorkClock
from shared.worker.runners import closing
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.task_run import Payload


def _lasting(error: PromptDockError) -> Payload:
    """That no other try would end better, where that is so: somebody has to decide or to set something first."""
    for_good = isinstance(error, (Lasting, ConfigurationError, BadMessage, ModelRefused))
    return {"lasting": True} if for_good else {}


class TaskRunner:
    """Runs one task. Made anew for each turn."""

    def __init__(self, agent_runner: AgentRunner, turn: Turn) -> None:
        self.turn = turn
        self._attempt = Attempt.of(agent_runner, turn)
        self._checkout: TaskCheckout | None = None  # from when it has one

    @property
    def deadline(self) -> int:
        """When nobody wants the work any more."""
        return self.turn.given[0].deadline

    async def run(self) -> None:
        """From claim to finish."""
        self._attempt = await self._attempt.current()
        request = self._attempt.request
        log.get().info(f"Received {request.type} from {request.sender}")
        if not str(request.payload.get("command_file") or "").strip():
            what = f"{self._attempt.agent} takes tasks with a command_file, and this one has none"
            log.get().warning("A request was refused", error=what, request=request.id)
            await self.failed(BadMessage(what, "", "send type task with payload.command_file"))
            return
        final = self.turn.records.final
        if final is None:
            final = await self._work()
            await self.turn.step(FinalRecord(payload=final))
        await self._close(final)

    async def stopped(self) -> None:
        """The person or the asker ended the task: what was made is kept on its branch."""
        held = await self._attempt.task.held()
        how, why = ("held", "A person paused it.") if held else ("stopped", "The task was stopped.")
        await self._close(await self._leave(how, why))

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The task cannot be done; the asker is told why."""
        payload = await self._leave("failed", str(error))
        await self._close(payload | error.as_dict() | _lasting(error), dead)

    async def _work(self) -> Payload:
        begun = self.turn.records.first(BegunRecord)
        if begun is None:
            begun = BegunRecord(at=int(time.time() * 1000))
            await self.turn.step(begun)
        left, late = self._bound(begun.at)
        try:
            async with WorkClock(left) as clock:
                self._checkout = checkout = await TaskCheckout.open(self._attempt, clock)
                outcome, ran = await checkout.carry()
        except TimeoutError:
            return await self._leave("timeout", late)
        except ToolError as error:
            log.get().error("A task cannot be carried out", task=self._attempt.task.id, why=str(error))
            return await self._leave("failed", str(error)) | _lasting(error)
        return await checkout.settle(outcome, ran)

    def _bound(self, started: int) -> tuple[float, str]:
        """The seconds that are left, and what is said when they are over. What people took to answer does not count."""
        minutes = self._attempt.agent_runner.profile.task_minutes
        waited = self.turn.records.waited_ms(int(time.time() * 1000))
        left = (started + waited) / 1000 + minutes * 60 - time.time()
        # What names none may wait for its turn for a while; how long it may then run is said here alone.
        named = messages.deadline_ms(self._attempt.request.deadline)
        # By the server's clock.
        wanted = (named + waited - self.turn.claimed_at - self.turn.elapsed_ms()) / 1000
        if named > 0 and wanted < left:
            return wanted, "The task was ended at its deadline: nobody waits for it any more."
        return left, f"The task was ended after {minutes:g} minutes."

    async def _leave(self, how: str, why: str) -> Payload:
        """Say why it ends here; what there is stays on its branch."""
        if self._checkout is not None:
            return await self._checkout.leave(how, why)
        return self._attempt.task.left(how, why)

    async def _close(self, payload: Payload, dead: str = "") -> None:
        here = self._attempt
        await here.progress.end()  # before the end is told
        if self._checkout is not None:
            await self._checkout.close()
        await executing.forget(here.scratch)
        payload = await here.task.judged(payload)
        kind: Any = "error" if payload.get("error") else "response"
        await here.agent_runner.replies.deliver(here.request, kind, payload)
        await here.task.news(str(payload["status"]))
        await closing.close(
            *(here.resources.approvals, here.resources.model.name, here.agent, self.turn),
            "complete" if kind == "response" else "error",
            payload.get("error"),
            dead,
            more=await here.task.ends(payload),
        )
        told = log.get().warning if payload["status"] in ("failed", "timeout") else log.get().info
        told(f"Task {payload['task_id']} {payload['status']}", commits=len(payload.get("commits", [])))
