"""What happens while a page is open: text as it is written, other surfaces, cuts, and text that means harm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from shared.bus.embedded import Embedded
from shared.bus.images import MAX_IMAGE_BYTES
from tests.support.messages_api import MessagesApi
from tests.support.pictures import png
from tests.support.processes import Site, Worker, until
from tests.support.valkey import free_port
from tests.support.wire import listener
from tests.web.browser.conftest import Opens
from tests.web.browser.looking import Watched
from tests.web.conftest import api, chatter, place
from tests.web.render.test_markdown import HOSTILE
from tests.web.support import serve

__all__ = ["api", "chatter", "place"]

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("chatter")]

WORDS = " ".join(f"word{number}" for number in range(60))
LINES = [
    "a\nevent: done\ndata: {}\n\nb",
    "retry: 0\n\n: a comment\n\nid: 999999999999-0",
    "one\u2028two\u2029three",
    "admin\u202etxt.exe \u2066hidden\u2069 \u200bzero",
]
BAD = "\n\n".join([*HOSTILE, *LINES])
ASK = {
    "name": "escalate_to_human",
    "input": {"question": BAD[:900], "options": ["<b>one</b>", "two"], "context": BAD[:500]},
}
ASKED = {"name": "consult_planner", "input": {"question": "How is it planned?"}}
BUSY = {"status": 529, "retry_after": 4}
RULES: list[dict[str, Any]] = [
    {"user": "gradually", "steps": [{"text": WORDS, "pace": 0.15}]},
    {"user": "ask somebody", "steps": [{"tools": [ASKED]}, {"text": "Without it: {{result}}"}]},
    {
        "user": "rich",
        "steps": [{"text": "# Head\n\n- **one**\n- `two`\n\n```python\nx = 1\n```\n\nThe end.", "pace": 0.1}],
    },
    {"user": "hurt me", "steps": [{"text": BAD, "pace": 0.005}]},
    {"user": "ask me badly", "steps": [{"tools": [ASK]}, {"text": "unreachable"}]},
    {"user": "long", "steps": [{"text": "A line of an answer that is long.\n\n" * 3000}]},
    {"user": "overloaded", "steps": [{"text": "At last.", "tries": [BUSY, BUSY]}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]
PORT = free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The module's own Redis, which a test may stop."""
    made = Embedded(tmp_path_factory.mktemp("valkey"), free_port())
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def valkey(server: Embedded) -> str:
    return server.url


@pytest.fixture(scope="module")
def web(place: Site) -> Worker:
    """The page's process; a test may start it anew, where it was."""
    return serve(place, PROMPTDOCK_WEB_PORT=str(PORT))[0]


@pytest.fixture(scope="module")
def url(web: Worker) -> str:
    return f"http://127.0.0.1:{PORT}"


# Whether what is being written ever lacked a word or had one twice; the last one may be a part of a word.
COUNTING = """() => {
  window.broken = [];
  new MutationObserver(() => {
    const text = [...document.querySelectorAll('#now .prose')].map(one => one.textContent).join(' ');
    const found = [...text.matchAll(/word(\\d+)/g)].map(one => Number(one[1])).slice(0, -1);
    if (found.some((number, place) => number !== place)) window.broken.push(text);
  }).observe(document.getElementById('now'), {childList: true, subtree: true, characterData: true});
}"""


def counted(here: Watched) -> None:
    """Look at every moment of what is written from now on."""
    here.page.evaluate(COUNTING)


def whole(here: Watched) -> None:
    """Every word stands there once, and did at every moment."""
    here.hears("word59")
    assert here.page.locator("#entries .answer .prose", has_text="word59").inner_text() == WORDS
    assert here.page.evaluate("window.broken") == []


def says(url: str, session: str, text: str) -> None:
    """The same person, by another program."""
    said = httpx.post(f"{url}/api/agent/chat", json={"message": text, "session_id": session}, timeout=60)
    assert said.status_code == 200


def test_an_answer_is_seen_while_it_is_written_and_stands_rendered_at_its_end(opens: Opens) -> None:
    here = opens("/chat/rich")
    here.says("rich")
    expect(here.page.locator("#now .prose h3")).to_have_text("Head")
    here.hears("The end.")
    answer = here.page.locator("#entries .answer").last
    expect(answer.locator("pre .t-mi")).to_have_text("1")
    expect(answer.locator("li")).to_have_text(["one", "two"])
    expect(here.page.locator("#now")).to_be_hidden()
    here.is_sound()


def test_what_another_program_says_stands_in_the_same_conversation_in_every_tab(
    opens: Opens, url: str
) -> None:
    here = opens("/chat/shared")
    beside = opens("/chat/shared", context=here.context)
    other = opens("/chat/elsewhere", context=here.context)
    says(url, "shared", "from afar")
    for one in (here, beside):
        expect(one.page.locator(".said .words").last).to_have_text("from afar")
        one.hears("from afar")
        expect(one.page.locator(".entry.answer")).to_have_count(1)
    lines = [one for tab in (here, beside, other) for one in tab.asked if "/live?" in one]
    leaders = {tab.page.url for tab in (here, beside, other) if any("/live?" in one for one in tab.asked)}
    assert lines and len(leaders) == 1, "one tab holds the line for all of them"
    expect(other.page.locator(".entry")).to_have_count(0)
    here.page.close()  # the one that led
    says(url, "shared", "and again")
    beside.hears("and again")


def test_the_cluster_is_started_anew_in_the_middle_of_an_answer_and_what_was_said_meanwhile_is_sent_once(
    opens: Opens, place: Site, chatter: Worker, web: Worker, api: MessagesApi
) -> None:
    here = opens("/chat/cut")
    page = here.page
    counted(here)
    here.says("gradually")
    expect(page.locator("#now")).to_contain_text("word9")
    for worker in [one for one in place.workers if one.name == "chatter"]:
        worker.kill()
    web.drain()
    here.says("and then?")
    expect(page.locator(".said .foot").last).to_contain_text("Kept here")
    expect(page.locator("#away")).to_contain_text("not connected", timeout=15_000)
    serve(place, PROMPTDOCK_WEB_PORT=str(PORT))
    place.up("chatter")
    whole(here)
    here.hears("and then?")
    expect(page.locator("#away")).to_be_hidden()
    expect(page.locator(".said", has_text="and then?")).to_have_count(1)
    expect(page.locator(".said .foot", has_text="Kept")).to_have_count(0)
    page.reload()
    here.hears("and then?")
    expect(page.locator(".said", has_text="and then?")).to_have_count(1)


def test_who_opens_the_page_in_the_middle_of_an_answer_sees_it_from_its_beginning(opens: Opens) -> None:
    here = opens("/chat/middle")
    here.says("gradually")
    expect(here.page.locator("#now")).to_contain_text("word9")
    late = opens("/chat/middle")
    counted(late)
    counted(here)
    expect(late.page.locator("#now")).to_contain_text("word0 word1 word2")
    whole(here)
    whole(late)


def test_who_waits_for_a_provider_is_seen_to_wait_in_the_conversation_and_above_it(opens: Opens) -> None:
    here = opens("/chat/waits")
    here.says("are you overloaded?")
    expect(here.page.locator("#now")).to_contain_text("waits: Anthropic is overloaded")
    expect(here.page.locator("#presence .agent.waiting")).to_contain_text("Chatter")
    here.hears("At last.")
    expect(here.page.locator("#presence .agent.idle", has_text="Chatter")).to_be_visible()


def test_hostile_text_is_shown_as_text_and_makes_nothing_happen(opens: Opens, url: str) -> None:
    here = opens("/chat/hostile")
    here.page.context.add_init_script("window.alert = () => { window.hurt = true; }")
    here.page.reload()
    here.says("hurt me")
    here.hears("zero")
    for _again in range(2):  # as it was streamed and rendered, then as it is read from the Store
        answer = here.page.locator("#entries .answer").last
        expect(answer).to_contain_text("<script>alert(1)</script>")
        for tag in (
            "script",
            "img",
            "iframe",
            "svg",
            "style",
            "form",
            "object",
            "details",
            "video",
            "base",
            "math",
        ):
            assert answer.locator(f".prose {tag}").count() == 0, tag
        for address in answer.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))"):
            assert re.match(r"(https?://|mailto:|/trace/)", address), address
        shown = str(answer.inner_text())
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", shown)
        assert here.page.evaluate("window.hurt") is None
        here.page.goto("/chat/hostile")
    here.says("<img src=x onerror=alert(1)>" + BAD[:2000])
    here.hears("You said")
    assert here.page.locator("#entries .said img").count() == 0
    here.is_sound()


def test_a_hostile_question_is_a_card_whose_options_are_words(opens: Opens) -> None:
    here = opens("/chat/asked")
    here.says("ask me badly")
    card = here.page.locator("#entries form.ask")
    expect(card.locator(".choice").first).to_have_text("1<b>one</b>")
    assert card.locator("script, img, iframe, b:has-text('one')").count() == 0
    here.page.keyboard.press("Escape")
    here.page.keyboard.press("2")
    here.hears("two")
    here.is_sound()


def test_a_long_answer_and_a_long_conversation_stay_quick(opens: Opens, place: Site, url: str) -> None:
    here = opens("/chat/many")
    here.says("long")
    here.hears("A line of an answer")
    seeded(place, "many", 10_000)
    at = here.page.evaluate("performance.now()")
    here.page.goto("/chat/many")
    here.page.locator(".entry").last.wait_for()
    assert here.page.locator(".entry").count() < 60
    timing = here.page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert timing < 2500, f"{timing} ms, at {at}"  # a bound for machines that are busy
    before = here.page.locator(".entry").count()
    here.page.click(".older")
    expect(here.page.locator(".entry")).not_to_have_count(before)
    here.says("still there?")
    here.hears("still there?")


def seeded(place: Site, session: str, count: int) -> None:
    """So many messages of before in a conversation, written as the Store has them."""
    import sqlite3
    from datetime import UTC, datetime, timedelta
    from uuid import uuid4

    file = place.home / "promptdock.db"
    start = datetime.now(UTC) - timedelta(days=9)
    with sqlite3.connect(file, timeout=30) as db:
        found = db.execute("select * from messages where type = 'complete' limit 1")
        names = [column[0] for column in found.description]
        row = dict(zip(names, found.fetchone(), strict=True))
        rows = []
        for number in range(count):
            at = (start + timedelta(seconds=number)).isoformat()
            payload = json.dumps({"content": f"Message {number}", "source": "cli"})
            fresh = {"id": str(uuid4()), "created_at": at, "message_id": f"old-{number}", "payload": payload}
            fresh |= {"session_id": session, "type": "message", "from_agent": "user", "to_agent": "chatter"}
            rows.append(tuple((row | fresh)[name] for name in names))
        db.executemany(
            f"insert into messages ({','.join(names)}) values ({','.join('?' * len(names))})", rows
        )
    db.close()


def test_an_answer_given_in_the_page_stops_waiting_everywhere_and_drafts_are_kept(
    opens: Opens, url: str
) -> None:
    here = opens("/chat/draft")
    here.page.fill("#say", "half a thou")
    here.page.reload()
    expect(here.page.locator("#say")).to_have_value("half a thou")
    here.page.fill("#say", "/agents")
    here.page.keyboard.press("Enter")
    expect(here.page.locator("#view h1")).to_have_text("Agents")
    here.page.fill("#say", "")
    here.says("first words")
    here.hears("first words")
    here.page.keyboard.press("ArrowUp")
    expect(here.page.locator("#say")).to_have_value("first words")


def test_text_files_go_along_and_others_are_refused(opens: Opens, tmp_path: Any) -> None:
    here = opens("/chat/files")
    drop = """([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      document.getElementById('talk').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}));
    }"""
    here.page.evaluate(drop, ["notes.txt", "one ``` two"])
    expect(here.page.locator("#files li")).to_contain_text("notes.txt")
    here.page.evaluate(drop, ["photo.png", "\0\0"])
    expect(here.page.locator(".toast")).to_contain_text("neither text nor a picture")
    here.says("look at this")
    here.hears("one ``` two")


DROP = """([name, kind, size]) => new Promise(done => {
  const canvas = Object.assign(document.createElement('canvas'), {width: size, height: size});
  const pen = canvas.getContext('2d');
  for (let at = 0; at < size * size / 4; at++) {
    pen.fillStyle = '#' + Math.floor(Math.random() * 0xffffff).toString(16).padStart(6, '0');
    pen.fillRect(at * 2 % size, Math.floor(at * 2 / size) * 2, 2, 2);
  }
  canvas.toBlob(blob => {
    const data = new DataTransfer();
    data.items.add(new File([blob], name, {type: kind}));
    document.getElementById('talk').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}));
    done(blob.size);
  }, kind);
})"""


def test_a_picture_is_made_small_sent_to_the_model_and_stays_with_the_conversation(
    opens: Opens, api: MessagesApi
) -> None:
    here = opens("/chat/pictures")
    page = here.page
    assert page.evaluate(DROP, ["screen.png", "image/png", 640]) > 200_000, "as it is it would not fit"
    expect(page.locator("#files img")).to_be_visible()
    here.says("What is on it?")
    here.hears("What is on it?")
    [block] = pictures(api.requests[-1])
    assert block["source"]["media_type"] == "image/webp"
    assert 20_000 < len(block["source"]["data"]) * 3 // 4 < MAX_IMAGE_BYTES
    page.reload()
    shown = page.locator(".said .pictures img")
    expect(shown).to_have_js_property("complete", True)
    assert shown.evaluate("one => one.naturalWidth") > 200
    page.set_input_files("#pick", {"name": "dot.png", "mimeType": "image/png", "buffer": png()})
    expect(page.locator("#files img")).to_be_visible()
    here.says("And this one?")
    here.hears("And this one?")
    assert len(pictures(api.requests[-1])) == 2, "the first is still part of the conversation"
    here.is_sound()


def test_a_picture_that_is_none_is_said_to_be_none(opens: Opens) -> None:
    here = opens("/chat/broken")
    here.says("before")
    here.hears("before")
    here.page.evaluate("""() => document.querySelector('#entries .said').insertAdjacentHTML('beforeend',
      '<div class="pictures"><a href="#x"><img src="/chat/broken/image/none/0" alt="Picture"></a></div>')""")
    expect(here.page.locator(".pictures")).to_have_text("This picture cannot be shown")


def pictures(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a model's request that are pictures."""
    return [block for one in body["messages"] for block in one["content"] if block["type"] == "image"]


def test_an_agent_that_does_not_report_can_be_waited_for_skipped_or_another_asked(
    opens: Opens, place: Site
) -> None:
    with listener(place.url, place.names.agent("planner")):
        here = opens("/chat/silent")
        page = here.page
        page.clock.install()
        here.says("ask somebody")
        row = page.locator("#now .working", has_text="Planner")
        expect(row.locator("button")).to_have_text(["stop"])
        page.clock.fast_forward(15_000)
        expect(row).to_contain_text("has not reported")
        expect(row.locator("button")).to_have_text(["wait", "skip"])
        expect(row.locator("select")).to_contain_text("ask another")
        row.locator("text=wait").click()
        expect(row.locator("button")).to_have_text(["stop"])
        page.clock.fast_forward(65_000)
        row.locator("text=skip").click()
        page.clock.resume()
        here.hears("go on without this answer")


def test_a_long_title_leaves_the_conversation_as_wide_as_its_zone(opens: Opens, url: str) -> None:
    says(url, "long-title", "What becomes of a title that goes on and on, " * 6)
    # The rows of a conversation, and its title with them, come into the Store behind its answer.
    until(
        lambda: httpx.get(f"{url}/api/sessions/long-title", timeout=30).json().get("title"), what="its title"
    )
    for width in (1440, 390):
        here = opens("/chat/long-title", width=width, height=800)
        expect(here.page.locator(".talk-head h2")).to_contain_text("What becomes")
        outside = """['#send', '#say-form', '.entry'].filter(one => document.querySelector(one)
          .getBoundingClientRect().right > document.querySelector('#talk').getBoundingClientRect().right)"""
        assert here.page.evaluate(outside) == [], width


def test_a_request_whose_row_is_on_its_way_is_shown_to_who_opens_the_page_just_then(opens: Opens) -> None:
    here = opens("/chat/just")
    with here.page.expect_request("**/approvals/just-asked"):
        here.page.evaluate("""() => import(document.querySelector('script[src]').src.replace('main.js', 'talk.js'))
            .then(talk => talk.event('approval', {id: 'just-asked'}))""")


def test_when_the_store_cannot_be_read_the_page_says_so_and_one_goes_on_talking(
    opens: Opens, place: Site
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    store: dict[str, Any] = {
        "SUPABASE_URL": nowhere,
        "SUPABASE_SERVICE_ROLE_KEY": "sb_secret_tests_0000000000",
    }
    address = serve(place, PROMPTDOCK_WEB_PORT=str(free_port()), **store)[1]
    page = opens().page
    page.goto(f"{address}/chat/stored")
    expect(page.locator("#store-away")).to_contain_text("The Store cannot be read")
    page.fill("#say", "still there?")
    page.press("#say", "Enter")
    expect(page.locator("#log")).to_contain_text("You said:", timeout=20_000)


def test_when_redis_is_killed_the_page_says_so_and_what_is_said_goes_out_when_it_is_back(
    opens: Opens, server: Embedded
) -> None:
    here = opens("/chat/away")
    page = here.page
    here.says("before")
    here.hears("before")
    server.stop()
    expect(page.locator("#away")).to_contain_text("Redis is away", timeout=15_000)
    here.says("are you there?")
    expect(page.locator(".said .foot").last).to_contain_text("kept")
    page.click(".tabs a[data-tab=health]")
    expect(page.locator(".health")).to_contain_text("Redis is away")
    server.start()
    here.hears("are you there?")
    expect(page.locator("#away")).to_be_hidden()
    expect(page.locator(".said .foot", has_text="kept")).to_have_count(0)
    expect(page.locator(".said", has_text="are you there?")).to_have_count(1)
