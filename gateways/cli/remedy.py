"""The cluster's tools advise in names of tools; a person at a shell reads the commands that do the same."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

_COMMANDS = {
    "list_tasks": "tasks list",
    "list_repos": "repo list",
    "list_agents": "agents list",
    "list_projects": "project list",
    "list_hooks": "hooks list",
    "list_notes": "notes list",
}
# Those of one project or hook, which the command that was refused names.
_OF_A_FIELD = {
    "list_notes": ("notes list --project", "project_id"),
    "list_hook_runs": ("hooks runs", "hook_id"),
}
# Those of one task, which the command that was refused names.
_OF_A_TASK = {
    "get_task": "tasks show",
    "get_task_diff": "tasks diff",
    "review_task": "tasks review",
    "merge_task": "tasks merge",
    "unmerge_task": "tasks unmerge",
    "discard_task": "tasks discard",
    "pause_task": "tasks pause",
    "resume_task": "tasks resume",
    "stop_task": "tasks stop",
    "restart_task": "tasks restart",
    "skip_task": "tasks skip",
}
# What views that the page reads as well call lists of theirs.
_ROUTE = re.compile(r"\bGET /api/([a-z]+)\b")
_ROUTES = {
    "approvals": "approvals list", "hooks": "hooks list", "notifications": "notify list", "projects": "project list",
    "sessions": "sessions list", "tasks": "tasks list", "webhooks": "webhook list",
}  # fmt: skip
_NAME = re.compile(r"\b(?:list|get|review|merge|unmerge|discard|pause|resume|stop|restart|skip)_[a-z_]+\b")


def typed(text: str, arguments: dict[str, Any]) -> str:
    """The advice with commands in place of tools; `arguments` are those of the call that was refused."""
    return _NAME.sub(lambda found: _command(found.group(), arguments), text)


def routed(text: str) -> str:
    """The advice with commands in place of routes of the HTTP API."""
    return _ROUTE.sub(lambda found: f"promptdock {_ROUTES.get(found.group(1), 'status')}", text)


def _command(tool: str, arguments: dict[str, Any]) -> str:
    task = arguments.get("task_id")
    if task and tool in _OF_A_TASK:
        return f"promptdock {_OF_A_TASK[tool]} {shlex.quote(str(task))}"
    words, field = _OF_A_FIELD.get(tool, ("", ""))
    if arguments.get(field):
        return f"promptdock {words} {shlex.quote(str(arguments[field]))}"
    if tool in _COMMANDS:
        return f"promptdock {_COMMANDS[tool]}"
    if not tool.startswith("list_"):
        return tool
    given = {"project_id": arguments["project_id"]} if arguments.get("project_id") else {}
    return f"promptdock tools call {tool} {shlex.quote(json.dumps(given, ensure_ascii=False))}"
