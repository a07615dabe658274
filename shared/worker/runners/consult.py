"""A question's turn: from another agent's question to the answer that goes back."""

from __future__ import annotations

import json
from typing import Any

from shared import failpoints, log
from shared.bus import messages
from shared.bus.activity import stream_of
from shared.bus.event_stream import EventStream
from shared.conversation import prompt, sessions
from shared.errors import Missing, PromptDockError
from shared.loop import Done
from shared.tools.context import Context, Root
from shared.tools.research import report
from shared.turns.records import FinalRecord
from shared.turns.turn import Turn
from shared.worker.permissions.approver import asked_by
from shared.worker.runners import closing, inheriting, situation
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.peers import Peers
from shared.worker.runners.task_run import TaskRun
from shared.worker.runners.waiting import beside, waiting_notice

_PLAN = 20_000  # characters of a plan that is shown again


class ConsultRunner:
    """Runs one question. Made anew for each turn."""

    def __init__(self, agent_runner: AgentRunner, turn: Turn) -> None:
        self.agent_runner, self.turn, self.resources = agent_runner, turn, agent_runner.resources
        self.agent = agent_runner.profile.name
        self.request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        self._project = str(self.request.payload.get("project") or sessions.DEFAULT)
        self._colleagues: Peers | None = None
        # A task that needs no worktree is a question whose answer is the work.
        self.task_run = (
            TaskRun(
                *(self.resources.connection, self.resources.store, self.resources.model.demo),
                *(self.agent, turn, self.request),
            )
            if self.request.type == "task"
            else None
        )

        activity, asked = turn.activity, asked_by(self.request)
        activity.kind, activity.title = "question", str(self.request.payload.get("question") or "")
        if self.task_run is not None:
            activity.kind, activity.task, activity.title = "task", self.task_run.id, self.task_run.title
        activity.user, activity.session = asked.user_id, asked.session
        activity.events = stream_of(self.agent, turn.session)

    @property
    def deadline(self) -> int:
        """When the answer is worth nothing any more."""
        return self.turn.given[0].deadline

    @property
    def limit(self) -> int:
        """When it is ended, though it runs."""
        return self.deadline

    async def run(self) -> None:
        """From claim to finish."""
        self.agent_runner = await self.agent_runner.current()
        log.get().info(f"Received {self.request.type} from {self.request.sender}")
        if self.request.type not in ("question", "task"):
            what = f"{self.agent} takes questions and tasks, not {self.request.type}s"
            log.get().warning("A request was refused", error=what, request=self.request.id)
            await self.failed(PromptDockError(what, "", "send a question"))
            return
        try:
            await sessions.need_project(self.resources.store, self._project)
        except Missing as error:  # another try would not find it either
            await self.failed(error)
            return
        if self.task_run is not None:
            await self.task_run.load()
            await self.task_run.move("assigned", owner=self.agent)
            await self.task_run.move("started")
        final = self.turn.records.final
        if final is None:
            done, roots = await self._think()
            final = self._report(done, self._answer(done, roots))
            failpoints.point("worked", self.turn.id)
            await self.turn.step(FinalRecord(payload=final))
        failpoints.point("final stored", self.turn.id)
        payload = await self.task_run.judged(final) if self.task_run else final
        await self.agent_runner.replies.deliver(self.request, "response", payload)
        failpoints.point("final sent", self.turn.id)
        more = await self.task_run.ends(payload) if self.task_run else []
        await closing.close(
            self.resources.approvals, self.resources.model.name, self.agent, self.turn, "complete", more=more
        )
        log.get().info(f"Answered {self.request.sender}")

    async def stopped(self) -> None:
        """Whoever asked does not want the answer any more."""
        held = self.task_run is not None and await self.task_run.held()
        await self._leave({"error": "cancelled"}, "held" if held else "stopped", "")

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The question cannot be answered; the asker is told why."""
        await self._leave({**error.as_dict()}, "failed", dead)

    async def _leave(self, payload: dict[str, Any], how: str, dead: str) -> None:
        more = []
        if self.task_run is not None:
            payload = self.task_run.card(how) | payload
            more = await self.task_run.ends(payload)
        await self.agent_runner.replies.deliver(self.request, "error", payload)
        state, why = ("stopped", None) if how in ("stopped", "held") else ("error", payload["error"])
        await closing.close(
            self.resources.approvals,
            self.resources.model.name,
            self.agent,
            self.turn,
            state,
            why,
            dead,
            more=more,
        )

    def _report(self, done: Done, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer that is the outcome of a task says what a worker's outcome says."""
        if self.task_run is None:
            return answer
        usage = done.usage
        made = {"summary": done.text, "tokens": usage.input + usage.output, "cost": usage.cost}
        if done.spent:
            asked = {"error": f"{done.spent} is spent. {done.text}", "budget": self.turn.spent or {}}
            return self.task_run.card("spent") | made | asked
        row = self.task_run.row
        planned = row is not None and row.type == "plan" and "plan" in answer
        return self.task_run.card("planned" if planned else "completed") | answer | made

    async def _think(self) -> tuple[Done, dict[str, Root]]:
        inheriting.request(self.turn, self.agent_runner.profile, self.request)
        activity = self.turn.activity
        live = EventStream(
            self.resources.connection.bus, self.resources.connection.names, activity.events, activity
        )
        project = self._project
        roots = await self.resources.repositories.roots(project)
        asked = asked_by(self.request)
        who = {"user_id": asked.user_id, "session_id": asked.session, "roles": sorted(asked.roles)}
        self._colleagues = colleagues = Peers(
            *(self.resources.connection, self.resources.settings),
            self.agent,
            self.turn,
            who,
            self.request.hops,
            live,
            lambda text: self._say(text),
        )
        context = Context(
            agent=self.agent,
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.resources.store,
            on_behalf=asked.who,
            roles=lambda: asked.roles,
            project_id=project,
            roots=roots,
            say=self._say,
            cluster=colleagues,
            sandbox=self.resources.sandbox,
            task=self.task_run.row if self.task_run else None,
        )
        there = [f"- {root.name} ({root.kind}), commit {root.commit[:12]}" for root in roots.values()]
        there += [
            f"- {row.name} ({row.kind}), on another machine: name it in each path or workspace"
            for row in await self.resources.repositories.rows(project)
            if row.name not in roots and row.path and row.home != self.resources.home
        ]
        system = prompt.compose(
            self.agent_runner.profile.system, roster=await colleagues.roster(), repositories="\n".join(there)
        )
        now = {"type": "text", "text": situation.of(self.turn, project)}
        user = {"role": "user", "content": [*self._sent_back(), *_question(self.request), now]}

        async def joined() -> list[str]:
            await self.turn.look()
            return []

        told = waiting_notice(live, self._say, beside)
        done = await self.agent_runner.think(
            self.turn, system, [user], context, told, joined, asked, **asked_for(self.request)
        )
        await live.close()
        return done, roots

    def _sent_back(self) -> list[dict[str, Any]]:
        """What the person wants to be different of what a task's worker handed in before."""
        row = self.task_run.row if self.task_run else None
        if row is None or not row.feedback:
            return []
        before = json.dumps(row.plan, ensure_ascii=False)[:_PLAN] if row.plan.get("tasks") else ""
        plan = f"\n\nYour plan before:\n{before}" if before else ""
        told = f"[feedback on what you handed in before]\n\n{row.feedback}{plan}"
        return [{"type": "text", "text": told}]

    async def progress(self, request_id: str, text: str) -> None:
        """An agent that this turn asks in its turn says how far it is."""
        if told := self._colleagues.progress(request_id, text) if self._colleagues else "":
            await self._say(told)

    async def _say(self, text: str) -> None:
        await self.agent_runner.replies.progress(self.request, text)

    def _answer(self, done: Done, roots: dict[str, Root]) -> dict[str, Any]:
        """The payload: the checked result of the profile's answer tool, beside the words."""
        payload: dict[str, Any] = {"answer": done.text, "model": done.model}
        if done.demo:
            payload["demo"] = True
        tool = self.agent_runner.profile.answer_tool
        result = self.turn.records.last_result(tool) if tool else None
        if result is not None and self.agent_runner.profile.answer_tool == "report_findings":
            payload |= report.answer(report.Report.model_validate(result["report"]), roots)
        elif result is not None:
            payload |= result
        elif self.agent_runner.profile.answer_tool == "report_findings":
            payload |= {"findings": {}, "conflicts": [], "recommendations": [], "confidence": 0.0}
        usage = done.usage
        payload["usage"] = {"input": usage.input, "output": usage.output, "cost": usage.cost}
        return payload


def asked_for(request: messages.AgentMessage) -> dict[str, Any]:
    """The model and the bound on tokens that a request names."""
    model, tokens = request.payload.get("model"), request.payload.get("max_tokens_per_run")
    return {
        "model": model if isinstance(model, str) and model else None,
        "tokens": tokens if isinstance(tokens, int) and tokens > 0 else None,
    }


def _question(request: messages.AgentMessage) -> list[dict[str, Any]]:
    payload = request.payload
    rest = {
        key: value
        for key, value in payload.items()
        if key not in ("question", "command_file", "epoch", "request_id", "project") and value
    }
    asked = payload.get("question") or payload.get("command_file") or "(no question)"
    blocks = [{"type": "text", "text": str(asked)}]
    if rest:
        told = f"[beside the question from {request.sender}: {json.dumps(rest, ensure_ascii=False)}]"
        blocks.insert(0, {"type": "text", "text": told})
    return blocks
