"""Speak MCP over stdin and stdout until the other side closes them; all talk of ours goes to stderr."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys

from shared import log
from shared.client import Client
from shared.client.local.typed import runnable
from shared.client.mcp import callers
from shared.errors import PromptDockError
from shared.settings import Settings, load


def main() -> None:
    """The command line of `python -m gateways.mcp`; exit codes as in docs/wire.md."""
    parser = argparse.ArgumentParser(prog="promptdock mcp serve", description="The cluster as an MCP server.")
    parser.add_argument("--user", default=None, help="for whom it speaks")
    given = parser.parse_args()
    try:
        settings = load()
        log.setup("error", "console")
        asyncio.run(serve(settings, given.user or getpass.getuser()))
        code = 0
    except PromptDockError as error:
        print(f"promptdock: {error.what}", file=sys.stderr)
        for name, text in (("why:", error.why), ("do: ", runnable(error.fix))):
            if text:
                print(f"  {name} {text}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


async def serve(settings: Settings, user: str) -> None:
    """One program's server. The cluster need not run yet: a call says so."""
    from shared.client.fanout import Fanout
    from shared.client.mcp.jobs import Jobs
    from shared.client.mcp.server import make

    caller = callers.owner(user)
    async with Client(settings) as client, Fanout(client) as hub, Jobs(client, hub) as jobs:
        await make(client, jobs, lambda _ctx: caller).run_stdio_async()
