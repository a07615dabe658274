"""Which repository a task is meant for, where nobody names one."""

from __future__ import annotations

import pytest

from shared.store.records import Repo, RepoKind, project_key
from shared.tasks.defaults import KINDS, SCRATCH_ID, best_for, for_all

SCRATCH: tuple[str, RepoKind] = ("the demo's", "both")


@pytest.mark.parametrize(
    ("there", "fitting"),
    [
        ([], []),
        ([SCRATCH], ["the demo's"]),
        ([SCRATCH, ("shop", "backend")], ["shop"]),
        ([SCRATCH, ("scratch", "both")], ["scratch"]),
        ([SCRATCH, ("shop", "both")], ["shop"]),
        ([SCRATCH, ("pages", "frontend")], ["the demo's"]),
        ([("all", "both"), ("shop", "backend")], ["shop"]),
        ([("pages", "frontend")], []),
        ([SCRATCH, ("bank", "backend"), ("shop", "backend"), ("all", "both")], ["bank", "shop"]),
    ],
)
def test_the_exact_kind_is_meant_before_both_and_the_demos_own_repository_last(
    there: list[tuple[str, RepoKind]], fitting: list[str]
) -> None:
    repos = [Repo(project_id=project_key("default"), name=name, kind=kind) for name, kind in there]
    repos = [repo.model_copy(update={"id": SCRATCH_ID} if repo.name == SCRATCH[0] else {}) for repo in repos]
    assert [repo.name for repo in best_for(repos, frozenset({"backend", "both"}))] == fitting


def test_who_works_in_all_repositories_prefers_none_of_them() -> None:
    repos = [
        Repo(project_id=project_key("default"), name=kind, kind=kind)
        for kind in ("frontend", "backend", "both")
    ]
    assert best_for(repos, KINDS) == repos
    assert for_all(repos, [KINDS, frozenset({"frontend", "both"})]) == [repos[0], repos[2]]
