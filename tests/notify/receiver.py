"""A program that is told by HTTP, with every bad manner that a receiver can have."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answer` is given the number of a request, from 1 on; its path says more where it begins with a manner."""

    url: str
    answer: Callable[[int], int] = lambda _number: 200
    received: list[Received] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """One on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            with contextlib.suppress(OSError):
                self._answer()

        def _answer(self) -> None:
            match self.path:
                case "/never":
                    made.ended.wait(30)
                case "/nonsense":
                    self.wfile.write(b"\x00\xff nonsense \r\n\r\n")
                case "/large":
                    self.send_response(200)
                    self.send_header("content-length", str(100 * 2**20))
                    self.end_headers()
                    while not made.ended.is_set():
                        self.wfile.write(b"x" * 65_536)
                case "/away":
                    self.send_response(302)
                    self.send_header("location", f"{made.url}/inside")
                    self.end_headers()
                case "/later":
                    self.send_response(503)
                    self.send_header("retry-after", "120")
                    self.end_headers()
                case _:
                    self.send_response(made.answer(len(made.received)))
                    self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.ended.set()
            server.shutdown()
            thread.join()
