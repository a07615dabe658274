"""What a presence card says of the work of its agent, whoever wrote it."""

from __future__ import annotations

import json

from shared.bus.activity import Activity, act, doing
from shared.redaction import hide


def test_a_call_of_a_tool_is_told_by_the_argument_that_says_most() -> None:
    call = {"tool": "bash", "arguments": {"timeout": 5, "command": "python -m\n unittest"}}
    assert act("tool_call", call) == "bash: python -m unittest"
    assert act("tool_call", {"tool": "view", "arguments": {"range": "1-2", "path": "a.py"}}) == "view: a.py"
    assert act("tool_call", {"tool": "list_tasks", "arguments": {}}) == "list_tasks"
    assert act("chunk", {"content": "secret words"}) == "writes"
    assert act("checks", {"commands": ["make lint", "make test"]}) == "checks: make lint; make test"
    assert act("done", {}) == ""


def test_the_last_act_is_that_of_the_newest_event_that_tells_something() -> None:
    made = Activity("t", 1)
    made.take("thinking", {"content": "hm"})
    made.take("tool_call", {"tool": "bash", "arguments": {"command": "ls"}})
    made.take("tool_result", {"tool": "bash", "content": {}})
    assert made.act == "bash: ls"


def test_who_waits_for_the_models_provider_says_why_and_since_when_until_it_goes_on() -> None:
    made = Activity("t", 1000)
    made.take("waiting", {"content": "it is overloaded; trying again in 1 s"})
    since = made.waits_since
    made.take("waiting", {"content": "it is overloaded for 9 s now"})
    (read,) = doing({"doing": [made.card()]})
    assert (read.waits, read.waits_since) == ("it is overloaded for 9 s now", since) and since >= 1000
    assert read.act == "waits for the model's provider: it is overloaded for 9 s now"
    made.take("tool_result", {"tool": "bash", "content": {}})
    assert made.waits
    made.take("chunk", {"content": "Now"})
    assert "waits" not in made.card() and "waits_since" not in made.card()


def test_an_activity_is_read_as_it_was_published_and_says_what_it_is() -> None:
    made = Activity("t", 5, kind="task", task="calm-otter", title="Dig", session="user:ada", user="ada")
    (read,) = doing({"agent": "backend", "doing": json.loads(json.dumps([made.card()]))})
    assert (read.task, read.since, read.session) == ("calm-otter", 5, "user:ada")
    assert read.about == "calm-otter Dig"
    assert Activity("t", 5, kind="message", user="ada").about == "a message of ada"


def test_no_secret_is_in_a_card_and_no_text_is_long() -> None:
    hide("hunter2hunter2")
    made = Activity("t", 1, title="x" * 900, act="bash: login hunter2hunter2")
    assert "hunter2" not in json.dumps(made.card())
    assert len(made.card()["title"]) == 200


def test_what_a_program_of_somebody_else_says_of_its_work_is_taken_as_far_as_it_can_be() -> None:
    strange = {
        "doing": [1, None, {"turn": 5}, {"turn": "t", "since": "now", "title": 7, "act": "digs", "more": 1}]
    }
    (read,) = doing(strange)
    assert (read.turn, read.title, read.act) == ("t", "", "digs")
    assert doing({"doing": "digs"}) == []
    assert [one.turn for one in doing({"current": "a.1, b.2"})] == ["a.1", "b.2"]  # of the release before
    assert doing({"current": None}) == []
