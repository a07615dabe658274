"""A page that is watched: what it asked for, what it complained of, what it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Error, Page


@dataclass
class Watched:
    """`page` is Playwright's; the rest is what happened there since it was opened."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def opened(cls, page: Page, path: str) -> Watched:
        made = cls(page)
        page.set_default_timeout(30_000)
        page.on("request", lambda request: made.asked.append(request.url))
        page.on("pageerror", made._failed)
        page.on("console", made._said)
        page.on("dialog", made._asked_back)
        page.goto(path)
        return made

    def _failed(self, error: Error) -> None:
        self.complaints.append(f"error: {error}")

    def _said(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.complaints.append(f"console: {said.text}")

    def _asked_back(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    @property
    def context(self) -> BrowserContext:
        return self.page.context

    @property
    def strangers(self) -> list[str]:
        """What was asked of other places than the page's own."""
        own = urlsplit(self.page.url).netloc
        return [one for one in self.asked if urlsplit(one).netloc != own and not one.startswith("data:")]

    def says(self, text: str) -> None:
        """Send words by the composer."""
        self.page.fill("#say", text)
        self.page.press("#say", "Enter")

    def hears(self, text: str) -> None:
        """Wait until something that was said to the person, as the server has rendered it, holds the text."""
        self.page.locator("#entries .entry:not(.said)", has_text=text).last.wait_for()

    def is_sound(self) -> None:
        """Nothing was asked of others, nothing was complained of, nothing stands over the edge."""
        assert self.strangers == []
        assert self.complaints == []
        over = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{self.page.url} is {over} px too wide"
