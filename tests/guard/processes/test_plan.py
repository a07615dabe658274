"""Which agents run in a home: the five, those of one's own, replicas, and what was left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shared.errors import UsageError
from shared.folders import HOME_NAME
from shared.guard.processes import plan as plans
from shared.guard.processes import running
from shared.guard.processes.plan import AGENTS, ClusterPlan


def _own(home: Path, name: str) -> None:
    folder = home / "agents" / name
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text('kind = "consult"\n')


def test_an_agent_of_ones_own_runs_with_the_five(tmp_path: Path) -> None:
    _own(tmp_path, "reviewer")
    (tmp_path / "agents" / "no agent").mkdir()
    (tmp_path / "agents" / "draft").mkdir()
    assert ClusterPlan().names(tmp_path) == [*AGENTS, "reviewer"]
    assert ClusterPlan().changed([], ["reviewer"], {}).names(tmp_path) == [*AGENTS]


def test_a_folder_beside_a_project_starts_no_agent_that_nobody_asked_for(tmp_path: Path) -> None:
    home = tmp_path / HOME_NAME
    _own(home, "reviewer")
    assert ClusterPlan().names(home) == [*AGENTS]
    assert ClusterPlan().changed(["reviewer"], [], {}).names(home) == [*AGENTS, "reviewer"]


def test_replicas_have_names_of_their_own(tmp_path: Path) -> None:
    plan = ClusterPlan(agents=("chatter", "backend")).changed([], [], {"backend": 3})
    assert plan.replicas(tmp_path) == ["chatter", "backend", "backend#2", "backend#3"]
    assert [plans.agent_of(name) for name in plan.replicas(tmp_path)] == ["chatter", *["backend"] * 3]


def test_what_was_left_out_comes_back_when_it_is_asked_for(tmp_path: Path) -> None:
    without = ClusterPlan().changed([], ["planner"], {})
    assert "planner" not in without.names(tmp_path)
    assert "planner" in without.changed(["planner"], [], {}).names(tmp_path)
    assert "planner" in without.changed([], [], {"planner": 1}).names(tmp_path)


def test_an_agent_that_there_is_not_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    _own(tmp_path, "reviewer")
    for changed in (ClusterPlan().changed(["nobody"], [], {}), ClusterPlan().changed([], ["nobody"], {})):
        with pytest.raises(UsageError, match="nobody") as told:
            changed.checked(tmp_path)
        assert told.value.why == f"there are: {', '.join(AGENTS)}, reviewer"
    assert ClusterPlan().changed(["reviewer"], [], {}).checked(tmp_path)


@pytest.mark.parametrize("given", ["backend", "backend=", "=2", "backend=0", "backend=two", "backend=65"])
def test_what_is_no_number_of_replicas_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as told:
        plans.counts([given])
    assert "--scale backend=2" in told.value.fix
    assert plans.counts(["backend=64"]) == {"backend": 64}


def test_a_plan_is_read_as_it_was_written_and_nonsense_is_none(tmp_path: Path) -> None:
    plan = ClusterPlan().changed(["chatter"], ["planner"], {"backend": 2})
    assert plans.read(tmp_path) is None
    plans.write(tmp_path, plan)
    assert plans.read(tmp_path) == plan
    for text in ("", "[]", "{}", '{"agents": 1, "without": [], "scale": {}}', '{"scale": {"a": "b"}}'):
        (tmp_path / "plan.json").write_text(text)
        assert plans.read(tmp_path) is None


def test_what_was_asked_for_holds_until_somebody_ends_the_cluster(tmp_path: Path) -> None:
    _own(tmp_path, "reviewer")
    asked = ClusterPlan().changed(["reviewer"], ["planner"], {"backend": 2})
    plans.write(tmp_path, asked)
    assert plans.kept(tmp_path) == ClusterPlan(), "it was ended"
    (tmp_path / "cluster.json").touch()
    assert plans.kept(tmp_path) == asked
    assert plans.words(asked) == ["--scale backend=2", "--with reviewer", "--without planner"]
    shutil.rmtree(tmp_path / "agents")
    assert plans.kept(tmp_path).checked(tmp_path).names(tmp_path) == [
        name for name in AGENTS if name != "planner"
    ]
    running.end(tmp_path)
    assert plans.kept(tmp_path) == ClusterPlan()


def test_files_that_came_with_a_project_ask_for_none_of_its_agents(tmp_path: Path) -> None:
    home = tmp_path / HOME_NAME
    _own(home, "reviewer")
    plans.write(home, ClusterPlan().changed(["reviewer"], [], {"backend": 2}))
    (home / "cluster.json").touch()
    assert plans.kept(home).names(home) == [*AGENTS]
    assert plans.kept(home).scale == {"backend": 2}
