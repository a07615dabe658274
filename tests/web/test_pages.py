"""The views of the page as a program gets them: each is there, whatever odd things it has to show."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from tests.support.processes import Site

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]
VIEWS = (
    *(
        "/",
        "/tasks",
        "/inbox",
        "/notifications",
        "/trace",
        "/sessions",
        "/sessions?q=x",
        "/sessions?archived=1",
        "/notes",
        "/notes/default/new",
        "/hooks",
    ),
    *(
        "/memory",
        "/memory?q=x",
        "/agents",
        "/agents/chatter",
        "/profiles/new",
        "/models",
        "/budgets",
        "/health",
    ),
    *("/more", "/chat/anything", "/chat/a%2Fb"),
)

pytestmark = pytest.mark.usefixtures("chatter")


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_stands_alone_and_as_a_part(web: httpx.Client, view: str) -> None:
    whole = web.get(view)
    assert whole.status_code == 200, whole.text[:500]
    assert 'id="say"' in whole.text and 'id="view"' in whole.text
    assert not re.search(r"<(?:script(?! type=\"module\" src=)|style)|\son\w+=|\sstyle=", whole.text)
    part = web.get(view, headers={"x-part": "work"})
    assert part.status_code == 200 and 'id="say"' not in part.text and 'id="view"' in part.text


@pytest.mark.parametrize(
    ("view", "status"),
    [
        *(
            ("/tasks/nobody", 404),
            ("/tasks/nobody/nothing", 404),
            ("/agents/nobody", 404),
            ("/hooks/nobody", 404),
            ("/sessions/of/nobody", 404),
        ),
        *(
            ("/notes/default/nobody", 404),
            ("/memory/nobody", 404),
            ("/approvals/nobody", 404),
            ("/nothing", 404),
        ),
        *(("/chat/x/running?until=x", 422), ("/profiles/nobody", 404), ("/chat/a%20b/entries?before=x", 422)),
    ],
)
def test_what_is_not_there_is_said_in_words(web: httpx.Client, view: str, status: int) -> None:
    answer = web.get(view)
    assert answer.status_code == status, answer.text[:300]
    assert "<h1>" in answer.text
    assert 'id="say"' in answer.text and 'id="view"' in answer.text  # inside the page, which goes on
    part = web.get(view, headers={"x-part": "work"})
    assert part.status_code == status and 'id="say"' not in part.text


def test_what_changes_something_takes_no_get_and_nothing_from_elsewhere(web: httpx.Client) -> None:
    for place in ("/chat/x/say", "/chat/x/stop", "/tasks/x/act", "/dead", "/models/key"):
        assert web.get(place).status_code in (200, 404, 405, 422)
        refused = web.post(place, data={"text": "x"}, headers={"origin": "https://evil.example"})
        assert refused.status_code == 403
    assert web.post("/approvals/x", data={"decision": "maybe"}).status_code == 422


def test_the_page_of_models_says_who_answers_with_what_now_and_that_the_key_is_checked(
    web: httpx.Client,
) -> None:
    shown = web.get("/models").text
    assert "<td>Chatter</td><td><code>claude-sonnet-5-5</code></td>" in shown
    assert "4 models, the key is checked" in shown


def test_log_lines_of_any_shape_are_shown(web: httpx.Client, place: Site) -> None:
    (place.home / "logs").mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"level": "error", "event": {"x": 1}}),
        "Traceback <b>",
        json.dumps({"level": "warning"}),
    ]
    (place.home / "logs" / "odd.log").write_text("\n".join(lines) + "\n")
    shown = web.get("/health")
    assert shown.status_code == 200 and "Traceback &lt;b&gt;" in shown.text


def test_words_are_sent_by_a_form_and_come_back_as_text(web: httpx.Client) -> None:
    sent = web.post("/chat/forms/say", data={"text": "<b>hello</b>"})
    assert sent.status_code == 303 and sent.headers["location"].startswith("/chat/forms")
    made = web.post("/chat/new")
    assert made.status_code == 303 and re.fullmatch(r"/chat/web-[0-9a-f]+", made.headers["location"])
    nothing = web.post("/chat/forms/say", data={"text": "  "}, headers={"x-part": "piece"})
    assert nothing.status_code == 422
