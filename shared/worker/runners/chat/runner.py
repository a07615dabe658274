"""A conversation's turn: a person's message until its one closing output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from shared import failpoints, log
from shared.bus import messages
from shared.bus.event_stream import EventStream
from shared.bus.keys import HUMAN_INPUT
from shared.conversation import context, model_choice, prompt, sessions, window
from shared.conversation.context import Parting, WindowChange
from shared.conversation.past import History, look_back
from shared.errors import BadMessage, Missing, PromptDockError, ToolError, UsageError, sentences
from shared.guard.permissions import marks
from shared.loop import Call, Done, PublishEvent, final
from shared.loop.transcript import Transcript
from shared.models.base import Block, ModelMessage
from shared.tools.approvals.trust import CONVERSATION
from shared.tools.context import Context
from shared.turns import outbox
from shared.turns.records import IntentRecord, NoteRecord, Record, SettlesRecord
from shared.turns.turn import Turn
from shared.worker import incidents
from shared.worker.budgets import prompt as allowance
from shared.worker.permissions.gate import Approver, asked_by
from shared.worker.runners import inheriting, question, situation
from shared.worker.runners.agent import AgentRunner, waiting_notice
from shared.worker.runners.chat import (
    beside,
    drawing,
    full,
    memory,
    resting,
    seeking,
    speaker,
    summary,
    thoughts,
    titling,
    unfinished,
    warm,
    wording,
)
from shared.worker.runners.chat.keeping import WindowKeeper
from shared.worker.runners.chat.output import TurnOutput
from shared.worker.runners.consult import asked_for
from shared.worker.runners.inputs import awaited, pictures, said, sort, words
from shared.worker.runners.peers import Peers


class ChatRunner:
    """Runs one turn of a conversation. Made anew for each turn."""

    def __init__(
        self, engine: AgentRunner, turn: Turn, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self.engine, self.turn, self._spawn = engine, turn, spawn
        self.resources = engine.resources
        names = self.resources.connection.names
        self._human = names.channel(HUMAN_INPUT)
        self._given = sort(turn.given, self._human)
        turn.joined()
        self._live = EventStream(self.resources.connection.bus, names, turn.session, turn.activity)
        self.output = TurnOutput(
            *(engine.replies, self.resources.approvals, self.resources.model), turn, self._given, self._live
        )
        turn.activity.kind, turn.activity.session = "message", turn.session
        turn.activity.events = turn.session
        self._colleagues: Peers | None = None
        self._past: History | None = None
        self._opening: list[str] = []
        self._pictures: list[Block] = []  # that came with the words of the opening
        self._model: str | None = None  # that is named for this turn or this conversation
        self._open: list[str] = []  # the questions of tasks that these words may answer
        self._shared = False  # words of somebody else joined the turn
        self._speaker = speaker.Speaker(engine)

    async def run(self) -> None:
        """From claim to finish; whatever goes wrong is said to the person as the closing output."""
        self.engine = await self.engine.current()
        self.output.who = await self._person()
        self.turn.activity.user = str(self.output.who.get("user_id", ""))
        work = self._spoken
        sought = await seeking.sought(self.resources.store, self.turn, self._given)
        if sought is None:
            return
        if sought:
            self._open.append(seeking.NOTE)
            await self.output.tell("progress", sought, "alone")
        if work and self._ended_by(self._given.stops):
            await self.stopped("Stopped.")
        elif self._given.commands:
            await self._command(self._given.commands[0])
        elif work:
            await self._converse()
        elif self._given.rests:
            await resting.rest(self.engine, self.turn, self.output, await self._look_back())
        elif self._given.stops:
            await self.output.close("error", "There is nothing to stop. It may have ended already.")
        else:
            what = "There is no running turn to amend. It may have ended already."
            await self.output.close("error", what)

    @property
    def _spoken(self) -> bool:
        """Whether somebody is to be answered."""
        given = self._given
        return bool(given.said or given.requests or given.answers or given.commands)

    def _ended_by(self, stops: Sequence[messages.Stop]) -> bool:
        """Whether one of them ends this turn: not a consult of it, and not another turn."""
        return any(not stop.request_id and self.turn.is_named(stop.turn_id) for stop in stops)

    async def stopped(self, text: str = "Stopped. What was done until then stays as it is.") -> None:
        """The person ended this turn: everything under way is ended already."""
        if self._given.rests and not self._spoken:
            await resting.leave(self.turn)
            return
        left = await self._left("stopped by the person, before an answer was given")
        await self.output.close("complete", text, state="stopped", **left)

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The turn cannot be answered; the message goes to the dead letters where it is to blame."""
        if self._given.rests and not self._spoken:
            log.get().warning("A conversation was not put to rest", why=str(error))
            await resting.leave(self.turn, dead)
            return
        if not self.output.who:  # it did not even begin
            self.output.who = await self._person()
        left = {} if dead else await self._left(f"failed, and gave no answer: {error.what}", error)
        told, code = error.told(), error.exit_code
        await self.output.close("error", told, state="error", error=str(error), dead=dead, code=code, **left)

    async def _left(self, how: str, error: PromptDockError | None = None) -> dict[str, Any]:
        """What stays of a turn without an answer: the next one knows the question, and what was done for it."""
        if self._past is None:
            if not (self._given.said and self.turn.records):
                return {}  # it did not begin
            await self._look_back()
        assert self._past is not None
        opening = self._opening or [*words(self._given)]
        if not opening:
            return {}
        kept = unfinished.messages(self.turn, self._opened(opening), how, error)
        return {"added": self._window(kept, self._past.seq), "past": self._past}

    @property
    def deadline(self) -> int:
        """When the message that opened the turn is worth nothing any more (milliseconds; 0: never)."""
        return self.turn.given[0].deadline if self.turn.given else 0

    @property
    def limit(self) -> int:
        """When it is ended, though it runs."""
        return self.deadline

    # -- the conversation ------------------------------------------------------------------------------------

    async def _converse(self) -> None:
        if self._given.said:
            log.get().info(f"Received message from user: {self._given.said[0].user_id}")
        tasks = [answer for answer in self._given.answers if answer.payload.get("task_id")]
        others = self._late()
        if not await self._speaks():
            return
        if self._given.said and (wrong := wording.crossed(self._given.said[0])):
            await self.output.close("error", wrong, code=UsageError.exit_code)
            return
        past = await self._look_back()
        for answer in tasks:
            await self._task_update(answer)
        note = await self._greeted(past) if self._given.said else ""
        if note is None:
            return
        if not (self._given.said or others or self._given.requests):
            await self._close_update(tasks, past)
            return
        opening = [
            *words(self._given),
            *(wording.late(answer) for answer in others),
            *(wording.outcome(answer) for answer in tasks),
            *([note] if note else []),
        ]
        # What joined the turn before its worker died is in the journal already.
        noted = {note.text for note in self.turn.records.of(NoteRecord)}
        opening = self._opening = [*opening[:1], *(text for text in opening[1:] if text not in noted)]
        self._pictures = [one for m in self._given.said if said(m) in opening for one in pictures(m)]
        named, project = await asyncio.gather(self._named(), self._project(), return_exceptions=True)
        if isinstance(named, BaseException):
            raise named
        self._model = named
        self._start()
        if isinstance(project, Missing):  # another try would not find it either
            await self.output.close("error", project.told(), code=project.exit_code)
            return
        if isinstance(project, BaseException):
            raise project
        shown = past.messages(self.output.now())
        person = str(self.output.who.get("user_id", ""))
        nearby = beside.lines(self.resources.connection, self.turn, person)
        around, others_active = await asyncio.gather(self._around(project), nearby)
        news = prompt.news(around, shown)
        remembered = await memory.lines(self.resources.store, self.turn, self._given, project, past)
        opening.append(situation.of(self.turn, project, [*self._open, *others_active, *remembered], news))
        user = self._opened(opening)
        done = await self._think(past, [*shown, user], project, decided=bool(note))
        await self._finish(done, opening, past)

    async def _speaks(self) -> bool:
        """Find who answers; where nobody can, the person is told why."""
        self._speaker = speaker.Speaker(self.engine)
        if self._given.said or self._given.answers:
            try:
                said = self._given.said[0] if self._given.said else None
                self._speaker = await speaker.of(self.engine, said, self.turn.session)
            except speaker.NOBODY as error:
                await self.output.close("error", error.told(), code=error.exit_code, talked=False)
                return False
        self.engine, self.output.agent = self._speaker.engine, self._speaker.agent
        return True

    def _late(self) -> list[messages.AgentMessage]:
        """Answers that nobody awaits any more."""
        used = awaited(self.turn.id, self.turn.records)
        answers = [answer for answer in self._given.answers if not answer.payload.get("task_id")]
        return [answer for answer in answers if answer.request_id not in used]

    async def _look_back(self) -> History:
        patience = self.resources.settings.conversation_timeout_ms
        self._past = await look_back(self.resources.store, self.turn, patience)
        inheriting.conversation(self.turn, self.engine.profile, self._past, self._given)
        return self._past

    def _start(self) -> None:
        """Say that it begins; one that goes on says from which answer of the model on it begins anew."""
        model = self._model or self.engine.model
        model = "demo" if self.resources.model.demo else self.resources.outages.first(model)
        told = {"turn_id": self.turn.id, "task_id": self.turn.id, "model": model}
        said = final.spoken((answer.content, answer.cut) for answer in self.turn.records.answers)
        again = {"again": True, "from": len(said) + 1, "said": said}
        self._live("start", told | (again if said or self.turn.tries > 1 else {}))

    async def _named(self) -> str | None:
        """The model that the message names, or the request, or that was chosen for the conversation."""
        said = [message.model for message in self._given.said[:1]]
        asked = [asked_for(request)["model"] for request in self._given.requests[:1]]
        named = next(filter(None, [*said, *asked]), None)
        return named or await model_choice.chosen(self.resources.store, self.turn.session)

    async def _greeted(self, past: History) -> str | None:
        """Say what a person missed. Where they answer a question about money: a note, None if that is all."""
        await self.output.tell_missed()
        if await self._answered(past):
            return None
        try:
            decided = await allowance.answered(
                *(self.resources.store, self.engine.ledger, self.resources.settings.approver_roles),
                *(self.turn.session, self._given.said[0]),
            )
        except PromptDockError as error:
            await self.output.close("error", error.told(), code=error.exit_code)
            return None
        note, closing = decided or ("", "")
        if closing:
            await self.output.close("complete", closing)
            return None
        return note

    async def _answered(self, past: History) -> bool:
        """Hand the words on where they answer the question of a task, and close; else note what is open here."""
        said, session = self._given.said[0], self.turn.session
        kept = self.turn.records.first(SettlesRecord)
        if kept is None:
            open_ = await question.waiting(self.resources.connection, self.resources.store, said)
            if (one := question.meant(open_, session, said)) is None:
                self._open += question.note(open_, session)
                return False
            kept = SettlesRecord(task=one.task)
            await self.turn.step(kept)  # a successor would not find it open
        task, bus, names = kept.task, self.resources.connection.bus, self.resources.connection.names
        status: messages.Status = "complete"
        told = f"Your answer is with task {task}."
        told += f" {wording.UNSENT_PICTURES}" if said.images else ""
        try:
            await question.answer(bus, names, task, said.user_id, said.content, said.id or "")
        except ToolError as error:
            status, told = "error", error.told()
        added = [
            {"role": role, "content": [{"type": "text", "text": text}]}
            for role, text in (("user", words(self._given)[0]), ("assistant", told))
        ]
        await self.output.close(status, told, added=self._window(added, past.seq), past=past)
        return True

    async def _think(self, past: History, messages: list[ModelMessage], project: str, decided: bool) -> Done:
        said = self._given.said[0] if self._given.said else None
        self._colleagues = Peers(
            self.resources.connection,
            self.resources.settings,
            self.turn.queue.agent,
            self.turn,
            self.output.who,
            self._hops(),
            self._live,
            self.output.say,
        )
        for answer in self._late():
            self._colleagues.late(answer)
        here = Context(
            agent=self.engine.profile.name,
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.resources.store,
            user_id=str(self.output.who.get("user_id", "")),
            on_behalf=self._asked().who,
            roles=self._roles,
            project_id=project,
            roots=await self._speaker.roots(project),
            force=bool(said and said.force),
            say=self.output.say,
            cluster=self._colleagues,
            consulted=lambda: self._consulted(past),
            talks=not decided,
            repos=self.resources.repos,
            sandbox=self.engine.sandbox,
            services=self.engine.services,
            past=past,
        )
        live = waiting_notice(self._live, self.output.say, self._spawn)
        if thoughts.wanted(self._given.said, self._speaker):
            return await self._filed(messages[-1], here, live)
        work = await full.begin(
            *(self.engine, self.turn, said, self._colleagues, live, self.output.say, self._joined)
        )
        self._opening.extend(work.opening)
        messages[-1]["content"].extend({"type": "text", "text": text} for text in work.opening)
        request = asked_for(self._given.requests[0]) if self._given.requests else {}
        return await work.engine.think(
            self.turn,
            (self.engine.profile.system,),
            messages,
            here,
            live,
            work.joined,
            self._asked(),
            model=self._model,
            tokens=request.get("tokens"),
            temperature=said.temperature if said else None,
            loaded=warm.before(self.turn, past),
        )

    async def _filed(self, user: ModelMessage, context: Context, live: PublishEvent) -> Done:
        """The person's words go into a note: the channel's, or the one that the model finds they fit."""
        words = "\n\n".join(message.content for message in self._given.said)
        name, done, project = self._speaker.note, Done("", "answer"), context.project_id
        if not name:
            engine = await thoughts.chooser(self.engine, project)
            system = (engine.profile.system,)
            done = await engine.think(
                *(self.turn, system, [user], context, live, self._joined, self._asked()), model=self._model
            )
            if done.spent:
                return done
            name = await thoughts.title(engine, self.turn, project, words)
        told = await thoughts.file(self.engine, self.turn, context, self._asked(), live, name, words)
        self._live("chunk", {"content": told, "part": max(1, len(self.turn.records.answers) + 1)})
        return thoughts.answered(done, told)

    async def _joined(self) -> Sequence[str | NoteRecord]:
        """Words for this turn that came while it ran."""
        await self.turn.look()
        words: list[str | NoteRecord] = []
        for entry in self.turn.joined():
            if self._colleagues and entry.channel != self._human and self._colleagues.take(entry):
                continue
            try:
                more = sort([entry], self._human)
            except BadMessage as error:
                log.get().warning("What joined the turn cannot be read", why=str(error))
                continue
            asked = self._colleagues.asked if self._colleagues else {}
            for answer in more.answers:
                if answer.payload.get("task_id") or answer.request_id not in asked:
                    inheriting.answer(self.turn, answer)
                if answer.payload.get("task_id"):
                    await self._task_update(answer)
                    words.append(wording.outcome(answer))
                elif answer.request_id not in asked:
                    words.append(wording.late(answer))
                    if self._colleagues:
                        self._colleagues.late(answer)
            self._share_roles([*more.said, *more.amends])
            spoken: list[messages.Said | messages.Amend] = [*more.said, *more.amends]
            for message in spoken:
                beside = pictures(message)
                words.append(NoteRecord(text=said(message), images=beside) if beside else said(message))
            for stop in more.stops:
                if stop.request_id:
                    self.stop_request(stop.request_id, stop.reason or "")
            if self._ended_by(more.stops):
                raise asyncio.CancelledError("stopped by the person")
        return words

    def stop_request(self, request_id: str, reason: str = "") -> None:
        """The person ended one consult of this turn."""
        if self._colleagues:
            self._colleagues.give_up(request_id, reason)
            self.turn.wake_up.set()

    async def progress(self, request_id: str, text: str) -> None:
        """An agent that this turn consults says how far it is."""
        if told := self._colleagues.progress(request_id, text) if self._colleagues else "":
            await self.output.say(told)

    def _opened(self, opening: Sequence[str]) -> ModelMessage:
        """What the turn begins with; the pictures stand behind the words that they came with."""
        texts = [{"type": "text", "text": text} for text in opening]
        return {"role": "user", "content": [*texts[:1], *self._pictures, *texts[1:]]}

    async def _finish(self, done: Done, opening: list[str], past: History) -> None:
        log.get().info("Publishing response..." if not done.tools else "Publishing final response")
        user = self._opened(opening)
        added = self._window([user, *done.messages], past.seq)
        added[-1][warm.FIELD] = warm.after(self.turn, past)
        parting = await self._parting(context.changes(self.turn.records), past, added)
        extra: dict[str, Any] = {
            "demo": done.demo or None,
            "model": done.model,
            "footer": list(done.told) or None,
            "usage": {
                "input": done.usage.input,
                "output": done.usage.output,
                "cache_read": done.usage.cache_read,
                "cache_write": done.usage.cache_write,
                "cost": done.usage.cost,
            },
        }
        status: messages.Status = "complete"
        content = done.text
        if done.kind == "question" and done.question is not None:
            status = "awaiting_input"
            extra |= {"question": done.question["asked"], "options": done.question["options"]}
            # Each a paragraph of its own: in Markdown a single line break is none.
            content = "\n\n".join(
                part for part in (content, done.question["asked"], done.question["context"]) if part
            )
        elif done.kind == "refusal":
            incidents.declined(self.engine.profile.name, done.model)
            status = "error"
        elif done.spent and not self._given.requests:
            status = "awaiting_input"
            extra |= await self._out_of_money(self.turn.spent or {"scope": "turn", "dollars": 0})
            content = f"{content}\n{extra['question']}"
        if len(content) > len(done.text):  # the question, which is no part of what the model said
            part = max(1, len(self.turn.records.answers))
            self._live("chunk", {"content": content[len(done.text) :], "part": part})
        live = {"thinking": done.thinking, "has_thinking": bool(done.thinking)}
        live |= {"usage": extra["usage"], "cost": done.usage.cost}
        live |= {"footer": list(done.told)} if done.told else {}
        failpoints.point("final bought", self.turn.id)
        await self.output.close(status, content, added=added, past=past, live=live, parting=parting, **extra)
        if not parting and past.pressing(added):
            await summary.ask(self.turn.queue, self.turn.session, added[-1]["seq"])
        elif not parting and past.unsummarised(added):
            await summary.plan(self.resources.connection, self.engine.profile.name, self.turn.session)
        if self._given.said and self.resources.settings.budget_titles and titling.second(past.window):
            await titling.ask(self.turn.queue, self.turn.session)
        if memory.wanted(self._given) and self.resources.settings.budget_memory:
            rest = self.resources.settings.memory_rest_ms
            await drawing.plan(self.resources.connection, self.turn.session, rest)

    async def _parting(
        self, changes: Sequence[WindowChange], past: History, added: Sequence[Record]
    ) -> Parting | None:
        """What the calls of this turn do with its window."""
        who = str(self.output.who.get("user_id", ""))
        by = who if self._given.commands else self.engine.profile.name
        if not changes:
            return None
        keeper = WindowKeeper(self.engine, self.turn, past, added, by, who or None)
        try:
            return await keeper.part(changes)
        except ToolError as error:
            if self._given.commands:
                raise
            await self.output.say(error.told())  # what the model asked for cannot be done any more
            return None

    def _window(self, messages: Sequence[ModelMessage], seq: int) -> list[Record]:
        """What this turn adds to the conversation, numbered on from `seq`."""
        said = self._given.said[0] if self._given.said else None
        foreign, floor = marks.mark(self.turn.records), self._past.floor if self._past else 0
        added = []
        for number, message in enumerate(messages, seq + 1):
            source: dict[str, Any] = {}
            if number == seq + 1 and said:
                source = {
                    "user_id": said.user_id,
                    "user_name": said.user_name,
                    "source": said.source,
                    "message_id": said.id,
                }
            content = list(message["content"])
            added.append(
                window.record(
                    message["role"],
                    content,
                    self.turn.id,
                    number,
                    self.output.now(),
                    foreign,
                    floor,
                    **source,
                )
            )
        return added

    # -- other ways to close ---------------------------------------------------------------------------------

    async def _command(self, command: messages.CommandMessage) -> None:
        conversation = self.turn.session
        if conversation.startswith(messages.COMMANDS):  # it is given beside the conversation that it is about
            conversation = messages.default_session(command.user_id)
        if command.tool in context.READS:  # what a person did a moment ago is there for them
            bus, names = self.resources.connection.bus, self.resources.connection.names
            await outbox.settled(bus, names, self.turn.queue.agent)
        project = await sessions.active_project(self.resources.store, conversation)
        past = await self._look_back() if command.tool in context.TOOLS else None
        live, say = self._live, self.output.say
        cluster = Peers(
            self.resources.connection,
            self.resources.settings,
            self.turn.queue.agent,
            self.turn,
            self.output.who,
            0,
            live,
            say,
        )
        here = Context(
            agent="person",
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.resources.store,
            user_id=command.user_id,
            on_behalf=(command.user_id, conversation),
            roles=self._roles,
            project_id=str(command.arguments.pop("project", None) or project),
            cluster=cluster,
            repos=self.resources.repos,
            sandbox=self.engine.sandbox,
            services=self.engine.services,
            past=past,
        )
        key = f"{self.turn.id}.1.1"
        again = self.turn.records.first(IntentRecord) is not None
        call = Call(key, key, command.tool, command.arguments, again)
        result = await self.engine.command(
            self.turn, call, here, self._asked(), live, profile=command.profile
        )
        parting = None
        if past and (change := context.asked(result)):
            self.turn.alone = True  # an outcome that comes from now on opens the next turn
            try:
                parting = await self._parting([change], past, [])
            except ToolError as error:
                result = error.as_dict()
        if parting:
            result = {**parting.result, "told": " ".join(parting.told)}
        status: messages.Status = "error" if "error" in result else "complete"
        text = str(result.get("error") or result.get("told") or f"{command.tool}: done")
        if "error" in result:
            text = sentences(*(str(result.get(key) or "") for key in ("error", "why", "fix")))
        more = await self._trusted(command, text) if result.get("trusted") == CONVERSATION else {}
        for answer in self._given.answers:  # came beside it, and opens no turn of its own
            if answer.payload.get("task_id"):
                await self._task_update(answer)
        if parting:
            more = {"past": past, "parting": parting}
        await self.output.close(status, text, result=result, **more)

    async def _trusted(self, command: messages.CommandMessage, text: str) -> dict[str, Any]:
        """The person takes the mark off this conversation: what is added to it bears none, and hands on none."""
        past = await look_back(
            self.resources.store, self.turn, self.resources.settings.conversation_timeout_ms
        )
        said = f"[{command.user_id} trusts what was read in this conversation until now]"
        added = inheriting.noted(said, "Noted.", self.turn, past, self.output.now(), "")
        return {"added": added, "past": past}

    async def _task_update(self, answer: messages.AgentMessage) -> None:
        """Tell the outcome of a task."""
        payload = answer.payload
        card = {
            key: payload.get(key) for key in ("task_id", "status", "branch", "commits", "receipt", "error")
        }
        given = self._given
        if given.said or given.requests or given.commands or len(given.answers) > 1:
            text = wording.outcome_text(answer)
            await self.output.tell("task_update", text, f"t.{answer.request_id}", task=card)

    async def _close_update(self, tasks: list[messages.AgentMessage], past: History) -> None:
        """Nothing but outcomes needs no model: the last one is the output; the window notes them all."""
        note = "\n".join(wording.outcome(answer) for answer in tasks)
        read, at = marks.mark(self.turn.records), self.output.now()
        added = inheriting.noted(note, "Noted, and told to the person.", self.turn, past, at, read)
        last = tasks[-1]
        card = {
            key: last.payload.get(key)
            for key in ("task_id", "status", "branch", "commits", "receipt", "error")
        }
        demo = True if last.payload.get("demo") else None
        status: messages.Status = "task_update"
        asked: dict[str, Any] = {}
        if isinstance(budget := last.payload.get("budget"), dict):
            status, asked = "awaiting_input", await self._out_of_money(budget | {"task": card["task_id"]})
        await self.output.close(
            status,
            "\n".join([wording.outcome_text(last), *([asked["question"]] if asked else [])]),
            **asked,
            added=added,
            past=past,
            task=card,
            demo=demo,
        )

    async def _out_of_money(self, budget: dict[str, Any]) -> dict[str, Any]:
        user = str(self.output.who.get("user_id", ""))
        return await allowance.ask(self.resources.store, self.turn.session, user, budget)

    # -- small parts -----------------------------------------------------------------------------------------

    def _asked(self) -> Approver:
        """Who is asked for permission: the person of this turn, or the one on whose behalf an agent asks."""
        for request in self._given.requests:
            return asked_by(request)
        person = str(self.output.who.get("user_id", ""))
        return Approver(person, self.turn.session, in_turn=True, alone=lambda: not self._shared)

    def _hops(self) -> int:
        return max((request.hops for request in self._given.requests), default=0)

    def _roles(self) -> frozenset[str]:
        """What the person of this turn, and everybody who joined it, may claim."""
        for request in self._given.requests:
            return asked_by(request).roles
        return frozenset(self.output.who.get("roles") or ())

    def _share_roles(self, joined: Sequence[messages.Human]) -> None:
        """Words of somebody who may less lead to no more than they may."""
        for message in joined:
            self._shared |= message.user_id != self.output.who.get("user_id")
            kept = [role for role in self.output.who.get("roles") or () if role in message.roles]
            self.output.who["roles"] = kept

    async def _person(self) -> dict[str, Any]:
        groups = (self._given.said, self._given.commands, self._given.stops, self._given.amends)
        for message in (message for group in groups for message in group):
            self.output.who = {
                "user_id": message.user_id, "user_name": message.user_name, "roles": message.roles
            }  # fmt: skip
            self._share_roles([*self._given.said, *self._given.amends])
            return self.output.who
        return await self.turn.queue.asker(self.turn.session)

    def _consulted(self, past: History) -> frozenset[str]:
        """Agents that answered without an error in this session's window or in this turn."""
        script = Transcript(self.turn.id, self.turn.records)
        return frozenset(wording.consulted([*window.messages(past.window), *script.messages]))

    async def _project(self) -> str:
        """The project that this turn begins in: the one that its message or request names, else the active one."""
        if begun := situation.project(self.turn):
            return begun
        said = [message.project_id or self._speaker.project for message in self._given.said[:1]]
        asked = [request.payload.get("project") for request in self._given.requests[:1]]
        for named in filter(None, [*said, *asked]):
            return await sessions.need_project(self.resources.store, str(named))
        return await sessions.active_project(self.resources.store, self.turn.session)

    async def _around(self, project: str) -> str:
        """Who and what is there."""
        repos = await self.resources.repositories.rows(project)
        told = "\n".join(f"- {repo.name} ({repo.kind}): {repo.url or repo.path}" for repo in repos)
        return prompt.around(await self.resources.connection.presence.roster(), told)
