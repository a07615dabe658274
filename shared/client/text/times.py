"""Moments and spans of time as a person reads them; programs get ISO 8601 in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from shared.errors import UsageError

_SPAN = re.compile(r"(\d{1,6}(?:\.\d+)?) ?(s|m|min|h|d)")
_SIZES = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_CLOCK = re.compile(r"\d\d?:\d\d(:\d\d)?")


def moment(iso: object, *, seconds: bool = False, brief: bool = False) -> str:
    """A moment in the person's own time, with its zone; `brief` leaves out the day where it is today.

    What is no moment stays as it is.
    """
    found = parsed(iso)
    if found is None:
        return str(iso or "")
    here = found.astimezone()
    day = "" if brief and here.date() == datetime.now().astimezone().date() else "%Y-%m-%d "
    return here.strftime(f"{day}%H:%M{':%S' if seconds else ''} %Z").rstrip()


def clocked(seconds: float) -> str:
    """A moment given in seconds since 1970, to the second, in the person's own time."""
    return moment(datetime.fromtimestamp(seconds, UTC).isoformat(), seconds=True, brief=True)


def ago(seconds: float) -> str:
    """A span of time in one word."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def since(iso: object) -> str:
    """How long ago that was."""
    found = parsed(iso)
    return ago((datetime.now(UTC) - found).total_seconds()) if found else ""


def back(typed: str) -> datetime:
    """What a person means by `10m`, `2h`, `3d` (ago), `14:30` (today) or `2026-11-22 14:30`, in their own time.

    UsageError for anything else.
    """
    if span := _SPAN.fullmatch(typed.strip()):
        return datetime.now(UTC) - timedelta(seconds=float(span[1]) * _SIZES[span[2][:1]])
    today = datetime.now().astimezone().date().isoformat()
    clock = f"{today}T{typed.strip()}" if _CLOCK.fullmatch(typed.strip()) else typed.strip()
    try:
        return datetime.fromisoformat(clock).astimezone()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{typed!r} is no time", "", "give a span, as 10m, 2h or 3d, or a moment, as 14:30"
        ) from None


def parsed(iso: object) -> datetime | None:
    """A moment of ours; None for what is none."""
    try:
        found = datetime.fromisoformat(str(iso or ""))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)  # ours are UTC, also where they do not say so
