"""A pull request from a task's page: the branch goes out, then it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from gateways.web.errors import HttpError
from gateways.web.pages import tasks
from gateways.web.pages.frame import Seat

REPO = UUID(int=7)
HERE = cast(Seat, SimpleNamespace(client=None))
CARD = {"id": "tidy-quill", "project": "shop"}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The tools that were called, of a task whose branch is `work`."""
    calls: list[tuple[str, dict[str, Any]]] = []

    async def find(_client: object, _id: str) -> object:
        return SimpleNamespace(branch="promptdock/tidy-quill", repo_id=REPO)

    async def called(_here: Seat, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        calls.append((tool, arguments))
        return {"pr_url": "https://github.com/us/shop/pull/3"}

    monkeypatch.setattr("shared.client.views.tasks.tasks.find", find)
    monkeypatch.setattr(tasks, "called", called)
    return calls


async def test_the_branch_is_pushed_and_then_the_pull_request_asked_for(
    ran: list[tuple[str, dict[str, Any]]],
) -> None:
    told = await tasks._pull_request(HERE, CARD, {"title": " Add a page ", "body": "What it does"})
    assert told == "The pull request is open: https://github.com/us/shop/pull/3"
    at = {"project_id": "shop", "branch": "promptdock/tidy-quill", "repo_id": str(REPO)}
    assert ran == [
        ("git_push", at),
        ("git_create_pr", {**at, "title": "Add a page", "body": "What it does"}),
    ]


async def test_without_a_title_nothing_leaves_the_machine(ran: list[tuple[str, dict[str, Any]]]) -> None:
    with pytest.raises(HttpError, match="title"):
        await tasks._pull_request(HERE, CARD, {"title": "  "})
    assert ran == []
