"""Moments, amounts and names as the page writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote

from markupsafe import Markup

from shared.client.text import times
from shared.client.text.safe import line, safe
from shared.client.views.inbox import Item

STATES = {
    "DEFINED": "waits for others", "READY": "ready", "ASSIGNED": "handed out", "IN_PROGRESS": "running",
    "VERIFYING": "checks run", "WAITING_INPUT": "asks you", "PAUSED": "paused", "FAILED": "failed",
    "AWAITING_PLAN_APPROVAL": "plan to approve", "BLOCKED": "blocked", "AWAITING_APPROVAL": "to review",
    "COMPLETED": "done",
}  # fmt: skip


def moment(at: datetime | str | None, how: str = "ago") -> Markup:
    """A moment as the browser puts into its reader's zone; without script it is told in UTC.

    `how` is ago, clock or full.
    """
    found = times.parsed(at) if isinstance(at, str) else at
    if found is None:
        return Markup("")
    there = found.astimezone(UTC)
    told = {"ago": times.ago((datetime.now(UTC) - there).total_seconds()) + " ago", "clock": f"{there:%H:%M}"}
    full = f"{there:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" data-how="{}" title="{}">{}</time>').format(
        there.isoformat(timespec="seconds"), how, full, told.get(how, full)
    )


def count(number: float) -> str:
    """A number short: 998, 3.4k, 12k, 1.2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            short = number / size
            return f"{short:.1f}{letter}" if short < 10 else f"{short:.0f}{letter}"
    return f"{number:.0f}"


def dollars(amount: float) -> str:
    """Money; what is less than a cent shows how much."""
    return f"${amount:.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def seconds(amount: float | None) -> str:
    """A span: 157 ms, 14.2 s, 3 min 10 s, 2 h 5 min."""
    if amount is None:
        return ""
    if amount < 1:
        return f"{amount * 1000:.0f} ms"
    if amount < 60:
        return f"{amount:.1f} s"
    whole = int(amount)
    if amount < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def state(status: str) -> str:
    """A task's state in words for people."""
    return STATES.get(status, status.lower().replace("_", " "))


def plain(text: str) -> str:
    """Text of others on several lines, without what hides in it."""
    return safe(text)


def brief(text: str, width: int = 120) -> str:
    """Text of others on one line."""
    return line(text, width)


def pretty(value: object) -> str:
    """JSON for people."""
    return safe(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def part(text: str) -> str:
    """Text as one part of an address."""
    return quote(text, safe="")


_TONES = {
    "COMPLETED": "ok", "FAILED": "bad", "BLOCKED": "bad", "WAITING_INPUT": "warn", "AWAITING_PLAN_APPROVAL": "warn",
    "AWAITING_APPROVAL": "accent", "PAUSED": "warn", "ASSIGNED": "accent", "IN_PROGRESS": "accent",
    "VERIFYING": "accent",
}  # fmt: skip
_GLYPHS = {
    "DEFINED": "○", "READY": "○", "ASSIGNED": "◐", "IN_PROGRESS": "◐", "VERIFYING": "◑", "WAITING_INPUT": "?",
    "PAUSED": "‖", "FAILED": "✕", "BLOCKED": "✕", "AWAITING_PLAN_APPROVAL": "☰", "AWAITING_APPROVAL": "◇",
    "COMPLETED": "✓",
}  # fmt: skip


def _status(task: object) -> str:
    return str(task["status"] if isinstance(task, dict) else getattr(task, "status", ""))


def tone(task: object) -> str:
    """The colour of a task's state; its sign says it too."""
    return _TONES.get(_status(task), "muted")


def glyph(task: object) -> str:
    """The sign of a task's state."""
    return _GLYPHS.get(_status(task), "○")


def whither(item: Item) -> str:
    """Where something of the inbox is answered."""
    if item.kind == "dead":
        return "/health"
    if item.kind == "permission" or (item.kind == "question" and item.what.startswith("Chatter")):
        return f"/chat/{part(item.session)}" if item.session else "/inbox"
    return f"/tasks/{part(item.id)}" + ("/diff" if item.kind == "review" else "")
