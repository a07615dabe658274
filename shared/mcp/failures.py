"""What goes wrong with a server, in words of ours; what the library says of it in its log is a server's own."""

from __future__ import annotations

from pydantic import ValidationError

from shared.errors import ToolError
from shared.mcp.bounds import DESCRIBED
from shared.plain import complaints


def words(error: BaseException) -> str:
    """In words; of several what the first says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return str(error)
    if type(error).__name__ in (
        "ConnectError",
        "ConnectTimeout",
    ):  # of httpx2, which is not loaded for a word
        return "nothing answers at its address"
    if isinstance(error, ValidationError):
        found = complaints(error.errors(include_input=False, include_url=False))
        return f"what it says is not as the protocol has it: {'; '.join(found[:3])}"
    text = " ".join(str(error).split())[:DESCRIBED]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def quiet() -> None:
    """What the library logs are a server's own words, as often as it likes: we say ourselves what is wrong."""
    import logging

    for name in ("mcp", "client"):  # the second is what it calls the log of its sessions
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
