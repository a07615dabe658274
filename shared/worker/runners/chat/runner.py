"""A conversation's turn: a person's message until its one closing output."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from shared import log
from shared.bus import messages
from shared.bus.event_stream import EventStream
from shared.bus.keys import HUMAN_INPUT
from shared.conversation import window
from shared.conversation.past import History
from shared.errors import PromptDockError, UsageError
from shared.loop import Done, PublishEvent
from shared.loop.transcript import Transcript
from shared.models.base import ModelMessage
from shared.tools.context import Context
from shared.turns.turn import Turn
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.chat import full, resting, seeking, speaker, thoughts, unfinished, warm, wording
from shared.worker.runners.chat.output import TurnOutput
from shared.worker.runners.chat.turn import beginning, command, ending, outcomes, settling
from shared.worker.runners.chat.turn.joining import Joining
from shared.worker.runners.chat.turn.participants import Participants
from shared.worker.runners.chat.turn.state import ChatTurn
from shared.worker.runners.consult import asked_for
from shared.worker.runners.inputs import awaited, sort, words
from shared.worker.runners.peers import Peers
from shared.worker.runners.waiting import waiting_notice


class ChatRunner:
    """Runs one turn of a conversation. Made anew for each turn."""

    def __init__(
        self, agent_runner: AgentRunner, turn: Turn, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._spawn = spawn
        resources = agent_runner.resources
        names = resources.connection.names
        self._human = names.channel(HUMAN_INPUT)
        given = sort(turn.given, self._human)
        turn.joined()
        live = EventStream(resources.connection.bus, names, turn.session, turn.activity)
        self._chat = ChatTurn(
            *(agent_runner, turn, given, live),
            TurnOutput(agent_runner.replies, resources.approvals, resources.model, turn, given, live),
            Participants(turn, given),
            speaker.Speaker(agent_runner),
        )
        turn.activity.kind, turn.activity.session = "message", turn.session
        turn.activity.events = turn.session
        self._peers: Peers | None = None  # from when the model may ask them

    @property
    def deadline(self) -> int:
        """When the message that opened the turn is worth nothing any more (milliseconds; 0: never)."""
        given = self._chat.turn.given
        return given[0].deadline if given else 0

    @property
    def limit(self) -> int:
        """When it is ended, though it runs."""
        return self.deadline

    async def run(self) -> None:
        """From claim to finish; whatever goes wrong is said to the person as the closing output."""
        chat = self._chat
        chat.agent_runner = await chat.agent_runner.current()
        await self._identify()
        chat.turn.activity.user = chat.people.person
        given = chat.input
        sought = await seeking.sought(chat.resources.store, chat.turn, given)
        if sought is None:
            return
        if sought:
            chat.remarks.append(seeking.NOTE)
            await chat.output.tell("progress", sought, "alone")
        if self._spoken and chat.is_ended_by(given.stops):
            await self.stopped("Stopped.")
        elif given.commands:
            await command.run(chat, given.commands[0])
        elif self._spoken:
            await self._converse()
        elif given.rests:
            await resting.rest(chat.agent_runner, chat.turn, chat.output, await chat.look_back())
        elif given.stops:
            await chat.output.close("error", "There is nothing to stop. It may have ended already.")
        else:
            what = "There is no running turn to amend. It may have ended already."
            await chat.output.close("error", what)

    @property
    def _spoken(self) -> bool:
        """Whether somebody is to be answered."""
        given = self._chat.input
        return bool(given.said or given.requests or given.answers or given.commands)

    @property
    def _only_rests(self) -> bool:
        return bool(self._chat.input.rests) and not self._spoken

    async def _identify(self) -> None:
        await self._chat.people.identify()
        self._chat.output.who = self._chat.people.who

    # -- ends without an answer ------------------------------------------------------------------------------

    async def stopped(self, text: str = "Stopped. What was done until then stays as it is.") -> None:
        """The person ended this turn: everything under way is ended already."""
        if self._only_rests:
            await resting.leave(self._chat.turn)
            return
        left = await self._left("stopped by the person, before an answer was given")
        await self._chat.output.close("complete", text, state="stopped", **left)

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The turn cannot be answered; the message goes to the dead letters where it is to blame."""
        if self._only_rests:
            log.get().warning("A conversation was not put to rest", why=str(error))
            await resting.leave(self._chat.turn, dead)
            return
        if not self._chat.output.who:  # it did not even begin
            await self._identify()
        left = {} if dead else await self._left(f"failed, and gave no answer: {error.what}", error)
        ends: dict[str, Any] = {"state": "error", "error": str(error), "dead": dead, "code": error.exit_code}
        await self._chat.output.close("error", error.told(), **ends, **left)

    async def _left(self, how: str, error: PromptDockError | None = None) -> dict[str, Any]:
        """What stays of a turn without an answer: the next one knows the question, and what was done for it."""
        chat = self._chat
        past = chat.past
        if past is None:
            if not (chat.input.said and chat.turn.records):
                return {}  # it did not begin
            past = await chat.look_back()
        chat.opening.texts = chat.opening.texts or words(chat.input)
        if not chat.opening.texts:
            return {}
        kept = unfinished.messages(chat.turn, chat.opening.message(), how, error)
        return {"added": chat.added(past, kept), "past": past}

    # -- the conversation ------------------------------------------------------------------------------------

    async def _converse(self) -> None:
        chat = self._chat
        given = chat.input
        if given.said:
            log.get().info(f"Received message from user: {given.said[0].user_id}")
        tasks, late = list(filter(outcomes.is_outcome, given.answers)), self._late()
        if not await self._speaks():
            return
        if given.said and (wrong := wording.crossed(given.said[0])):
            await chat.output.close("error", wrong, code=UsageError.exit_code)
            return
        past = await chat.look_back()
        for answer in tasks:
            await outcomes.tell(chat, answer)
        note: str | None = ""
        if given.said:
            await chat.output.tell_missed()
            note = await settling.settle(chat, past)
        if note is None:
            return
        if not (given.said or late or given.requests):
            await outcomes.close(chat, tasks, past)
            return
        begun = await beginning.begin(chat, past, late, tasks, note)
        if begun is None:
            return
        await ending.finish(chat, await self._think(past, *begun, decided=bool(note)), past)

    async def _speaks(self) -> bool:
        """Find who answers; where nobody can, the person is told why."""
        chat = self._chat
        found = speaker.Speaker(chat.agent_runner)
        if chat.input.said or chat.input.answers:
            try:
                said = chat.input.said[0] if chat.input.said else None
                found = await speaker.of(chat.agent_runner, said, chat.turn.session)
            except speaker.NOBODY as error:
                chat.speaks(found)
                await chat.output.close("error", error.told(), code=error.exit_code, talked=False)
                return False
        chat.speaks(found)
        return True

    def _late(self) -> list[messages.AgentMessage]:
        """Answers that nobody awaits any more."""
        turn, answers = self._chat.turn, self._chat.input.answers
        used = awaited(turn.id, turn.records)
        return [one for one in answers if not outcomes.is_outcome(one) and one.request_id not in used]

    async def _think(self, past: History, sent: list[ModelMessage], project: str, decided: bool) -> Done:
        chat = self._chat
        given, said = chat.input, chat.input.said[0] if chat.input.said else None
        self._peers = peers = chat.peers(chat.people.hops)
        for answer in self._late():
            peers.late(answer)
        here = await self._context(past, peers, project, decided)
        live, joined = (
            waiting_notice(chat.live, chat.output.say, self._spawn),
            Joining(chat, peers, self._human),
        )
        approver = chat.people.approver()
        if thoughts.wanted(given.said, chat.speaker):
            return await self._filed(sent[-1], here, live, joined)
        work = await full.begin(*(chat.agent_runner, chat.turn, said, peers, live, chat.output.say, joined))
        chat.opening.texts.extend(work.opening)
        sent[-1]["content"].extend({"type": "text", "text": text} for text in work.opening)
        request = asked_for(given.requests[0]) if given.requests else {}
        return await work.agent_runner.think(
            *(chat.turn, (chat.agent_runner.profile.system,), sent, here, live, work.joined, approver),
            model=chat.model,
            tokens=request.get("tokens"),
            temperature=said.temperature if said else None,
            loaded=warm.before(chat.turn, past),
        )

    async def _context(self, past: History, peers: Peers, project: str, decided: bool) -> Context:
        chat = self._chat
        said = chat.input.said[0] if chat.input.said else None

        def consulted() -> frozenset[str]:
            """Agents that answered without an error in this session's window or in this turn."""
            script = Transcript(chat.turn.id, chat.turn.records)
            return frozenset(wording.consulted([*window.messages(past.window), *script.messages]))

        return Context(
            agent=chat.agent_runner.profile.name,
            session_id=chat.turn.session,
            turn_id=chat.turn.id,
            store=chat.resources.store,
            user_id=chat.people.person,
            on_behalf=chat.people.approver().who,
            roles=chat.people.roles,
            project_id=project,
            roots=await chat.speaker.roots(project),
            force=bool(said and said.force),
            say=chat.output.say,
            cluster=peers,
            consulted=consulted,
            talks=not decided,
            repos=chat.resources.repos,
            sandbox=chat.agent_runner.sandbox,
            services=chat.agent_runner.services,
            past=past,
        )

    async def _filed(self, user: ModelMessage, context: Context, live: PublishEvent, joined: Joining) -> Done:
        """The person's words go into a note: the channel's, or the one that the model finds they fit."""
        chat = self._chat
        text = "\n\n".join(message.content for message in chat.input.said)
        name, done, project = chat.speaker.note, Done("", "answer"), context.project_id
        approver = chat.people.approver()
        if not name:
            chooser = await thoughts.chooser(chat.agent_runner, project)
            system = (chooser.profile.system,)
            done = await chooser.think(
                *(chat.turn, system, [user], context, live, joined, approver), model=chat.model
            )
            if done.spent:
                return done
            name = await thoughts.title(chooser, chat.turn, project, text)
        told = await thoughts.file(chat.agent_runner, chat.turn, context, approver, live, name, text)
        chat.live("chunk", {"content": told, "part": max(1, len(chat.turn.records.answers) + 1)})
        return thoughts.answered(done, told)

    # -- what its worker hears for it ------------------------------------------------------------------------

    def stop_request(self, request_id: str, reason: str = "") -> None:
        """The person ended one consult of this turn."""
        if self._peers:
            self._peers.give_up(request_id, reason)
            self._chat.turn.wake_up.set()

    async def progress(self, request_id: str, text: str) -> None:
        """An agent that this turn consults says how far it is."""
        if told := self._peers.progress(request_id, text) if self._peers else "":
            await self._chat.output.say(told)
