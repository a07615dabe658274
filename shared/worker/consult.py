"""A question's turn: from another agent's question to the answer that goes back."""

from __future__ import annotations

import json
from typing import Any

from shared import faults, log
from shared.bus import messages
from shared.conversation import prompt
from shared.errors import PromptDockError, StoreUnavailable
from shared.loop import Done
from shared.store.records import Repo, project_key
from shared.tools import research
from shared.tools.context import Context, Root
from shared.turns.turn import Turn
from shared.worker import reply
from shared.worker.colleagues import Colleagues
from shared.worker.door import asked_by
from shared.worker.engine import Engine
from shared.worker.live import Live
from shared.worker.parts import Parts


class Consult:
    """Runs one question. Made anew for each turn."""

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self.engine, self.turn, self.parts = engine, turn, engine.parts
        self.agent = engine.profile.name
        self.request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})

    @property
    def deadline(self) -> int:
        """When the answer is worth nothing any more."""
        return self.turn.given[0].deadline

    async def run(self) -> None:
        """From claim to finish."""
        log.get().info(f"Received {self.request.type} from {self.request.sender}")
        if self.request.type != "question":
            await self.failed(
                PromptDockError(
                    f"{self.agent} takes questions, not {self.request.type}s", "", "send a question"
                )
            )
            return
        kept = next((record for record in self.turn.records if record["k"] == "final"), None)
        if kept is None:
            done, roots = await self._think()
            kept = {"k": "final", "payload": self._answer(done, roots)}
            faults.point("worked", self.turn.id)
            await self.turn.step(kept)
        faults.point("final stored", self.turn.id)
        await reply.deliver(self.parts, self.agent, self.request, "response", kept["payload"])
        faults.point("final sent", self.turn.id)
        await reply.close(self.parts, self.agent, self.turn, "complete")
        log.get().info(f"Answered {self.request.sender}")

    async def stopped(self) -> None:
        """Whoever asked does not want the answer any more."""
        await reply.deliver(self.parts, self.agent, self.request, "error", {"error": "cancelled"})
        await reply.close(self.parts, self.agent, self.turn, "stopped")

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The question cannot be answered; the asker is told why."""
        await reply.deliver(self.parts, self.agent, self.request, "error", error.as_dict())
        await reply.close(self.parts, self.agent, self.turn, "error", str(error), dead)

    async def _think(self) -> tuple[Done, dict[str, Root]]:
        live = Live(self.parts.bus, self.parts.names, f"{self.agent}:{self.turn.session}"[:200])
        project = str(self.request.payload.get("project") or "default")
        roots = await roots_of(self.parts, project)
        asked = asked_by(self.request)
        who = {"user_id": asked.user_id, "session_id": asked.session}
        colleagues = Colleagues(
            self.parts, self.agent, self.turn, who, self.request.hops, live, lambda text: self._say(text)
        )
        context = Context(
            agent=self.agent,
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.parts.store,
            project_id=project,
            roots=roots,
            say=self._say,
            cluster=colleagues,
            extras={"sandbox": self.parts.sandbox},
        )
        repositories = "\n".join(
            f"- {root.name} ({root.kind}), commit {root.commit[:12]}" for root in roots.values()
        )
        system = prompt.compose(
            self.engine.profile.prompt, roster=await colleagues.roster(), repositories=repositories
        )
        user = {"role": "user", "content": _question(self.request)}

        async def joined() -> list[str]:
            await self.turn.look()
            return []

        done = await self.engine.think(self.turn, system, [user], context, live, joined, asked)
        await live.close()
        return done, roots

    async def _say(self, text: str) -> None:
        await reply.progress(self.parts, self.agent, self.request, text)

    def _answer(self, done: Done, roots: dict[str, Root]) -> dict[str, Any]:
        """The payload: the checked result of the profile's answer tool, beside the words."""
        payload: dict[str, Any] = {"answer": done.text, "model": done.model}
        if done.demo:
            payload["demo"] = True
        result = _last_result(self.turn, self.engine.profile.answer_tool)
        if result is not None and self.engine.profile.answer_tool == "report_findings":
            payload |= research.answer(research.Report.model_validate(result["report"]), roots)
        elif result is not None:
            payload |= result
        elif self.engine.profile.answer_tool == "report_findings":
            payload |= {"findings": {}, "conflicts": [], "recommendations": [], "confidence": 0.0}
        usage = done.usage
        payload["usage"] = {"input": usage.input, "output": usage.output, "cost": usage.cost}
        return payload


def _question(request: messages.Agent) -> list[dict[str, Any]]:
    payload = request.payload
    rest = {key: value for key, value in payload.items() if key not in ("question", "request_id") and value}
    blocks = [{"type": "text", "text": str(payload.get("question") or "(no question)")}]
    if rest:
        told = f"[beside the question from {request.sender}: {json.dumps(rest, ensure_ascii=False)}]"
        blocks.insert(0, {"type": "text", "text": told})
    return blocks


def _last_result(turn: Turn, tool: str | None) -> dict[str, Any] | None:
    for record in reversed(turn.records):
        if record["k"] == "result" and record["tool"] == tool and not record["error"]:
            return dict(record["content"])
    return None


async def repositories(parts: Parts, project: str) -> list[Repo]:
    """The rows of a project's repositories; with the Store down, as they were last read."""
    try:
        where = {"project_id": project_key(project)}
        parts.known[project] = await parts.store.select(Repo, where, order=[("name", "asc")])
    except StoreUnavailable as error:
        log.get().warning("The repositories are taken as last read", why=str(error))
    return parts.known.get(project, [])


async def roots_of(parts: Parts, project: str) -> dict[str, Root]:
    """The repositories of a project as they can be read here, by name."""
    roots: dict[str, Root] = {}
    for row in await repositories(parts, project):
        try:
            path, commit = await parts.repos.read_root(row)
        except PromptDockError as error:
            log.get().warning("A repository cannot be read", repo=row.name, why=str(error))
            continue
        roots[row.name] = Root(row.name, path, kind=row.kind, commit=commit)
    return roots
