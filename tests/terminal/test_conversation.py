"""What a person sees of what Chatter says, and what becomes of what they type."""

from __future__ import annotations

import json
import time

from gateways.terminal.commands import obey
from gateways.terminal.conversation import Conversation
from shared.bus.messages import Output, now
from shared.guard.approvals import Approvals, Card, Decided
from shared.store.records import Task, TaskEvent, project_key
from shared.store.sqlite import SqliteStore
from shared.turns.desk import Desk
from shared.visitor.look import Pulse
from tests.support.valkey import until
from tests.terminal.conftest import Chatter, Seen

LEAVE = {"id": "leave-1", "agent": "backend", "tool": "bash", "action": "tool:bash:make test"}


async def test_what_is_said_is_awaited_until_it_is_answered(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await obey(here, "Hello")
    assert here.working
    assert "nobody is here as Chatter" in seen.last("note")
    message = (await chatter.heard())[0]
    assert (message["content"], message["user_id"], message["source"]) == ("Hello", "ada", "terminal")
    await chatter.says("complete", "Good day", answers=[message["id"]], in_reply_to=message["id"])
    assert "Good day" in seen.last("complete")
    assert not here.working


async def test_what_belongs_to_another_session_is_not_shown(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    words = '{"user_id":"bob","content":"secret","status":"complete","session_id":"user:bob"}'
    await chatter.redis.publish(chatter.names.channel("chatter-output"), words.encode())
    await chatter.says("progress", "for ada")
    assert seen.told == [("note", "for ada")]


async def test_what_this_person_was_shown_is_acknowledged_and_what_was_for_another_is_not(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    desk = Desk(chatter.redis, chatter.names, "chatter")
    channel, kept = chatter.names.channel("chatter-output"), f"{desk.prefix}untold:user:ada"
    words = {"status": "complete", "session_id": "user:ada", "content": "Good day"}
    for user in ("bob", "ada"):
        output = Output.model_validate({**words, "user_id": user, "id": user, "timestamp": now()})
        await desk.announce(channel, output.text(channel), "user:ada", "always")
    await until(lambda: len(seen.told) == 2)
    await here.visitor.close()  # comes back when what was shown is acknowledged
    left = await chatter.redis.command("XRANGE", kept, "-", "+")
    assert [json.loads(fields[1])["user_id"] for _, fields in left] == ["bob"]


async def test_a_number_answers_a_question_with_its_option(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_input", "Which?", id="q-1", question="Which?", options=["tea", "coffee"])
    assert "  2. coffee" in seen.last("awaiting_input")
    await obey(here, "2")
    message = (await chatter.heard())[-1]
    assert (message["content"], message["in_reply_to"]) == ("coffee", "q-1")


async def test_a_number_answers_a_request_for_leave_before_anything_else(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks for leave", approval=LEAVE)
    assert "1. allow once" in seen.last("awaiting_approval")
    await obey(here, "1")
    assert seen.last("note") == "allowed once"
    message = (await chatter.heard())[-1]
    assert (message["type"], message["approval_id"]) == ("approval", "leave-1")
    assert message["decision"] == "allow_once"
    await obey(here, "/approve")
    assert seen.last("note") == "nobody waits for a permission in this conversation"


async def test_a_denial_carries_its_reason(here: Conversation, chatter: Chatter, seen: Seen) -> None:
    await chatter.says("awaiting_approval", "Backend asks for leave", approval=LEAVE)
    await obey(here, "/deny not today")
    message = (await chatter.heard())[-1]
    assert (message["decision"], message["reason"]) == ("deny", "not today")


async def test_a_request_for_leave_goes_with_the_turn_that_asked(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks", approval=LEAVE, in_reply_to="m-1")
    await chatter.says("complete", "done without it", answers=["m-1"])
    await obey(here, "/deny")
    assert seen.last("note") == "nobody waits for a permission in this conversation"


def _open(number: str, user: str) -> Card:
    at = int(time.time() * 1000)
    return Card(
        id=number, call="c", agent="backend", session="user:ada", user_id=user, turn="t", home="s", tool="bash",
        action=f"tool:bash:make {number}", arguments={}, arguments_hash="0", why="it runs a command", pattern="x",
        project="default", at=at, expires_at=at + 60_000,
    )  # fmt: skip


async def test_a_request_that_was_put_while_nobody_was_here_is_put_again(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    approvals = Approvals(chatter.redis, chatter.names)
    for number, user in (("theirs", "bob"), ("mine", "ada")):
        await approvals.open(_open(number, user))
        await chatter.redis.command("HSET", approvals.open_in("user:ada"), number, 1)
    assert "mine" not in seen.last("awaiting_approval")
    await obey(here, "/approve")
    assert [text for kind, text in seen.told if kind == "awaiting_approval" and "theirs" in text] == []
    assert "make mine" in seen.last("awaiting_approval") and "it runs a command" in seen.last(
        "awaiting_approval"
    )
    assert (await chatter.heard())[-1]["approval_id"] == "mine"
    await approvals.decide("mine", Decided("allow_once", "ada"))
    await here.recall()
    assert len([kind for kind in seen.kinds() if kind == "awaiting_approval"]) == 1


async def test_words_behind_an_open_request_are_said_to_wait_for_it(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend waits", approval=LEAVE)
    here._served = _yes  # type: ignore[method-assign]
    await obey(here, "what would that do?")
    assert "behind the request" in seen.last("note")


async def _yes() -> bool:
    return True


async def test_an_unknown_command_is_said_to_be_one_and_not_sent(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    assert await obey(here, "/nonsense")
    assert "/help" in seen.last("error")
    assert await chatter.heard() == []


async def test_help_names_every_command_and_quit_leaves(here: Conversation, seen: Seen) -> None:
    await obey(here, "/help")
    for name in ("/tasks", "/task", "/diff", "/approve", "/deny", "/status", "/agents", "/cost", "/quit"):
        assert name in seen.last("block")
    assert not await obey(here, "/quit")


async def test_with_nothing_stored_yet_a_command_says_what_to_do(here: Conversation, seen: Seen) -> None:
    await obey(here, "/tasks")
    assert "promptdock up" in seen.last("error")


async def test_the_list_of_tasks_tells_what_became_of_the_work(here: Conversation, seen: Seen) -> None:
    home = here.visitor.settings.home
    home.mkdir(exist_ok=True)
    store = SqliteStore(home / "promptdock.db")
    await store.open()
    tasks = [
        Task(slug=slug, project_id=project_key("default"), title="Dig", status="COMPLETED")
        for slug in ("calm-otter", "brave-fox")
    ]
    merged = TaskEvent(task_id=tasks[0].id, project_id=tasks[0].project_id, event="merged", actor="ada")
    for row in tasks:
        await store.insert(row)
    await store.insert(merged)
    await store.close()
    await obey(here, "/tasks")
    lines = {text.split()[0]: text for text in seen.last("block").splitlines()}
    assert "COMPLETED, merged" in lines["calm-otter"]
    assert "merged" not in lines["brave-fox"]
    assert len({text.index("Dig") for text in lines.values()}) == 1, "in columns"
    await obey(here, "/task calm-otter")
    assert seen.last("block").startswith("calm-otter  COMPLETED, merged  Dig")


async def test_stop_is_sent_for_the_turn_and_refused_for_who_was_not_asked(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await obey(here, "/stop planner")
    assert seen.last("note") == "nothing is asked of planner now"
    await obey(here, "/stop")
    assert seen.last("note") == "stopping the turn …"


def _asked(here: Conversation, *agents: str) -> None:
    here.work.take("start", {"turn_id": "t"})
    for agent in agents:
        here.work.take("tool_call", {"tool": f"consult_{agent}", "arguments": {"question": "How?"}})
        here.work.take("consult", {"agent": agent, "request_id": f"r-{agent}", "state": "sent"})


async def test_each_open_consult_is_one_line_that_says_how_to_end_it(here: Conversation) -> None:
    _asked(here, "planner")
    (told,) = here.lines(60)
    assert told == "  planner: How? · 0 s · /stop planner"
    here.work.take("consult", {"agent": "planner", "request_id": "r-planner", "state": "answered", "ms": 9})
    assert here.lines(60) == []


async def test_the_live_area_stays_small_and_narrow_however_many_are_asked(here: Conversation) -> None:
    _asked(here, "planner", "researcher", "frontend", "backend")
    told = here.lines(40)
    assert len(told) == 2
    assert told[1] == "  … and 3 more"
    assert all(len(text) <= 40 for text in told)


async def test_an_agent_without_a_sign_of_life_is_reported_once_with_what_can_be_done(
    here: Conversation, seen: Seen
) -> None:
    _asked(here, "planner")
    consult = here.work.open[0]
    consult.since, consult.pulse = time.monotonic() - 20, Pulse(None, "")
    here._say_silent(consult)
    here._say_silent(consult)
    assert seen.kinds() == ["note"]
    assert "/stop planner" in seen.last("note")
    assert "silent" in here.lines(60)[0]
