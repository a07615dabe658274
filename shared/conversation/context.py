"""What a turn does with the window of its conversation beside adding words: clear it, save it, load what was saved.

A tool asks for it, in its result; the turn does it with its end, in the one write that closes it: whatever dies
before, it is not done, and whoever takes the turn over does it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from shared.conversation.exchange import NOTED, RESTORED
from shared.conversation.prompt import is_situation
from shared.conversation.window import FOREIGN, record, surplus
from shared.models.base import Block
from shared.store.records import ConversationMessage, Row, SnapshotRow
from shared.store.row import derived
from shared.turns.records import Record, Records

TOOLS = frozenset({"clear_context", "save_context", "restore_context", "get_context"})
# Tools that read of conversations what the turns before them have left.
READS = frozenset(
    {
        "list_saved", "restore_context", "list_sessions", "search_sessions", "fork_session", "export_session",
        "rename_session", "archive_session",
    }
)  # fmt: skip
KEY = "context"  # of a tool's result, beside what it tells
Does = Literal["clear", "save", "restore"]
SHORT = 8  # letters by which people name what was saved
_TEXT = 80  # characters of a description that is taken from a summary
_FIELDS = ("role", "content", "turn", "seq", "at", "user_id", "user_name", "source", "message_id", "said_at")
_UNDERSTOOD = "Understood, I have the conversation context."


@dataclass(frozen=True)
class WindowChange:
    """One thing that is to be done; `id` is that of what is saved or loaded."""

    do: Does
    id: str = ""
    description: str = ""

    def told(self) -> dict[str, Any]:
        """As a tool's result carries it."""
        return {KEY: asdict(self)}


def asked(result: object) -> WindowChange | None:
    """What a tool's result asks for."""
    told = result.get(KEY) if isinstance(result, Mapping) and "error" not in result else None
    if not isinstance(told, Mapping) or told.get("do") not in get_args(Does):
        return None
    return WindowChange(told["do"], str(told.get("id", "")), str(told.get("description", "")))


def changes(records: Records) -> list[WindowChange]:
    """What the calls of a turn asked for, in their order; of clearing and loading the same twice, once."""
    found = [change for result in records.results() if not result.error and (change := asked(result.content))]
    return list(dict.fromkeys(found))


@dataclass
class Parting:
    """What a turn leaves of its conversation where it does more than add words; `told` says it to the person.

    With a `floor` the window in Redis becomes `window`, whose records are numbered behind it.
    """

    rows: list[Row] = field(default_factory=list)
    session: dict[str, Any] = field(default_factory=dict)
    floor: int | None = None
    window: list[Record] = field(default_factory=list)
    seq: int = 0  # of the last message
    told: list[str] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)  # of the same, for programs

    def begin_anew(self, window: Sequence[Record]) -> None:
        """The window begins behind all that was said until now, with these messages."""
        self.floor = self.seq
        self.window = [
            {**item, "seq": self.seq + number, "floor": self.floor} for number, item in enumerate(window, 1)
        ]
        self.seq += len(window)
        self.session |= {"clear_seq": self.floor, "talked": False}

    def rows_of(self, session: str, turn: str) -> list[Row]:
        """All of it as rows: also the messages with which the window begins, each kept once."""
        return [*self.rows, *(_row(session, turn, item) for item in self.window)]


def _row(session: str, turn: str, item: Record) -> ConversationMessage:
    said = item.get("said_at")
    return ConversationMessage(
        id=derived("conversation", session, turn, "window", item["seq"]),
        created_at=datetime.fromtimestamp(item["at"] / 1000, UTC),
        session_id=session,
        seq=item["seq"],
        turn_id=item["turn"],
        role=item["role"],
        content=item["content"],
        tool_calls=calls(item),
        user_id=item.get("user_id"),
        user_name=item.get("user_name"),
        source=item.get("source"),
        source_message_id=item.get("message_id"),
        said_at=datetime.fromtimestamp(said / 1000, UTC) if said else None,
    )


def calls(item: Mapping[str, Any]) -> list[Block]:
    """The calls of tools in a message."""
    return [block for block in item["content"] if block.get("type") == "tool_use"]


def snapshot(
    change: WindowChange,
    session: str,
    agent: str,
    person: str | None,
    window: Sequence[Record],
    summary: str,
    foreign: str,
) -> SnapshotRow:
    """The row of a window that is saved."""
    kept = [{name: item[name] for name in _FIELDS if name in item} for item in window]
    return SnapshotRow(
        id=change.id,
        session_id=session,
        agent=agent,
        kind="saved",
        user_id=person,
        description=change.description or _first(summary) or _first(_spoken(window)),
        summary=summary,
        message_count=len(kept),
        first_seq=kept[0]["seq"] if kept else None,
        last_seq=kept[-1]["seq"] if kept else None,
        content=kept,
        tool_calls=sum(len(calls(item)) for item in kept),
        origin={"foreign": foreign},
    )


def _first(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 1].rstrip()}…"


def _spoken(window: Sequence[Record]) -> str:
    texts = (
        str(block.get("text", ""))
        for item in window
        if item["role"] == "user"
        for block in item["content"]
        if block.get("type") == "text"
    )
    return next((text for text in texts if text and not is_situation(text)), "")


def note(said: str, answered: str, turn: str, at: int, foreign: str) -> list[Record]:
    """A note of what was done, as the model reads it; it is numbered when the window begins anew."""
    pair = (("user", said), ("assistant", answered))
    return [
        record(role, [{"type": "text", "text": text}], turn, 0, at, foreign, source=NOTED)
        for role, text in pair
    ]


def cleared(by: str, turn: str, at: int, foreign: str) -> list[Record]:
    """With what the window begins after it was cleared."""
    said = f"[{by} cleared the conversation: what was said before is not gone on from. It is kept in its history.]"
    return note(said, "Noted.", turn, at, foreign)


def restored(row: SnapshotRow, by: str, turn: str, session: str, at: int) -> list[Record]:
    """With what the window begins after a saved one was loaded: what it was about, then its messages.

    They are copies, of this moment; when they were said is kept beside. Those of this conversation are marked as
    such: its history has the messages already.
    """
    foreign = str(row.origin.get("foreign", ""))
    about = f"\n{row.summary}" if row.summary else ""
    said = f"[{by} loaded what was saved as {str(row.id)[:SHORT]} on {row.created_at:%Y-%m-%d %H:%M} UTC.]{about}"
    source = RESTORED if row.session_id == session else None
    kept = row.content[surplus(row.content, 2) :]
    copies = [
        {
            **item,
            "turn": f"{turn}/{item['turn']}",
            "at": at,
            "said_at": item.get("said_at") or item["at"],
            FOREIGN: foreign,
            **({"source": source} if source else {}),
        }
        for item in kept
    ]
    head = [
        item | ({"source": source} if source else {}) for item in note(said, _UNDERSTOOD, turn, at, foreign)
    ]
    return [*head, *copies]
