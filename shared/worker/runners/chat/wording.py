"""How answers and outcomes of the other agents are put: for the model, and for the person."""

from __future__ import annotations

import json
from typing import Any

from shared.bus import messages
from shared.tools.context import CONSULTED

_TWO_WAYS = (
    "The message asks for two things: notes files its words, mode full has them worked on. Send it with one of "
    "them."
)
_NO_PICTURES = "Notes hold words alone: no picture can be filed into one. Send the words without it."
UNSENT_PICTURES = "The pictures beside it were not handed on: an answer to a task is words alone."
_BRANCHES = 4  # that are in the way, and named


def crossed(said: messages.Said) -> str:
    """Why a message asks for what does not go together; "" where it does."""
    if said.notes and said.mode == "full":
        return _TWO_WAYS
    return _NO_PICTURES if said.notes and said.images else ""


def consulted(history: list[dict[str, Any]]) -> set[str]:
    """The agents that answered a consult of this history without an error."""
    calls: dict[str, str] = {}
    answered = set()
    for block in (block for message in history for block in message["content"] if isinstance(block, dict)):
        if block.get("type") == "tool_use" and block.get("name") in CONSULTED:
            calls[block["id"]] = CONSULTED[block["name"]]
        if (
            block.get("type") == "tool_result"
            and block.get("tool_use_id") in calls
            and not block.get("is_error")
        ):
            answered.add(calls[block["tool_use_id"]])
    return answered


def late(answer: messages.AgentMessage) -> str:
    """An answer nobody awaits any more, for the model."""
    told = json.dumps(answer.payload, ensure_ascii=False)
    return (
        f"[late answer from agent {answer.sender}, to a question that had timed out; tell the person]: {told}"
    )


def outcome(answer: messages.AgentMessage) -> str:
    """A task's outcome, for the model."""
    return f"[outcome of a task, told to the person already]: {outcome_text(answer)}"


_AWAY = "While you were away: "


def away(output: messages.Output) -> str:
    """What the person was not shown when it was said, as it is told again."""
    options = output.options if output.status in messages.CLOSING else None
    numbered = (f"{number}. {option}" for number, option in enumerate(options or [], 1))
    content = output.content.removeprefix("[demo] ") if output.demo else output.content  # labelled as a whole
    return "\n".join([_AWAY + content.removeprefix(_AWAY), *numbered])


def outcome_text(answer: messages.AgentMessage) -> str:
    """A task's outcome, for the person."""
    payload = answer.payload
    title = payload.get("title") or payload.get("task_id")
    if payload.get("status") in ("spent", "held"):
        return f"Task {payload.get('task_id')} ({title}) by {answer.sender} is paused: {payload.get('error')}"
    if answer.type == "error" or payload.get("error"):
        told = f"Task {payload.get('task_id')} ({title}) by {answer.sender} failed: {payload.get('error')}"
        kept = (
            payload.get("commits")
            and f"\nWhat it made is on branch {payload.get('branch')}. {payload.get('proof')}"
        )
        again = f"\nIt is tried again in {payload['again_in']} s." if payload.get("again_in") else ""
        return told + (kept or "") + again
    if payload.get("status") == "planned":
        return _planned(payload, f"The plan of task {payload.get('task_id')} ({title}) by {answer.sender}")
    parts = [f"Task {payload.get('task_id')} ({title}) by {answer.sender}{_came_out(payload)}"]
    if payload.get("summary"):
        summary = str(payload["summary"])  # the whole is labelled where it is shown
        parts.append(summary.removeprefix("[demo] ") if payload.get("demo") else summary)
    if payload.get("branch") and payload.get("commits"):
        parts.append(
            f"Branch {payload['branch']}, commits {', '.join(c[:10] for c in payload.get('commits', []))}."
        )
    if payload.get("diff_stat"):
        parts.append(str(payload["diff_stat"]))
    if payload.get("proof") or payload.get("verified"):
        parts.append(str(payload.get("proof") or f"The work is {payload['verified']}."))
    for unknown in payload.get("unknown") or []:
        parts.append(f"A worker died while it ran this, and whether it took effect is not known: {unknown}")
    if clashes := (payload.get("receipt") or {}).get("clashes"):
        parts.append(_clashing(clashes))
    return "\n".join(parts)


def _clashing(clashes: list[dict[str, Any]]) -> str:
    """One line, however many branches of others are in the way."""
    first = f"{clashes[0]['branch']}: {', '.join(clashes[0]['files'][:10])}"
    if len(clashes) == 1:
        return f"It cannot be merged with {first}, as it is."
    others = ", ".join(clash["branch"] for clash in clashes[1:_BRANCHES])
    more = f" and {len(clashes) - _BRANCHES} more" if len(clashes) > _BRANCHES else ""
    return f"It cannot be merged with {len(clashes)} branches as they are: {first}; {others}{more}."


def _planned(payload: dict[str, Any], what: str) -> str:
    task, plan = payload.get("task_id"), payload.get("plan") or {}
    lines = [
        f"{number}. {one.get('title')} ({one.get('agent')})"
        for number, one in enumerate(plan.get("tasks") or [], 1)
    ]
    how = f"promptdock tasks approve {task}; or send it back: promptdock tasks reject {task} WHY"
    return "\n".join(
        [f"{what} waits for you: {plan.get('summary') or ''}".rstrip(": "), *lines, f"Approve it: {how}"]
    )


def _came_out(payload: dict[str, Any]) -> str:
    task = payload.get("task_id")
    if payload.get("unchanged") and payload.get("status") == "completed":
        return " is done: there was nothing to change."
    if payload.get("status") != "awaiting_approval":
        return f": {payload.get('status', 'done')}."
    if not payload.get("branch"):
        return f" is done and waits for your review: complete it with approve_task (task_id {task})."
    return (
        f" is done and waits for your review: promptdock tasks review {task}, then promptdock tasks merge {task}"
        f" (or approve_task, which completes it without a merge)."
    )
