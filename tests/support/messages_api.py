"""A server on loopback that speaks Anthropic's Messages API, streaming and models list, after a script.

    with MessagesApi([Step(status=529), Step(text="Hello")]) as api:
        model = AnthropicModel(lambda: "key", base_url=api.url)

A script is a list of steps, one per request; a function from request to step; or `Rules`. Each request is
kept in `api.exchanges`. A request that the real API would refuse is refused with 400. As a process of its
own, with the rules of messages_script.py in a file:

    python -m tests.support.messages_api --port 8400 --script rules.json --record requests.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from tests.support import messages_script, messages_stream
from tests.support.messages_check import complaint
from tests.support.messages_script import Body, Rules, Script, Step

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-4-5")
STALL = 600.0  # seconds after which a stalled stream that nobody left ends after all


@dataclass
class Exchange:
    """One request and how its answer ended: `whole` was sent to the end, `left`: the client went away."""

    path: str
    key: str
    headers: dict[str, str]
    body: Body = field(default_factory=dict)
    whole: bool = False
    left: bool = False


class _Left(Exception):
    """The client closed the connection before the answer was whole."""


class MessagesApi:
    """The server. `keys` are the keys that it takes, all of them if None; assign to it to revoke one.

    What is Anthropic's alone stands in the methods that a server of another protocol overrides.
    """

    answers_at, lists_at = "/v1/messages", "/v1/models"
    content_type = b"text/event-stream"

    def __init__(
        self,
        script: Script | Iterable[Step] = (),
        *,
        keys: Collection[str] | None = None,
        models: Iterable[str] = MODELS,
        record: Path | None = None,
        port: int = 0,
    ) -> None:
        self.script: Script = script if callable(script) else messages_script.queue(script)
        self.keys, self.models, self.record = keys, tuple(models), record
        self.exchanges: list[Exchange] = []
        self.failures: list[Exception] = []
        self.released: set[str] = set()  # names on which held answers wait no longer
        self._socket = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                interface="asgi3",
                loop="asyncio",
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="critical",
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self.run, name="messages-api", daemon=True)

    @property
    def requests(self) -> list[Body]:
        """The bodies of all requests for an answer, in the order in which they came."""
        return [exchange.body for exchange in self.exchanges if exchange.path == self.answers_at]

    def run(self) -> None:
        """Serve until told to stop."""
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()
        if self._thread.is_alive():
            raise RuntimeError("the Messages server does not stop")
        if self.failures and error is None:
            raise RuntimeError("the script failed") from self.failures[0]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        exchange = Exchange(
            scope["path"], request.headers.get("x-api-key") or token, headers=dict(request.headers)
        )
        if scope["method"] == "POST":
            exchange.body = await request.json()
        self._keep(exchange)
        try:
            await self._answer(exchange, scope, receive, send)
        except _Left:
            exchange.left = True
        except Exception as error:  # of a script: told when the server is left, since here nobody would hear
            self.failures.append(error)
            raise

    def _keep(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if self.record:
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"path": exchange.path, "body": exchange.body}) + "\n")

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        if self.keys is not None and exchange.key not in self.keys:
            step = Step(status=401, message="invalid x-api-key")
        elif exchange.path == self.lists_at:
            await JSONResponse(self.listing())(scope, receive, send)
            return
        elif (told := self.other(exchange)) is not None:
            await JSONResponse(told)(scope, receive, send)
            return
        elif exchange.path != self.answers_at:
            step = Step(status=404, message=f"there is no {exchange.path}")
        elif why := self.complaint(exchange.body):
            step = Step(status=400, message=why)
        else:
            step = self.script(self.neutral(exchange.body))
        while step.hold and step.hold not in self.released:
            await _pause(receive, 0.1)
        number = len(self.exchanges)
        if step.status != 200:
            await _pause(receive, step.delay)
            await self.error(step)(scope, receive, send)
        elif exchange.body.get("stream"):
            await self._stream(exchange, step, number, receive, send)
        else:
            await _pause(receive, step.delay)
            await JSONResponse(self.whole(step, exchange.body, number))(scope, receive, send)

    async def _stream(
        self, exchange: Exchange, step: Step, number: int, receive: Receive, send: Send
    ) -> None:
        await _pause(receive, step.delay)
        headers = [(b"content-type", self.content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for data in self.pieces(step, exchange.body, number):
            await send({"type": "http.response.body", "body": data, "more_body": True})
            await _pause(receive, step.pace)
        if step.fault == "stall":
            await _pause(receive, STALL)
        if step.fault == "cut":
            return  # without the end of the body the server closes the connection
        await send({"type": "http.response.body", "body": b""})
        exchange.whole = not step.fault

    def other(self, exchange: Exchange) -> Body | None:
        """The answer at an address of this provider alone."""
        return None

    def complaint(self, body: Body) -> str:
        """Why the real API would answer this request with 400; "" where it would not."""
        return complaint(body)

    def neutral(self, body: Body) -> Body:
        """The request as scripts read it, in the form of the Messages API."""
        return body

    def pieces(self, step: Step, body: Body, number: int) -> Iterator[bytes]:
        """The answer as it is streamed."""
        return messages_stream.events(step, body, number)

    def whole(self, step: Step, body: Body, number: int) -> Body:
        """The answer to a request that is not streamed."""
        return messages_stream.message(step, body, number)

    def error(self, step: Step) -> JSONResponse:
        """The answer that is an error."""
        told = {"type": "error", "error": {"type": step.error_type, "message": step.message}}
        return JSONResponse(told, status_code=step.status, headers=headers(step))

    def listing(self) -> dict[str, Any]:
        """The models."""
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-09-28T00:00:00Z"}
            for name in self.models
        ]
        return {"data": data, "has_more": False, "first_id": None, "last_id": None}


def headers(step: Step) -> dict[str, str]:
    """Those that an error is sent with."""
    more = {} if step.retry_after is None else {"retry-after": f"{step.retry_after:g}"}
    return {**step.headers, **more}


async def _pause(receive: Receive, seconds: float) -> None:
    """Wait, but not longer than the client does."""
    if seconds <= 0:
        return
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return
    raise _Left


def main() -> None:
    """Serve a script of rules until interrupted."""
    parser = argparse.ArgumentParser(
        description=messages_script.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--script", type=Path, help="a JSON file of rules; without one every answer is ok")
    parser.add_argument(
        "--record", type=Path, help="a file to which each request is appended as one line of JSON"
    )
    chosen = parser.parse_args()
    rules = json.loads(chosen.script.read_text(encoding="utf-8")) if chosen.script else []
    api = MessagesApi(Rules(rules), record=chosen.record, port=chosen.port)
    print(f"listening on {api.url}", flush=True)
    api.run()


if __name__ == "__main__":
    main()
