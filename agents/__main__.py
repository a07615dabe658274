"""Run the cluster: `python -m agents` starts the five agents, `--name X` one that is data alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from shared.errors import ConfigurationError, UsageError
from shared.settings import Settings
from shared.worker.main import run_safely, serve
from shared.worker.profile import load
from shared.worker.supervise import AGENTS, Supervisor


def _work(settings: Settings, name: str | None, without: list[str]) -> Coroutine[Any, Any, None]:
    if name is not None:
        return serve(settings, load(_folder(settings, name)))
    unknown = set(without) - set(AGENTS)
    if unknown:
        raise UsageError(
            f"there is no agent called {', '.join(sorted(unknown))}", f"there are: {', '.join(AGENTS)}"
        )
    return Supervisor(settings, [agent for agent in AGENTS if agent not in without]).run()


def _folder(settings: Settings, name: str) -> Path:
    own = settings.home / "agents" / name
    shipped = Path(__file__).parent / name
    for folder in (own, shipped):
        if (folder / "profile.toml").is_file():
            return folder
    raise ConfigurationError(
        f"there is no agent called {name!r}",
        f"neither {own} nor the shipped ones have it",
        "make a profile.toml and a prompt.md there",
    )


def main() -> None:
    """The command line of `python -m agents`."""
    parser = argparse.ArgumentParser("python -m agents", description="Run the agents of PromptDock.")
    parser.add_argument("--name", help="run one agent, defined by the folder <home>/agents/NAME")
    parser.add_argument(
        "--without", action="append", default=[], metavar="AGENT", help="leave this agent out"
    )
    given = parser.parse_args()
    sys.exit(run_safely(lambda settings: _work(settings, given.name, given.without)))


if __name__ == "__main__":
    main()
