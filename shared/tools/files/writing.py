"""What the tools share that change files: the file's lock and its workspace's, and texts as bytes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.tools.context import Context, Root


@contextlib.asynccontextmanager
async def changing(context: Context, jail: Jail, path: str) -> AsyncIterator[None]:
    """Around a change of one file: nobody else changes it, and the workspace is still ours."""
    lock = context.worktree.lock
    await context.worktree.changing(path)  # the other tasks of the repository hear of it before it is done
    async with jail.lock(path), lock.held() if lock else contextlib.nullcontext():
        yield


def digest(data: bytes | None) -> str | None:
    """The sum by which a file's content is told; None for a file that is not there."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def before(jail: Jail, path: str) -> bytes | None:
    """What the file holds now; None where it is not there."""
    return jail.read(path, secrets=True) if jail.exists(path) else None


def encoded(text: str) -> bytes:
    """The text as it is written; ToolError for halves of characters."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(
            "the text was not written", "it holds half of a surrogate pair", "give valid text"
        ) from None


def workspace(context: Context) -> Root:
    """The one checkout that this turn may change; ToolError where it works on no task."""
    writable = [root for root in context.roots.values() if root.writable]
    if len(writable) != 1:
        raise ToolError(
            "there is no workspace to change", "this turn works on no task", "assign a task for the work"
        )
    return writable[0]
