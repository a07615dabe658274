"""Conversations over HTTP and on the page: copied, exported, imported, saved, cleared and taken up again."""

from __future__ import annotations

import json
import threading
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.processes import Site, Worker

ASKED = "Summarize the conversation below"
RULES: list[dict[str, Any]] = [
    {"user": ASKED, "steps": [{"text": "They chose a blue fence."}]},
    {"steps": [{"text": "So be it."}]},
]
BROKEN = '{"messages": [{"role": "user", "content": "x"}, {"role": "boss", "content": "x"}]}'


@pytest.fixture
def chatter(place: Site) -> Worker:
    """One that lives."""
    alive = [worker for worker in place.workers if worker.name == "chatter" and worker.process.poll() is None]
    return alive[0] if alive else place.up("chatter")[0]


pytestmark = pytest.mark.usefixtures("chatter")


def said(web: httpx.Client, message: str, session: str = "") -> str:
    """Say something; in which conversation."""
    body = {"message": message, **({"session_id": session} if session else {})}
    return str(web.post("/api/agent/chat", json=body).json()["session_id"])


def told(web: httpx.Client, session: str) -> list[tuple[str, str]]:
    """What people read there."""
    entries = web.get(f"/api/sessions/{session}/messages").json()["messages"]
    return [(one["kind"], one["text"]) for one in entries]


def sent(web: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = web.post(f"/api/sessions{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_conversation_is_begun_named_put_away_and_found(web: httpx.Client) -> None:
    key = sent(web, "", title="The roof")["session_id"]
    said(web, "It is made of slate", key)
    card = web.patch(f"/api/sessions/{key}", json={"title": "The old roof", "archived": True}).json()
    assert (card["title"], card["archived"]) == ("The old roof", True)
    assert web.patch(f"/api/sessions/{key}", json={}).status_code == 422

    def listed(**query: str) -> list[str]:
        return [one["id"] for one in web.get("/api/sessions", params=query).json()["sessions"]]

    assert key not in listed() and key in listed(archived="true")
    [found] = web.get("/api/sessions", params={"words": "slates"}).json()["sessions"]
    assert found["session_id"] == key and "slate" in found["found"]
    web.patch(f"/api/sessions/{key}", json={"archived": False})
    assert key in listed()
    assert web.get("/api/sessions/nowhere").status_code == 404


def test_a_fork_and_what_was_exported_are_read_as_they_were_said(web: httpx.Client) -> None:
    key = said(web, "Paint the fence")
    said(web, "In blue", key)
    whole = told(web, key)
    first = web.get(f"/api/sessions/{key}/messages").json()["messages"][1]
    fork = sent(web, f"/{key}/fork", message_id=first["id"])["session_id"]
    assert told(web, fork) == whole[:2]
    said(web, "In red", fork)
    assert [text for _, text in told(web, fork)] == [text for _, text in whole[:2]] + [
        "In red",
        "So be it.",
    ]
    document = web.get(f"/api/sessions/{key}/export").json()
    assert [line["content"] for line in document["messages"]] == [text for _, text in whole]
    again = sent(web, "/import", **document)["session_id"]
    assert told(web, again) == whole
    assert web.get(f"/api/sessions/{again}/export").json() == document
    assert "Paint the fence" in web.get(f"/api/sessions/{again}/export?format=markdown").text
    assert again in web.get("/api/memory", params={"query": "fence"}).text


def test_what_was_saved_is_there_at_once_and_is_taken_up_by_what_it_is_about(web: httpx.Client) -> None:
    key = said(web, "The boat is green")
    assert sent(web, f"/{key}/save", description="the green boat")["messages"] == 2
    saved = web.get("/api/sessions/saved").json()["saved"]
    assert [one["description"] for one in saved if one["session_id"] == key] == ["the green boat"]
    assert sent(web, f"/{key}/clear")["told"] == "Cleared. 2 messages stay in the history."
    assert sent(web, f"/{key}/restore", id="The Green")["told"].startswith("Restored ")
    kinds = [kind for kind, _ in told(web, key)]
    assert kinds == ["said", "answer", "mark", "mark", "mark"], "nothing is told twice"
    elsewhere = said(web, "Something else")
    sent(web, f"/{elsewhere}/restore", id=saved[0]["id"])
    assert [text for _, text in told(web, elsewhere)][2:4] == [
        "The boat is green",
        "So be it.",
    ]
    gone = web.post(f"/api/sessions/{key}/restore", json={"id": "nothing of that name"})
    assert gone.status_code == 404 and "there is nothing saved as" in gone.text


def test_a_broken_file_is_refused_in_the_same_words_over_http_and_on_the_page(
    place: Site, web: httpx.Client
) -> None:
    before = place.query("select count(*) as n from sessions")
    answer = web.post("/api/sessions/import", content=BROKEN)
    assert answer.status_code == 422 and "message 2 role" in answer.json()["why"]
    assert web.post("/api/sessions/import", content=b"\xff\xfe").status_code == 422
    page = web.post("/chat/import", files={"file": ("x.json", BROKEN)}, follow_redirects=True)
    assert "Message 2 role" in page.text
    assert "no file" in web.post("/chat/import", data={"title": "x"}, follow_redirects=True).text
    assert place.query("select count(*) as n from sessions") == before


def test_the_page_does_it_without_a_script(web: httpx.Client) -> None:
    key = said(web, "The lamp is yellow")
    told(web, key)
    there = f"/sessions/of/{key}"

    def does(what: str, **data: str) -> str:
        return web.post(f"{there}/{what}", data=data, follow_redirects=True).text

    assert "Renamed." in does("rename", title="The lamp") and "The lamp" in web.get("/sessions").text
    assert "<h2>The lamp</h2>" in web.get(f"/chat/{key}").text
    assert "lamps" in does("save", description="lamps")
    assert "Cleared." in does("clear") and "Restored" in does("restore", id="lamps")
    assert "Put away." in does("archive", archived="1") and key in web.get("/sessions?archived=1").text
    fork = web.post("/chat/fork", data={"session": key}, follow_redirects=True)
    assert "/chat/fork-" in str(fork.url) and "The lamp is yellow" in fork.text
    file = web.get(f"{there}/export?format=json")
    assert "attachment" in file.headers["content-disposition"]
    made = web.post("/chat/import", files={"file": ("x.json", file.content)}, follow_redirects=True)
    assert "/chat/imported-" in str(made.url) and "The lamp is yellow" in made.text
    begun = web.post("/chat/begin", data={"title": "Lamps"}, follow_redirects=True)
    assert "/chat/talk-" in str(begun.url)


@pytest.mark.parametrize("fault", ["written beside@conversation_messages", "effect done"])
@pytest.mark.parametrize("tool", ["fork_session", "import_session"])
def test_a_worker_that_is_killed_in_the_middle_makes_one_copy(
    place: Site, web: httpx.Client, chatter: Worker, tool: str, fault: str
) -> None:
    mark = uuid4().hex
    key = said(web, f"The kiln {mark}")
    document = {"title": mark, "messages": [{"role": "user", "content": f"line {n}"} for n in range(30)]}
    told(web, key)
    chatter.kill()
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT=fault)
    arguments = {
        "fork_session": {"session_id": key, "title": mark},
        "import_session": {"content": json.dumps(document)},
    }[tool]
    call = {"arguments": arguments}
    with httpx.Client(base_url=web.base_url, timeout=60, trust_env=False) as other:
        answers: list[httpx.Response] = []
        waits = threading.Thread(
            target=lambda: answers.append(other.post(f"/api/tools/{tool}/call", json=call)), daemon=True
        )
        waits.start()
        mortal.ended()
        place.up("chatter")
        waits.join(60)
    assert answers[0].status_code == 200, answers[0].text
    copies = place.query("select key from sessions where title = ?", mark)
    assert [row["key"] for row in copies] == [answers[0].json()["session_id"]]
    rows = place.query("select seq from conversation_messages where session_id = ?", copies[0]["key"])
    assert len(rows) == (2 if tool == "fork_session" else 30)


def test_threads_are_listed_and_one_that_there_is_not_cannot_be_killed(
    web: httpx.Client, place: Site
) -> None:
    done = place.run("ask", "paint it", "--channel", "demo:7", "--new-thread", "--user", "ada")
    assert done.returncode == 0, done.stderr
    found = web.get("/api/threads", params={"channel": "demo:7"}).json()["threads"]
    assert found == [], "it is ada's alone"
    refused = web.post("/api/threads/1/kill", json={"channel": "demo:7"})
    assert refused.status_code == 404 and "there is no thread #1" in refused.text
