"""The line that is typed: what is offered, what stands below it, and what a narrower terminal leaves of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.output import DummyOutput

from gateways.terminal.commands import COMMANDS, obey
from gateways.terminal.completing import Offers
from gateways.terminal.conversation import Conversation
from gateways.terminal.prompt import below, converse, reflow
from shared.bus.messages import Output
from shared.client.views import inbox
from shared.store.records import Session, SnapshotRow, Task, project_key
from shared.store.sqlite import SqliteStore
from tests.support.valkey import until
from tests.terminal.conftest import Chatter, Seen


async def _offered(here: Conversation, typed: str) -> dict[str, str]:
    found = Offers(here).get_completions_async(Document(typed), CompleteEvent(text_inserted=True))
    return {one.text: one.display_meta_text async for one in found}


async def test_a_slash_offers_the_commands_with_what_they_do_and_words_offer_nothing(
    here: Conversation,
) -> None:
    offered = await _offered(here, "/")
    assert offered["/help"] == "this list"
    assert {"/tasks", "/stop", "/quit"} <= offered.keys()
    assert (await _offered(here, "/ta")).keys() == {"/tasks", "/task"}
    assert await _offered(here, "hello /ta") == {}


async def test_ids_of_tasks_are_offered_with_their_titles_and_agents_that_are_asked_to_be_stopped(
    here: Conversation,
) -> None:
    here.client.settings.home.mkdir(exist_ok=True)
    store = SqliteStore(here.client.settings.home / "promptdock.db")
    await store.open()
    await store.insert(Task(slug="calm-otter", project_id=project_key("default"), title="Dig a pond"))
    await store.close()
    assert "Dig a pond" in (await _offered(here, "/task ott"))["calm-otter"]
    assert await _offered(here, "/task nothing") == {}
    here.work.take("consult", {"agent": "planner", "request_id": "r", "state": "sent"})
    assert (await _offered(here, "/stop ")).keys() == {"planner"}


async def test_conversations_are_offered_with_their_titles_and_what_was_saved_with_what_it_is_about(
    here: Conversation,
) -> None:
    here.client.settings.home.mkdir(exist_ok=True)
    store = SqliteStore(here.client.settings.home / "promptdock.db")
    await store.open()
    kept = SnapshotRow(session_id="fence", user_id="ada", description="the fence")
    await store.upsert(
        [
            Session(key="fence", user_id="ada", title="The fence"),
            Session(key="evil", user_id="eve", title="Eve's"),
            kept,
            SnapshotRow(session_id="evil", user_id="eve", description="Eve's"),
        ]
    )
    await store.close()
    offered = await _offered(here, "/sessions ")
    assert offered.keys() == {"fence"} and "The fence" in offered["fence"]
    assert (await _offered(here, "/restore ")).keys() == {str(kept.id)[:8]}


def _bar(here: Conversation) -> str:
    return "".join(part[1] for part in below(here))


async def test_the_bar_says_who_is_waited_for_and_which_model_speaks(
    here: Conversation, chatter: Chatter
) -> None:
    here.watch.model = "DEMO"
    assert _bar(here) == " /help · Ctrl-C twice leaves · DEMO · user:ada"
    here.awaited["m-1"] = 0.0
    assert "Ctrl-C stops" in _bar(here)
    await chatter.says("awaiting_approval", "Backend asks", approval={"id": "p-1", "tool": "bash"})
    assert _bar(here).startswith(" waits for you: 1, 2 or 3")
    assert "working" not in _bar(here)


async def test_a_narrow_bar_leaves_out_whole_words_from_its_end(
    here: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.watch.model = "DEMO"
    whole = [" /help · Ctrl-C twice leaves", " · DEMO", " · user:ada"]
    for columns, parts in ((60, 3), (40, 2), (34, 1), (10, 1)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert _bar(here) == "".join(whole[:parts])


async def test_the_bar_counts_what_does_not_stand_in_the_chat(here: Conversation) -> None:
    here.attention.waiting = [
        inbox.Item("permission", id, "asks", "answer") for id in ("a1b2c3d4", "e5f60718")
    ]
    assert "2 for you" in _bar(here)
    words = {"id": "o", "session_id": "user:ada", "user_id": "ada", "status": "awaiting_approval"}
    here.requests.open["a1b2c3d4e5f6"] = Output.model_validate({**words, "content": "Backend asks"})
    assert "1 for you" in _bar(here)


class _Output:
    """A terminal of some width; how far up the cursor was sent."""

    def __init__(self, columns: int) -> None:
        self.columns, self.up = columns, 0

    def get_size(self) -> Any:
        return SimpleNamespace(columns=self.columns)

    def cursor_up(self, amount: int) -> None:
        self.up += amount


def _resized(columns: int, rows: list[str], cursor: Point) -> int:
    screen, output = Screen(), _Output(columns)
    for y, text in enumerate(rows):
        for x, letter in enumerate(text):
            screen.data_buffer[y][x] = Char(letter)
    renderer = SimpleNamespace(last_rendered_screen=screen, _cursor_pos=cursor)
    reflow(cast(Application[Any], SimpleNamespace(renderer=renderer, output=output)))
    return output.up


def test_lines_that_a_narrower_terminal_breaks_are_taken_away_whole() -> None:
    rows = ["x" * 70, "y" * 30 + " " * 40, "> " + "z" * 50, "bar"]
    assert _resized(40, rows, Point(5, 2)) == 1
    assert _resized(20, rows, Point(5, 2)) == 3 + 1
    assert _resized(20, rows, Point(45, 2)) == 3 + 1 + 2
    assert _resized(100, rows, Point(5, 2)) == 0


async def _chatted(here: Conversation, typed: str, sees: Callable[[], bool]) -> None:
    """A chat before whose first prompt this was typed; it ends when that is so."""
    with create_pipe_input() as source, create_app_session(input=source, output=DummyOutput()):
        source.send_text(typed)
        chat = asyncio.create_task(converse(here))
        await until(lambda: chat.done() or sees())
        assert not chat.done()
        source.send_text("\x03\x03\x03")  # takes back what is typed, then leaves
        async with asyncio.timeout(20):
            assert await chat == 0


async def test_what_was_typed_before_the_prompt_is_sent_line_by_line(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _chatted(here, "Build a fence\nand a pond\nnot yet", lambda: len(here.said) == 2)
    assert [message["content"] for message in await chatter.heard() if "content" in message] == [
        "Build a fence",
        "and a pond",
    ]


async def test_what_was_typed_before_a_request_could_be_read_does_not_answer_it(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await chatter.says("awaiting_approval", "Backend asks", approval={"id": "p-1", "tool": "bash"})
    await _chatted(here, "yes\n", lambda: "not sent yet" in seen.last("note"))
    assert await chatter.heard() == [] and "p-1" in here.requests.open


async def test_a_backslash_before_enter_begins_a_line(
    here: Conversation, chatter: Chatter, seen: Seen
) -> None:
    await _chatted(here, "Build\\\ra fence\r", lambda: bool(here.said))
    assert [*here.said.values()] == ["Build\na fence"]


@pytest.mark.parametrize("columns", [44, 60, 80, 120])
async def test_the_list_of_commands_ends_its_lines_between_words(
    columns: int, here: Conversation, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    await obey(here, "/help")
    lines = seen.last("block").split("\n")
    assert max(map(len, lines)) <= columns
    words = " ".join(seen.last("block").split())
    assert all(f"{name} " in words and told in words for name, (_what, told, _run) in COMMANDS.items())
