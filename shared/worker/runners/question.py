"""A question of a task to the person: it waits in the task's own turn, and the answer is found by the task.

The question's truth is the journal of the turn. The answer is written once, in Redis, by whoever the person
gives it to; the worker that waits is rung, and one that takes the turn over finds it there.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from shared import log, people
from shared.bus import messages
from shared.bus.base import Bus
from shared.bus.keys import CHATTER, CHATTER_OUTPUT, DAY, Names
from shared.errors import StoreUnavailable, ToolError
from shared.store.base import Store
from shared.store.records import Task
from shared.tasks import questions
from shared.turns.records import AnsweredRecord, NoteRecord, QuestionRecord
from shared.turns.routing import unsigned
from shared.turns.turn import Turn
from shared.turns.waiting import wait_for
from shared.worker.connection import Connection
from shared.worker.permissions.approver import Approver
from shared.worker.runners.missed import news
from shared.worker.runners.task_run import TaskRun

_KEPT = 2 * DAY
_MOST = 20  # questions of one person that are looked at


def _key(names: Names, task: str) -> str:
    return names.question(task)


async def answer(bus: Bus, names: Names, task: str, person: str, text: str, message: str = "") -> str:
    """Answer the open question of a task; the question. ToolError where there is none, or it was answered.

    The same `message` may answer it again, after a crash.
    """
    key = _key(names, task)
    kept = await bus.command("HGET", key, "question")
    if not kept:
        raise ToolError(f"the task {task} has asked nothing", "", "get_task shows what it does")
    asked = json.loads(kept)
    options = list(map(str, asked.get("options") or []))
    if there := questions.beyond(text, len(options)):
        raise ToolError(
            f"no option is number {text.strip()[:20]}", there, "name one of them, or say it in words"
        )
    text = questions.chosen(text, options)
    told = json.dumps({"text": text, "by": person, "message": message})
    place = f"answer:{asked['id']}"
    if not await bus.command("HSETNX", key, place, told) and (
        not message or json.loads(await bus.command("HGET", key, place)).get("message") != message
    ):
        raise ToolError(f"the question of {task} was answered already", "", "")
    await bus.publish(str(asked["bell"]), json.dumps({"look": asked["session"]}).encode())
    return str(asked["asked"])


async def still_open(bus: Bus, names: Names, output: messages.Output) -> bool:
    """Whether the question of this output waits for its answer."""
    task = str((output.task or {}).get("task_id"))
    kept = await bus.command("HGET", _key(names, task), "question")
    if not kept or (asked := json.loads(kept))["asked"] != output.question:
        return False
    return not await bus.command("HEXISTS", _key(names, task), f"answer:{asked['id']}")


async def waiting(connection: Connection, store: Store, said: messages.Said) -> list[Waiting]:
    """The open questions to the person who says this; none to one who did not sign, or with the Store down."""
    if unsigned(said):
        return []
    where: dict[str, Any] = {"user_id": ("in", people.seen_by(said.user_id)), "status": "WAITING_INPUT"}
    try:
        rows = await store.select(Task, where, order=[("updated_at", "asc")], limit=_MOST)
    except StoreUnavailable:
        return []
    bus, found = connection.bus, []
    for row in rows:
        key = _key(connection.names, row.slug)
        kept = await bus.command("HGET", key, "question")
        asked = json.loads(kept) if kept else None
        if asked and not await bus.command("HEXISTS", key, f"answer:{asked['id']}"):
            options = [str(option) for option in asked.get("options") or []]
            found.append(Waiting(row.slug, asked["id"], options, str(asked.get("shown") or "")))
    return found


def meant(open_: list[Waiting], session: str, said: messages.Said) -> Waiting | None:
    """The question that these words answer: the one that they reply to, else the only one of this conversation
    where they are one of its options, or the number of one."""
    if said.in_reply_to:  # shown again, its output's id stands at the end of another
        return next((one for one in open_ if said.in_reply_to.endswith(one.id)), None)
    here = [one for one in open_ if one.session == session]
    if len(here) != 1:
        return None
    words = questions.chosen(said.content, here[0].options).strip().casefold()
    return here[0] if words in {option.strip().casefold() for option in here[0].options} else None


def note(open_: list[Waiting], session: str) -> list[str]:
    """What Chatter is told of the questions of its conversation; not their words, which may be those of others."""
    return [
        f"The task {one.task} waits for the person's answer to a question; get_task shows it. Where the person's "
        "words answer it, hand them on with answer_task."
        for one in open_
        if one.session == session
    ]


@dataclass(frozen=True)
class Waiting:
    """A question of a task that waits for a person; `id` is that of the output which asked it."""

    task: str
    id: str
    options: list[str]
    session: str


class TaskQuestion:
    """Asks for one turn."""

    def __init__(
        self, connection: Connection, agent: str, turn: Turn, task_run: TaskRun, who: Approver, demo: bool
    ) -> None:
        self._connection, self._agent, self._turn = connection, agent, turn
        self._task_run, self._who, self._demo = task_run, who, demo

    async def ask(self, question: dict[str, Any], minutes: float) -> str:
        """Wait for the person; the answer is a note in the journal then. "" where nobody answered in time."""
        number = len(self._turn.records.of(AnsweredRecord)) + 1
        id = f"{self._turn.id}.q{number}"
        asked = str(question.get("asked") or "")
        put = next((one for one in self._turn.records.of(QuestionRecord) if one.id == id), None)
        if put is None:
            put = QuestionRecord(id=id, at=time.time_ns() // 1_000_000, asked=asked)
            await self._turn.step(put)
        detail = questions.detail(question)
        await self._task_run.move("question", key=f".{number}", question=asked, detail=detail)
        await self._lay(id, question, put.at)
        left = put.at / 1000 + minutes * 60 - time.time()
        text = await wait_for(self._turn, lambda: self._answer(id), time.monotonic() + left)
        if text is None:
            await self._connection.bus.command(
                "HDEL", _key(self._connection.names, self._task_run.id), "question"
            )
            return ""
        note = f"[answer to your question, from {text['by']}]: {text['text']}"
        await self._turn.step(AnsweredRecord(id=id, by=text["by"]), NoteRecord(text=note))
        await self._task_run.move("answered", key=f".{number}", question="")
        return str(text["text"])

    async def _lay(self, id: str, question: dict[str, Any], at: int) -> None:
        bus, names = self._connection.bus, self._connection.names
        key, queue = _key(names, self._task_run.id), self._connection.queue(self._agent)
        card: dict[str, Any] = {
            "id": id,
            "agent": self._agent,
            "session": self._turn.session,
            "bell": queue.wake_up,
            "at": at,
        }
        card |= {"asked": question.get("asked"), "options": question.get("options"), "shown": self._shown}
        told = json.dumps(card)
        await bus.command("HSET", key, "question", told)
        await bus.command("EXPIRE", key, _KEPT)
        if await bus.command("HSETNX", key, f"shown:{id}", "1") and self._who.user_id:
            channel = names.channel(CHATTER_OUTPUT)
            queue, keep = self._connection.queue(CHATTER), await news(self._connection)
            output = await queue.placed(self._output(id, question))
            await queue.announce(channel, output.text(channel), output.session_id, keep)
        await self._task_run.news("question", question=question.get("asked"))
        log.get().info("Waiting for the person's answer", task=self._task_run.id)

    @property
    def _shown(self) -> str:
        """The conversation in which the person is asked."""
        return self._who.session or messages.default_session(self._who.user_id)

    def _output(self, id: str, question: dict[str, Any]) -> messages.Output:
        asked = "\n".join(str(question[part]) for part in ("asked", "context") if question.get(part))
        options = [str(option) for option in question.get("options") or []]
        numbered = "".join(f"  {number}. {option}\n" for number, option in enumerate(options, 1))
        command = f"promptdock tasks answer {self._task_run.id}"
        how = (
            f'Answer with a number, or in your words: {command} "…"' if options else f'Answer: {command} "…"'
        )
        text = f"{self._agent.capitalize()} asks about task {self._task_run.id}: {asked}\n{numbered}{how}"
        return messages.Output(
            user_id=self._who.user_id,
            content=text,
            status="task_update",
            id=id,
            session_id=self._shown,
            question=str(question.get("asked") or ""),
            options=options or None,
            task=self._task_run.card("waiting"),
            demo=self._demo or None,
        )

    async def _answer(self, id: str) -> dict[str, Any] | None:
        key = _key(self._connection.names, self._task_run.id)
        kept = await self._connection.bus.command("HGET", key, f"answer:{id}")
        return dict(json.loads(kept)) if kept else None
