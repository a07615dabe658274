"""What passes on the channels, in words: one line a message, as a person reads it."""

from __future__ import annotations

from typing import Any

from shared.bus.activity import act, doing
from shared.bus.keys import CHATTER
from shared.client.text.safe import encoded, line

_BEATS = "agent:status"
_WORDS = 500  # characters of a message
_TELLING = (
    "content", "question", "answer", "message", "error", "summary", "title", "command_file", "tool", "decision",
    "command",
)  # fmt: skip


def in_words(channel: str, message: Any) -> str:
    """One message as a person reads it, on one line."""
    if not isinstance(message, dict):
        return line(f"{channel}: {message}", _WORDS)
    kind, _, name = channel.partition(":")
    if channel == _BEATS:
        does = "; ".join(f"{one.about} · {one.act}".rstrip(" ·") for one in doing(message))
        return line(f"{message.get('agent')} is {message.get('status')}{f': {does}' if does else ''}", _WORDS)
    if kind == "events":
        told = act(str(message.get("event")), message)
        words = told if message.get("event") not in ("chunk", "thinking", "tool_result") else ""
        return line(f"{name}: {words or _event(message)}", _WORDS)
    to = message.get("to") or (CHATTER if channel == "human-input" else message.get("user_id"))
    sender = message.get("from") or (message.get("user_id") if channel == "human-input" else CHATTER)
    what = message.get("status") or message.get("type") or ""
    return line(f"{sender} → {to}{f' ({what})' if what else ''}: {_said(message)}", _WORDS)


def _event(message: dict[str, Any]) -> str:
    event, content = message.get("event"), message.get("content")
    if event == "chunk":
        return f"“{content}”"
    if event == "thinking":
        return f"thinks: {content}"
    if event == "tool_result":
        how = "failed" if message.get("is_error") else "done"
        return f"{message.get('tool')} {how} in {int(message.get('ms') or 0)} ms"
    rest = {key: value for key, value in message.items() if key != "event" and value not in (None, "")}
    return f"{event} {encoded(rest)}"


def _said(message: dict[str, Any]) -> str:
    payload = message.get("payload")
    for source in (message, payload if isinstance(payload, dict) else {}):
        for name in _TELLING:
            if isinstance(source.get(name), str) and source[name]:
                return str(source[name])
    return encoded(payload or message)
