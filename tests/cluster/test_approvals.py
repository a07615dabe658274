"""Permission for one call: asked of a person, given once, and nothing runs without it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.post import post
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


MAKE = {"tools": [call("create_task", title="Old work")]}
DELETE = {"tools": [call("delete_task", task_id="{{result.created}}")]}
TOLD = {"text": "{{result.deleted}}{{result.error}}: {{result.why}}"}
BOTH = {
    "tools": [
        call("delete_task", task_id="{{result.created}}"),
        call("list_projects"),
    ]
}
SETTINGS = {"APPROVER_ROLES": "lead, boss"}
RULES: list[dict[str, Any]] = [
    {"user": "delete and look", "steps": [MAKE, BOTH, TOLD]},
    {
        "user": "delete another",
        "steps": [{"tools": [call("create_task", title="Another one")]}, DELETE, TOLD],
    },
    {"user": "delete", "steps": [MAKE, DELETE, TOLD]},
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> Worker:
    """Chatter alone, under the permissions that it starts with."""
    return place.up("chatter")[0]


def question(wire: Wire, user: str, start: int = 0) -> Message:
    """What the person is asked."""
    return wire.wait(
        "chatter-output",
        lambda said: said["status"] == "awaiting_approval" and said["user_id"] == user,
        start=start,
    )


def answer(wire: Wire, asked: Message, decision: str, user: str, **more: Any) -> str:
    return wire.send(
        user=user, type="approval", approval_id=asked["approval"]["id"], decision=decision, **more
    )


def tasks(place: Site, title: str = "Old work") -> int:
    return len(place.query("select id from tasks where title = ?", title))


def audit(place: Site, decision: str, person: str) -> list[dict[str, Any]]:
    sql = "select action, decision, person, agent, detail from audit_log where decision = ? and person = ?"
    return until(lambda: place.query(sql, decision, person), what=f"the audit of {decision} by {person}")


def test_a_call_that_needs_leave_waits_for_it_and_runs_once(wire: Wire, place: Site) -> None:
    first = wire.send("delete", user="ada")
    asked = question(wire, "ada")
    assert tasks(place) == 1, "it ran before it had permission"
    card = asked["approval"]
    assert card["tool"] == "delete_task" and card["options"] == ["allow_once", "always", "deny"]
    second = answer(wire, asked, "allow_once", "ada")
    said = wire.closing(second)
    assert said["status"] == "complete" and set(said["answers"]) == {first, second}
    assert tasks(place) == 0
    (row,) = audit(place, "ask_approved", "ada")
    assert (row["action"], row["agent"]) == (card["action"], "chatter")


def test_what_waits_for_a_permission_and_what_waits_behind_it_says_so(wire: Wire, place: Site) -> None:
    first = wire.send("delete", user="ivy")
    asked = question(wire, "ivy")
    wire.send("status", user="ivy")
    found = cli(place, "pending")[1]["pending"]
    rows = {row["content"]: row for row in found if row["session"] == "user:ivy"}
    assert rows["delete"]["waits_for"] == f"permission of ivy: {asked['approval']['about']['does']}"
    assert rows["status"]["waits_for"] == f"message {first}: delete"
    told = cli(place, "ask", "more", "--user", "ivy", "--timeout", "2")[1]["error"]
    assert "waits behind this" in told and asked["approval"]["action"] in told
    assert f"approvals allow {asked['approval']['id'][:8]}" in told, (
        "whoever gives up is told what ends the wait"
    )
    wire.closing(answer(wire, asked, "deny", "ivy"))


def test_other_turns_go_on_while_one_waits(wire: Wire) -> None:
    wire.send("delete", user="slow")
    asked = question(wire, "slow")
    began = time.monotonic()
    assert wire.ask("hello", user="quick")["content"].endswith("hello")
    assert time.monotonic() - began < 20  # the other waits for a person
    wire.closing(answer(wire, asked, "deny", "slow"))


def test_a_denial_is_told_to_the_model_with_its_reason_and_the_other_calls_run(
    wire: Wire, place: Site, api: MessagesApi
) -> None:
    wire.send("delete and look", user="eve")
    asked = question(wire, "eve")
    wire.closing(answer(wire, asked, "deny", "eve", reason="not today"))
    results = [
        block
        for body in api.requests
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    texts = [json.dumps(block["content"]) for block in results]
    assert any("eve denied it: not today" in text for text in texts)
    assert any("projects" in text for text in texts)
    assert len(audit(place, "ask_denied", "eve")) == 1
    assert tasks(place) >= 1


def test_plain_words_answer_the_one_open_question(wire: Wire, place: Site) -> None:
    before = tasks(place)
    first = wire.send("delete", user="bob")
    question(wire, "bob")
    assert wire.closing(wire.send("Yes.", user="bob"))["answers"][0] == first
    assert tasks(place) == before
    assert "You said" in wire.ask("yes", user="bob")["content"], (
        "a yes to nothing is a message like any other"
    )


def test_a_yes_given_before_the_question_allows_nothing(wire: Wire, place: Site) -> None:
    said = wire.ask("yes", user="early")
    assert "You said" in said["content"]
    first = wire.send("delete", user="early")
    asked = question(wire, "early")
    wire.ask("Hello", user="beside")  # a yes that counted would have been taken before this is answered
    assert not [said for said in wire.closings("early") if first in said["answers"]]
    wire.closing(answer(wire, asked, "deny", "early"))


def test_a_second_answer_changes_nothing_and_says_who_decided(wire: Wire, place: Site) -> None:
    wire.send("delete", user="carl")
    asked = question(wire, "carl")
    wire.closing(answer(wire, asked, "deny", "carl", reason="mine"))
    late = wire.closing(answer(wire, asked, "allow_once", "carl"))
    assert "denied by carl (mine)" in late["content"] and late["status"] == "error"
    replayed = wire.closing(answer(wire, asked, "deny", "carl"))
    assert "denied by carl" in replayed["content"]


def test_nobody_else_may_answer(wire: Wire) -> None:
    first = wire.send("delete", user="dora")
    asked = question(wire, "dora")
    refused = wire.closing(answer(wire, asked, "allow_once", "mallory"))
    assert refused["status"] == "error" and "mallory may not answer" in refused["content"]
    other = answer(wire, asked, "allow_once", "dora", arguments_hash="0" * 64)
    assert "other arguments" in wire.closing(other)["content"]
    unmatched = answer(wire, asked, "always", "dora", pattern="tool:git_push:.*")
    assert "does not match" in wire.closing(unmatched)["content"]
    assert not [said for said in wire.closings("dora") if first in said["answers"]]
    wire.closing(answer(wire, asked, "deny", "dora"))


def test_always_holds_for_what_its_pattern_means_and_where(wire: Wire, place: Site) -> None:
    wire.send("delete another", user="frida")
    asked = question(wire, "frida")
    pattern = "tool:delete_task:.*"
    wire.closing(answer(wire, asked, "always", "frida", pattern=pattern, scope="session"))
    assert "denied" not in wire.ask("delete another", user="frida")["content"]
    assert tasks(place, "Another one") == 0
    start = len(wire.heard)
    wire.send("delete another", user="gina")
    wire.closing(answer(wire, question(wire, "gina", start), "deny", "gina"))


def test_always_in_a_project_holds_in_all_conversations_of_its_person_and_in_no_other_project(
    wire: Wire, place: Site
) -> None:
    wire.command("create_project", user="olga", name="Other")
    start = len(wire.heard)
    wire.send("delete another", user="olga", project_id="other")
    asked = question(wire, "olga", start)
    pattern = "tool:delete_task:.*"
    wire.closing(answer(wire, asked, "always", "olga", pattern=pattern, scope="project"))
    said = wire.ask("delete another", user="olga", project_id="other", session_id="olga-2")
    assert "denied" not in said["content"], "another conversation of the project"
    start = len(wire.heard)
    wire.send("delete another", user="pia", project_id="other")
    wire.closing(answer(wire, question(wire, "pia", start), "deny", "pia"))
    start = len(wire.heard)
    wire.send("delete another", user="olga")
    wire.closing(answer(wire, question(wire, "olga", start), "deny", "olga"))


def test_who_has_the_role_answers_for_others_and_who_claims_another_is_refused(
    wire: Wire, place: Site
) -> None:
    start = len(wire.heard)
    first = wire.send("delete", user="quin")
    asked = question(wire, "quin", start)
    for roles in ([], ["guest"], ["Lead"], ["lead, boss"]):
        refused = wire.closing(answer(wire, asked, "allow_once", "mallory", roles=roles))
        assert refused["status"] == "error" and "mallory may not answer" in refused["content"], roles
    said = wire.closing(answer(wire, asked, "allow_once", "lea", roles=["guest", "lead"]))
    assert first in said["answers"] and "denied" not in said["content"]
    assert len(audit(place, "ask_approved", "lea")) == 1


def test_always_by_who_has_the_role_holds_for_the_one_who_asked(wire: Wire, place: Site) -> None:
    start = len(wire.heard)
    wire.send("delete", user="rob")
    asked = question(wire, "rob", start)
    pattern = "tool:delete_task:.*"
    more = {"pattern": pattern, "scope": "everywhere", "roles": ["lead"]}
    wire.closing(answer(wire, asked, "always", "lea", **more))
    assert "denied" not in wire.ask("delete", user="rob")["content"]
    start = len(wire.heard)
    wire.send("delete", user="lea")
    wire.closing(answer(wire, question(wire, "lea", start), "deny", "lea"))
    found = cli(place, "approvals", "list")[1]["standing"]
    (grant,) = [one for one in found if one["by"] == "lea"]
    assert (grant["for"], grant["by"]) == ("rob", "lea")


def test_a_double_click_and_a_replay_run_the_call_once(wire: Wire, place: Site) -> None:
    start = len(wire.heard)
    first = wire.send("delete", user="rosa")
    asked = question(wire, "rosa", start)["approval"]["id"]
    click = {"type": "approval", "user_id": "rosa", "approval_id": asked, "decision": "allow_once"}
    for id in ("click-1", "click-2", "click-1"):
        wire.publish("human-input", click | {"id": id})
    one, other = wire.closing("click-1"), wire.closing("click-2")
    told = sorted((one, other), key=lambda said: first not in said["answers"])
    assert first in told[0]["answers"] and first not in told[1]["answers"]
    assert "allowed once by rosa" in told[1]["content"] and told[1]["status"] == "complete"
    wire.publish("human-input", click | {"id": "click-1"})
    late = wire.closing(wire.send(user="rosa", **{k: v for k, v in click.items() if k != "user_id"}))
    assert "Nothing was changed" in late["content"]
    assert len([said for said in wire.closings("rosa") if first in said["answers"]]) == 1
    assert len(audit(place, "ask_approved", "rosa")) == 1


def test_a_stopped_turn_withdraws_its_question(wire: Wire) -> None:
    wire.send("delete", user="hugo")
    asked = question(wire, "hugo")
    wire.closing(wire.send(user="hugo", type="stop"))
    late = wire.closing(answer(wire, asked, "allow_once", "hugo"))
    assert late["status"] == "error" and "withdrawn" in late["content"]


def test_a_person_s_own_command_is_their_leave_and_is_noted(wire: Wire, place: Site) -> None:
    made = wire.command("create_task", user="ivy", title="By hand")
    done = wire.command("delete_task", user="ivy", task_id=made["result"]["created"])
    assert done["status"] == "complete"
    assert [row["action"] for row in audit(place, "ask_approved", "ivy")]
    refused = wire.closing(
        wire.send(user="ivy", type="command", tool="create_task", arguments={"title": "x"}, profile="locked")
    )
    assert refused["status"] == "error" and refused["result"]["error"] == "not allowed"


def test_a_question_outlives_the_worker_that_asked(wire: Wire, place: Site, chatter: Worker) -> None:
    before = tasks(place)
    first = wire.send("delete", user="jack")
    asked = question(wire, "jack")
    chatter.kill()
    later = {"type": "approval", "id": "jack-2", "user_id": "jack", "decision": "allow_once"}
    post(place.url, place.names, [later | {"approval_id": asked["approval"]["id"]}])
    place.up("chatter")
    said = wire.closing("jack-2")
    assert set(said["answers"]) == {first, "jack-2"}
    assert tasks(place) == before
    shown = [out for out in wire.outputs("jack") if out["status"] == "awaiting_approval"]
    assert len({out["id"] for out in shown}) == 1


def cli(place: Site, *arguments: str) -> tuple[int, dict[str, Any]]:
    """One command of the command line: its exit code, and its document."""
    done = place.run(*arguments, "--json")
    found = json.loads(done.stdout) if done.stdout else {"error": ""}
    return done.returncode, found if "error" not in found else {"error": done.stdout + done.stderr}


def test_a_reason_in_words_is_what_the_denied_agent_reads(wire: Wire, place: Site) -> None:
    sent = wire.send("delete", user="lou")
    asked = question(wire, "lou")["approval"]["id"]
    both = place.run("approvals", "deny", asked, "too", "much", "--reason", "no", "--user", "lou")
    assert both.returncode == 2 and "the reason is given twice" in both.stderr
    told = place.run("approvals", "deny", asked, "far", "too", "much", "--user", "lou")
    assert told.returncode == 0 and "far too much" in told.stdout + told.stderr
    wire.closing(sent)
    kept = "select reason from approvals where approval_id = ? and state = 'deny'"
    assert until(lambda: place.query(kept, asked), what="the denial")[0]["reason"] == "far too much"


def test_the_command_line_lists_answers_and_revokes(wire: Wire, place: Site) -> None:
    wire.send("delete", user="kim")
    asked = question(wire, "kim")["approval"]["id"]
    rows = "select id from approvals where approval_id = ?"
    until(lambda: place.query(rows, asked), what="the row of the question")
    assert asked in [one["id"] for one in cli(place, "approvals", "list")[1]["approvals"]]
    assert cli(place, "approvals", "deny", asked, "--user", "mallory")[0] == 6
    code, told = cli(
        place,
        "approvals",
        "allow",
        asked,
        "--user",
        "kim",
        "--pattern",
        "tool:delete_task:.*",
        "--scope",
        "everywhere",
    )
    assert (code, told.get("told")) == (0, "allowed for good by kim"), told
    (grant,) = [one for one in cli(place, "approvals", "list")[1]["standing"] if one["by"] == "kim"]
    assert grant["for"] == "kim"
    said = wire.ask("delete", user="kim", session_id="kim-2")
    assert "denied" not in said["content"], "it holds everywhere, for kim"
    start = len(wire.heard)
    wire.send("delete", user="liz")
    wire.closing(answer(wire, question(wire, "liz", start), "deny", "liz"))
    assert cli(place, "approvals", "revoke", grant["id"], "--user", "kim")[0] == 0
    start = len(wire.heard)
    wire.send("delete", user="kim", session_id="kim-2")
    wire.closing(answer(wire, question(wire, "kim", start), "deny", "kim"))
    code, told = cli(place, "permissions", "simulate", "locked")
    assert code == 0 and told["votes"]["deny"] > 0 and told["checks"] >= 4
