"""docs/http.md has every route by an example, and each example is understood."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateways.web.app import create_app
from shared.settings import Settings
from tests.house.tree import read

_LINE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S+)")


def examples() -> Iterator[tuple[str, str, Any]]:
    """Method, address and body of each example."""
    for block in re.findall(r"```http\n(.*?)```", read("docs/http.md"), re.DOTALL):
        lines = block.splitlines()
        for number, line in enumerate(lines):
            if found := _LINE.fullmatch(line):
                after = lines[number + 1] if number + 1 < len(lines) else ""
                yield found[1], found[2], json.loads(after) if after.startswith("{") else None


def routes(home: Path) -> dict[tuple[str, str], re.Pattern[str]]:
    """The API's routes, each with a pattern of its addresses."""
    schema = create_app(Settings(PROMPTDOCK_HOME=home)).openapi()["paths"]
    found: dict[tuple[str, str], re.Pattern[str]] = {}
    for path, methods in schema.items():
        written = re.sub(r"\{\w+\}", "[^/]+", path.replace("{name}", ".+"))
        found |= {(method.upper(), path): re.compile(written) for method in methods}
    return found


def test_every_route_has_an_example(tmp_path: Path) -> None:
    told = [(method, path.partition("?")[0]) for method, path, _ in examples()]
    missing = [
        (method, path)
        for (method, path), pattern in routes(tmp_path).items()
        if not any(one == method and pattern.fullmatch(address) for one, address in told)
    ]
    assert missing == []


@pytest.mark.parametrize(("method", "path", "body"), list(examples()))
async def test_an_example_is_understood(tmp_path: Path, method: str, path: str, body: Any) -> None:
    made = create_app(
        Settings(PROMPTDOCK_HOME=tmp_path)
    )  # with nothing behind it: what is understood is not reached
    line = httpx.AsyncClient(transport=httpx.ASGITransport(made), base_url="http://127.0.0.1:12319")
    async with line:
        answer = await line.request(method, path, json=body)
    assert answer.status_code in (200, 202, 503), (answer.status_code, answer.text)
