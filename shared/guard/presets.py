"""The policies that ship with the project, by name, and policies of one's own made from them."""

from __future__ import annotations

import functools
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import ConfigurationError
from shared.guard.permissions import Policy, policy

Preset = Literal["open", "standard", "guarded", "locked", "builder"]

# Names by what they do. A tool that stands in none of these, and in no category below, is denied.
_READ = (
    "list_[a-z_]+", "get_[a-z_]+", "read_[a-z_]+", "find_[a-z_]+", "search_files", "view", "view_profile", "grep",
    "glob_files", "git_log", "git_diff", "git_changed_files", "git_blame", "check_agent_status", "check_profile",
    "review_task", "memory_search", "memory_stats", "compare_specs_notes", "browse_tools", "browse_rules",
    "load_tools", "load_rule",
    "render_prompt", "report_findings",
)  # fmt: skip
_TALK = ("consult_[a-z_]+", "assign_task", "escalate_to_human", "send_message", "submit_plan")
_MANAGE = (
    "create_task", "edit_task", "answer_task", "stop_task", "restart_task", "pause_task", "resume_task",
    "reopen_with_feedback", "archive_tasks?",
    "restore_task",
    "approve_task", "approve_plan", "reject_plan", "skip_task", "add_dependency", "remove_dependency",
    "create_project", "pause_project", "resume_project", "edit_project", "set_default_branch", "set_active_project",
    "set_project_channel", "set_control_interface", "add_repo", "add_workspace", "release_workspace",
    "sync_workspaces", "orchestrator_control", "pause_agent", "resume_agent",
    "write_note", "append_note", "promote_note", "save_rule", "memory_reindex", "compact_memory",
    "edit_project_profile", "regenerate_profile",
    "create_hook", "edit_hook", "fire_hook",
)  # fmt: skip
_FILES = ("create_file", "str_replace", "write_file", "edit_file")
_GIT = ("git_init", "git_commit", "git_create_branch", "checkout_branch", "create_branch", "commit_changes")
_SHELL = ("bash", "run_command")
_DELETE = ("delete_[a-z_]+", "remove_workspace", "discard_task")
_SELF = (
    "self_edit_[a-z_]+", "create_agent", "edit_agent", "create_profile", "edit_profile", "install_profile",
    "set_task_status", "set_day_budget", "restart_daemon", "revoke_permission",
)  # fmt: skip
_MERGE = ("git_merge", "merge_branch", "merge_task")

# What leaves this machine, or lets something else leave it.
LEAVES = (
    "git_push",
    "push_branch",
    "git_create_pr",
    "export_profile",
    "import_profile",
    "http[a-z_]*",
    "mcp__.*",
)


def _named(*groups: tuple[str, ...], any_text: bool = False) -> str:
    names = "|".join(name for group in groups for name in group)
    return f"{'(?s)' if any_text else ''}tool:({names}):.*"


_AWAY = (*LEAVES, "git_pull")
_AT_HOME = _named(_SHELL, _DELETE, _SELF, _MERGE, any_text=True)
_ASKED = _named(_SHELL, _DELETE, _SELF, _MERGE, _AWAY, any_text=True)
# A commit's message is no part of its action, and a path holds no line break: `.` is enough for these.
_STANDARD = _named(_READ, _TALK, _MANAGE, _FILES, _GIT)


class Policies(BaseModel):
    """Permissions as a profile writes them: a preset's name, or a table with rules of one's own before it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Preset | None = None
    deny: list[str] = []
    allow: list[str] = []
    ask: list[str] = []
    approval_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = 15.0  # that a person has for an answer

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        return {"preset": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _usable(self) -> Policies:
        try:
            policy("own", deny=self.deny, allow=self.allow, ask=self.ask)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return self

    def make(self, name: str, confined: bool) -> Policy:
        """The policy; `confined` says that shell commands run in a sandbox of their own without network."""
        if not (self.deny or self.allow or self.ask):
            return preset(self.preset, confined) if self.preset else policy(name)
        behind = preset(self.preset, confined) if self.preset else None
        called = f"{self.preset} with rules of {name}" if self.preset else name
        return policy(called, deny=self.deny, allow=self.allow, ask=self.ask, behind=behind)


def _rules(name: str, confined: bool) -> dict[str, list[str]]:
    match name:
        case "open":
            return {"allow": ["(?s)tool:.*"]}
        case "standard":
            return {"allow": [_STANDARD], "ask": [_ASKED]}
        case "guarded":
            return {"allow": [_STANDARD, _AT_HOME], "ask": [_named(_AWAY, any_text=True)]}
        case "builder":
            shells = [_named(_SHELL, any_text=True)] if confined else []
            return {"allow": [_STANDARD, *shells], "ask": [_ASKED]}
        case _:
            return {"allow": [_named(_READ)]}


@functools.cache
def preset(name: str, confined: bool = False) -> Policy:
    """A shipped policy; ConfigurationError for a name that none has."""
    if name not in get_args(Preset):
        raise ConfigurationError(
            f"there is no permission profile {name!r}",
            f"there are: {', '.join(get_args(Preset))}",
            "name one of them",
        )
    rules = _rules(name, confined)
    return policy(name, allow=rules["allow"], ask=rules.get("ask", []), unguarded=name == "open")
