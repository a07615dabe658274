"""The journal of a turn, folded into what the model is sent: the same fold after a crash as before it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from shared import log
from shared.loop.base import Call
from shared.models.base import Answer, Block, ModelMessage, Usage
from shared.turns.records import JournalRecord, ModelRecord, NoteRecord, PricedRecord, ResultRecord

CONTINUE = "[continue where the answer was cut off]"


def answer_record(answer: Answer, ms: int) -> ModelRecord:
    """An answer, and how long it took, as a journal record.

    Calls of one that was cut off are left out: their arguments may be cut.
    """
    content = [_discreet(block) for block in answer.content]
    if answer.stop_reason == "max_tokens":
        content = [block for block in content if block.get("type") != "tool_use"]
    usage = answer.usage
    record = ModelRecord(
        at=_now_ms(),
        content=content,
        stop=answer.stop_reason,
        model=answer.model,
        demo=answer.demo,
        usage=(usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cost),
        ms=ms,
    )
    more: dict[str, Any] = {"provider": answer.provider} if answer.provider else {}
    more |= {"notes": list(answer.notes)} if answer.notes else {}
    return record.model_copy(update=more) if more else record


def _discreet(block: Block) -> Block:
    """Without the cluster's secrets, should the model have put one together; a thought is signed as it is."""
    return {**block, **{name: log.concealed(block[name]) for name in ("text", "input") if name in block}}


def result_record(
    call: Call,
    content: dict[str, Any],
    is_error: bool,
    ms: int,
    ends: dict[str, Any] | None,
    foreign: bool = False,
) -> ResultRecord:
    """A call's result as a journal record; `foreign` where others wrote what it holds."""
    record = ResultRecord(
        at=_now_ms(),
        id=call.id,
        tool=call.tool,
        arguments=call.arguments,
        content=content,
        error=is_error,
        ms=ms,
    )
    more: dict[str, Any] = {"foreign": True} if foreign else {}
    more |= {"ends": ends} if ends is not None else {}
    return record.model_copy(update=more) if more else record


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def usage_of(record: PricedRecord) -> Usage:
    """Tokens and price of an answer."""
    return Usage(*record.usage)


class Transcript:
    """The fold: messages so far, calls without a result, and what the limits look at."""

    def __init__(self, turn_id: str, records: Sequence[JournalRecord]) -> None:
        self.turn_id = turn_id
        self.messages: list[ModelMessage] = []
        self.rounds = 0
        self.usage = Usage()
        self.told: list[str] = []  # what is to be said of how the answers came about, each once
        self.tools: list[str] = []
        self.errors = 0  # in a row
        self.same = 0  # in a row: the same call with the same result
        self.ends: dict[str, Any] | None = None
        self.last: ModelRecord | None = None  # the newest answer
        self._settled = True  # whether something has followed it
        self.texts: list[str] = []  # of answers that max_tokens cut, waiting for their end
        self.cut = 0  # in a row: answers that were not whole
        self._calls: list[Call] = []
        self._results: dict[str, ResultRecord] = {}
        self._notes: list[Block] = []
        self._previous: tuple[str, str, str] | None = None
        for record in records:
            self.add(record, again=True)

    def add(self, record: JournalRecord, again: bool = False) -> None:
        """Take one more record in; `again` marks the calls of one that somebody before us may have run."""
        match record:
            case ModelRecord():
                self._model(record, again)
            case ResultRecord():
                self._result(record)
            case NoteRecord():
                self._notes += [{"type": "text", "text": record.text}, *record.images]
                self.ends = None  # a question that was answered within the turn does not end it

    @property
    def pending(self) -> list[Call]:
        """Calls of the newest answer that have no result yet, in order."""
        return [call for call in self._calls if call.id not in self._results]

    @property
    def answered(self) -> bool:
        """The newest answer asks for nothing more."""
        if self.last is None or self._settled or self.last.cut:
            return False
        return not self._calls and not self._notes

    @property
    def refused(self) -> bool:
        """The model declined to answer."""
        return bool(self.last and not self._settled and self.last.stop == "refusal")

    def left(self) -> list[ModelMessage]:
        """What the turn adds to the conversation where it ends here: calls that are under way have no result."""
        self._settle("ended with the turn: whether it took effect is not known")
        return [*self.messages]

    def request(self) -> list[ModelMessage]:
        """What this turn adds to the conversation, as it must be sent now."""
        said = [*self.messages]
        if self._notes and not self.pending:
            said.append({"role": "user", "content": [*self._notes]})
        return said

    def _model(self, record: ModelRecord, again: bool) -> None:
        self._settle()
        self.rounds += 1
        self.last, self._settled = record, False
        self.usage += usage_of(record)
        self.told += [note for note in record.notes if note not in self.told]
        self.cut = self.cut + 1 if record.cut else 0
        content: list[Block] = record.content
        self._calls = [
            Call(
                block["id"],
                f"{self.turn_id}.{self.rounds}.{n}",
                block["name"],
                block.get("input") or {},
                again,
            )
            for n, block in enumerate(record.calls, 1)
        ]
        self._results = {}
        self.tools.extend(call.tool for call in self._calls)
        if content:
            self.messages.append({"role": "assistant", "content": content})
        if record.stop == "max_tokens":
            self.texts.append("\n".join(str(b["text"]) for b in content if b.get("type") == "text"))
            self.messages.append({"role": "user", "content": [{"type": "text", "text": CONTINUE}]})
        elif self._calls:
            self.texts = []

    def _result(self, record: ResultRecord) -> None:
        self._results[record.id] = record
        self.errors = self.errors + 1 if record.error else 0
        call = next((c for c in self._calls if c.id == record.id), None)
        arguments = json.dumps(call.arguments, sort_keys=True) if call else ""
        now = (record.tool, arguments, json.dumps(record.content, sort_keys=True))
        self.same = self.same + 1 if now == self._previous else 1
        self._previous = now
        self.ends = record.ends or self.ends
        if not self.pending:
            self._settle()

    def _settle(self, missing: str = "not run") -> None:
        """All results of an answer go back in one message, in the order of the calls; then what joined."""
        if self._calls:
            blocks = [_block(call, self._results.get(call.id), missing) for call in self._calls]
            self._calls, self._results = [], {}
            self.messages.append({"role": "user", "content": blocks})
            self._settled = True
        if self._notes:
            notes, self._notes = self._notes, []
            if self.messages and self.messages[-1]["role"] == "user":
                self.messages[-1]["content"].extend(notes)
            else:
                self.messages.append({"role": "user", "content": notes})
            self._settled = True


def _block(call: Call, record: ResultRecord | None, missing: str) -> Block:
    if record is None:
        return {"type": "tool_result", "tool_use_id": call.id, "content": missing, "is_error": True}
    text = json.dumps(record.content, ensure_ascii=False)
    block: Block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
    return block | {"is_error": True} if record.error else block
