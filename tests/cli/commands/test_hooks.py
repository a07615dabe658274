"""Hooks from the command line."""

from __future__ import annotations

import json
import time

from tests.cli.person import PATIENCE, Person

HOOK = {
    "project_id": "default",
    "name": "Red tests",
    "trigger": {"type": "event", "event_type": "task_failed"},
    "prompt_template": "Which tests are red? {{step_0}}",
    "context_steps": [{"type": "db_query", "query": "failed_tasks"}],
    "cooldown_seconds": 5400,
}


def test_a_hook_is_shown_switched_tried_run_and_deleted(cluster: Person) -> None:
    cluster.does("tools", "call", "create_hook", json.dumps(HOOK))
    told = cluster.does("hooks", "show", "red")
    assert told.startswith("red-tests  Red tests  on  of project default\n")
    assert "launched on the event task_failed; rests 90 min after it" in told
    assert "step db_query  failed_tasks" in told and told.endswith("Which tests are red? {{step_0}}\n")
    assert "hooks run red-tests" in cluster.types("hooks", "runs", "red").stderr

    assert cluster.does("hooks", "off", "red") == "red-tests is off\n"
    assert cluster.reads("hooks", "show", "red-tests")["enabled"] is False
    assert cluster.does("hooks", "on", "red") == "red-tests is on\n"
    assert [one["enabled"] for one in cluster.reads("hooks", "--project", "default")["hooks"]] == [True]

    tried = cluster.does("hooks", "run", "red", "--dry")
    assert tried.startswith("step db_query  ") and "\nit would ask:\n" in tried
    assert cluster.reads("hooks", "runs", "red")["runs"] == []
    ran = cluster.types("hooks", "run", "red")
    assert ran.stdout == "red-tests is running\n" and "hooks runs red-tests" in ran.stderr
    ends = time.monotonic() + PATIENCE
    while (run := cluster.reads("hooks", "runs", "red")["runs"][0])["state"] == "running":
        assert time.monotonic() < ends, run
        time.sleep(0.2)
    assert (run["state"], run["trigger"]) == ("completed", "manual"), run
    assert "completed  manual" in cluster.does("hooks", "runs", "red", "-n", "1")

    assert "hooks delete red-tests --yes" in cluster.is_refused(2, "hooks", "delete", "red")
    assert cluster.does("hooks", "delete", "red", "--yes") == "red-tests is deleted\n"
    assert "hooks list shows them" in cluster.is_refused(2, "hooks", "show", "red")
