"""The page's own script and style: little of it, nothing from elsewhere, kept by browsers for good."""

from __future__ import annotations

import gzip
import re

from fastapi import FastAPI
from starlette.testclient import TestClient

from gateways.web.pages import static
from gateways.web.pages.talk import fenced

# Bytes of script and style that are loaded where a view is opened, as they stand here: of the conversation beside the
# board, and of the view that brings most. And of all of them together, packed as a browser is sent them.
OPENED, HEAVIEST = 73_000, 79_000
SENT = 32_000
_IMPORTED = re.compile(r'^import .* from "\./([a-z]+\.js)";$', re.MULTILINE)
_BROUGHT = re.compile(r"{% block (?:style|script) %}([a-z]+\.(?:css|js)){% endblock %}")


def sources() -> dict[str, str]:
    return {name: held.decode() for name, held in static.held().items() if name.endswith((".js", ".css"))}


def loaded(*first: str) -> int:
    """Bytes of these files and of what they import; what is imported by a call comes only when it is wanted."""
    found, open_ = set[str](), list(first)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += _IMPORTED.findall(sources()[name])
    return sum(len(static.held()[name]) for name in found)


def test_a_view_loads_little_script_and_style_and_only_its_own() -> None:
    templates = [file.read_text() for file in (static.ROOT.parent / "templates").glob("*.html")]
    brought = [_BROUGHT.findall(text) for text in templates]
    assert ["task.css", "review.js"] in brought and ["views.css"] in brought
    page = ("page.css", "main.js")
    assert loaded(*page) <= OPENED
    assert max(loaded(*page, *more) for more in brought) <= HEAVIEST
    assert sum(len(gzip.compress(text.encode(), 9)) for text in sources().values()) <= SENT


def test_nothing_of_it_comes_from_elsewhere_or_makes_markup_of_words() -> None:
    for name, text in sources().items():
        assert not re.search(r"https?://(?!www\.w3\.org)[\w.]+/", text), name
        assert not re.search(r"\beval\(|new Function|document\.write|insertAdjacentHTML|@import", text), name
        for line in text.splitlines():  # what the server has rendered, and nothing that was put together here
            assert ".innerHTML" not in line or re.search(r"made\.innerHTML = (html|await)", line), line


def test_a_file_is_kept_by_its_version_and_sent_packed() -> None:
    app = FastAPI()
    app.include_router(static.router)
    with TestClient(app) as web:
        answer = web.get(static.address("page.css"))
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-encoding"] == "gzip"
        assert web.get("/static/000000000000/page.css").status_code == 404
        assert web.get(static.address("../app.py")).status_code == 404
        assert web.get(static.address("main.js")).headers["content-type"].startswith("text/javascript")
    assert len(gzip.compress(static.held()["page.css"])) < 10_000


def test_a_file_that_goes_along_stands_in_a_fence_that_nothing_in_it_ends() -> None:
    assert fenced("a.md", "one\n```\ntwo").split("\n")[1] == "````"
    assert fenced("x`y", "plain") == "`x'y`:\n```\nplain\n```"
