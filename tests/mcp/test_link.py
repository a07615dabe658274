"""A session with a server: it is kept, it comes back, and nothing that a server does is more than a clear error."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from shared.errors import ToolError
from shared.mcp.config import Configured
from shared.mcp.link import Patience, ServerLink
from shared.mcp.servers import Servers, Wants
from shared.mcp.stdio import _whatever_comes
from tests.mcp.conftest import QUICK, SURE, call, connected, start, stdio


def _child() -> psutil.Process:
    found = [
        one for one in psutil.Process().children(recursive=True) if "mcp_server.py" in " ".join(one.cmdline())
    ]
    return found[0]


async def _until(link: ServerLink, state: str, seconds: float = SURE) -> None:
    async with asyncio.timeout(seconds):
        while link.state != state:
            await asyncio.sleep(0.01)


async def test_a_server_lists_its_tools_and_answers() -> None:
    async with connected(stdio()) as link:
        assert await call(link, "echo", "hello") == "hello"
        assert [(tool.name, tool.effect) for tool in link.listing.tools] == [
            ("echo", "once"),
            ("look", "pure"),
            ("slow", "once"),
            ("die", "once"),
        ]
        assert link.health.called == "tester 1"


async def test_progress_is_told_while_a_call_runs() -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    async with connected(stdio()) as link:
        await link.present()
        tool = link.tool("slow")
        assert tool
        await link.call(tool, {"text": "x"}, say)
    assert said == ["tester: 0", "tester: 1", "tester: 2"]


async def test_resources_and_prompts_can_be_listed_and_read() -> None:
    async with connected(stdio()) as link:
        found, templates = await link.resources()
        assert ([str(one.uri) for one in found], templates) == (["note://a"], [])
        assert "what the note says" in str(await link.read("note://a"))
        assert [one.name for one in await link.prompts()] == ["greet"]
        assert "Greet Ada" in str(await link.prompt("greet", {"who": "Ada"}))


async def test_a_server_that_is_killed_comes_back_and_keeps_its_list_meanwhile() -> None:
    async with connected(stdio()) as link:
        await call(link, "echo")
        _child().kill()
        await _until(link, "lost")
        assert [tool.name for tool in link.listing.tools][:1] == ["echo"]
        assert await call(link, "echo", "again") == "again"
        assert link.state == "ready"


async def test_a_server_that_is_repaired_is_back_as_soon_as_somebody_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.mcp.link._GROWS", 1e6)  # else it is tried again in a minute
    command = tmp_path / "server"
    broken = replace(stdio(), spec=stdio().spec.model_copy(update={"command": str(command)}))
    unread = cast(Any, None)
    servers = Servers(lambda: Configured({"tester": broken}), unread, lambda: 0, start, QUICK)
    try:
        link = (await servers.refresh("chatter", Wants()))["tester"]
        assert (link.state, link.health.tries) == ("lost", 1)
        command.symlink_to(sys.executable)
        servers.hurry()
        await _until(link, "ready", 50)
    finally:
        await servers.close()


async def test_a_call_that_does_no_harm_is_made_again_when_its_server_dies_under_it(notes: Path) -> None:
    notes.with_suffix(".tools").write_text("once_dead")
    async with connected(stdio("well", str(notes))) as link:
        await link.present()
        tool = link.tool("once_dead")
        assert tool

        async def say(_text: str) -> None: ...

        with pytest.raises(ToolError, match="whether it took effect is not known"):
            await link.call(tool, {"text": "x"}, say)
        notes.write_text("")  # noqa: ASYNC240
        answer = await link.call(replace(tool, effect="idempotent"), {"text": "x"}, say)
        assert answer.content and notes.read_text().split() == ["once_dead"] * 2  # noqa: ASYNC240


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("huge", "it sent a message of more than 4 MiB"),
        ("flood", "it sent more than 2000 messages in 5 s"),
    ],
)
async def test_a_server_that_sends_too_much_is_ended_with_a_clear_error(mode: str, why: str) -> None:
    async with connected(stdio(mode)) as link:
        await link.present()
        before = psutil.Process().memory_info().rss
        began = time.monotonic()
        with pytest.raises(ToolError, match=why):
            await call(link, "echo")
        assert psutil.Process().memory_info().rss - before < 64 * 1024 * 1024
        assert time.monotonic() - began < 8


async def test_a_server_that_hangs_in_a_call_is_given_up_and_goes_on_being_used() -> None:
    async with connected(stdio("mute", timeout=1)) as link:
        with pytest.raises(ToolError, match=r"did not answer\. it was silent for 1 s"):
            await call(link, "echo")
        assert link.state == "ready"


async def test_a_server_that_never_begins_is_said_to_have_not() -> None:
    patience = Patience(start=0.5)
    async with connected(stdio("silent"), patience) as link:
        await asyncio.wait_for(link.tried.wait(), SURE)
        assert link.health.why == "it did not begin within 0.5 s"


async def test_a_server_that_dies_at_once_is_told_with_its_last_words() -> None:
    async with connected(stdio("dies"), replace(QUICK, back=0.1)) as link:
        await asyncio.wait_for(link.tried.wait(), SURE)
        assert link.health.why == "it ended with exit code 7: there is no such file"
        with pytest.raises(ToolError, match="is not there"):
            await link.present()


async def test_a_command_that_is_not_there_is_told() -> None:
    from shared.mcp.config import server

    missing = server("tester", {"command": "/no/such/program"}, Path("/home/mcp.json"), {})
    async with connected(missing) as link:
        await asyncio.wait_for(link.tried.wait(), SURE)
        assert link.health.why.startswith("/no/such/program could not be started. no such file")


async def test_what_is_printed_beside_the_protocol_does_no_harm() -> None:
    async with connected(stdio("prints")) as link:
        assert await call(link, "echo", "still") == "still"


async def test_tools_with_a_schema_that_no_model_can_be_shown_are_left_out_by_name() -> None:
    async with connected(stdio("lies")) as link:
        await link.present()
        assert [tool.name for tool in link.listing.tools] == ["good", "answers"]
        assert [left.split(":")[0] for left in link.listing.left_out] == [
            "not_valid",
            "odd",
            "large",
        ]


async def test_a_list_that_breaks_the_protocol_is_told_as_that() -> None:
    async with connected(stdio("breaks")) as link:
        await asyncio.wait_for(link.tried.wait(), SURE)
        assert "not as the protocol has it: tools.0.inputSchema.type" in link.health.why


async def test_a_thousand_tools_are_cut_to_a_bound() -> None:
    async with connected(stdio("many")) as link:
        await link.present()
        assert len(link.listing.tools) == 128


async def test_an_answer_of_another_shape_is_an_error_of_that_call_alone(notes: Path) -> None:
    notes.with_suffix(".tools").write_text("odd echo")
    async with connected(stdio("well", str(notes))) as link:
        with pytest.raises(ToolError, match="answered what cannot be read"):
            await call(link, "odd")
        assert await call(link, "echo", "fine") == "fine"


async def test_a_list_that_changed_is_taken_up(notes: Path) -> None:
    async with connected(stdio("well", str(notes))) as link:
        await link.present()
        notes.with_suffix(".tools").write_text("echo fresh")
        notes.with_suffix(".changed").touch()
        await call(link, "echo")
        async with asyncio.timeout(SURE):
            while link.tool("fresh") is None:
                await asyncio.sleep(0.01)


async def test_a_child_is_ended_with_its_session_even_when_it_reads_nothing() -> None:
    async with connected(stdio("mute"), QUICK) as link:
        await link.present()
        child = _child()
        os.kill(child.pid, signal.SIGSTOP)
    assert not psutil.pid_exists(child.pid) or child.status() == psutil.STATUS_ZOMBIE


async def test_a_child_is_ended_however_often_we_are_cancelled_meanwhile() -> None:
    ended: list[bool] = []

    async def end() -> None:
        await asyncio.sleep(0.02)
        ended.append(True)

    task = asyncio.create_task(_whatever_comes(end()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
