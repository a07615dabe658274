"""Thousands of requests of nonsense: sizes, types, encodings, methods, paths. Each gets an answer, and never a 500."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import socket
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from gateways.web.app import create_app
from gateways.web.errors import for_programs
from shared.settings import Settings
from tests.support.processes import PATIENCE, Site
from tests.web.support import serve

RULES: list[dict[str, Any]] = [{"steps": [{"text": "ok"}]}]
MANY, SIDE_BY_SIDE = int(os.environ.get("NONSENSE", "3000")), 4  # NONSENSE=10000 takes minutes
SEED = 20261123

_WORDS = [
    "", "a", "x" * 300, "é", "𝔘", "\x00", "%00", "..", "../../etc/passwd", "%2e%2e%2f", "a/b", "a b", "@tasks", "null",
    "-1", "0", "1e999", "NaN", "';DROP TABLE tasks;--", "<script>alert(1)</script>", "\ud800", "user:root", "\r\nX: y",
    "{{7*7}}", "undefined", "true", "0-0", "1-0", "9" * 40, "chatter/1-1", "2026-01-01", "2026-01-01T00:00:00+00:00",
]  # fmt: skip
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "FOO", "get"]
_TYPES = [
    "application/json", "application/json; charset=utf-16", "text/plain", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "multipart/form-data", "application/octet-stream", "", "/", "application/xml",
]  # fmt: skip
_HEADERS = [
    "Authorization: Bearer ", "Authorization: Basic ::::", "Authorization: Bearer pdp_x", "Cookie: promptdock=a.1.b",
    "Cookie: promptdock=é.9999999999.x", "Last-Event-ID: x,y", "Last-Event-ID: 1-0", "Accept: x/y", "Range: bytes=0-1",
    "If-None-Match: *", "Content-Encoding: gzip", "Expect: x", "X-Forwarded-For: é", "Origin: null", "Origin: http://[",
    "Content-Length: 5", "Transfer-Encoding: chunked", "Sec-Fetch-Site: nonsense", "Accept-Language: \xff",
]  # fmt: skip


def _value(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(9 if depth < 3 else 6)
    match kind:
        case 0 | 1:
            return dice.choice(_WORDS)
        case 2:
            return dice.choice([0, -1, 1.5, 1e308, 2**70, True, False, None])
        case 3:
            return "".join(dice.choices(string.printable, k=dice.randrange(60)))
        case 4 | 5:
            return None
        case 6:
            return [_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {_key(dice): _value(dice, depth + 1) for _ in range(dice.randrange(5))}


_FIELDS = [
    "message", "session_id", "model", "temperature", "profile_id", "use_memory", "messages", "stream", "decision",
    "feedback", "content", "title", "arguments", "name", "url", "path", "enabled", "dollars", "turn_id", "__proto__",
    "threadId", "runId", "state", "tools", "context", "forwardedProps", "n", "stop", "role",
]  # fmt: skip


def _key(dice: random.Random) -> str:
    return dice.choice(_FIELDS) if dice.random() < 0.8 else dice.choice(_WORDS)


def _body(dice: random.Random) -> bytes:
    match dice.randrange(8):
        case 0:
            return b""
        case 1:
            return dice.randbytes(dice.randrange(200))
        case 2:
            return b"[" * dice.choice([10, 1000, 50_000])
        case 3:
            return b'{"message": "' + b"x" * dice.choice([10, 300_000]) + b'"'
        case 4:
            return json.dumps(_value(dice)).encode("utf-16")
    made = {_key(dice): _value(dice) for _ in range(dice.randrange(6))}
    return json.dumps(made).encode()


def _target(dice: random.Random, paths: list[str]) -> str:
    path = dice.choice(paths)
    while not for_programs(path) and dice.random() < 0.7:  # what is rendered takes longer
        path = dice.choice(paths)
    while "{" in path:
        before, _, rest = path.partition("{")
        word = dice.choice(_WORDS)
        shown = quote(word.encode("utf-8", "replace"), safe="/" if dice.random() < 0.2 else "")
        path = before + shown + rest.partition("}")[2]
    if dice.random() < 0.1:
        path = "/" + quote("".join(dice.choices(string.printable, k=dice.randrange(40))))
    if dice.random() < 0.4:
        names = ["limit", "offset", "after", "before", "query", "session", "status", "by", "days", "all", "x"]
        pairs = [(dice.choice(names), dice.choice(_WORDS)) for _ in range(dice.randrange(4))]
        path += "?" + "&".join(f"{name}={quote(word.encode('utf-8', 'replace'))}" for name, word in pairs)
    return path


def request(dice: random.Random, paths: list[str], host: str) -> bytes:
    """One request, as bytes."""
    body = _body(dice)
    method = dice.choice(_METHODS)
    lines = [f"{method} {_target(dice, paths)} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += dice.sample(_HEADERS, dice.randrange(3))
    if content := dice.choice(_TYPES):
        lines.append(f"Content-Type: {content}")
    if "Content-Length: 5" not in lines and "Transfer-Encoding: chunked" not in lines:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def answer(sent: bytes, address: tuple[str, int]) -> tuple[int, str, bytes]:
    """Status, type and the beginning of what came back."""
    with socket.create_connection(address, PATIENCE) as line:
        with contextlib.suppress(OSError):  # refused before it was whole
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
        came = HTTPResponse(line, method=sent.split(b" ")[0].decode())
        try:
            came.begin()
            kind = came.getheader("content-type") or ""
            return came.status, kind, b"" if "event-stream" in kind else came.read(2000)
        except (HTTPException, OSError):
            return 0, "", b""


# They would do what they are told: keep what is no key, work on what nonsense says.
_OBEYS = frozenset({"/models/key", "/api/agent/run"})


def _paths(found: Iterable[Any]) -> Iterator[str]:
    for route in found:
        if path := getattr(route, "path", ""):
            yield path
        elif inner := getattr(route, "original_router", None):  # as FastAPI keeps what was included
            yield from _paths(inner.routes)


def routes(home: Path) -> list[str]:
    """Every address that there is, of the API, the doors and the page, and some beside."""
    app = create_app(Settings.model_validate({"PROMPTDOCK_HOME": str(home)}))
    found = dict.fromkeys(_paths(app.routes))
    assert {"/", "/agents", "/api/tasks/{task}", "/v1/chat/completions", "/ag-ui", "/mcp"} <= set(found)
    return [*found, "/nothing", "/api", "/v1", "/static/x"]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("chatter")
def test_nonsense_gets_an_error_in_words_and_never_a_500(place: Site, tmp_path: Path) -> None:
    worker, url = serve(place)
    paths = [path for path in routes(tmp_path) if path not in _OBEYS]
    where = urlsplit(url)
    address = (str(where.hostname), int(where.port or 0))

    def some(number: int) -> Iterator[tuple[int, str, bytes, bytes]]:
        dice = random.Random(SEED + number)
        for _ in range(MANY // SIDE_BY_SIDE):
            sent = request(dice, paths, where.netloc)
            yield *answer(sent, address), sent

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        found = list(itertools.chain(*pool.map(lambda number: list(some(number)), range(SIDE_BY_SIDE))))
    failed = [one for one in found if one[0] == 500]
    assert not failed, [(one[3][:300], one[2]) for one in failed[:3]]
    codes = Counter(one[0] for one in found)
    assert len(found) == MANY and sum(codes[code] for code in (404, 405, 422)) > MANY / 3, codes
    for status, kind, body, sent in found:
        ours = not body.startswith(b"Invalid HTTP request")  # else it is no HTTP at all
        if status >= 400 and body and ours and b" /mcp" not in sent[:20]:  # MCP has words of its own
            assert "json" in kind or "text/html" in kind, (status, kind, sent[:200])
    assert not [event for event in worker.events() if "unexpectedly" in str(event["event"])]
    assert worker.process.poll() is None
