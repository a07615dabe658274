"""What goes wrong, as its reader gets it: in words, with the number that fits, under /v1 as OpenAI's API says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from gateways.web import errors
from gateways.web.errors import HttpError
from shared.errors import Busy, Conflict, PromptDockError, UsageError


class Asked(BaseModel):
    """A body with a field of each sort."""

    model_config = {"extra": "forbid"}

    words: Annotated[str, Field(max_length=5)] = ""
    count: int = 0
    share: float = 0.0
    on: bool = False
    names: list[str] = []
    more: dict[str, str] = {}


RAISED: dict[str, PromptDockError] = {
    "turn": UsageError("there is no turn 'zzz'", "", "name another"),
    "busy": Busy("too much waits"),
    "conflict": Conflict("it changed meanwhile"),
    "model": HttpError(404, "there is no model 'x'", field="model"),
    "key": HttpError(401, "nobody knows who you are"),
    "fault": PromptDockError("it broke"),
}


def application(framed: errors.Framed | None = None) -> FastAPI:
    """Routes that take a body, take a number, and raise."""
    app = FastAPI()
    errors.install(app, framed)

    async def take(asked: Asked) -> str:
        return "taken"

    async def limited(limit: Annotated[int, Query(ge=1)] = 1) -> int:
        return limit

    async def fail(name: str) -> str:
        raise RAISED[name]

    for door in ("/api", "/v1", ""):
        app.post(f"{door}/take")(take)
        app.get(f"{door}/limited")(limited)
        app.get(f"{door}/fail/{{name}}")(fail)
    return app


@pytest.fixture
def web() -> Iterator[httpx.Client]:
    with TestClient(application()) as client:
        yield client  # type: ignore[misc]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "the body is no JSON: expecting property name enclosed in double quotes"),
        (b"nonsense", "the body is no JSON: expecting value"),
        (b"[]", "the body must be an object"),
        (b'{"words": 1}', "words must be text"),
        (b'{"words": "toolong"}', "words must have at most 5 characters"),
        (b'{"count": "x"}', "count must be a whole number"),
        (b'{"count": 1.5}', "count must be a whole number"),
        (b'{"share": "x"}', "share must be a number"),
        (b'{"on": "perhaps"}', "on must be true or false"),
        (b'{"names": "x"}', "names must be a list"),
        (b'{"names": [1]}', "names.0 must be text"),
        (b'{"more": []}', "more must be an object"),
        (b'{"other": 1}', "other is no field that there is"),
    ],
)
def test_what_cannot_be_understood_is_said_in_our_words(web: httpx.Client, body: bytes, why: str) -> None:
    told = web.post("/api/take", content=body, headers={"content-type": "application/json"})
    assert told.status_code == 422
    assert told.json() == {"error": "the request cannot be understood", "why": why}
    asked = web.get("/api/limited", params={"limit": "many"})
    assert asked.json()["why"] == "limit must be a whole number"


@pytest.mark.parametrize(
    ("name", "status"),
    [("turn", 404), ("busy", 429), ("conflict", 409), ("model", 404), ("key", 401), ("fault", 500)],
)
def test_the_number_follows_from_the_error(web: httpx.Client, name: str, status: int) -> None:
    told = web.get(f"/api/fail/{name}")
    assert told.status_code == status
    assert told.json()["error"] == RAISED[name].what
    assert (told.headers.get("retry-after") is not None) == (status == 429)


@pytest.mark.parametrize(
    ("name", "status", "kind", "code", "param"),
    [
        ("model", 404, "invalid_request_error", "model_not_found", "model"),
        ("key", 401, "invalid_request_error", "invalid_api_key", None),
        ("busy", 429, "rate_limit_error", "rate_limit_exceeded", None),
        ("conflict", 409, "invalid_request_error", None, None),
        ("fault", 500, "server_error", None, None),
    ],
)
def test_under_v1_errors_have_the_form_of_openai(
    web: httpx.Client, name: str, status: int, kind: str, code: str | None, param: str | None
) -> None:
    told = web.get(f"/v1/fail/{name}")
    error: dict[str, Any] = told.json()["error"]
    assert (told.status_code, error["type"], error["code"], error["param"]) == (status, kind, code, param)
    assert RAISED[name].what.lower() in error["message"].lower()


def test_under_v1_what_cannot_be_understood_is_a_400_that_names_the_field(web: httpx.Client) -> None:
    told = web.post("/v1/take", json={"names": [1]})
    error = told.json()["error"]
    assert (told.status_code, error["type"], error["param"]) == (400, "invalid_request_error", "names.0")
    assert web.get("/v1/nothing").json()["error"]["code"] is None  # an address is no model


def test_who_looks_at_a_page_gets_the_error_inside_it() -> None:
    async def framed(request: Request, error: PromptDockError, status: int) -> Response:
        if error.what == "it changed meanwhile":
            raise RuntimeError("the frame is what is broken")
        return PlainTextResponse(f"framed: {error.what}", status)

    app = application(framed)

    @app.middleware("http")
    async def known(request: Request, further: Any) -> Any:
        request.state.person = request.headers.get("x-person")
        return await further(request)

    with TestClient(app, raise_server_exceptions=False) as web:
        ann = {"x-person": "ann"}
        assert web.get("/nothing", headers=ann).text == "framed: there is nothing at '/nothing'"
        assert web.get("/fail/turn", headers=ann).status_code == 404
        assert "<h1>it changed meanwhile</h1>" in web.get("/fail/conflict", headers=ann).text
        assert "<h1>it broke</h1>" in web.get("/fail/fault", headers=ann).text  # the frame may be the reason
        assert "<h1>" in web.get("/nothing").text  # whoever is not known sees nothing of the cluster
        assert web.get("/api/fail/turn", headers=ann).json()["error"]
