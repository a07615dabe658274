"""Pictures on their way to a model: which of a conversation are sent, and what a model is told that cannot see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.models.base import Block, ModelMessage

NEWEST = 8  # pictures of a conversation that are sent again with each turn
_BEFORE = "[a picture of before, which is not sent again]"
_UNSEEN = "[a picture came along; this model cannot see it, and says so]"


def pictured(messages: Iterable[ModelMessage]) -> bool:
    """Whether there is something to see."""
    return any(block["type"] == "image" for message in messages for block in _blocks(message))


def newest(messages: Iterable[ModelMessage], keep: int = NEWEST) -> list[ModelMessage]:
    """The messages with the newest pictures; in the place of older ones stands that there was one."""
    found, left = list(messages), keep
    for at in range(len(found) - 1, -1, -1):
        blocks = _blocks(found[at])
        here = sum(block["type"] == "image" for block in blocks)
        if here > left:
            found[at] = {**found[at], "content": list(_told(blocks, _BEFORE, here - left))}
        left = max(0, left - here)
    return found


def unseen(messages: Iterable[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The messages for a model that cannot see."""
    return tuple({**one, "content": list(_told(_blocks(one), _UNSEEN))} for one in messages)


def cannot_see(model: str) -> str:
    """What the person is told."""
    return f"{model} cannot see pictures: it was told that one came along, not what is in it"


def _blocks(message: ModelMessage) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _told(blocks: list[Block], words: str, most: int | None = None) -> Iterator[Block]:
    """The blocks, the first `most` pictures of them as words."""
    replaced = 0
    for block in blocks:
        if block["type"] == "image" and (most is None or replaced < most):
            replaced += 1
            yield {"type": "text", "text": words}
        else:
            yield block
