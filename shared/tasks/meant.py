"""Which repository a task is meant for, where nobody names one."""

from __future__ import annotations

from collections.abc import Iterable

from shared.store.records import Repo
from shared.store.row import derived

# The demo's own repository, for where no other fits, is known by its id: a person's own may have its name.
SCRATCH = "scratch"
SCRATCH_ID = derived("scratch", "demo")


def meant(repos: Iterable[Repo], agent: str) -> list[Repo]:
    """Those that fit the agent best: its own kind before `both`, anything before the demo's own repository.

    It is clear which one is meant where this is one.
    """
    fitting = [repo for repo in repos if repo.kind in (agent, "both")]
    real = [repo for repo in fitting if repo.id != SCRATCH_ID] or fitting
    return [repo for repo in real if repo.kind == agent] or real
