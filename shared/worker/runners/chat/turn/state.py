"""What all parts of a conversation's turn share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.bus import messages
from shared.bus.event_stream import EventStream
from shared.conversation import window
from shared.conversation.context import Parting, WindowChange
from shared.conversation.past import History, look_back
from shared.errors import ToolError
from shared.guard.permissions import marks
from shared.models.base import Block, ModelMessage
from shared.turns.records import Record
from shared.turns.turn import Turn
from shared.worker.resources import Resources
from shared.worker.runners import inheriting
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.chat.keeping import WindowKeeper
from shared.worker.runners.chat.output import TurnOutput
from shared.worker.runners.chat.speaker import Speaker
from shared.worker.runners.chat.turn.participants import Participants
from shared.worker.runners.inputs import TurnInput
from shared.worker.runners.peers import Peers


@dataclass
class Opening:
    """What a turn begins with."""

    texts: list[str] = field(default_factory=list)
    pictures: list[Block] = field(default_factory=list)  # that came with the first words

    def message(self) -> ModelMessage:
        """As the model reads it; the pictures stand behind the words that they came with."""
        texts = [{"type": "text", "text": text} for text in self.texts]
        return {"role": "user", "content": [*texts[:1], *self.pictures, *texts[1:]]}


@dataclass
class ChatTurn:
    """One turn of a conversation: what opened it, who speaks, and what it goes on from."""

    agent_runner: AgentRunner
    turn: Turn
    input: TurnInput
    live: EventStream
    output: TurnOutput
    people: Participants
    speaker: Speaker
    past: History | None = None  # from when it has looked back
    opening: Opening = field(default_factory=Opening)
    remarks: list[str] = field(default_factory=list)  # lines that its newest message ends with
    model: str | None = None  # that is named for this turn or this conversation

    @property
    def resources(self) -> Resources:
        """What its worker is made of."""
        return self.agent_runner.resources

    def speaks(self, speaker: Speaker) -> None:
        """Go on as this one."""
        self.speaker, self.agent_runner = speaker, speaker.agent_runner
        self.output.agent = speaker.agent

    def is_ended_by(self, stops: Sequence[messages.Stop]) -> bool:
        """Whether one of them ends this turn: not a consult of it, and not another turn."""
        return any(not stop.request_id and self.turn.is_named(stop.turn_id) for stop in stops)

    def peers(self, hops: int = 0) -> Peers:
        """The other agents, as this turn asks them."""
        resources = self.resources
        return Peers(
            resources.connection,
            resources.settings,
            self.turn.queue.agent,
            self.turn,
            self.people.who,
            hops,
            self.live,
            self.output.say,
        )

    async def look_back(self) -> History:
        """Read what the conversation goes on from, and inherit what was read in it."""
        patience = self.resources.settings.conversation_timeout_ms
        self.past = await look_back(self.resources.store, self.turn, patience)
        inheriting.conversation(self.turn, self.agent_runner.profile, self.past, self.input)
        return self.past

    def added(self, past: History, messages: Sequence[ModelMessage]) -> list[Record]:
        """What this turn adds to the conversation, numbered on; the first is a person's where one spoke."""
        said = self.input.said[0] if self.input.said else None
        source: dict[str, Any] = {}
        if said:
            source = {
                "user_id": said.user_id,
                "user_name": said.user_name,
                "source": said.source,
                "message_id": said.id,
            }
        foreign, at = marks.mark(self.turn.records), self.output.now()
        return [
            window.record(
                *(message["role"], list(message["content"]), self.turn.id, number, at, foreign, past.floor),
                **(source if number == past.seq + 1 else {}),
            )
            for number, message in enumerate(messages, past.seq + 1)
        ]

    async def part(
        self, changes: Sequence[WindowChange], past: History, added: Sequence[Record]
    ) -> Parting | None:
        """What the calls of this turn do with its window; ToolError where a person's own command cannot be done."""
        if not changes:
            return None
        person, commanded = self.people.person, bool(self.input.commands)
        by = person if commanded else self.agent_runner.profile.name
        keeper = WindowKeeper(self.agent_runner, self.turn, past, added, by, person or None)
        try:
            return await keeper.part(changes)
        except ToolError as error:
            if commanded:
                raise
            await self.output.say(error.told())  # what the model asked for cannot be done any more
            return None
