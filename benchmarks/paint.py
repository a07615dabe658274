"""The page in a real browser, in a conversation of 10,000 messages: how soon it is seen, how late a token is.

Beside it a page of a few lines on a bare FastAPI application, which puts the same tokens into one element.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis.asyncio as redis

from shared.bus.keys import Names
from shared.store.records import Message, Session
from shared.store.sqlite import SqliteStore

MESSAGES, OPENED, TOKENS, PAUSE = 10_000, 10, 300, 0.03
SESSION, NAMESPACE = "long", "bench"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# When a token that holds its moment is in the document, after the next picture is drawn.
_WATCH = """() => {
  window.late = [];
  const seen = new Set();
  new MutationObserver(() => {
    for (const [at] of document.body.textContent.slice(-4000).matchAll(/\\d{13}(?=;)/g))
      if (!seen.has(at)) { seen.add(at); requestAnimationFrame(() => window.late.push(Date.now() - Number(at))); }
  }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
_PAINT = """() => {
  const [page] = performance.getEntriesByType('navigation');
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return [page.responseStart - page.requestStart, paint ? paint.startTime : NaN];
}"""


def program() -> str | None:
    """The browser of this machine."""
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


async def fill(home: Path) -> None:
    """The conversation, as the Store has it."""
    store = SqliteStore(home / "promptdock.db")
    await store.open()
    begun = datetime.now(UTC) - timedelta(days=2)
    rows = [_message(number, begun + timedelta(seconds=number)) for number in range(MESSAGES)]
    for at in range(0, MESSAGES, 1000):
        await store.upsert(rows[at : at + 1000])
    await store.upsert([Session(key=SESSION, title="long", last_active_at=rows[-1].created_at)])
    await store.close()


def _message(number: int, at: datetime) -> Message:
    said = number % 2 == 0
    words = f"Message {number}, with **some** `words` in it. " * 3
    return Message(
        message_id=f"m{number}" if said else f"m{number - 1}.end",
        session_id=SESSION,
        from_agent="user" if said else "chatter",
        to_agent="chatter" if said else "user",
        type="message" if said else "complete",
        payload={"content": words},
        created_at=at,
    )


async def look(
    address: str, browser: Any, telling: Any = None
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds: until the server's first byte, until the first paint, and of tokens until they are drawn."""
    first, painted = [], []
    for number in range(OPENED):
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        page = await context.new_page()
        await page.goto(address, wait_until="load")
        await page.wait_for_timeout(300)
        took = await page.evaluate(_PAINT)
        if number:  # the first one warms caches of the server
            first.append(took[0])
            painted.append(took[1])
        if number == OPENED - 1:
            await page.evaluate(_WATCH)
            if telling:
                await telling()
            else:
                await page.wait_for_timeout(TOKENS * PAUSE * 1000)
            await page.wait_for_timeout(500)
            late = [float(one) for one in await page.evaluate("window.late")]
        await context.close()
    return first, painted, late


async def tell(url: str) -> None:
    """One turn's tokens, as a worker publishes them: each holds its moment."""
    names, server = Names(NAMESPACE), redis.Redis.from_url(url)

    async def say(event: dict[str, Any]) -> None:
        data = json.dumps(event)
        await server.xadd(names.stream(SESSION), {"data": data}, maxlen=2000)
        await server.publish(names.events(SESSION), data)

    await say({"event": "start", "turn_id": "t1", "task_id": "t1", "model": "bench"})
    for _ in range(TOKENS):
        await say({"event": "chunk", "content": f"{time.time() * 1000:.0f}; "})
        await asyncio.sleep(PAUSE)
    await server.aclose()


def told(name: str, found: tuple[Sequence[float], Sequence[float], Sequence[float]]) -> str:
    """One side in a line."""
    first, painted, late = (sorted(part) for part in found)
    p50, p99 = late[len(late) // 2], late[int(0.99 * (len(late) - 1))]
    return (
        f"  {name:5} first byte {first[len(first) // 2]:6.0f} ms, first paint {painted[len(painted) // 2]:6.0f} ms, "
        f"a token drawn p50 {p50:.0f} ms, p99 {p99:.0f} ms ({len(late)} of {TOKENS})"
    )


async def measure(port: int, url: str, bare: int) -> None:
    """Print both sides; where no browser is here, that."""
    from playwright.async_api import async_playwright

    found = program()
    if found is None:
        print("\nno Chromium is here: first paint and tokens were not measured")
        return
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        ours = await look(f"http://127.0.0.1:{port}/chat/{SESSION}", browser, lambda: tell(url))
        theirs = await look(f"http://127.0.0.1:{bare}/page", browser)
        await browser.close()
    print(
        f"\nthe page in Chromium, in a conversation of {MESSAGES:,} messages; a token each {PAUSE * 1000:.0f} ms:"
    )
    print(told("ours", ours))
    print(told("bare", theirs))
