"""What the conversation keeps of a turn that ended without an answer: the question, and what was done for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.errors import ModelError, ModelOverloaded, ModelRefused, PromptDockError
from shared.loop.transcript import Transcript
from shared.models.base import ModelMessage
from shared.turns.turn import Turn

_LONG = 2_000  # characters of words that the provider did not take


def messages(
    turn: Turn, opening: ModelMessage, how: str, error: PromptDockError | None
) -> list[ModelMessage]:
    """The messages, the last of which says how it ended, as a note of the assistant."""
    script = Transcript(turn.id, turn.records)
    note = _said("assistant", [f"[This turn was ended: {how}.]".replace("..", ".")])
    if _refused(error):
        # Sent again as it is, it would be refused again, and every turn after this one with it.
        ran = ", ".join(dict.fromkeys(script.tools))
        told = [f"[Tools that ran in it: {ran}.]"] if ran else []
        texts = [str(block["text"]) for block in opening["content"] if block["type"] == "text"]
        cut = [text if len(text) <= _LONG else f"{text[:_LONG]} […]" for text in texts]
        return [_said("user", cut), _said("assistant", [*told, note["content"][0]["text"]])]
    return [opening, *script.left(), note]


def _said(role: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def _refused(error: PromptDockError | None) -> bool:
    """Whether the provider did not take what was sent, rather than being away or asking for another key."""
    return isinstance(error, ModelError) and not isinstance(error, ModelOverloaded | ModelRefused)
