"""A task's turn: a command file, a worktree, a loop with file tools and a shell, a commit, a receipt."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from shared import log
from shared.bus import messages
from shared.conversation import prompt
from shared.errors import Fenced, PromptDockError, ToolError
from shared.loop import Done
from shared.store.base import Store
from shared.store.records import Project, Repo, Task, TaskResult
from shared.store.row import derived, now
from shared.tasks import machine, receipt
from shared.tasks.worktree import Worktree
from shared.tools import coding
from shared.tools.context import Context, Root
from shared.turns.archive import Change
from shared.turns.turn import Turn
from shared.worker import reply
from shared.worker.engine import Engine
from shared.worker.live import Live

_NEWS = 10.0  # seconds between progress messages


async def apply_task(store: Store, values: dict[str, Any]) -> None:
    """Carry a task over, from the archive."""
    from uuid import UUID

    await machine.move(
        store,
        UUID(values["task"]),
        values["event"],
        values["actor"],
        values["key"],
        values["epoch"],
        **values["changes"],
    )


class Coding:
    """Runs one task. Made anew for each turn."""

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self.engine, self.turn, self.parts = engine, turn, engine.parts
        self.agent = engine.profile.name
        self.request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        self.payload = self.request.payload
        self._tree: Worktree | None = None
        self._task: Task | None = None
        self._news = 0.0

    @property
    def deadline(self) -> int:
        """When nobody wants the work any more."""
        return self.turn.given[0].deadline

    async def run(self) -> None:
        """From claim to finish."""
        log.get().info(f"Received {self.request.type} from {self.request.sender}")
        if self.request.type != "task" or not str(self.payload.get("command_file") or "").strip():
            raise_as = f"{self.agent} takes tasks with a command_file, not {self.request.type}s without one"
            await self.failed(PromptDockError(raise_as, "", "send type task with payload.command_file"))
            return
        kept = next((record for record in self.turn.records if record["k"] == "final"), None)
        if kept is None:
            kept = {"k": "final", "payload": await self._work()}
            await self.turn.step(kept)
        await self._close(kept["payload"])

    async def stopped(self) -> None:
        """The person or the asker ended the task: what was made is kept on its branch."""
        payload = await self._leave("stopped", "The task was stopped.")
        await self._close(payload)

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The task cannot be done; the asker is told why."""
        payload = await self._leave("failed", str(error))
        await self._close(payload | error.as_dict(), dead)

    # -- the work --------------------------------------------------------------------------------------------

    async def _work(self) -> dict[str, Any]:
        started = next((record["at"] for record in self.turn.records if record["k"] == "begun"), None)
        if started is None:
            started = int(time.time() * 1000)
            await self.turn.step({"k": "begun", "at": started})
        left = started / 1000 + self.engine.profile.task_minutes * 60 - time.time()
        try:
            async with asyncio.timeout(max(1.0, left)):
                await self._begin()
                done = await self._think()
        except TimeoutError:
            minutes = self.engine.profile.task_minutes
            return await self._leave("timeout", f"The task was ended after {minutes:g} minutes.")
        except ToolError as error:
            return await self._leave("failed", str(error))
        return await self._settle("completed", done)

    async def _begin(self) -> None:
        self._task = await self._row()
        repo = await self._repo()
        name = str(self.payload.get("task_id") or self.request.id)
        self._tree = await Worktree.acquire(self.parts.repos, repo, name, self.turn.epoch)
        await self._move("assigned", owner=self.agent)
        await self._move("started", branch=self._tree.branch, base_commit=self._tree.base)
        await self._event("started")
        await self._say(f"Working on {self._tree.branch} in {repo.name}", always=True)

    async def _think(self) -> Done:
        assert self._tree is not None
        tree = self._tree
        root = Root(tree.path.parent.name, tree.path, commit=tree.base, writable=True)
        live = Live(self.parts.bus, self.parts.names, f"{self.agent}:{self.turn.session}"[:200])

        def watch(kind: str, event: dict[str, Any]) -> None:
            live(kind, event)
            if kind == "tool_call" and time.monotonic() - self._news > _NEWS:
                self._news = time.monotonic()
                told = json.dumps(event["arguments"], ensure_ascii=False)[:160]
                asyncio.ensure_future(self._say(f"{event['tool']} {told}", always=True))  # noqa: RUF006

        context = Context(
            agent=self.agent,
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.parts.store,
            project_id=str(self.payload.get("project") or "default"),
            roots={root.name: root},
            say=self._say,
            extras={"sandbox": self.parts.sandbox, "lock": tree.lock, "commands": []},
        )
        system = prompt.compose(
            self.engine.profile.prompt,
            roster={},
            repositories=f"- {root.name}: your worktree, branch {tree.branch}",
        )
        user = {"role": "user", "content": [{"type": "text", "text": self._command_file()}]}

        async def joined() -> list[str]:
            await self.turn.look()
            return [json.dumps(json.loads(entry.data).get("payload", {})) for entry in self.turn.joined()]

        done = await self.engine.think(self.turn, system, [user], context, watch, joined)
        await live.close()
        return done

    def _command_file(self) -> str:
        return f"[task {self.payload.get('task_id') or self.request.id}]\n\n{self.payload['command_file']}"

    async def _settle(self, how: str, done: Done) -> dict[str, Any]:
        """Commit what was done and write the receipt."""
        assert self._tree is not None
        tokens = done.usage.input + done.usage.output
        if done.kind == "refusal":
            return await self._leave("failed", done.text)
        payload = await self._receipt(how, done.text, tokens)
        if done.demo:
            payload["demo"] = True
        payload["cost"] = done.usage.cost
        if not payload["commits"]:
            payload |= {"status": "failed", "error": "nothing was changed", "summary": done.text}
        return payload

    async def _leave(self, how: str, why: str) -> dict[str, Any]:
        """Keep what there is on the branch, and say why it ends here."""
        payload: dict[str, Any] = self._card(how) | {"error": why, "commits": [], "summary": why}
        if self._tree is not None:
            try:
                payload |= await self._receipt(how, f"Unfinished: {why}", 0)
                payload["error"] = why
            except Fenced:
                raise
            except PromptDockError as error:
                log.get().warning("What the task made could not be kept", why=str(error))
        return payload

    async def _receipt(self, how: str, summary: str, tokens: int) -> dict[str, Any]:
        assert self._tree is not None
        tree = self._tree
        title = str(self.payload.get("title") or "Work of a task")[:72]
        step = str(derived("commit", self.turn.id, "final"))
        await tree.git.commit_all(f"{title}\n\n{summary}", step=step, agent=self.agent)
        made = await receipt.build(tree.git, tree.branch, tree.base, self._commands(), summary, tokens)
        await tree.remove()
        self._tree = None
        return self._card(how) | {
            "summary": summary,
            "branch": made.branch,
            "commits": [commit.sha for commit in made.commits],
            "files_changed": made.files_changed,
            "diff_stat": made.diff_stat,
            "commands": [command.model_dump() for command in made.commands],
            "tokens": tokens,
            "verified": made.verified,
            "receipt": made.model_dump(),
        }

    def _commands(self) -> list[dict[str, Any]]:
        """The commands that ran, from the journal: also those of a worker that died before us."""
        return [
            {
                "command": record["arguments"]["command"],
                "exit_code": record["content"]["exit_code"],
                "stdout_digest": receipt.digest(record["content"]["stdout"]),
                "ms": record["content"]["ms"],
                "check": coding.is_check(record["arguments"]["command"]),
                "at": record["at"] / 1000,
            }
            for record in self.turn.records
            if record["k"] == "result" and record["tool"] == "bash" and "exit_code" in record["content"]
        ]

    def _card(self, how: str) -> dict[str, Any]:
        return {
            "task_id": str(self.payload.get("task_id") or self.request.id),
            "title": self.payload.get("title"),
            "status": how,
            "repo": self.payload.get("repo"),
            "demo": self.parts.model.demo or None,
        }

    # -- the end ---------------------------------------------------------------------------------------------

    async def _close(self, payload: dict[str, Any], dead: str = "") -> None:
        if self._tree is not None:
            await self._tree.release()
        kind: Any = "error" if payload.get("error") else "response"
        await reply.deliver(self.parts, self.agent, self.request, kind, payload)
        await self._event(str(payload["status"]))
        state = "complete" if kind == "response" else "error"
        await reply.close(
            self.parts,
            self.agent,
            self.turn,
            state,
            payload.get("error"),
            dead,
            more=await self._changes(payload),
        )
        log.get().info(
            f"Task {payload['task_id']} {payload['status']}", commits=len(payload.get("commits", []))
        )

    async def _changes(self, payload: dict[str, Any]) -> list[Any]:
        task = self._task or await self._row(quiet=True)
        if task is None:
            return []
        events = {
            "completed": ["completed", "passed"],
            "failed": ["failed"],
            "timeout": ["timeout"],
            "stopped": ["stopped"],
        }[str(payload["status"])]
        changes = {"error": str(payload.get("error") or ""), "ended_at": now(), "owner": None}
        result = TaskResult(
            id=derived("task-result", self.turn.id),
            task_id=task.id,
            epoch=self.turn.epoch,
            agent=self.agent,
            summary=str(payload.get("summary", "")),
            branch=payload.get("branch"),
            base_commit=(payload.get("receipt") or {}).get("base"),
            commits=payload.get("commits", []),
            files_changed=payload.get("files_changed", []),
            diff_stat=payload.get("diff_stat", ""),
            commands=payload.get("commands", []),
            tokens_used=payload.get("tokens", 0),
            cost=payload.get("cost", 0.0),
            verified=payload.get("verified", "unverified"),
            error=str(payload.get("error") or ""),
            receipt=payload.get("receipt") or {},
        )
        return [result, *(self._change(task, event, changes) for event in events)]

    def _change(self, task: Task, event: str, changes: dict[str, Any]) -> Change:
        values = {"task": str(task.id), "event": event, "actor": self.agent, "key": self.turn.id}
        return Change("task", {**values, "epoch": self.turn.epoch, "changes": changes})

    async def _move(self, event: str, **changes: Any) -> None:
        """Best tried: the end of the turn carries the final state with it, whatever the Store does now."""
        if self._task is None:
            return
        if event in ("assigned", "started") and any(record["k"] == "model" for record in self.turn.records):
            return  # a worker before us did
        try:
            await machine.move(
                self.parts.store, self._task.id, event, self.agent, self.turn.id, self.turn.epoch, **changes
            )
        except PromptDockError as error:
            log.get().warning("The task's state could not be written", event=event, why=str(error))

    async def _event(self, state: str) -> None:
        """Task changes are events of their own."""
        live = Live(self.parts.bus, self.parts.names, "@tasks")
        live("task", {"task_id": self._card(state)["task_id"], "state": state, "agent": self.agent})
        await live.close()

    # -- what it works on ------------------------------------------------------------------------------------

    async def _row(self, quiet: bool = False) -> Task | None:
        try:
            found = await self.parts.store.select(
                Task, {"slug": str(self.payload.get("task_id") or "")}, limit=1
            )
        except PromptDockError as error:
            if not quiet:
                log.get().warning("The task's row cannot be read", why=str(error))
            return None
        return found[0] if found else None

    async def _repo(self) -> Repo:
        name = self.payload.get("repo")
        slug = str(self.payload.get("project") or "default")
        projects = await self.parts.store.select(Project, {"slug": slug}, limit=1)
        repos = await self.parts.store.select(Repo, {"project_id": projects[0].id}) if projects else []
        fitting = [
            row for row in repos if row.name == name or (not name and row.kind in (self.agent, "both"))
        ]
        if len(fitting) != 1:
            there = ", ".join(row.name for row in repos) or "none"
            raise ToolError(
                f"it is not clear which repository is meant ({name or 'none named'})", f"there are: {there}"
            )
        return fitting[0]

    async def _say(self, text: str, always: bool = False) -> None:
        if always or time.monotonic() - self._news > _NEWS:
            self._news = time.monotonic()
            try:
                await reply.progress(self.parts, self.agent, self.request, text)
            except PromptDockError as error:
                log.get().debug("Progress was not sent", why=str(error))
