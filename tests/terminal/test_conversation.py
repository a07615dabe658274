"""What a person sees of what Chatter says, and what becomes of what they type."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from gateways.terminal.commands import obey
from gateways.terminal.conversation import Conversation
from gateways.terminal.prompt import below
from shared.bus.activity import Activity
from shared.bus.messages import Output, now
from shared.bus.presence import Presence
from shared.client.types import Sent
from shared.client.views.status import Pulse, Working
from shared.errors import BusUnreachable
from shared.guard.permissions.requests import ApprovalRequest, Approvals, Decided
from shared.store.records import ConversationMessage, Session, Task, TaskEvent, TurnRow, project_key
from shared.store.sqlite import SqliteStore
from shared.turns.queue import Claim, Queue
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
    queue = Queue(chatter.redis, chatter.names, "chatter")
    channel, kept = chatter.names.channel("chatter-output"), f"{queue.prefix}untold:user:ada"
    words = {"status": "complete", "session_id": "user:ada", "content": "Good day"}
    for user in ("bob", "ada"):
        output = Output.model_validate({**words, "user_id": user, "id": user, "timestamp": now()})
        await queue.announce(channel, output.text(channel), "user:ada", "always")
    await until(lambda: len(seen.told) == 2)
    await here.client.close()  # comes back when what was shown is acknowledged
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


async def test_a_number_that_no_option_has_is_not_sent_and_the_question_stays(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_input", "Which?", id="q-1", question="Which?", options=["tea", "coffee"])
    await obey(here, "9")
    assert seen.last("note").endswith("there are 1 to 2")
    assert "2. coffee" in seen.last("options")
    assert await chatter.heard() == []
    await obey(here, "2")
    message = (await chatter.heard())[-1]
    assert (message["content"], message["in_reply_to"]) == ("coffee", "q-1")


@pytest.mark.parametrize("typed", ["7", "0", "7 leave-1"])
async def test_a_number_that_answers_no_request_for_permission_is_not_sent_behind_it(
    typed: str, here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks for permission", approval=LEAVE)
    await obey(here, typed)
    assert seen.last("note").endswith("there are 1 to 3")
    assert await chatter.heard() == []
    here._unread = _read  # type: ignore[method-assign]
    await obey(here, "7 dwarfs wait for it")
    assert (await chatter.heard())[-1]["content"] == "7 dwarfs wait for it", "these are words"
    await obey(here, "3")
    assert (await chatter.heard())[-1]["decision"] == "deny"


async def test_a_number_answers_a_request_for_leave_before_anything_else(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks for permission", approval=LEAVE)
    assert "1. allow once" in seen.last("awaiting_approval")
    await obey(here, "1")
    assert seen.last("note") == "allowed once"
    message = (await chatter.heard())[-1]
    assert (message["type"], message["approval_id"]) == ("approval", "leave-1")
    assert message["decision"] == "allow_once"
    await obey(here, "/approve")
    assert seen.last("note") == "nobody waits for a permission in this conversation"


async def test_a_second_message_says_what_it_waits_behind(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here._unread = _read  # type: ignore[method-assign]
    await obey(here, "Build a guest book")
    assert "note" not in seen.kinds()
    await obey(here, "and a fence")
    assert seen.last("note") == "this waits behind: Build a guest book"
    first = (await chatter.heard())[0]["id"]
    await chatter.says("complete", "done", answers=[first])
    await obey(here, "and a pond")
    assert seen.last("note") == "this waits behind: and a fence"


async def test_a_message_of_another_program_is_said_to_be_waited_for_and_named_when_it_is_stopped(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here._unread = _read  # type: ignore[method-assign]
    await chatter.redis.command("SADD", chatter.names.agents, "chatter")
    first = await here.client.say("Build a guest book", "ada", source="cli")
    assert isinstance(await Queue(chatter.redis, chatter.names, "chatter").claim("w1"), Claim)
    await obey(here, "and a fence")
    assert seen.last("note") == "this waits behind: Build a guest book"
    await obey(here, "/stop")
    assert "asked with: Build a guest book; then comes: and a fence" in seen.last("note")
    assert (await chatter.heard())[-1]["turn_id"] == first.id


async def test_a_chat_opens_with_the_last_words_and_with_what_its_person_was_not_shown(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here.client.settings.home.mkdir(exist_ok=True)
    store = SqliteStore(here.client.settings.home / "promptdock.db")
    await store.open()
    said = [("user", "[from ada]: Build a fence", "ada"), ("assistant", "It is assigned.", None)]
    for seq, (role, text, user) in enumerate(said, 1):
        await store.insert(
            ConversationMessage.model_validate(
                {"session_id": "user:ada", "seq": seq, "role": role, "turn_id": "t", "user_id": user}
                | {"content": [{"type": "text", "text": text}]}
            )
        )
    await store.close()
    queue, channel = Queue(chatter.redis, chatter.names, "chatter"), chatter.names.channel("chatter-output")
    words = {"status": "task_update", "session_id": "user:ada", "id": "o", "timestamp": now()}
    await here.__aexit__()  # nobody looks
    for user, text in (("ada", "The fence stands"), ("bob", "not yours")):
        output = Output.model_validate({**words, "user_id": user, "content": text})
        await queue.announce(channel, output.text(channel), "user:ada", "always")
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None):
        assert any("you said: Build a fence" in text for kind, text in seen.told if kind == "note")
        assert any(text == "Chatter: It is assigned." for kind, text in seen.told if kind == "note")
        assert "While you were away: The fence stands" in seen.last("task_update")
        assert "not yours" not in str(seen.told)
    seen.told.clear()
    async with Conversation(here.client, seen, "bob", "user:ada"):
        assert "Build a fence" not in str(seen.told)
    seen.told.clear()
    await _acknowledged(here)
    async with Conversation(here.client, seen, "ada", None):
        assert "The fence stands" not in str(seen.told)


async def test_a_chat_opens_with_the_last_words_also_where_they_are_not_answered_yet(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _question(here, 300)  # asked for a shop, long ago
    await here.client.say("Merge it", "ada", source="cli")
    await here.client.say("Dig a pond", "ada", "work", source="cli")  # in another conversation
    await here.__aexit__()
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None):
        quoted = [text for kind, text in seen.told if kind == "note" and "you said" in text]
        assert len(quoted) == 1 and quoted[0].endswith("you said: Merge it")


async def test_the_answer_of_a_turn_that_began_before_the_chat_tells_the_seconds_since_it_was_let_go_on(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks", approval=LEAVE, in_reply_to="m-1")
    await obey(here, "3")
    await chatter.says("complete", "It was not done.", answers=["m-1"], usage={"input": 1, "output": 1})
    await until(lambda: "tokens in" in seen.last("note"))
    assert re.match(r"\d+\.\d s · 1 tokens in", seen.last("note"))


async def _acknowledged(here: Conversation) -> None:
    await until(lambda: not here.client._delivery._under_way)


async def _event(chatter: Chatter, kind: str, **payload: object) -> None:
    data = json.dumps({"event": kind, **payload})
    await chatter.redis.command("XADD", chatter.names.stream("user:ada"), "*", "data", data)


async def test_an_answer_is_read_while_it_comes_and_not_printed_twice(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _event(chatter, "start", turn_id="m-1", model="claude-sonnet-5-5")
    await _event(chatter, "chunk", content="I look.")
    await _event(chatter, "tool_call", tool="list_tasks", arguments={})
    await _event(chatter, "chunk", content="One.\n\nTwo, which is being wri")
    await until(lambda: "One." in seen.last("written"))
    assert here.being_written(12, 8) == ["Two, which", "is being wri"]
    await _event(chatter, "chunk", content="tten.")
    await _event(chatter, "done", turn_id="m-1")
    whole = "One.\n\nTwo, which is being written."
    await chatter.says("complete", whole, answers=["m-1"], model="claude-sonnet-5-5", usage={"input": 1})
    await until(lambda: "tokens in" in seen.last("note"))
    assert [text for kind, text in seen.told if kind != "note"] == [
        "I look.",
        "One.",
        "Two, which is being written.",
    ]
    assert here.being_written(12, 8) == []


async def test_a_denial_carries_its_reason(here: Conversation, chatter: Chatter, seen: Seen) -> None:
    await chatter.says("awaiting_approval", "Backend asks for permission", approval=LEAVE)
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


def _open(number: str, user: str, ago: float = 0.0) -> ApprovalRequest:
    at = int((time.time() - ago) * 1000)
    return ApprovalRequest(
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
    before = len(await chatter.heard())
    await obey(here, "/approve")
    assert [text for kind, text in seen.told if kind == "awaiting_approval" and "theirs" in text] == []
    assert "make mine" in seen.last("awaiting_approval") and "it runs a command" in seen.last(
        "awaiting_approval"
    )
    assert len(await chatter.heard()) == before, "nobody has read yet what would be allowed"
    await obey(here, "/approve")
    assert (await chatter.heard())[-1]["approval_id"] == "mine"
    await approvals.decide("mine", Decided("allow_once", "ada"))
    await here.requests.recall()
    assert len([kind for kind in seen.kinds() if kind == "awaiting_approval"]) == 1


async def test_of_two_open_requests_each_is_answered_by_its_id(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    for number in ("a1b2c3d4e5", "f6a7b8c9d0"):
        await chatter.says("awaiting_approval", f"Backend asks {number}", approval=LEAVE | {"id": number})
    before = len(await chatter.heard())
    await obey(here, "1")
    assert "a1b2c3d4" in seen.last("note") and "f6a7b8c9" in seen.last("note")
    assert len(await chatter.heard()) == before
    for typed, id, decision in (
        ("no a1b2, because it is late", "a1b2c3d4e5", "deny"),
        ("1", "f6a7b8c9d0", "allow_once"),
    ):
        await obey(here, typed)
        message = (await chatter.heard())[-1]
        assert (message["approval_id"], message["decision"]) == (id, decision)
    assert (await chatter.heard())[-2]["reason"] == "because it is late"


async def test_what_waits_is_told_when_a_chat_opens_and_counted_in_its_bar(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    approvals = Approvals(chatter.redis, chatter.names)
    assert "for you" not in below(here)[0][1]
    await approvals.open(_open("elsewhere", "ada"))
    await chatter.redis.command("HSET", approvals.open_in("work"), "elsewhere", 1)
    await here.attention.greet()
    assert "use bash" in seen.last("note") and "approvals allow elsewher" in seen.last("note")
    assert "1 for you: /inbox" in below(here)[0][1]
    await obey(here, "/inbox")
    assert "permission" in seen.last("block") and "approvals allow elsewher" in seen.last("block")


async def test_words_behind_an_open_request_are_said_to_wait_for_it(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend waits", approval=LEAVE)
    here._unread = _read  # type: ignore[method-assign]
    await obey(here, "what would that do?")
    assert "behind the request" in seen.last("note")
    assert len([kind for kind in seen.kinds() if kind == "awaiting_approval"]) == 2, (
        "all that is known is shown"
    )


async def test_a_yes_in_a_persons_words_answers_a_request_and_a_yes_with_a_condition_does_not(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here._unread = _read  # type: ignore[method-assign]
    await chatter.says("awaiting_approval", "Backend asks", approval=LEAVE)
    await obey(here, "yes, but only the tests")
    assert "no clear yes or no" in seen.last("note") and "1, 2 or 3" in seen.last("note")
    words = (await chatter.heard())[-1]
    assert words["content"] == "yes, but only the tests", "it is not lost"
    await obey(here, "yes, do it")
    assert seen.last("note") == "allowed once"
    assert (await chatter.heard())[-1]["decision"] == "allow_once"


async def _read(sent: Sent) -> str:
    return ""


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


async def test_another_conversation_is_gone_to_and_begun_without_leaving(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here.client.settings.home.mkdir(exist_ok=True)
    store = SqliteStore(here.client.settings.home / "promptdock.db")
    await store.open()
    rows = [("fence", "ada", "The fence"), ("evil", "eve", "Eve's")]
    await store.upsert([Session(key=key, user_id=user, title=title) for key, user, title in rows])
    await store.close()
    await obey(here, "/sessions")
    assert "The fence" in seen.last("block") and "Eve" not in seen.last("block")
    await obey(here, "/sessions fen")
    assert here.session == "fence" and "fence" in seen.last("block")
    await chatter.says("complete", "It is blue", session_id="fence")
    assert "It is blue" in seen.last("complete")
    await obey(here, "hello")
    assert (await chatter.heard())[-1]["session_id"] == "fence"
    await obey(here, "/sessions evil")
    assert here.session == "fence" and "somebody else's" in seen.last("error")
    await obey(here, "/new")
    assert here.session.startswith("talk-") and "/sessions fence" in seen.last("block")
    assert not here.awaited, "what is awaited belongs to the other one"
    told = len(seen.told)
    await obey(here, "/sessions user:ada")
    assert here.session == "user:ada" and len(seen.told) > told
    await chatter.says("complete", "Back again")
    assert "Back again" in seen.last("complete")


async def test_with_nothing_stored_yet_a_command_says_what_to_do(here: Conversation, seen: Seen) -> None:
    await obey(here, "/tasks")
    assert "promptdock up" in seen.last("error")


async def test_the_agents_stand_in_columns_that_fit_the_terminal(
    here: Conversation, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    await here.client.reach()
    for agent, about in (("planner", "plans what is asked for, and more"), ("researcher", "reads " * 12)):
        await here.client.presence.beat(agent, f"{agent}-1", {"status": "idle", "about": about})
    monkeypatch.setenv("COLUMNS", "40")
    await obey(here, "/agents")
    lines = [text for text in seen.last("block").splitlines() if "idle" in text]
    assert len(lines) >= 2 and max(map(len, lines)) <= 40
    assert len({text.index("idle") for text in lines}) == 1


async def test_the_list_of_tasks_tells_what_became_of_the_work(
    here: Conversation, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = here.client.settings.home
    home.mkdir(exist_ok=True)
    store = SqliteStore(home / "promptdock.db")
    await store.open()
    tasks = [
        Task(slug=slug, project_id=project_key("default"), title=f"Dig {'deeper ' * 9}", status="COMPLETED")
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
    monkeypatch.setenv("COLUMNS", "40")
    await obey(here, "/tasks")
    narrow = seen.last("block").splitlines()
    assert max(map(len, narrow)) <= 40, "a terminal would go on in the middle of a word"
    assert "COMPLETED, merged" in "".join(narrow)
    await obey(here, "/task calm-otter")
    assert seen.last("block").startswith("calm-otter  COMPLETED, merged  Dig")


async def test_stop_is_sent_for_the_turn_and_refused_for_who_was_not_asked(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await obey(here, "/stop planner")
    assert seen.last("note") == "nothing is asked of planner now"
    doing = Activity("t", 1, kind="task", task="lucky-forest", title="Dig", session="user:ada")
    here.watch.doing = [(Working("backend", doing, 3.0), time.monotonic())]
    await obey(here, "/stop backend")
    assert "it works on lucky-forest" in seen.last("note")
    assert seen.last("note").endswith("tasks stop lucky-forest")
    await obey(here, "/stop")
    assert seen.last("note") == "stopping the turn …"


def _asked(here: Conversation, *agents: str) -> None:
    here.work.take("start", {"turn_id": "t"})
    for agent in agents:
        here.work.take("tool_call", {"tool": f"consult_{agent}", "arguments": {"question": "How?"}})
        here.work.take("consult", {"agent": agent, "request_id": f"r-{agent}", "state": "sent"})


async def test_a_cluster_that_is_down_is_told_once_with_what_starts_it_and_so_is_that_it_is_back(
    here: Conversation, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> list[dict[str, object]]:
        raise BusUnreachable("Redis does not answer")

    monkeypatch.setattr(here.client, "settings", here.client.settings.model_copy(update={"redis_url": None}))
    with monkeypatch.context() as down:
        down.setattr(Presence, "here", gone)
        for _ in range(4):
            await here.watch.look()
        assert [text for kind, text in seen.told if "the cluster is down" in text and " up)" in text] == [
            seen.last("note")
        ]
        assert "the cluster is down" in below(here)[0][1]
    await here.watch.look()
    assert seen.last("note") == "the cluster is back"
    assert "down" not in below(here)[0][1]


async def test_each_open_consult_is_one_line_that_says_how_to_end_it(here: Conversation) -> None:
    _asked(here, "planner")
    (told,) = here.watch.lines(60)
    assert told == "  0 s planner: How? · /stop planner"
    here.work.take("consult", {"agent": "planner", "request_id": "r-planner", "state": "answered", "ms": 9})
    assert here.watch.lines(60) == []


async def test_the_live_area_stays_small_and_narrow_however_many_are_asked(here: Conversation) -> None:
    _asked(here, "planner", "researcher", "frontend", "backend")
    told = here.watch.lines(40)
    assert len(told) == 2
    assert told[1] == "  … and 3 more"
    assert all(len(text) <= 40 for text in told)


async def test_an_agent_without_a_sign_of_life_is_reported_once_with_what_can_be_done(
    here: Conversation, seen: Seen
) -> None:
    _asked(here, "planner")
    consult = here.work.open[0]
    consult.since, consult.pulse = time.monotonic() - 20, Pulse(None, "")
    here.watch.say_silent(consult)
    here.watch.say_silent(consult)
    assert seen.kinds() == ["note"]
    assert "/stop planner" in seen.last("note")
    assert "silent" in here.watch.lines(60)[0]


async def _question(here: Conversation, ago: float) -> None:
    """A turn that ended with a question, so many seconds ago."""
    here.client.settings.home.mkdir(exist_ok=True)
    store = SqliteStore(here.client.settings.home / "promptdock.db")
    await store.open()
    call = {"question": "Which database?", "context": "Both would do.", "options": ["SQLite", "Postgres"]}
    asks = {"type": "tool_use", "id": "c", "name": "escalate_to_human", "input": call}
    said = {"type": "text", "text": "[from ada]: Build a shop"}
    at = datetime.now(UTC) - timedelta(seconds=ago)
    for seq, (role, block, user) in enumerate([("user", said, "ada"), ("assistant", asks, None)], 1):
        words = {"session_id": "user:ada", "seq": seq, "role": role, "turn_id": "t", "user_id": user}
        await store.insert(
            ConversationMessage.model_validate({**words, "content": [block], "created_at": at})
        )
    ended = {"turn_id": "t", "agent": "chatter", "session_id": "user:ada", "user_id": "ada"}
    await store.insert(TurnRow.model_validate({**ended, "state": "awaiting_input", "created_at": at}))
    await store.close()


async def test_what_chatter_asked_is_put_again_when_a_chat_opens_and_can_be_answered_by_its_number(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _question(here, 300)
    await here.__aexit__()
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None) as again:
        put = [text for kind, text in seen.told if kind == "awaiting_input"]
        assert len(put) == 1 and "Which database?" in put[0] and "2. Postgres" in put[0]
        assert "5 min ago Chatter asked" in str(seen.told)
        await again.attention.greet()
        assert "Chatter asks" not in str(seen.told), "it stands there already"
        await obey(again, "2")
        message = (await chatter.heard())[-1]
        assert (message["content"], message["in_reply_to"]) == ("Postgres", "t.end")
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None):
        assert "awaiting_input" not in seen.kinds(), "it is being answered"


async def test_a_question_that_nobody_was_shown_is_put_once(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _question(here, 1)
    await here.__aexit__()
    queue, channel = Queue(chatter.redis, chatter.names, "chatter"), chatter.names.channel("chatter-output")
    words = {"status": "awaiting_input", "session_id": "user:ada", "user_id": "ada", "timestamp": now()}
    asks = {"content": "I need to know. Which database?", "question": "Which database?", "answers": ["t"]}
    for id in ("t.end", "answered-long-ago.end"):
        output = Output.model_validate({**words, **asks, "id": id})
        await queue.announce(channel, output.text(channel), "user:ada", "always")
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None) as again:
        assert seen.kinds().count("awaiting_input") == 1
        assert again.question is not None and again.question.id == "t.end"


async def test_a_chat_opens_with_everything_in_the_order_in_which_it_came(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _question(here, 300)
    approvals = Approvals(chatter.redis, chatter.names)
    for number, ago in (("earlier", 900.0), ("later", 60.0)):
        await approvals.open(_open(number, "ada", ago))
        await chatter.redis.command("HSET", approvals.open_in("user:ada"), number, 1)
    await here.__aexit__()
    queue, channel = Queue(chatter.redis, chatter.names, "chatter"), chatter.names.channel("chatter-output")
    words = {"status": "task_update", "session_id": "user:ada", "user_id": "ada", "timestamp": now()}
    output = Output.model_validate({**words, "id": "o", "content": "The fence stands"})
    await queue.announce(channel, output.text(channel), "user:ada", "always")
    seen.told.clear()
    async with Conversation(here.client, seen, "ada", None):
        whole = "\n".join(text for _, text in seen.told)
    parts = ("make earlier", "you said: Build a shop", "Which database?", "make later", "The fence stands")
    assert [whole.find(part) for part in parts] == sorted(whole.find(part) for part in parts)
    assert all(part in whole for part in parts)


async def test_what_waits_is_counted_again_when_something_happens(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    approvals = Approvals(chatter.redis, chatter.names)
    await approvals.open(_open("elsewhere", "ada"))
    await chatter.redis.command("HSET", approvals.open_in("work"), "elsewhere", 1)
    asks = {"session_id": "work", "approval": LEAVE | {"id": "elsewhere"}}
    words = {"user_id": "ada", "content": "Backend asks", "status": "awaiting_approval", **asks}
    await chatter.redis.publish(chatter.names.channel("chatter-output"), json.dumps(words).encode())
    await until(lambda: "1 for you" in below(here)[0][1], 10)
    await approvals.decide("elsewhere", Decided("allow_once", "ada"))
    decided = {"type": "approval", "approval_id": "elsewhere", "decision": "allow_once", "user_id": "ada"}
    await chatter.redis.publish(chatter.names.channel("human-input"), json.dumps(decided).encode())
    await until(lambda: "for you" not in below(here)[0][1], 10)
    await chatter.redis.command("HDEL", approvals.open_in("work"), "elsewhere")


async def test_who_stops_a_turn_that_asks_for_permission_is_told_that_nothing_is_allowed(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    here.work.take("start", {"turn_id": "m-1"})
    about = {"does": "run make test", "facts": []}
    await chatter.says(
        "awaiting_approval", "Backend asks", approval=LEAVE | {"about": about}, in_reply_to="m-1"
    )
    await here.stop()
    assert "withdrawn with it: nothing is allowed" in seen.last("note")
    await chatter.says("complete", "Stopped.", answers=["m-1"])
    await until(lambda: "run make test: withdrawn" in seen.last("note"))
    assert seen.last("note").endswith("it was not done")
    assert not here.requests.open


async def test_a_request_that_somebody_else_allowed_is_not_said_to_be_withdrawn(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    approvals = Approvals(chatter.redis, chatter.names)
    await approvals.decide("leave-1", Decided("allow_once", "bob"))
    await chatter.says("awaiting_approval", "Backend asks", approval=LEAVE, in_reply_to="m-1")
    await chatter.says("complete", "Done.", answers=["m-1"])
    await until(lambda: "allowed once by bob" in seen.last("note"))
    assert "not done" not in seen.last("note")
