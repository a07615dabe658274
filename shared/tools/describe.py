"""What a call will do, in words for the person who is asked for permission: first one line, then what more there is.

One function for each kind of action. Nothing here decides anything: what cannot be looked at is left out, and who
declares no words of their own is shown by its description and arguments.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from shared import log, plain
from shared.errors import PromptDockError
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import Git
from shared.guard.git.merging import Merger
from shared.guard.permissions.bound import Facts
from shared.guard.permissions.secret_files import is_secret
from shared.store.records import Hook, Project, Setting, Task, TaskResult
from shared.tasks import budgets, fate
from shared.tools import checkouts, lookup
from shared.tools.context import Context, Root
from shared.tools.detail import place
from shared.tools.registry import Tool
from shared.tools.tasks import review

_PATIENCE = 10.0  # seconds that looking may take: a person is asked all the same
_TEXT = 200  # characters of one argument
_NAMED = 8  # files that are named


async def call(here: Context | None, tool: Tool, arguments: dict[str, Any], facts: Facts) -> list[str]:
    """What the call will do; `facts` are what a yes is bound to, as they are now."""
    teller = _TELLERS.get(tool.name)
    if here is not None and teller is not None:
        try:
            async with asyncio.timeout(_PATIENCE):
                if told := await teller(here, facts, arguments):
                    return told
        except (PromptDockError, OSError, ValueError, TimeoutError) as error:
            log.get().debug("A call cannot be described", tool=tool.name, why=str(error))
    return _theirs(tool, arguments) if tool.accepts is not None else _plainly(tool, arguments)


def _theirs(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Of another source: what it says of itself is no word of ours, and stands last."""
    said = f"it says of itself: {_short(' '.join(tool.description.split()))}"
    return [
        f"call {tool.detail(dict(arguments)) or tool.name}, a tool of an MCP server",
        *_arguments(arguments),
        said,
    ]


def _plainly(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """By its description and arguments: what nobody found words for."""
    first = tool.description.split("\n")[0].split(". ")[0].rstrip(".")
    return [f"{first[:1].lower()}{first[1:]} ({tool.name})", *_arguments(arguments)]


def _arguments(arguments: Mapping[str, Any]) -> list[str]:
    given = ((name, value) for name, value in arguments.items() if value not in (None, "", [], {}))
    return [f"{name.replace('_', ' ')}: {_short(value)}" for name, value in given]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}… ({len(text)} characters)"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# Work on its way to others -------------------------------------------------------------------------


async def _merge_task(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    repo = await review.repo_of(here, task)
    lines = [
        f"merge {task.branch or 'the branch of the task'} into {repo.default_branch} of {repo.name}",
        f"it is the work of the task {task.slug} ({task.title}), which is {task.status}",
    ]
    lines += [_changes(facts), await _proof(here, task)]
    git = checkouts.repos(here).here(repo)
    if git is not None and facts.get("commit") and facts.get("into"):
        lines.append(await _conflicts(git, facts))
    if facts.get("address"):
        lines.append(f"{repo.default_branch} is then pushed to {facts['address']}")
    return [line for line in lines if line]


async def _unmerge_task(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    repo = await review.repo_of(here, task)
    lines = [
        f"take the merged work of the task {task.slug} ({task.title}) out of {repo.default_branch} of {repo.name}"
    ]
    if facts.get("address"):
        lines.append(f"{repo.default_branch} is then pushed to {facts['address']}")
    return lines


async def _proof(here: Context, task: Task) -> str:
    """Whether the harness has seen the work pass its checks."""
    order: Any = [("created_at", "desc")]
    rows = await here.store.select(TaskResult, {"task_id": task.id}, order=order, limit=1)
    if not rows:
        return "there is no receipt: nobody has checked it"
    ran = [command for command in rows[0].commands if command.get("by") == "harness"]
    checks = "; ".join(f"{one.get('command')} exit {one.get('exit_code')}" for one in ran[:3])
    return f"its receipt says {rows[0].verified}" + (f": {checks}" if checks else "")


def _changes(facts: Facts) -> str:
    return facts.get("changes", "")


async def _conflicts(git: Git, facts: Facts) -> str:
    trial = await Merger(git.path, git.sandbox).trial(facts["into"], facts["commit"])
    return f"it conflicts in {_some(trial.clashes)}" if trial.clashes else "it merges without conflicts"


async def _root(here: Context, given: dict[str, Any]) -> tuple[Context, Root, Checkout]:
    named = (str(given.get(name) or "") for name in ("project_id", "workspace", "repo_id"))
    here, root, _ = await checkouts.root(here, *named)
    return here, root, checkouts.checkout(here, root)


async def _merge_branch(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    here, root, git = await _root(here, given)
    into = given.get("default_branch") or await checkouts.default_branch(here, root, git)
    lines = [f"merge the branch {given['branch_name']} into {into} of {root.name}", _changes(facts)]
    if facts.get("commit") and facts.get("into"):
        lines.append(await _conflicts(git, facts))
    return [line for line in lines if line]


async def _push(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    _, root, git = await _root(here, given)
    branch = given.get("branch") or given.get("branch_name") or await git.branch()
    lines = [f"push the branch {branch} of {root.name} to {facts.get('address', 'its remote')}"]
    commit = facts.get("commit", "")
    if commit:
        lines.append(f"what the remote does not have yet: {_changes(facts)}")
        lines += [f"{one.sha[:10]} {one.subject}" for one in await git.log(3, ref=commit)]
    return lines


async def _pull(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    _, root, git = await _root(here, given)
    branch = given.get("branch") or await git.branch()
    return [f"fetch {branch} from {facts.get('address', 'its remote')} and merge it in {root.name}"]


async def _request(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    _, root, git = await _root(here, given)
    branch = given.get("branch") or await git.branch()
    into = given.get("base") or "the default branch"
    lines = [
        f"open a pull request for {branch} of {root.name} into {into} at {facts.get('address', 'its remote')}"
    ]
    return [*lines, f"title: {given.get('title', '')}", *([_changes(facts)] if _changes(facts) else [])]


async def _delete_project(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    row = await lookup.project(here.store, given["project_id"])
    count = await here.store.count(Task, {"project_id": row.id})
    left = [task.slug for task in await fate.unmerged(here.store, row.id)]
    told = [f"delete the project {row.slug} ({row.name}) with its tasks ({count}), notes and hooks, for good"]
    return told + ([f"work that is not merged, which stays on its branches: {_some(left)}"] if left else [])


async def _discard(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    repo = await review.repo_of(here, task)
    lines = [
        f"throw away the branch {task.branch or '(none)'} of the task {task.slug} ({task.title}), and its files"
    ]
    git = checkouts.repos(here).here(repo)
    if git is not None and task.branch and (head := await git.commit_of(f"refs/heads/{task.branch}")):
        lines.append(await git.amount(await checkouts.repos(here).base(repo, git), head))
    return [*lines, f"it is {task.status}; its receipt stays"]


# Commands and files --------------------------------------------------------------------------------


async def _command(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    text = str(given.get("command", ""))
    first, _, more = text.strip().partition("\n")
    told = [f"run {first}" + (f" (and {more.count(chr(10)) + 1} more lines)" if more else "")]
    mode = checkouts.sandbox(here).mode
    where = {
        "bwrap": "in the sandbox (bubblewrap): without network, and it changes nothing outside of that folder",
        "landlock": "in the sandbox (Landlock): it changes no file outside of that folder",
        "none": "without a sandbox: it may do whatever PromptDock itself may",
    }.get(mode, "where there is no sandbox it is refused")
    return [*told, f"in the folder {facts.get('folder') or given.get('working_dir') or 'of the task'}", where]


async def _packages(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    told = await _command(here, facts, given)
    reaches = f"it reaches package registries and nothing else: {facts.get('address') or 'none'}"
    code = "what packages run as they are installed is code of others: it sees this folder, and may send it there"
    return [*told[:2], "in the sandbox: it changes nothing outside of that folder", reaches, code]


async def _write(_here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    path, text = str(given.get("path", "")), given.get("content")
    if isinstance(text, str):
        return [f"write the file {path}: {len(text.splitlines())} lines", f"it begins: {_short(text)}"]
    old, new = (next((given[key] for key in keys if key in given), "") for keys in _PAIR)
    lines = [f"change the file {path}", f"from: {_short(old)}", f"to: {_short(new)}"]
    return [*lines, *(["it holds secrets, and the model is shown what it reads"] if is_secret(path) else [])]


_PAIR = (("old_string", "old_str"), ("new_string", "new_str"))


async def _read(_here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    path = str(given.get("path") or "")
    return [f"show the model the file {path}, which holds secrets"] if path and is_secret(path) else []


# What may be spent, and what waits for a person ----------------------------------------------------


async def _task_edit(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    lines = [f"change the task {task.slug} ({task.title})"]
    if given.get("budget", "") != "":
        lines.append(f"its budget from {_dollars(task.budget)} to {_dollars(given['budget'])}")
    if given.get("status"):
        lines.append(f"its status from {task.status} to {given['status']}, past all rules")
    rest = {name: value for name, value in given.items() if name not in ("task_id", "budget", "status")}
    return [*lines, *_arguments(rest)]


async def _status(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    return [
        f"set the task {task.slug} ({task.title}) from {task.status} to {given['status']}, past all rules"
    ]


async def _project_edit(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    row: Project = await lookup.project(here.store, given["project_id"])
    lines = [f"change the project {row.slug}"]
    if given.get("budget_limit", "") != "":
        lines.append(f"its budget from {_dollars(row.budget)} to {_dollars(given['budget_limit'])}")
    return [*lines, *_arguments({k: v for k, v in given.items() if k not in ("project_id", "budget_limit")})]


async def _day(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    kept = await lookup.first(here.store, Setting, scope=budgets.SCOPE, key=budgets.DAY)
    value = kept.value.get("dollars") if kept and isinstance(kept.value, dict) else None
    was = _dollars(value) if value is not None else "what the setting BUDGET_DAY says"
    to = (
        _dollars(given["dollars"]) if given.get("dollars") is not None else "what the setting BUDGET_DAY says"
    )
    return [f"change what all model calls of a day may cost, from {was} to {to}"]


def _dollars(value: Any) -> str:
    return "no limit" if value is None else plain.dollars(float(value))


def _decides(does: str) -> Callable[[Context, Facts, dict[str, Any]], Awaitable[list[str]]]:
    """list[str] for what decides about a task: `complete the task {}`."""

    async def told(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
        task = await lookup.task(here.store, given["task_id"])
        rest = {name: value for name, value in given.items() if name != "task_id"}
        lines = [f"it asked: {task.question}"] if task.question else []
        return [does.format(f"{task.slug} ({task.title})"), f"it is {task.status}", *lines, *_arguments(rest)]

    return told


async def _plan(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    task = await lookup.task(here.store, given["task_id"])
    planned = task.plan.get("tasks") or []
    if not planned:
        return [f"let the task {task.slug} ({task.title}) begin, which waits for you", f"it is {task.status}"]
    lines = [
        f"approve the plan of the task {task.slug} ({task.title}): its {len(planned)} tasks are written and begin"
    ]
    return [
        *lines,
        *(f"{number}. {one.get('title')} ({one.get('agent')})" for number, one in enumerate(planned, 1)),
    ]


# What is opened, and what acts later ---------------------------------------------------------------


async def _repository(_here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    where = (
        facts.get("address") or facts.get("folder") or await _real(given) or "a new folder of the data folder"
    )
    lines = [f"register the repository {where}: agents may read it, and work on it in branches of their own"]
    if (path := given.get("path")) and path != where:
        lines.append(f"it was given as {path}")
    rest = {name: given.get(name) for name in ("name", "project_id", "kind")}
    push = ["its tasks' branches are pushed to it after each step"] if given.get("push_tasks") else []
    return [*lines, *_arguments(rest), *push]


async def _workspace(_here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    project = given["project_id"]
    if given.get("source") == "link":
        return [
            f"open the folder {await _real(given)} of this machine to agents that work in project {project}"
        ]
    return [
        f"make another clone of the repository of project {project}",
        *_arguments({"name": given.get("name")}),
    ]


async def _real(given: dict[str, Any]) -> str:
    path = str(given.get("path") or "")
    return await asyncio.to_thread(place, path)


async def _hook(here: Context, _facts: Facts, given: dict[str, Any]) -> list[str]:
    row = await lookup.hook(here.store, given["hook_id"]) if given.get("hook_id") else None
    trigger = given.get("trigger") or (row.trigger if row else {})
    looks = given.get("context_steps")
    looks = (row.context_steps if row else []) if looks is None else looks
    name = row.slug if row else given.get("name", "")
    lines = [f"{'change' if row else 'make'} the hook {name}, which acts by itself {_times(trigger)}"]
    lines += [f"step {number}: {_step(step)}" for number, step in enumerate(looks, 1)]
    lines.append(
        f"then it tells its agent: {_short(given.get('prompt_template') or (row.prompt_template if row else ''))}"
    )
    cap = given.get("daily_cap") or (row.daily_cap if row else None)
    return [*lines, *([f"at most {cap} times a day"] if cap else [])]


def _times(trigger: Mapping[str, Any]) -> str:
    if trigger.get("type") == "periodic":
        return f"every {trigger.get('interval_seconds')} s"
    if trigger.get("type") == "cron":
        return f"at the times {trigger.get('cron')} (minute, hour, day, month, weekday)"
    return f"whenever {trigger.get('event_type')} happens"


def _step(step: Mapping[str, Any]) -> str:
    what = step.get("command") or step.get("url") or step.get("path") or step.get("query") or ""
    return f"{step.get('type')} {_short(what)}".strip()


async def _fired(here: Context, facts: Facts, given: dict[str, Any]) -> list[str]:
    row: Hook = await lookup.hook(here.store, given["hook_id"])
    told = await _hook(here, facts, {"hook_id": row.slug})
    return [f"run the hook {row.slug} now", *told[1:]]


_COMMAND = dict.fromkeys(("bash", "run_command"), _command)
_WRITE = dict.fromkeys(("write_file", "create_file", "edit_file", "str_replace"), _write)
_READ = dict.fromkeys(("read_file", "view", "git_diff", "git_blame"), _read)
_TELLERS: dict[str, Callable[[Context, Facts, dict[str, Any]], Awaitable[list[str]]]] = {
    **_COMMAND,
    "install_packages": _packages,
    **_WRITE,
    **_READ,
    "merge_task": _merge_task,
    "unmerge_task": _unmerge_task,
    "git_merge": _merge_branch,
    "merge_branch": _merge_branch,
    "git_push": _push,
    "push_branch": _push,
    "git_pull": _pull,
    "git_create_pr": _request,
    "delete_project": _delete_project,
    "discard_task": _discard,
    "edit_task": _task_edit,
    "set_task_status": _status,
    "edit_project": _project_edit,
    "set_day_budget": _day,
    "delete_task": _decides("delete the task {}, with its history"),
    "approve_task": _decides("complete the task {} without merging its work"),
    "approve_plan": _plan,
    "reject_plan": _decides("send the plan of the task {} back to its planner"),
    "delete_plan": _decides("delete the plan of the task {}"),
    "skip_task": _decides("skip the task {}: what waits for it begins without its work"),
    "answer_task": _decides("answer the question of the task {} for you"),
    "add_repo": _repository,
    "add_workspace": _workspace,
    "create_hook": _hook,
    "edit_hook": _hook,
    "fire_hook": _fired,
}
