"""A real Chromium beside a real cluster; without one these tests say so and are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.web.browser.looking import Watched

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
Opens = Callable[..., Watched]


def _program(playwright: Playwright) -> str | None:
    """The browser of the system, else Playwright's own."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Started once for a module: its loop must not be there when tests of others want one of their own."""
    with sync_playwright() as playwright:
        program = _program(playwright)
        if program is None:
            pytest.skip("no Chromium is here: apt-get install chromium, or playwright install chromium")
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opens(browser: Browser, url: str) -> Iterator[Opens]:
    """Open the page; each call is a browser of its own, as long as it is not given the `context` of another."""
    contexts: list[BrowserContext] = []

    def opened(path: str = "/", context: BrowserContext | None = None, **how: Any) -> Watched:
        if context is None:
            context = browser.new_context(
                viewport={"width": how.pop("width", 1440), "height": how.pop("height", 900)},
                base_url=url,
                locale="en-GB",
                timezone_id="Europe/Berlin",
                **how,
            )
            contexts.append(context)
        return Watched.opened(context.new_page(), path)

    yield opened
    for context in contexts:
        context.close()


@contextmanager
def waiting(page: Page, seconds: float) -> Iterator[None]:
    """What is waited for within may take so long."""
    page.set_default_timeout(seconds * 1000)
    yield
    page.set_default_timeout(30_000)
