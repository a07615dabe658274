"""Run the cluster: `python -m agents` starts the five agents, `--name X` one that is data alone, `bridge` a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from typing import Any

from shared.profiles.profile import find, load
from shared.settings import Settings
from shared.worker.main import run_safely, serve
from shared.worker.supervisor import Supervisor, plans


def _work(settings: Settings, given: argparse.Namespace) -> Coroutine[Any, Any, None]:
    if given.what == "bridge":
        from shared.profiles.bridged import Bridged
        from shared.worker.bridge.serve import serve as answer

        return answer(settings, Bridged(given.called, given.command, given.timeout, given.about))
    if given.name is not None:
        from shared.worker import host

        folder = find(settings.home, given.name)
        return serve(settings, load(folder)) if folder else host.serve_one(settings, given.name)
    plan = plans.kept(settings.home).changed(given.added, given.without, plans.counts(given.scale))
    return Supervisor(settings, plan=plan.checked(settings.home)).run()


def _add_bridge(parser: argparse.ArgumentParser) -> None:
    bridge = parser.add_subparsers(dest="what").add_parser(
        "bridge", help="run a command line as an agent: stdin is a request, stdout the answer"
    )
    bridge.add_argument("--name", dest="called", required=True, help="what the agent is called")
    bridge.add_argument("--exec", dest="command", required=True, help="a command for a shell")
    bridge.add_argument("--timeout", type=float, default=600.0, help="seconds that one request may take")
    bridge.add_argument("--about", default="", help="what the others are told about it")


def main() -> None:
    """The command line of `python -m agents`."""
    parser = argparse.ArgumentParser("python -m agents", description="Run the agents of PromptDock.")
    parser.add_argument("--name", help="run one agent, a folder <home>/agents/NAME or a row")
    many: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--without", metavar="AGENT", help="leave this agent out", **many)
    parser.add_argument("--with", dest="added", metavar="AGENT", help="start this agent too", **many)
    parser.add_argument("--scale", metavar="AGENT=NUMBER", help="run so many replicas of it", **many)
    _add_bridge(parser)
    given = parser.parse_args()
    sys.exit(run_safely(lambda settings: _work(settings, given)))


if __name__ == "__main__":
    main()
