"""Which repository is meant: by whatever somebody calls it, or for a task where nobody names one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import get_args
from uuid import UUID

from shared.store.records import Repo, RepoKind
from shared.store.row import derived

# The demo's own repository, for where no other fits, is known by its id: a person's own may have its name.
SCRATCH = "scratch"
SCRATCH_ID = derived("scratch", "demo")


Kinds = frozenset[str]  # of repositories
KINDS: Kinds = frozenset(get_args(RepoKind))


def best_for(repos: Iterable[Repo], kinds: Kinds) -> list[Repo]:
    """Those that fit an agent of these kinds best: its own one before `both`, the demo's own repository last.

    It is clear which one is meant where this is one.
    """
    fitting = [repo for repo in repos if repo.kind in kinds]
    real = [repo for repo in fitting if repo.id != SCRATCH_ID] or fitting
    special = frozenset[str]() if kinds == KINDS else kinds - {"both"}
    return [repo for repo in real if repo.kind in special] or real


def for_all(repos: Iterable[Repo], agents: Iterable[Kinds]) -> list[Repo]:
    """Those in which agents of each of these kinds may work; not the demo's own."""
    wanted = list(agents)
    return [repo for repo in repos if repo.id != SCRATCH_ID and all(repo.kind in kinds for kinds in wanted)]


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
