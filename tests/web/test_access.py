"""Who is let in: on this machine, from a page of others, by a token, by name."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateways.web.app import create_app
from shared.client.local.people import People
from shared.errors import PromptDockError
from shared.settings import Settings
from tests.support.processes import Site, Worker, site, until
from tests.support.valkey import free_port
from tests.web.support import serve

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]
TOKEN = "a-token-that-is-long-enough"
PASSWORD = "correct horse"


def browser(url: str, **headers: str) -> httpx.Client:
    """A client that sends these headers and keeps cookies."""
    return httpx.Client(base_url=url, timeout=30, trust_env=False, headers=headers)


# -- on loopback, without a token ----------------------------------------------------------------------------


def test_a_name_that_was_bound_to_this_machine_is_refused(web: httpx.Client) -> None:
    for host in ("evil.example", "evil.example:12319", "127.0.0.1.evil.example", "[::2]", "[", "é"):
        response = web.get("/api/status", headers=[(b"Host", host.encode())])
        assert response.status_code == 421, host
    for host in ("localhost", "127.0.0.1:9", "[::1]:12319"):
        assert web.get("/api/health", headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_others_changes_nothing(web: httpx.Client, headers: dict[str, str]) -> None:
    response = web.post("/api/agent/chat", json={"message": "Hello"}, headers=headers)
    assert response.status_code == 403
    assert web.get("/api/health", headers=headers).headers.get("access-control-allow-origin") is None


def test_a_form_of_others_is_no_json(web: httpx.Client) -> None:
    body = '{"message": "Hello"}'
    response = web.post("/api/agent/chat", content=body, headers={"Content-Type": "text/plain"})
    assert response.status_code in (415, 422)


def test_our_own_page_may(web: httpx.Client, url: str) -> None:
    response = web.post("/api/sessions/x/stop", headers={"Origin": url, "Sec-Fetch-Site": "same-origin"})
    assert response.status_code == 202


def test_every_answer_keeps_others_out(web: httpx.Client) -> None:
    for path in ("/api/health", "/nothing", "/api/docs"):
        headers = web.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and headers["x-content-type-options"] == "nosniff"


# -- elsewhere -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_it_does_not_open_to_other_machines_without_a_token_or_people(place: Site, host: str) -> None:
    worker, code = refused(place, PROMPTDOCK_WEB_HOST=host)
    assert code == 4 and "PROMPTDOCK_WEB_TOKEN" in worker


def test_a_short_token_is_refused(place: Site) -> None:
    told, code = refused(place, PROMPTDOCK_WEB_TOKEN="short")
    assert code == 4 and "too short" in told and '"short"' not in told


def refused(place: Site, **environment: str) -> tuple[str, int]:
    """What a process says that does not start, and its exit code."""
    given = {**place.environment, "PROMPTDOCK_WEB_PORT": str(free_port()), **environment}
    worker = Worker("web", ["gateways.web"], place.folder, given)
    place.workers.append(worker)
    code = worker.ended()
    return worker.tail(), code


@dataclass(frozen=True)
class Named:
    """A page that people sign in at, and its log."""

    url: str
    place: Site
    log: Path


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, valkey: str) -> Iterator[Named]:
    """Ada owns it, Bob works on `shop`, and there is a token too."""
    with site(tmp_path_factory.mktemp("named"), valkey) as made:
        people = People(made.home)
        people.add("ada", PASSWORD, ("owner",))
        people.add("bob", PASSWORD, ("member",), ("shop",))
        made.up("chatter")
        worker, url = serve(made, PROMPTDOCK_WEB_TOKEN=TOKEN)
        yield Named(url, made, worker.log)


@contextmanager
def signed_in(named: Named, name: str, password: str = PASSWORD) -> Iterator[httpx.Client]:
    """A browser in which somebody has signed in."""
    with browser(named.url) as client:
        response = client.post("/sign-in", data={"name": name, "password": password})
        assert response.status_code == 303, response.text
        yield client


def test_nobody_is_let_in_who_shows_nothing(named: Named) -> None:
    with browser(named.url) as client:
        for method, path in (("GET", "/api/status"), ("POST", "/api/agent/chat"), ("GET", "/v1/models")):
            assert client.request(method, path).status_code == 401, path
        assert client.get("/").headers["location"] == "/sign-in"
        assert client.get("/api/health").status_code == 200


def test_the_token_is_the_owner(named: Named) -> None:
    with browser(named.url, Authorization=f"Bearer {TOKEN}") as client:
        assert client.get("/api/budgets").status_code == 200
        assert client.get("/api/budgets", headers={"Authorization": f"Bearer {TOKEN}x"}).status_code == 401


def test_the_cookie_is_kept_from_scripts_and_other_pages(named: Named) -> None:
    with browser(named.url) as client:
        cookie = client.post("/sign-in", data={"name": "ada", "password": PASSWORD}).headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()


def test_a_changed_cookie_is_nobody(named: Named) -> None:
    with signed_in(named, "bob") as client:
        assert client.get("/api/agents").status_code == 200
        written, until_, code = client.cookies["promptdock"].split(".")
        for forged in (
            f"YWRh.{until_}.{code}",
            f"{written}.{int(until_) + 1}.{code}",
            "",
            "a.b.c",
            f"{written}..x",
        ):
            with browser(named.url, Cookie=f"promptdock={forged}") as fresh:
                assert fresh.get("/api/agents").status_code == 401, forged


def test_a_member_sees_their_own_sessions_and_nobody_elses(named: Named) -> None:
    with signed_in(named, "ada") as ada, signed_in(named, "bob") as bob:
        hers = ada.post("/api/agent/chat", json={"message": "Ada's secret plan"}).json()["session_id"]
        his = bob.post("/api/agent/chat", json={"message": "Bob's plan"}).json()["session_id"]
        until(lambda: len(ada.get("/api/sessions").json()["sessions"]) == 2, what="the rows")
        assert [one["id"] for one in bob.get("/api/sessions").json()["sessions"]] == [his]
        for path in (
            f"/api/sessions/{hers}/messages",
            f"/api/sessions/{hers}/turns",
            f"/api/sessions/{hers}/events",
        ):
            assert bob.get(path).status_code == 404, path
        assert bob.get("/api/events", params={"session": hers}).status_code == 404
        joined = bob.post("/api/agent/chat", json={"message": "Tell me", "session_id": hers})
        assert joined.status_code == 404
        assert bob.post(f"/api/sessions/{hers}/stop").status_code == 404
        said = ada.get(f"/api/sessions/{his}/messages").json()["messages"]
        assert said[0]["text"] == "Bob's plan"


def _addresses(home: Path) -> list[tuple[str, str]]:
    """Every method and address with an id in it, of the API, the doors and the page."""
    app = create_app(Settings.model_validate({"PROMPTDOCK_HOME": str(home)}))
    return [(method, path) for method, path in _of(app.routes) if "{" in path]


def _of(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for route in routes:
        if path := getattr(route, "path", ""):
            yield from (
                (method, path) for method in getattr(route, "methods", None) or () if method != "HEAD"
            )
        elif inner := getattr(route, "original_router", None):  # as FastAPI keeps what was included
            yield from _of(inner.routes)


_BODY: Any = {"title": "Mine", "archived": True, "content": "x", "message": "x", "decision": "deny"}


@pytest.mark.timeout(300)
def test_no_address_tells_or_changes_anything_by_the_id_of_what_is_another_persons(
    named: Named, tmp_path: Path
) -> None:
    canary = "zebra-4711"
    with signed_in(named, "ada") as ada, signed_in(named, "bob") as bob:
        ada.post("/api/agent/chat", json={"message": f"The word is {canary}", "session_id": "hidden"})
        assert canary in str(ada.get("/api/sessions/hidden/messages").json())
        rows = until(
            lambda: named.place.query(f"select m.id, t.turn_id from memories m, turns t where body like '%{canary}%' "
                                      "and t.session_id = 'hidden'"),
            what="the rows",
        )  # fmt: skip
        before = ada.get("/api/sessions/hidden").json()
        tried = 0
        for method, path in _addresses(tmp_path):
            for id in dict.fromkeys(("hidden", str(rows[0]["turn_id"]), str(rows[0]["id"]))):
                if method != "GET" and id != "hidden":
                    continue  # what changes something asks who may first: each of these is a turn
                address, given = (
                    re.sub(r"\{[^}]*\}", id, path),
                    {} if method in ("GET", "DELETE") else {"json": _BODY},
                )
                with bob.stream(method, address, **given) as answer:
                    # A session of a name that nobody used yet may be listened to: it is whose first words come.
                    opens = "event-stream" in answer.headers.get("content-type", "") and id != "hidden"
                    text = "" if opens else answer.read().decode()
                tried += 1
                assert canary not in text, (method, path, id)
                if id == "hidden" and path.startswith("/api/sessions/"):
                    assert answer.status_code in (403, 404, 405, 415, 422), (method, path, answer.status_code)
        assert tried > 100
        for path in ("/", "/tasks", "/agents", "/inbox", "/nothing", "/chat/hidden", "/sessions/of/hidden"):
            for part in ({}, {"x-part": "work"}):
                answer = bob.get(path, params={"s": "hidden"}, headers=part)
                assert canary not in answer.text, path
        assert ada.get("/api/sessions/hidden").json() == before
        assert len(ada.get("/api/sessions/hidden/messages").json()["messages"]) == 2


def test_what_is_for_the_owner_is_for_nobody_else(named: Named) -> None:
    with signed_in(named, "bob") as bob:
        for path in ("/api/budgets", "/api/spend", "/api/dead-letters", "/api/permissions", "/metrics"):
            assert bob.get(path).status_code == 403, path
        called = bob.post("/api/tools/list_tasks/call")
        assert called.status_code == 403 and "role" in called.json()["why"]
        assert bob.post("/api/projects", json={"name": "x"}).status_code == 403


def test_who_is_removed_is_out_at_once(named: Named) -> None:
    people = People(named.place.home)
    people.add("eve", PASSWORD)
    token = people.token("eve")
    with signed_in(named, "eve") as eve, browser(named.url, Authorization=f"Bearer {token}") as program:
        assert eve.get("/api/agents").status_code == program.get("/api/agents").status_code == 200
        people.change("eve", "another password")
        assert eve.get("/api/agents").status_code == program.get("/api/agents").status_code == 401
        people.remove("eve")
        assert eve.post("/sign-in", data={"name": "eve", "password": "another password"}).status_code == 401


def test_tries_at_passwords_are_bounded_by_address(tmp_path: Path, valkey: str) -> None:
    with site(tmp_path, valkey) as made:
        People(made.home).add("ada", PASSWORD)
        with browser(serve(made)[1]) as client:
            codes = [
                client.post("/sign-in", data={"name": "ada", "password": "wrong"}).status_code
                for _ in range(7)
            ]
            assert codes == [401] * 5 + [429] * 2
            right = client.post("/sign-in", data={"name": "ada", "password": PASSWORD})
            assert right.status_code == 429 and int(right.headers["retry-after"]) > 60


def test_neither_token_nor_password_nor_cookie_is_in_a_log(named: Named) -> None:
    with signed_in(named, "ada") as ada:
        ada.get("/api/agents", headers={"X-Nonsense": TOKEN})
        ada.get(f"/{TOKEN}")
        cookie = ada.cookies["promptdock"]
    told = named.log.read_text()
    assert TOKEN not in told and PASSWORD not in told and cookie not in told


def test_people_lie_in_a_file_of_their_owner_alone(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.add("ada", PASSWORD, ("owner",))
    token = people.token("ada")
    file = tmp_path / "web" / "people.json"
    assert file.stat().st_mode & 0o077 == 0
    assert PASSWORD not in file.read_text() and token not in file.read_text()
    assert re.search(r"\$argon2id\$", file.read_text())
    assert (
        people.check("ada", PASSWORD)
        and not people.check("ada", "wrong")
        and not people.check("nobody", PASSWORD)
    )
    with pytest.raises(PromptDockError, match="already"):
        people.add("ada", PASSWORD)
    with pytest.raises(PromptDockError, match="short"):
        people.add("bob", "short")
    file.write_text("{")
    with pytest.raises(PromptDockError, match="cannot be read"):
        People(tmp_path).all()


def test_one_that_was_killed_comes_back_where_its_pages_ask(place: Site) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):  # so that it listens elsewhere
        first, url = serve(place, "--other-port", PROMPTDOCK_WEB_PORT=str(port))
        first.kill()
    _, again = serve(place, "--other-port", PROMPTDOCK_WEB_PORT=str(port))
    assert again == url
