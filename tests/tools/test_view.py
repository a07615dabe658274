"""What a model is shown of the tools: few at first, more when they are loaded, and the same bytes throughout."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from shared.errors import ToolError
from shared.models.base import Answer, Model, OnDelta, Request, ToolSpec, Usage
from shared.tools import catalog
from shared.tools.abridge import abridged
from shared.tools.categories import CORE, TIERS
from shared.tools.view import ToolView, ViewedModel, loaded
from shared.turns.records import JournalRecord, NoteRecord, Records, ResultRecord
from tests.tools.bench import Bench

registry = catalog.registry()
CHATTER = ["consult_planner", "consult_researcher", "consult_agent", "assign_task", "check_agent_status"]
ALWAYS = [*(tool.name for tool in registry.category(CORE)), *CHATTER, "escalate_to_human"]


def tool_view(**more: Any) -> ToolView:
    return ToolView(registry, ALWAYS, **{"on_demand": True, **more})


def _bytes(tools: tuple[ToolSpec, ...]) -> bytes:
    """As a provider gets them."""
    told = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools
    ]
    return json.dumps(told, ensure_ascii=False).encode()


def _names(tools: tuple[ToolSpec, ...]) -> list[str]:
    return [tool.name for tool in tools]


def _spelled(names: str) -> list[str]:
    """What a line of the index says, as a shell reads it."""
    done = subprocess.run(["bash", "-c", f"echo {names}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_first_call_carries_little_more_than_a_fifth_of_what_all_tools_take() -> None:
    first = len(_bytes(tool_view().specs())) + len(tool_view().index.encode())
    full = len(_bytes(tool_view(mode="full").specs()))
    print(f"first call, tiered: {first} bytes with the index of names; full: {full} bytes")
    assert first <= 0.22 * full, f"tiered {first} bytes, full {full} bytes"


def test_full_mode_shows_every_tool_of_the_categories_and_the_older_names_once() -> None:
    names = _names(tool_view(mode="full").specs())
    tiers = {tool.name for name in (CORE, *TIERS) for tool in registry.category(name)}
    assert set(names) == tiers | {tool.name for tool in registry if tool.older} | set(ALWAYS)
    assert len(names) == len(set(names))
    assert tool_view(mode="full").index == ""


def test_what_is_loaded_is_appended_in_the_order_of_loading_and_each_tool_once() -> None:
    own = tool_view()
    first, second, third = [
        _names(own.specs(names)) for names in ([], ["hooks"], ["hooks", "git_log", "git", "core"])
    ]
    assert first == ALWAYS
    assert second == [*first, *(tool.name for tool in registry.category("hooks"))]
    rest = [tool.name for tool in registry.category("git") if tool.name != "git_log"]
    assert third == [*second, "git_log", *rest], "the provider's cache begins with the tools: the front stays"


def test_a_list_with_deferral_is_the_same_byte_for_byte_whatever_is_loaded() -> None:
    own = tool_view()
    before = own.specs([], defer=True)
    assert own.specs(["git", "hooks"], defer=True) == before
    assert _bytes(own.specs(["memory"], defer=True)) == _bytes(tool_view().specs([], defer=True))
    assert [tool.name for tool in before if not tool.deferred] == ALWAYS
    assert len(before) == len(tool_view(mode="full").specs())


def test_the_index_names_all_that_can_be_loaded_and_nothing_that_is_hidden() -> None:
    own = tool_view(hidden=lambda tool: tool.name in ("git_push", "create_task"))
    lines = dict(line.split(": ", 1) for line in own.index.splitlines()[1:])
    assert list(lines) == list(TIERS)
    for name in ("hooks", "project", "agent", "memory", "files", "system"):
        assert sorted(_spelled(lines[name])) == sorted(tool.name for tool in registry.category(name))
    for names in (_names(own.specs(["git"])), _names(own.specs([], defer=True)), _spelled(lines["git"])):
        assert "git_log" in names and "git_push" not in names
    assert "create_task" not in _names(own.specs())


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("read_note grep write_note drop_note", "{read,write,drop}_note grep"),
        ("git_log git_diff git_create_pr", "git_{log,diff,create_pr}"),
        ("a_b a_c", "a_b a_c"),
        ("find", "find"),
        ("", ""),
    ],
)
def test_names_that_share_words_are_spelled_as_a_shell_would(names: str, told: str) -> None:
    assert abridged(names.split()) == told
    assert sorted(_spelled(told)) == sorted(names.split())


def test_a_tool_runs_whether_it_was_loaded_or_not_and_others_tools_never() -> None:
    assert (
        tool_view().runs("git_log")
        and tool_view().runs("archive_task")
        and tool_view().runs("set_task_status")
    )
    assert not tool_view().runs("bash") and not tool_view().runs("make_coffee")
    worker = ToolView(registry, ["bash", "view"])
    assert worker.runs("bash") and not worker.runs("create_task")
    assert _names(worker.specs(["git"])) == ["bash", "view"]
    assert worker.index == ""


def test_a_tool_of_one_s_own_that_is_loadable_is_named_and_shown_once_it_is_loaded() -> None:
    own = tool_view(loadable=["self_edit_model", "git_log"])
    assert own.index.splitlines()[-1] == "by name only: self_edit_model git_log"
    assert "self_edit_model" not in _names(own.specs()) and own.runs("self_edit_model")
    assert _names(own.specs(["self_edit_model"]))[-1] == "self_edit_model"
    assert "self_edit_model" in _names(tool_view(loadable=["self_edit_model"], mode="full").specs())
    deferred = {tool.name: tool.deferred for tool in own.specs([], defer=True)}
    assert deferred["self_edit_model"] and len(deferred) == len(own.specs([], defer=True))
    assert not tool_view().runs("self_edit_model"), "it comes with the profile, or not at all"
    closed = tool_view(loadable=["self_edit_model"], hidden=lambda tool: tool.name == "self_edit_model")
    assert "self_edit_model" not in closed.index


def test_an_unknown_category_is_said_with_those_that_there_are() -> None:
    with pytest.raises(ToolError, match="git, project, agent"):
        tool_view().specs(["cooking"])


async def test_the_shelf_is_looked_at_and_loaded_by_tools(bench: Bench) -> None:
    told = await bench.ok("browse_tools")
    assert {row["name"]: row["tool_count"] for row in told["categories"]}["system"] == 28
    told = await bench.ok("load_tools", category="hooks")
    assert (told["loaded"], len(told["tools_added"])) == ("hooks", 6)
    assert "6 hooks tools are now available" in told["message"]
    assert (await bench.ok("load_tools", category="git_log"))["tools_added"] == ["git_log"]
    assert (await bench.ok("load_tools", category="core"))["tools_added"] == []
    assert "no category or tool" in await bench.no("load_tools", category="cooking")


def _record(name: str, tool: str = "load_tools", error: bool = False) -> ResultRecord:
    return ResultRecord(id="c", tool=tool, content={"loaded": name}, error=error)


def test_what_was_loaded_is_read_from_the_journal_so_that_a_successor_shows_the_same() -> None:
    records: list[JournalRecord] = [
        NoteRecord(text="git"),
        _record("git"),
        _record("x", error=True),
        _record("hooks"),
        _record("git"),
    ]
    assert loaded(Records([*records, _record("memory", tool="other")])) == ["git", "hooks"]


class Echo(Model):
    """It keeps what it was asked."""

    def __init__(self, defers: bool) -> None:
        self._defers = defers
        self.asked: list[Request] = []

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        self.asked.append(request)
        return Answer(content=(), stop_reason="end_turn", model="echo", usage=Usage())

    async def models(self) -> list[str]:
        return ["echo"]

    async def check(self) -> None:
        return None

    def defers(self, model: str) -> bool:
        return self._defers


def _request(*contents: str) -> Request:
    """A conversation in which load_tools was called and gave these results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "look at the log"}]
    for number, content in enumerate(contents):
        use = {"type": "tool_use", "id": f"c{number}", "name": "load_tools", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": content}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return Request("m", ("s",), tuple(messages), tools=tool_view().specs())


async def test_where_tools_can_be_deferred_loading_answers_with_references() -> None:
    model, records = Echo(True), Records([_record("hooks")])
    content = json.dumps({"tools_added": ["fire_hook", "create_task", "no_such_tool"]})
    await ViewedModel(model, tool_view(), records).answer(_request(content, "no JSON", "{}"))
    [asked] = model.asked
    assert asked.tools == tool_view().specs([], defer=True)
    contents = [message["content"][0]["content"] for message in asked.messages[2::2]]
    assert contents == [[{"type": "tool_reference", "tool_name": "fire_hook"}], "no JSON", "{}"]


async def test_elsewhere_the_tools_are_appended_and_a_call_without_tools_stays_so() -> None:
    model = Echo(False)
    viewed = ViewedModel(model, tool_view(), Records([_record("hooks")]))
    await viewed.answer(_request("{}"))
    await viewed.answer(Request("m", ("s",), ({"role": "user", "content": "wrap up"},)))
    assert _names(model.asked[0].tools) == [*ALWAYS, *(tool.name for tool in registry.category("hooks"))]
    assert model.asked[0].messages == _request("{}").messages
    assert model.asked[1].tools == ()
