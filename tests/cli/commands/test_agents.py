"""Agents that are rows, from the command line: made, talked with, looked at, bound to channels, destroyed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.cli.person import Person
from tests.support.processes import until


def states(cluster: Person) -> dict[str, str]:
    return {one["name"]: one["state"] for one in cluster.reads("agents")["agents"]}


def kinds(cluster: Person) -> dict[str, str]:
    return {one["name"]: one["kind"] for one in cluster.reads("agents")["agents"]}


def test_an_agent_is_made_talked_with_looked_at_and_destroyed(cluster: Person) -> None:
    made = cluster.does("agents", "create", "poet", "--prompt", "You are Poet.", "--permissions", "locked")
    assert made.startswith("poet is made, its files in ") and made.endswith("it answers on promptdock:poet\n")
    folder = Path(cluster.reads("agents", "create", "scribe")["workspace"])
    assert "'Bad Name!' is written bad-name" in cluster.types("agents", "create", "Bad Name!").stderr
    cluster.does("agents", "destroy", "bad-name", "--yes", "--delete-files")
    assert (folder / ".git").is_dir()
    said = cluster.reads("ask", "Hello", "--agent", "poet")
    assert (said["agent"], said["session_id"].startswith("on:promptdock:poet:")) == ("poet", True)
    assert "… poet answered" in cluster.types("ask", "Hello", "--agent", "poet").stderr
    until(lambda: kinds(cluster).get("poet") == "row", what="its first heartbeat")
    shown = cluster.does("agents", "prompt", "poet")
    assert "── persona " in shown and "You are Poet." in shown and "permissions  locked" in shown
    changed = cluster.does("agents", "configure", "poet", "--prompt", "You are Bard.", "--budget", "0.5")
    assert changed == "poet has another prompt, budget from its next turn on\n"
    shown = cluster.does("agents", "prompt", "poet")
    assert "You are Bard." in shown and "budget 0.5" in shown
    assert "agents destroy scribe --yes" in cluster.is_refused(2, "agents", "destroy", "scribe")
    assert cluster.does("agents", "destroy", "scribe", "--yes") == (
        f"scribe is destroyed; its files are kept in {folder}\n"
    )
    assert "was destroyed" in cluster.types("ask", "Hello", "--agent", "scribe").stderr
    cluster.does("agents", "destroy", "poet", "--yes", "--delete-files")
    assert not (folder.parents[1] / "poet").exists() and folder.is_dir()


def test_the_host_of_all_that_are_rows_is_started_again_where_it_dies(cluster: Person) -> None:
    def host() -> int:
        noted = json.loads((cluster.home / "cluster.json").read_text())["processes"]
        return next((one["pid"] for one in noted if one["name"] == "host"), 0)

    cluster.does("agents", "create", "phoenix", "--permissions", "locked")
    until(lambda: states(cluster).get("phoenix") == "idle", what="its first heartbeat")
    died = host()
    os.kill(died, signal.SIGKILL)
    until(lambda: host() not in (0, died), what="another host")
    until(lambda: states(cluster).get("phoenix") == "idle", what="its heartbeat")
    cluster.does("agents", "destroy", "phoenix", "--yes")
    until(lambda: "phoenix" not in states(cluster), what="that it leaves the roster")


def test_channels_are_bound_listed_and_given_back(cluster: Person) -> None:
    assert "say two things" in cluster.is_refused(2, "ask", "x", "--agent", "a", "--channel", "b:c")
    assert "not said what" in cluster.is_refused(2, "agents", "bind", "test:1")
    assert cluster.does("agents", "bind", "test:1", "--project", "default", "--note", "Ideas") == (
        "test:1 is bound to note Ideas of project default\n"
    )
    assert "test:1" in cluster.does("agents", "channels")
    assert "no agent 'nobody'" in cluster.is_refused(1, "agents", "bind", "test:2", "--agent", "nobody")
    assert "is no channel" in cluster.is_refused(1, "agents", "bind", "test", "--agent", "planner")
    assert (
        cluster.does("agents", "bind", "test:2", "--agent", "planner") == "test:2 is bound to agent planner\n"
    )
    assert cluster.does("agents", "unbind", "test:1") == "test:1 is Chatter's again\n"
    assert [one["channel"] for one in cluster.reads("agents", "channels")["channels"]] == ["test:2"]


def test_the_words_before_all_prompts_are_shown_and_set(cluster: Person) -> None:
    shipped = cluster.does("agents", "global")
    assert shipped.startswith("You are one of the agents of PromptDock")
    cluster.does("agents", "global", "Be brief.")
    assert "Be brief." in cluster.does("agents", "prompt", "researcher")
    cluster.does("agents", "global", "")
    assert cluster.does("agents", "global") == shipped
