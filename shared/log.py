"""Logs: console lines on a terminal, JSON elsewhere; one record is one line, and secrets never pass."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Literal, TextIO, cast

# structlog looks for rich to colour tracebacks that we never print: 5 MB and 50 ms in every process.
_rich = sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402
from structlog.contextvars import (  # noqa: E402
    bind_contextvars,
    bound_contextvars,
    clear_contextvars,
    merge_contextvars,
)

from shared import failpoints  # noqa: E402
from shared.plain import escaped, plain  # noqa: E402
from shared.redaction import conceal, concealed, hide, redact  # noqa: E402

if _rich is None:
    del sys.modules["rich"]

__all__ = [
    "bind_contextvars", "bound_contextvars", "clear_contextvars", "conceal", "concealed", "get", "hide",
    "redact", "setup",
]  # fmt: skip

LogEvent = MutableMapping[str, Any]
Sink = Callable[[str, str, dict[str, Any]], None]

_LINE = 16_000  # characters of a line on a terminal
_sinks: list[Sink] = []


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value if isinstance(value, int | float | bool | None) else redact(repr(value))


def _redact_event(_: Any, __: str, event: LogEvent) -> LogEvent:
    return {key: _clean(value) for key, value in event.items()}


def _to_sinks(_: Any, method: str, event: LogEvent) -> LogEvent:
    if method in ("warning", "error", "critical", "exception"):
        fields = {key: value for key, value in event.items() if key not in ("event", "timestamp", "level")}
        for sink in _sinks:
            sink(method, str(event.get("event", "")), fields)
    return event


def add_sink(sink: Sink) -> None:
    """Also hand every line of level warning and up to `sink(level, message, fields)`; it must not block."""
    _sinks.append(sink)


def remove_sink(sink: Sink) -> None:
    """Undo `add_sink`."""
    _sinks.remove(sink)


def _console(_: Any, __: str, event: LogEvent) -> str:
    """`[INFO] Chatter ready key=value`: the form that the docs show; what a terminal would obey is written out."""
    level = str(event.pop("level", "info")).upper().replace("WARNING", "WARN")
    event.pop("timestamp", None)
    message, trace = event.pop("event", ""), event.pop("exception", None)
    fields = "".join(f" {key}={value}" for key, value in event.items())
    line = f"[{level}] {message}{fields}"
    if failpoints.without("plain-logs"):
        return f"{line}\n{trace}" if trace else line
    return plain(f"{line}\n{trace}" if trace else line, _LINE)


class _Json:
    """One JSON object a line, also to a reader for whom more than a line break ends one."""

    def __init__(self) -> None:
        self._render = structlog.processors.JSONRenderer(ensure_ascii=False)

    def __call__(self, logger: Any, method: str, event: LogEvent) -> str:
        text = str(self._render(logger, method, event))
        return text if failpoints.without("plain-logs") else escaped(text)


class _Out:
    """Where lines go: one that cannot be written, on a full disk, must not end the work that it tells of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


def setup(level: str = "info", style: Literal["auto", "console", "json"] = "auto") -> None:
    """Configure logging to stderr; libraries' own loggers pass the same redaction."""
    for_people = style == "console" or (style == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact_event,
    ]
    renderer: Any = _console if for_people else _Json()
    structlog.configure(
        processors=[*shared, _to_sinks, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Out(sys.stderr))),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)


def get(**fields: Any) -> Any:
    """A logger with these fields bound."""
    return structlog.get_logger(**fields)
