"""Whether what lies in a person's folder counts: asked once, in one question, where somebody can answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shared import folders
from shared.client.local.typed import runnable

if TYPE_CHECKING:
    from shared.settings import Settings


def ask(always: bool = False) -> None:
    """Ask about the folders that would decide something; where nobody can answer, say that they do not count.

    Once for each folder and what it brings, unless `always`: then also where it was asked before.
    """
    found = folders.untrusted()
    if not found:
        return
    brings = "; ".join(f"{folder}: {what}" for folder, what in found.items())
    if not folders.is_news(f"trust {folders.here()}", brings) and not always:
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Trust this folder? It brings settings: {brings} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().casefold() in ("y", "yes"):
            try:
                for folder in found:
                    folders.trust(folder)
                return
            except OSError as error:
                print(f"promptdock: not trusted: {error.strerror or error}", file=sys.stderr)
    named = " ".join(map(str, found))
    told = runnable(f"promptdock trust {named}")
    print(f"promptdock: not trusted, so it does not count: {brings}. To trust it: {told}", file=sys.stderr)


def trust(folder: Path) -> Path:
    """Trust a folder; its real path."""
    real = folder.expanduser().resolve(strict=True)
    folders.trust(real)
    return real


def told(settings: Settings, always: bool = False) -> list[str]:
    """What stands in a `.env` and does not count; unless `always`, only what was not told before."""
    found = folders.ignored(settings.home)
    news = found and folders.is_news(f"ignored {settings.home} {folders.here()}", "\n".join(found))
    return found if news or always else []


def own_file(settings: Settings) -> Path:
    """The data folder's own `.env`."""
    return folders.files(settings.home)[0]
