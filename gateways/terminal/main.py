"""Start the chat: with a live area on a terminal, as plain lines anywhere else."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import shlex
import sys
from pathlib import Path

from gateways.terminal.conversation import Conversation
from gateways.terminal.screen import Plain, Rich, Screen
from shared import log
from shared.client import Client
from shared.client.local.typed import runnable
from shared.client.views import projects
from shared.errors import PromptDockError
from shared.settings import Settings, load


def main() -> None:
    """The command line of `python -m gateways.terminal`; exit codes as in docs/wire.md."""
    parser = argparse.ArgumentParser(prog="promptdock chat", description="Talk with Chatter.")
    parser.add_argument("--user", default=None, help="who speaks")
    parser.add_argument("--session", default=None, help="the conversation; yours by default")
    parser.add_argument("--folder", default=".", help="where the person stands")
    given = parser.parse_args()
    try:
        settings = load()
        log.setup("error", "console")
        code = asyncio.run(_chat(settings, given.user or getpass.getuser(), given.session, given.folder))
    except PromptDockError as error:
        print(f"promptdock: {error.what}", file=sys.stderr)
        for name, text in (("why:", error.why), ("do: ", runnable(error.fix))):
            if text:
                print(f"  {name} {text}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def live() -> bool:
    """Whether there is a terminal on both sides that may be drawn on."""
    drawn = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return drawn and sys.stdin.isatty() and sys.stdout.isatty()


async def _chat(settings: Settings, user: str, session: str | None, folder: str) -> int:
    screen: Screen = Rich() if live() else Plain()
    async with Client(settings) as client:
        await client.reach()
        if live():
            screen.note(f"You speak with Chatter as {user}. /help shows what else there is.")
        async with Conversation(client, screen, user, session) as conversation:
            if unknown := await projects.unregistered(client, Path(folder)):
                told = f"promptdock repo add {shlex.quote(unknown)}"
                screen.note(f"This git repository is not known to the agents: {runnable(told)}")
            if live():
                from gateways.terminal.prompt import converse
            else:
                from gateways.terminal.lines import converse
            return await converse(conversation)
