"""The loop itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from shared import failpoints
from shared.loop import final
from shared.loop.base import (
    Act,
    AskPermission,
    Call,
    Done,
    JoinedMessages,
    Journal,
    Limits,
    Outcome,
    PublishEvent,
)
from shared.loop.transcript import Transcript, answer_record, result_record
from shared.models.base import Answer, Delta, Model, ModelMessage, Request
from shared.turns.records import JournalRecord, NoteRecord, ResultRecord

WRAP_UP = (
    "[You have reached a limit of this turn: {limit}. You have no tools now. "
    "Say what was done, what is left, and what the person can do next.]"
)
CUT_IN_A_ROW = 8  # an agent without a limit of rounds would go on with such an answer for ever


async def _nothing() -> list[str]:
    return []


@dataclass(frozen=True)
class _Hands:
    """What the loop was handed, together."""

    journal: Journal
    model: Model
    act: Act
    permit: AskPermission
    live: PublishEvent
    joined: JoinedMessages
    side_by_side: Callable[[str], bool]


async def run(
    turn_id: str,
    request: Request,
    *,
    journal: Journal,
    model: Model,
    act: Act,
    permit: AskPermission,
    limits: Limits,
    live: PublishEvent = lambda _kind, _payload: None,
    joined: JoinedMessages = _nothing,
    side_by_side: Callable[[str], bool] = lambda _tool: False,
) -> Done:
    """Carry a turn to its end, from wherever its journal stands.

    `request` holds the conversation up to and including what the turn answers. `side_by_side` says which
    tools of one answer may run at the same time.
    """
    hands = _Hands(journal, model, act, permit, live, joined, side_by_side)
    script = Transcript(turn_id, journal.records)
    while True:
        if script.pending:
            await _act(hands, script)
        if script.ends is not None:
            return _told(hands, script, "question")
        for said in await joined():
            await _record(hands, script, NoteRecord(text=said) if isinstance(said, str) else said)
        if script.answered:
            return _told(hands, script, "refusal" if script.refused else "answer")
        if spent := _money(script, limits):
            return await _out_of_money(hands, script, request, spent)
        limit = _limit(script, limits)
        if limit:
            return await _wrap_up(hands, script, request, limit)
        await _think(hands, script, request)


async def _record(hands: _Hands, script: Transcript, *records: JournalRecord) -> None:
    await hands.journal.step(*records)
    for record in records:
        script.add(record)


async def _think(hands: _Hands, script: Transcript, request: Request) -> None:
    """Ask the model; its answer, with the intents in it, is stored before anything is done with it."""
    asked = replace(request, messages=_joined_roles([*request.messages, *script.request()]))
    failpoints.point("model asked", script.turn_id)
    started = time.monotonic()
    answer = await _streamed(hands, script, asked)
    record = answer_record(answer, _since(started))
    failpoints.point("model answered", script.turn_id)
    if answer.stop_reason in ("tool_use", "max_tokens", "pause_turn"):
        await hands.journal.step(record)
        failpoints.point("answer stored", script.turn_id)
    else:
        hands.journal.keep(record)
    script.add(record)


def _since(started: float) -> int:
    """Milliseconds."""
    return int((time.monotonic() - started) * 1000)


async def _streamed(hands: _Hands, script: Transcript, asked: Request) -> Answer:
    """Ask the model; what it says and what it thinks are told apart while they come."""
    sieve, part = _begun(script), script.rounds + 1

    def take(delta: Delta) -> None:
        nonlocal sieve
        if delta.kind == "text":
            _tell(hands.live, part, sieve.add(delta.text))
            return
        if delta.kind == "waiting":  # it begins anew
            sieve = _begun(script)
        hands.live(delta.kind, {"content": delta.text, "part": part})

    answer = await hands.model.answer(asked, take)
    if answer.stop_reason not in ("max_tokens", "pause_turn"):
        _tell(hands.live, part, sieve.end())
    return answer


def _begun(script: Transcript) -> final.Sieve:
    """Where the answer that was cut stopped."""
    sieve = final.Sieve()
    sieve.add("".join(script.texts))
    return sieve


def _tell(live: PublishEvent, part: int, pieces: Iterable[final.Piece]) -> None:
    for kind, words in pieces:
        live("chunk" if kind == "text" else "thinking", {"content": words, "part": part})


async def _act(hands: _Hands, script: Transcript) -> None:
    """Run the calls in order; neighbours that may run side by side do."""
    queue = script.pending
    while queue:
        batch = [queue.pop(0)]
        while queue and hands.side_by_side(batch[0].tool) and hands.side_by_side(queue[0].tool):
            batch.append(queue.pop(0))
        results = await asyncio.gather(*(_one(hands, call) for call in batch))
        failpoints.point("effect done", script.turn_id)
        failpoints.point("effect done", batch[0].key)
        await _record(hands, script, *results)
        failpoints.point("result stored", script.turn_id)


async def _one(hands: _Hands, call: Call) -> ResultRecord:
    started = time.monotonic()
    hands.live("tool_call", {"tool": call.tool, "arguments": call.arguments, "call_id": call.id})
    verdict = await hands.permit(call)
    if verdict.allowed:
        outcome = await hands.act(call)
    else:
        outcome = Outcome({"error": "not allowed", "why": verdict.reason}, is_error=True)
    ms = int((time.monotonic() - started) * 1000)
    shown = {
        "tool": call.tool,
        "call_id": call.id,
        "content": outcome.content,
        "is_error": outcome.is_error,
        "ms": ms,
    }
    hands.live("tool_result", shown)
    return result_record(call, outcome.content, outcome.is_error, ms, outcome.ends, outcome.foreign)


def _limit(script: Transcript, limits: Limits) -> str:
    if limits.rounds is not None and script.rounds >= limits.rounds:
        return f"{limits.rounds} rounds"
    if script.errors >= limits.errors_in_a_row:
        return f"{script.errors} tool errors in a row"
    if script.same >= limits.same_in_a_row:
        return "the same call gave the same result again and again"
    if script.cut >= CUT_IN_A_ROW:
        return "an answer that was cut off again and again"
    return ""


def _money(script: Transcript, limits: Limits) -> str:
    usage = script.usage
    if limits.cost is not None and usage.cost >= limits.cost:
        return f"a budget of ${limits.cost:.2f}"
    if limits.tokens is not None and usage.input + usage.output >= limits.tokens:
        return f"a budget of {limits.tokens} tokens"
    return limits.over()


async def _out_of_money(hands: _Hands, script: Transcript, request: Request, spent: str) -> Done:
    """What was done is handed back by one last call; where nothing was begun, nothing more is bought."""
    if not script.rounds:
        text = f"Nothing was begun: {spent} is spent."
        _tell(hands.live, 1, [("text", text)])
        return replace(_done(script, "answer"), text=text, spent=spent, messages=_kept((), text))
    return replace(await _wrap_up(hands, script, request, spent), spent=spent)


async def _wrap_up(hands: _Hands, script: Transcript, request: Request, limit: str) -> Done:
    """One last call without tools; only if that yields no text, the literal fallback."""
    note = {"role": "user", "content": [{"type": "text", "text": WRAP_UP.format(limit=limit)}]}
    asked = replace(request, messages=_joined_roles([*request.messages, *script.request(), note]), tools=())
    started = time.monotonic()
    answer = await _streamed(hands, script, asked)
    record = answer_record(answer, _since(started))
    content = [block for block in record.content if block.get("type") != "tool_use"]
    # Nothing goes on from here, also where it was cut.
    record = record.model_copy(update={"content": content, "stop": "end_turn"})
    hands.journal.keep(record)
    script.messages.append(note)
    script.add(record)
    return replace(_told(hands, script, "answer"), limit=limit)


def _told(hands: _Hands, script: Transcript, kind: str) -> Done:
    """How it came out; words of ours, where the model has none, are told like the model's."""
    done = _done(script, kind)
    if done.text and not _words(script)[0]:
        _tell(hands.live, max(1, script.rounds), [("text", done.text)])
        done = replace(done, messages=_kept(done.messages, done.text))
    return done


def _kept(messages: tuple[ModelMessage, ...], text: str) -> tuple[ModelMessage, ...]:
    """With words of ours as the assistant's: what the person was told is what the conversation goes on from."""
    block = {"type": "text", "text": text}
    if messages and messages[-1]["role"] == "assistant":  # which only thought
        return *messages[:-1], {"role": "assistant", "content": [*messages[-1]["content"], block]}
    return *messages, {"role": "assistant", "content": [block]}


def _words(script: Transcript) -> tuple[str, str]:
    return final.split(script.last.content if script.last else (), before="".join(script.texts))


def _done(script: Transcript, kind: str) -> Done:
    last = script.last
    text, thinking = _words(script)
    if kind == "refusal" and not text:
        text = "The model declined to answer this."
    if not text and kind == "answer":
        names = ", ".join(dict.fromkeys(script.tools))
        text = f"Done. Actions taken: {names}" if names else "Done."
    return Done(
        text=text,
        kind=kind,  # type: ignore[arg-type]
        thinking=thinking,
        question=script.ends,
        messages=tuple(script.messages),
        usage=script.usage,
        model=last.model if last else "",
        demo=bool(last and last.demo),
        tools=tuple(script.tools),
        told=tuple(script.told),
        last=tuple(last.content) if last else (),
    )


def _joined_roles(messages: Collection[ModelMessage]) -> tuple[ModelMessage, ...]:
    """Neighbours of one role become one message: the provider wants the roles to alternate."""
    joined: list[ModelMessage] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": [*joined[-1]["content"], *blocks]}
        else:
            joined.append({"role": message["role"], "content": blocks})
    return tuple(joined)
