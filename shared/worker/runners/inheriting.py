"""What a turn inherits: the mark of foreign text, from all that it goes on from, noted in its journal as it begins."""

from __future__ import annotations

from shared.bus import messages
from shared.conversation import window
from shared.conversation.exchange import NOTED
from shared.conversation.past import History
from shared.guard.permissions import marks
from shared.profiles.profile import Profile
from shared.turns.records import Record
from shared.turns.turn import Turn
from shared.worker.permissions.approver import origin_of
from shared.worker.runners.inputs import TurnInput


def conversation(turn: Turn, profile: Profile, past: History, given: TurnInput) -> None:
    """Of a conversation's turn: what was read in it before, and what agents ask and answer."""
    _note(turn, past.foreign, "in this conversation")
    _own(turn, profile)
    for request in given.requests:
        _note(turn, origin_of(request).foreign, f"by {request.sender}, who asks")
    for one in given.answers:
        answer(turn, one)


def answer(turn: Turn, heard: messages.AgentMessage) -> None:
    """What an agent answers came from outside: words of others, or what became of a task in a repository."""
    task = heard.payload.get("task_id")
    _note(turn, f"the outcome of task {task}" if task else f"the answer of {heard.sender}", "in this turn")


def request(turn: Turn, profile: Profile, asked: messages.AgentMessage) -> None:
    """Of another agent's request."""
    _note(turn, origin_of(asked).foreign, f"by {asked.sender}, who asks")
    _own(turn, profile)


def task(turn: Turn, profile: Profile, asked: messages.AgentMessage, id: str, repository: str) -> None:
    """Of a task that is done in a repository: whoever wrote its words, others wrote what lies there."""
    _note(turn, origin_of(asked).foreign, f"for the task {id}")
    _own(turn, profile)
    _note(turn, f"the repository {repository}", "in this turn")


def _own(turn: Turn, profile: Profile) -> None:
    _note(turn, profile.foreign, f"when {profile.name} changed itself")


def _note(turn: Turn, foreign: str, where: str) -> None:
    marks.note(turn.records, turn.keep, foreign, where)


def noted(said: str, answered: str, turn: Turn, past: History, at: int, foreign: str) -> list[Record]:
    """What the conversation remembers of a turn without a model."""
    return [
        window.record(
            role, [{"type": "text", "text": text}], turn.id, number, at, foreign, past.floor, source=NOTED
        )
        for number, (role, text) in enumerate((("user", said), ("assistant", answered)), past.seq + 1)
    ]
