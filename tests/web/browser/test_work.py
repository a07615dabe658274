"""From a sentence to a merged change in the browser: by mouse, by keyboard alone, on a phone, without script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands.test_chat import Terminal
from tests.cli.person import Person
from tests.support.processes import Site, site
from tests.support.valkey import valkey
from tests.web.browser.axe import source, violations
from tests.web.browser.conftest import Opens
from tests.web.browser.looking import Watched
from tests.web.support import serve

__all__ = ["valkey"]

pytestmark = pytest.mark.timeout(180)
TEAM = ("chatter", "planner", "researcher", "frontend", "backend")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, valkey: str) -> Iterator[Site]:
    """A cluster without a key: the demo model answers."""
    with site(tmp_path_factory.mktemp("site"), valkey) as made:
        made.up(*TEAM)
        yield made


@pytest.fixture(scope="module")
def url(place: Site) -> str:
    return serve(place)[1]


def built(here: Watched, thing: str) -> None:
    """Three tasks of a thing are done, and the conversation says so."""
    here.hears("The Planner has written the tasks")
    expect(here.page.locator("#entries .update", has_text="verified")).to_have_count(3, timeout=60_000)


@contextmanager
def beside(place: Site, session: str) -> Iterator[Terminal]:
    """The same person's chat in a terminal."""
    person = SimpleNamespace(folder=place.folder, environment=lambda **more: {**place.environment, **more})
    terminal = Terminal(cast(Person, person), "chat", "--session", session)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def worked(opens: Opens, place: Site) -> None:
    """There is a conversation `keys` with tasks that are done, whichever tests ran before."""
    if place.query("select 1 from sessions where key = 'keys'"):
        return
    here = opens("/chat/keys")
    here.says("Build a reading list")
    built(here, "reading list")


def last_task(page: Page) -> str:
    """The task that brings the others with it: the last one of the plan, whichever is told of last."""
    return str(page.locator("#entries ol li").last.inner_text()).partition(":")[0]


def test_by_mouse_a_sentence_becomes_a_merged_change(opens: Opens) -> None:
    here = opens()
    page = here.page
    expect(page.locator(".demo")).to_contain_text("Demo model")
    page.click("text=Build a guest book")
    built(here, "guest book")
    task = last_task(page)
    page.click(".tabs a[data-tab=inbox]")
    page.click(f".item a:has-text('{task}')")
    expect(page).to_have_url(re.compile(f"/tasks/{task}/diff"))
    expect(page.locator(".diff tr.new").first).to_be_visible()
    page.click(".acts button:has-text('Merge')")
    expect(page.locator(".told")).to_contain_text("Merged")
    expect(page.locator(".facts-line")).to_contain_text("merged")
    page.click(".subtabs >> text=Checks")
    expect(page.locator(".receipt")).to_contain_text("the harness")
    page.go_back()
    expect(page).to_have_url(re.compile(f"/tasks/{task}$"))
    expect(page.locator(".subtabs [aria-current]")).to_have_text("Brief")
    here.is_sound()


def test_by_keyboard_alone_a_request_is_allowed_and_the_change_is_merged(opens: Opens, place: Site) -> None:
    here = opens("/chat/keys")
    page = here.page
    page.keyboard.press("/")
    page.keyboard.type("Build a reading list")
    page.keyboard.press("Enter")
    built(here, "reading list")
    page.keyboard.type("merge it")
    page.keyboard.press("Enter")
    card = page.locator(".permission.open")
    expect(card).to_contain_text("merge")
    with beside(place, "keys") as terminal:
        terminal.shows("allow once")
        page.keyboard.press("Escape")  # out of the field, where numbers are words
        page.keyboard.press("1")
        expect(page.locator(".decided")).to_contain_text("allowed once")
        terminal.shows("allowed once")
    here.hears("is merged into main")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile(r"/tasks\?"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/tasks/[a-z]+-[a-z]+"))
    page.keyboard.press("Control+k")
    page.keyboard.type("budgets")
    page.keyboard.press("Enter")
    expect(page.locator("#view h1")).to_have_text("Budgets")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_contain_text("Keys")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    here.is_sound()


def test_a_phone_opens_with_the_conversation(opens: Opens) -> None:
    here = opens("/", width=390, height=844, has_touch=True, is_mobile=True)
    expect(here.page.locator("#say")).to_be_visible()
    expect(here.page.locator("#work")).to_be_hidden()
    expect(here.page.locator(".bottom a[aria-current]")).to_have_text("✎Chat")


def test_on_a_phone_one_zone_is_shown_at_a_time_and_comments_on_lines_go_to_the_agent(opens: Opens) -> None:
    here = opens("/chat/phone", width=390, height=844, has_touch=True, is_mobile=True)
    page = here.page
    expect(page.locator("#work")).to_be_hidden()
    page.fill("#say", "Build a contact page")
    page.tap("#send")
    built(here, "contact page")
    task = last_task(page)
    page.tap(".bottom a[data-tab=tasks]")
    expect(page.locator("#talk")).to_be_hidden()
    page.tap(f".task a:has-text('{task}')")
    page.tap(".subtabs >> text=Diff")
    page.locator(".on-line").first.tap()
    page.fill(".line-note textarea", "Say more here")
    page.tap("text=Add comment")
    expect(page.locator("#comments li")).to_contain_text("Say more here")
    page.tap("#changes-form button.primary")
    expect(page.locator(".told")).to_contain_text("It goes back")
    page.tap(".subtabs >> text=Brief")
    expect(page.locator(".task-part")).to_contain_text("Say more here")
    small = page.evaluate(
        "[...document.querySelectorAll('.bottom a, .acts button, .acts .button')].filter(e => e.offsetParent && "
        "e.getBoundingClientRect().height < 44).map(e => e.textContent)"
    )
    assert small == []
    here.is_sound()


def test_without_script_one_can_read_say_and_decide(opens: Opens) -> None:
    here = opens("/chat/plain", java_script_enabled=False)
    page = here.page
    page.fill("#say", "Help me decide between tea and coffee")
    page.click("#send")
    for _ in range(50):  # nothing comes by itself here
        page.goto("/chat/plain")
        if page.locator(".ask button").count():
            break
    page.click(".ask button:has-text('coffee')")
    for _ in range(50):
        page.goto("/chat/plain")
        if page.locator(".answer", has_text="Noted").count():
            break
    expect(page.locator(".answer").last).to_contain_text("coffee")
    page.click(".tabs a[data-tab=sessions]")
    expect(page.locator("#view h1")).to_have_text("Sessions")
    page.fill("input[name=q]", "coffee")
    page.click("button:has-text('Search')")
    expect(page.locator(".rows li")).to_have_count(1)


VIEWS = (
    *(
        "/chat/keys",
        "/",
        "/inbox",
        "/notifications",
        "/trace",
        "/sessions",
        "/sessions/of/keys",
        "/notes",
        "/notes/default/new",
        "/hooks",
        "/agents",
        "/agents/chatter",
        "/memory",
        "/profiles/new",
    ),
    *(
        "/models",
        "/budgets",
        "/health",
        "/more",
        "/tasks/TASK",
        "/tasks/TASK/diff",
        "/tasks/TASK/log",
    ),
    *("/tasks/TASK/checks", "/trace/TASK"),
)


@pytest.mark.usefixtures("worked")
def test_no_view_has_a_serious_fault_in_either_theme_or_stands_over_the_edge_at_any_width(
    opens: Opens,
) -> None:
    axe = source()
    here = opens(reduced_motion="reduce")
    page = here.page
    task = str(page.locator(".task a").first.get_attribute("href")).split("/")[-1]
    found = {}
    for place, view in enumerate(VIEWS):
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(view.replace("TASK", task), wait_until="domcontentloaded")
        within = "html" if place == 0 else "#view"  # what stands around all views is looked at once
        page.evaluate(axe)
        faults = violations(page, within)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        faults += violations(page, within, contrast_only=True)
        if faults:
            found[view] = faults
        for width in (900, 390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            here.is_sound()
    assert found == {}


@pytest.mark.usefixtures("worked")
def test_the_pictures_of_the_guide_are_made(opens: Opens, request: pytest.FixtureRequest) -> None:
    if not (given := request.config.getoption("--pictures")):
        pytest.skip("make pictures makes them")
    into = Path(given)
    pictures = {
        "tasks": ("/chat/keys", 1280, "light"),
        "diff": ("/tasks/TASK/diff?s=keys", 1280, "dark"),
        "trace": ("/TURN?s=keys", 1280, "light"),
        "phone": ("/chat/keys", 390, "light"),
    }
    for name, (view, width, theme) in pictures.items():
        here = opens(width=width, height=800, color_scheme=theme)
        task = str(here.page.locator(".task a").first.get_attribute("href")).split("/")[-1]
        here.page.goto("/chat/keys")
        turn = str(here.page.locator(".answer .foot a").first.get_attribute("href")).partition("?")[0]
        here.page.goto(view.replace("TASK", task).replace("/TURN", turn))
        here.page.locator("#entries .entry").last.wait_for()
        here.page.screenshot(path=into / f"{name}.png")
        assert (into / f"{name}.png").stat().st_size < 300_000
