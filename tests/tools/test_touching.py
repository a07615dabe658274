"""What tools declare: each says what it touches, and none says less than its arguments do."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from shared.guard.permissions import safeguards
from shared.guard.permissions.touching import UNKNOWN, TouchKind, class_of, in_words, spelled, touching
from shared.tools import catalog
from shared.tools.context import Context
from shared.tools.registry import Category, Result, Tool

TOOLS = list(catalog.registry())
# What an argument of such a name touches, in a tool that does more than read: one of these has to be declared.
SIGNS: list[tuple[str, set[TouchKind]]] = [
    (r"(.*_)?(url|uri|address|host|hostname|remote|webhook|endpoint|gist)", {"address"}),
    (r"(.*_)?(path|paths|folder|directory|working_dir)", {"files", "root", "command"}),
    (r"(.*_)?(budget|budgets|budget_limit|cost|dollars|credits|spend|price)(_.*)?", {"money"}),
    (r"status|state|approve|approved|approval|verdict", {"approval"}),
    (r"(.*_)?(schedule|trigger|cron|interval|interval_seconds|cooldown_seconds|run_at|every)", {"schedule"}),
    (
        r"(.*_)?(permission|permissions|permission_mode|permission_id|allow|allowed_tools|roles)",
        {"permission"},
    ),
    (r"command|commands|script|code|argv|shell|context_steps", {"command", "code"}),
    (r"mcp_servers|install|packages", {"code", "permission"}),
    (r"new_(prompt|model|profile)", {"agent", "permission"}),
]
PATHS = re.compile(r"path|specs_path")  # of tools that read: inside of what is open, which the jail sees to


def signs(tool: Tool) -> list[tuple[str, set[TouchKind]]]:
    """Arguments whose names say what they touch."""
    names = list(inspect.signature(tool.function).parameters)[1:]
    found = [(name, kinds) for name in names for sign, kinds in SIGNS if re.fullmatch(sign, name)]
    if tool.reads_only:  # a filter by status changes none
        found = [(name, kinds) for name, kinds in found if "address" in kinds or PATHS.fullmatch(name)]
    return found


def missing(tool: Tool) -> list[str]:
    """Arguments by which it touches what it does not declare."""
    declared = tool.touches or touching()
    return [
        name
        for name, kinds in signs(tool)
        if not kinds & {*declared.always, *(declared.by[name].kinds if name in declared.by else ())}
    ]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_tool_says_what_it_touches(tool: Tool) -> None:
    assert tool.touches is not None and tool.touches.always, f"{tool.name}: touches=touching(…) is missing"
    names = set(inspect.signature(tool.function).parameters)
    assert set(tool.touches.by) <= names, "it names arguments that it does not have"


# Names of something else: of a folder of the project's that is looked up, of a page in the agent's own prompt.
NO_PATHS = {("compare_specs_notes", "specs_path"), ("self_edit_docs", "path")}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_tool_declares_less_than_the_names_of_its_arguments_say(tool: Tool) -> None:
    left = [name for name in missing(tool) if (tool.name, name) not in NO_PATHS]
    assert left == [], f"{tool.name}({', '.join(left)}): what they touch is not declared"


def test_each_tool_that_writes_a_file_is_one_of_the_writers() -> None:
    """Whose paths are looked at, for files that other programs obey and for what nobody may write."""
    writes = {
        tool.name
        for tool in TOOLS
        if tool.touches and "files" in tool.touches.possible and not tool.reads_only
        if "path" in inspect.signature(tool.function).parameters
    }
    assert writes == safeguards.WRITERS


def _made(*declared: TouchKind, effect: Any = "once") -> Tool:
    category = Category("x", "x")

    @category.tool(effect=effect, touches=touching(*declared) if declared else None)
    async def fetch_it(here: Context, page_url: str, budget: float | None = None) -> Result:
        """Fetch it."""
        return {}

    return category.tools[0]


def test_a_new_tool_that_forgets_its_address_or_its_money_is_noticed() -> None:
    assert missing(_made("records")) == ["page_url", "budget"]
    assert missing(_made("records", effect="pure")) == ["page_url"]
    assert missing(_made("address")) == ["budget"]
    assert missing(_made("address", "money")) == []


def test_a_tool_that_declares_nothing_may_reach_anything() -> None:
    tool = _made()
    assert tool.touches is None and tool.kinds({"page_url": "x"}) == UNKNOWN.always == ("address",)
    assert tool.touched() == ("tool:@widen:address",) and tool.foreign


def test_a_room_that_imports_a_client_of_the_network_has_a_tool_that_says_so() -> None:
    """By what a module imports: whoever fetches by itself, or runs programs, declares it."""
    folder = Path(catalog.__file__).parent
    clients = re.compile(
        r"^\s*(?:import|from) (httpx|urllib\.request|aiohttp|requests|websockets|smtplib)\b", re.M
    )
    for file in sorted(folder.glob("*.py")):
        if not clients.search(file.read_text("utf-8")):
            continue
        declared = {
            kind
            for tool in TOOLS
            if Path(inspect.getfile(inspect.unwrap(tool.function))).name == file.name and tool.touches
            for kind in tool.touches.possible
        }
        there = any(Path(inspect.getfile(tool.function)).name == file.name for tool in TOOLS)
        assert "address" in declared or not there, (
            f"{file.name} reaches addresses, and none of its tools says so"
        )


def test_what_is_touched_depends_on_what_is_given() -> None:
    registry = catalog.registry()

    def kinds(tool_name: str, /, **arguments: Any) -> tuple[TouchKind, ...]:
        tool = registry.get(tool_name)
        return tool.kinds(tool.check(arguments))

    assert kinds("edit_task", task_id="x", title="t") == ("records",)
    assert kinds("edit_task", task_id="x", budget=5) == ("records", "money")
    assert kinds("edit_task", task_id="x", budget=None) == ("records", "money"), "no bound at all"
    assert kinds("edit_task", task_id="x", status="READY") == ("records", "approval")
    assert kinds("add_repo", source="link", path="/x") == ("root",)
    assert kinds("add_repo", source="init") == ("root",)
    assert set(kinds("add_repo", source="clone", url="https://x.invalid/y")) == {"root", "address"}
    assert set(kinds("add_repo", source="link", path="https://x.invalid/y")) == {"root", "address"}
    assert kinds("create_project", name="x", repo_url="/srv/x") == ("records", "root")
    hook = {"project_id": "p", "name": "n", "trigger": {}, "prompt_template": "x"}
    assert kinds("create_hook", **hook) == ("schedule",)
    steps = [{"type": "http"}, {"type": "shell"}, {"type": "read_file"}]
    assert set(kinds("create_hook", **hook, context_steps=steps)) == {"schedule", "address", "command"}
    assert kinds("import_profile", source="name: x") == ("permission",)
    assert kinds("import_profile", source="https://x.invalid") == ("permission", "address")


def test_the_action_says_the_very_thing(tmp_path: Path) -> None:
    registry = catalog.registry()

    def detail(tool_name: str, /, **arguments: Any) -> str:
        tool = registry.get(tool_name)
        return tool.detail(tool.check(arguments))

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = tmp_path.resolve() / "real"
    assert detail("add_repo", source="link", path=str(tmp_path / "link"), name="s") == f"link {real} as s"
    assert detail("add_repo", source="link", path=f"{tmp_path}/x/../real") == f"link {real}"
    assert detail("add_repo", source="clone", url="https://h.invalid/x") == "clone https://h.invalid/x"
    assert (
        detail("add_workspace", project_id="p", source="link", path=str(tmp_path / "link"))
        == f"p link {real}"
    )
    assert detail("create_project", name="My shop", repo_url=str(tmp_path / "link")) == f"my-shop {real}"
    assert detail("edit_project", project_id="p", budget_limit=12.5) == "p budget 12.5"
    assert detail("edit_project", project_id="p", budget_limit=None) == "p budget none"
    assert detail("edit_project", project_id="p", name="x") == "p"
    assert detail("edit_task", task_id="t", budget=3, status="COMPLETED") == "t budget 3 status COMPLETED"
    assert detail("set_day_budget", dollars=100) == "day 100"
    assert detail("set_task_status", task_id="t", status="READY") == "t READY"
    hook = {"project_id": "p", "name": "At night", "trigger": {}, "prompt_template": "x"}
    one = detail("create_hook", **hook, context_steps=[{"type": "shell", "command": "a"}])
    other = detail("create_hook", **hook, context_steps=[{"type": "shell", "command": "b"}])
    assert one.startswith("at-night shell ") and one != other, (
        "permission for one command is none for another"
    )


def test_the_class_follows_from_the_kind() -> None:
    assert class_of("files", reads=True) == "read"
    assert class_of("files", reads=False) == class_of("loss", reads=False) == "change"
    assert class_of("address", reads=True) == class_of("money", reads=False) == "widen"
    assert spelled(("files", "money"), reads=True) == ("tool:@read:files", "tool:@widen:money")
    assert in_words(("files", "records")) == ""
    assert in_words(("money", "address", "loss")) == (
        "changes what may be spent, connects to an address and deletes what cannot be brought back"
    )
