"""Run the cluster: `python -m agents` starts the five agents, `--name X` one that is data alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from shared.errors import ConfigurationError
from shared.profiles.profile import find, load
from shared.settings import Settings
from shared.worker.main import run_safely, serve
from shared.worker.supervisor import Supervisor, plans


def _work(settings: Settings, given: argparse.Namespace) -> Coroutine[Any, Any, None]:
    if given.name is not None:
        return serve(settings, load(_folder(settings, given.name)))
    plan = plans.kept(settings.home).changed(given.added, given.without, plans.counts(given.scale))
    return Supervisor(settings, plan=plan.checked(settings.home)).run()


def _folder(settings: Settings, name: str) -> Path:
    if found := find(settings.home, name):
        return found
    raise ConfigurationError(
        f"there is no agent called {name!r}",
        f"neither {settings.home / 'agents' / name} nor the shipped ones have it",
        "make a profile.toml and a prompt.md there",
    )


def main() -> None:
    """The command line of `python -m agents`."""
    parser = argparse.ArgumentParser("python -m agents", description="Run the agents of PromptDock.")
    parser.add_argument("--name", help="run one agent, defined by the folder <home>/agents/NAME")
    many: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--without", metavar="AGENT", help="leave this agent out", **many)
    parser.add_argument("--with", dest="added", metavar="AGENT", help="start this agent too", **many)
    parser.add_argument("--scale", metavar="AGENT=NUMBER", help="run so many replicas of it", **many)
    given = parser.parse_args()
    sys.exit(run_safely(lambda settings: _work(settings, given)))


if __name__ == "__main__":
    main()
