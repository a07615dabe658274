"""Which repository is meant: by whatever somebody calls it, or for a task where nobody names one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from uuid import UUID

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


def for_all(repos: Iterable[Repo], agents: Iterable[str]) -> list[Repo]:
    """Those in which each of these agents may work; not the demo's own."""
    wanted = set(agents)
    return [
        repo for repo in repos if repo.id != SCRATCH_ID and (repo.kind == "both" or wanted == {repo.kind})
    ]


def named(repos: Iterable[Repo], given: str) -> list[Repo]:
    """Those that are called so: by name, else by key, path or url, else by name in other letters."""
    known = list(repos)
    if found := [repo for repo in known if repo.name == given]:
        return found
    if key := _key(given):
        return [repo for repo in known if repo.id == key]
    if "/" in given or given.startswith(("~", ".")):
        return lying(known, given)
    return [repo for repo in known if repo.name.casefold() == given.strip().casefold()]


def lying(repos: Iterable[Repo], place: str) -> list[Repo]:
    """Those that lie in this folder, or come from this url."""
    path, url = real(place), same_url(place)
    return [repo for repo in repos if path == repo.path or (repo.url and same_url(repo.url) == url)]


def real(path: str) -> str:
    """A path as it really lies."""
    return os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - it stays text


def same_url(url: str) -> str:
    """A url without what makes no difference."""
    return url.strip().rstrip("/").removesuffix(".git")


def _key(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
