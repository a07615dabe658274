"""Webhooks and notifications over a real cluster: added by HTTP and by command, told though Chatter is killed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from shared.client.local.people import People
from tests.notify.receiver import Received, Receiver, receiving
from tests.support.forked import Done
from tests.support.processes import Site, Worker, until
from tests.web.support import serve

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]
SETTINGS = {"ALLOWED_HOSTS": "127.0.0.1"}

pytestmark = pytest.mark.usefixtures("chatter")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def typed(place: Site, *words: str, stdin: str = "") -> Done:
    """What a command printed."""
    return place.run(*words, stdin=stdin)


def checked(one: Received, secret: str) -> dict[str, Any]:
    """The event of a request, whose signature is right."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{one.headers['webhook-id']}.{one.headers['webhook-timestamp']}.".encode() + one.body
    code = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert one.headers["webhook-signature"] == f"v1,{code}"
    event: dict[str, Any] = json.loads(one.body)
    return event


def told(receiver: Receiver, kind: str) -> list[Received]:
    return [one for one in receiver.received if json.loads(one.body)["type"] == kind]


def test_a_webhook_is_added_tested_listed_and_removed(
    web: httpx.Client, receiver: Receiver, place: Site
) -> None:
    address = f"{receiver.url}/hooks/s3cr3t-part"
    added = web.post("/api/webhooks", json={"url": address, "events": ["task"], "name": "ci"})
    assert added.status_code == 201, added.text
    secret = added.json()["secret"]
    assert (
        web.post("/api/webhooks", json={"url": address, "name": "ci"}).status_code == 422
    )  # is there already
    tested = web.post("/api/webhooks/ci/test").json()
    assert (tested["state"], tested["status"]) == ("delivered", 200)
    assert checked(receiver.received[0], secret)["type"] == "test"
    listed = web.get("/api/webhooks")
    [one] = listed.json()["webhooks"]
    assert (one["name"], one["state"], one["to"]) == ("ci", "on", f"{receiver.url}/…")
    shown = typed(place, "webhook", "list").stdout
    assert "ci" in shown
    for text in (listed.text, shown, *(path.read_text() for path in (place.home / "logs").glob("*.log"))):
        assert "s3cr3t-part" not in text and secret not in text
    rows = place.query("SELECT detail, action FROM audit_log WHERE action LIKE 'tool:add_subscription%'")
    assert rows and "s3cr3t-part" not in str(list(map(dict, rows)))
    assert web.delete("/api/webhooks/ci").status_code == 200
    assert web.get("/api/webhooks").json() == {"webhooks": []}
    assert web.post("/api/webhooks/ci/test").status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"url": "http://10.0.0.1/x"}, 422, "private network"),
        ({"url": "nonsense"}, 422, "webhook"),
        ({"url": "https://example.com", "events": ["nonsense"]}, 422, "attention"),
        ({"url": "https://example.com", "events": []}, 422, "events"),
        ({"url": "https://example.com", "name": "No Name"}, 422, "lower case"),
        ({"url": "https://example.com", "project": "nowhere"}, 404, "project"),
        ({"url": "https://example.com", "colour": "red"}, 422, "colour"),
    ],
)
def test_what_cannot_be_subscribed_is_refused_in_words(
    web: httpx.Client, body: dict[str, Any], status: int, word: str
) -> None:
    refused = web.post("/api/webhooks", json=body)
    assert refused.status_code == status and word in refused.text


def test_what_happens_while_chatter_dies_and_the_receiver_is_away_is_told(
    web: httpx.Client, receiver: Receiver, place: Site, chatter: Worker
) -> None:
    receiver.answer = lambda number: 500 if number < 3 else 200
    secret = web.post("/api/webhooks", json={"url": f"{receiver.url}/in", "events": ["turn"]}).json()[
        "secret"
    ]
    said = web.post("/api/agent/chat", json={"message": "Hello"}).json()
    until(lambda: receiver.received, what="a first try")
    chatter.kill()
    place.up("chatter")
    until(lambda: told(receiver, "turn.completed")[1:], seconds=30, what="another try")
    ids = {one.headers["webhook-id"] for one in receiver.received}
    event = checked(receiver.received[-1], secret)
    assert len(ids) == 1 and event["data"]["content"] == said["answer"]
    assert event["data"]["session_id"] == said["session_id"]
    name = web.get("/api/webhooks").json()["webhooks"][0]["name"]
    until(lambda: web.get("/api/webhooks").json()["webhooks"][0]["state"] == "failing", what="its state")
    assert web.post(f"/api/webhooks/{name}/retry").json()["waiting"] == 1
    until(lambda: web.get("/api/webhooks").json()["webhooks"][0]["waiting"] == 0, what="it to be taken")
    assert web.delete(f"/api/webhooks/{name}").status_code == 200


def test_others_see_neither_what_is_not_theirs_nor_hear_of_it(place: Site, receiver: Receiver) -> None:
    password = "correct horse battery staple"
    People(place.home).add("ada", password, ("owner",))
    People(place.home).add("bob", password, ("member",))
    _, url = serve(place)
    try:
        with httpx.Client(base_url=url, trust_env=False) as ada, httpx.Client(base_url=url) as bob:
            for name, client in (("ada", ada), ("bob", bob)):
                client.post("/sign-in", data={"name": name, "password": password})
            mine = {"url": f"{receiver.url}/a", "name": "hers"}
            assert ada.post("/api/webhooks", json={**mine, "everybody": True}).status_code == 201
            assert bob.get("/api/webhooks").json() == {"webhooks": []}
            for method, path in (("POST", "hers/test"), ("POST", "hers/retry"), ("DELETE", "hers")):
                assert bob.request(method, f"/api/webhooks/{path}").status_code == 404
            everything = {"url": f"{receiver.url}/b", "name": "his", "everybody": True}
            assert bob.post("/api/webhooks", json=everything).status_code == 403
            assert bob.post("/api/webhooks", json={**everything, "everybody": False}).status_code == 201
            assert bob.post("/api/webhooks", json={**mine, "project": "default"}).status_code == 404
            assert len(ada.get("/api/webhooks").json()["webhooks"]) == 2
            assert (
                ada.delete("/api/webhooks/his").status_code
                == ada.delete("/api/webhooks/hers").status_code
                == 200
            )
    finally:
        for name in ("ada", "bob"):
            People(place.home).remove(name)


def test_a_person_is_notified_by_apprise(web: httpx.Client, receiver: Receiver, place: Site) -> None:
    address = f"json://127.0.0.1:{receiver.url.rpartition(':')[2]}/t0ps3cret"
    done = typed(place, "notify", "add", "--name", "phone", stdin=address)
    assert done.returncode == 0, done.stderr
    tested = typed(place, "notify", "test", "phone")
    assert tested.returncode == 0, tested.stderr
    assert json.loads(receiver.received[0].body)["title"] == "PromptDock"
    [one] = web.get("/api/notifications").json()["notifications"]
    assert one["to"] == "json://…" and "t0ps3cret" not in done.stdout + done.stderr + tested.stdout
    assert web.get("/api/webhooks").json() == {"webhooks": []}
    assert typed(place, "notify", "remove", "phone", "--yes").returncode == 0


def test_the_page_adds_tries_lists_and_removes_who_is_told(web: httpx.Client, receiver: Receiver) -> None:
    def does(path: str, **form: str) -> str:
        return web.post(path, data=form, follow_redirects=True).text

    address = f"{receiver.url}/hooks/s3cr3t-part"
    shown = does("/notifications", transport="webhook", url=address, name="by-page", events="task")
    assert "by-page is told from now on" in shown and "whsec_" in shown and "s3cr3t-part" not in shown
    assert "whsec_" not in web.get("/notifications").text
    assert "The test has reached by-page" in does("/notifications/by-page", act="test")
    assert told(receiver, "test")
    refused = does("/notifications", transport="webhook", url="ftp://nowhere", name="other")
    assert 'class="told bad"' in refused
    assert "by-page is told no more" in does("/notifications/by-page", act="remove")
    assert "Nobody is told yet" in web.get("/notifications").text
    assert web.post("/notifications/by-page", data={"act": "nonsense"}).status_code == 422
