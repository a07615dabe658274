"""Tasks, repositories and projects, as the Store has them; works with the cluster down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from shared import people
from shared.client.client import Client
from shared.client.text.matching import pick
from shared.client.text.times import ago, moment
from shared.client.types import Card
from shared.client.views import lookup
from shared.client.views.questions import numbered
from shared.errors import PromptDockError, ToolError, UsageError
from shared.store.base import Where
from shared.store.origin import PERSON, Origin
from shared.store.records import Project, Repo, Task, TaskEvent, TaskResult, TaskStatus, project_key
from shared.tasks import questions, scheduler
from shared.tasks.fate import fates, waiting

if TYPE_CHECKING:
    from shared.guard.git.commands import Git
    from shared.tasks.worktree.mirrors import Mirrors

StyledLine = list[tuple[str, Literal["", "state", "moment", "failed"]]]  # texts, each with what it is
_STATES = f"name one of: {', '.join(get_args(TaskStatus))}"


@dataclass(frozen=True)
class Filter:
    """Which tasks are listed: of these states, of one project, of one person; the archived ones too."""

    statuses: Sequence[str] = ()
    project: str | None = None
    user: str | None = None
    everything: bool = False
    limit: int = 50
    offset: int = 0


async def _where(client: Client, wanted: Filter) -> Where:
    """As the Store is asked; UsageError for a state or a project that there is not."""
    where: dict[str, Any] = {} if wanted.everything else {"archived": False}
    if wanted.statuses:
        states = [
            pick(state.upper().replace("-", "_"), get_args(TaskStatus), "state", _STATES)
            for state in wanted.statuses
        ]
        where["status"] = ("in", states)
    if wanted.project:
        where["project_id"] = project_key(await lookup.project(client, wanted.project))
    if wanted.user:
        where["user_id"] = ("in", people.seen_by(wanted.user))
    return where


async def tasks(client: Client, wanted: Filter | None = None) -> list[Card]:
    """Tasks, the newest first."""
    wanted = wanted or Filter()
    store = await client.store()
    where = await _where(client, wanted)
    rows = await store.select(
        Task, where, order=[("created_at", "desc")], limit=wanted.limit, offset=wanted.offset
    )
    found = {row.id: row for row in await store.select(Project)}
    became = await fates(store, [row.id for row in rows])
    return [_card(row, found.get(row.project_id), became.get(row.id)) for row in rows]


def _card(row: Task, project: Project | None, became: str | None) -> Card:
    return {
        "id": row.slug,
        "title": row.title,
        "status": row.status,
        "work": became,
        "assignee": row.assignee,
        "user_id": row.user_id,
        "project": project.slug if project else "",
        "project_status": project.status if project else None,
        "branch": row.branch,
        "error": row.error or None,
        "made": _made(row) or None,
        "created_at": row.created_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "again_in": again_in(row),
    }


def again_in(row: Task) -> float | None:
    """Seconds until a task that failed is tried again; None where that is not what it waits for."""
    if row.status != "FAILED" or row.archived or row.attempts >= row.max_retries:
        return None
    return max(0.0, scheduler.retry_at(row.updated_at.timestamp(), row.attempts) - time.time())


def _made(row: Task | Repo) -> str:
    """Who made it, and after reading what: `made by planner after reading view`."""
    made = Origin.of(row.origin)
    by = f"made by {made.by}" if made.by not in ("", PERSON) else ""
    read = f"after reading {made.foreign}" if made.foreign else ""
    return f"{by or 'made'} {read}".strip() if by or read else ""


def state(card: Card) -> str:
    """A task's state, with what became of its work or waits: `COMPLETED, merged`, `READY, project paused`."""
    again = f"again in {ago(card['again_in'])}" if card.get("again_in") is not None else ""
    work = card["work"] or waiting(card["status"], card["branch"], card["error"], card["work"])
    rests = f"project {card['project_status'].lower()}" if is_resting(card) else ""
    return ", ".join(part for part in (card["status"], work, again, rests) if part)


def is_resting(card: Card) -> bool:
    """Whether it does not begin because its project is paused or archived."""
    return card["status"] in ("DEFINED", "READY") and card.get("project_status") not in (None, "ACTIVE")


async def find(client: Client, name: str) -> Task:
    """The task that is meant, by its id or a part of it."""
    store = await client.store()
    return (await store.select(Task, {"slug": await lookup.task(client, name)}, limit=1))[0]


async def task(client: Client, name: str) -> Card:
    """A task with its history, and what each attempt did as the harness recorded it."""
    row = await find(client, name)
    store = await client.store()
    events = await store.select(TaskEvent, {"task_id": row.id}, order=[("created_at", "asc")])
    results = await store.select(TaskResult, {"task_id": row.id}, order=[("created_at", "asc")])
    projects = await store.select(Project, {"id": row.project_id}, limit=1)
    became = await fates(store, [row.id])
    asked = await questions.of(store, row)
    return _card(row, projects[0] if projects else None, became.get(row.id)) | {
        "description": row.description,
        "question": asked.card() if asked else None,
        "history": [
            {
                "at": event.created_at.isoformat(),
                "event": event.event,
                "from": event.from_status,
                "to": event.to_status,
                "actor": event.actor,
            }
            for event in events
        ],
        "results": [_result(result) for result in results],
    }


def _result(row: TaskResult) -> Card:
    return {
        "agent": row.agent,
        "summary": row.summary,
        "branch": row.branch,
        "base": row.base_commit,
        "commits": row.commits,
        "files_changed": row.files_changed,
        "diff_stat": row.diff_stat,
        "commands": row.commands,
        "tokens": row.tokens_used,
        "cost": row.cost,
        "verified": row.verified,
        "clashes": row.receipt.get("clashes") or [],
        "error": row.error or None,
    }


def question(asked: Card) -> list[str]:
    """What a task asks, as people read it."""
    context = [f"  {asked['context']}"] if asked["context"] else []
    return [f"it asks: {asked['asked']}", *context, *numbered(asked["options"])]


def history(card: Card) -> list[StyledLine]:
    """What became of a task, an event a line."""
    return [
        [
            ("  ", ""),
            (moment(event["at"], seconds=True), "moment"),
            (f"  {event['event']:20} ", ""),
            (f"{event['to'] or '':12}", "state"),
            (f" {event['actor']}", ""),
        ]
        for event in card["history"]
    ]


def receipt(result: Card) -> list[StyledLine]:
    """What one attempt did, as git and the commands recorded it; an empty line stands above."""
    head: StyledLine = [(f"{result['agent']}: ", ""), (result["verified"], "state")]
    lines: list[StyledLine] = [[], [*head, (f", {result['tokens']} tokens, ${result['cost']:.4f}", "")]]
    plain = [f"  branch   {result['branch']}"] if result["branch"] else []
    plain += [f"  commit   {commit}" for commit in result["commits"]]
    lines += [[(text, "")] for text in plain]
    for command in result["commands"]:
        who = "check  " if command.get("by") == "harness" else "command"
        code = command["exit_code"]
        ended: StyledLine = [(f"exit {code}", "failed" if code else "")]
        lines.append([(f"  {who}  ", ""), *ended, (f"  {command['command']}", "")])
    plain = [f"  clashes with {one['branch']}: {', '.join(one['files'][:10])}" for one in result["clashes"]]
    plain += [text for text in (result["diff_stat"].rstrip(), result["summary"]) if text]
    return lines + [[(text, "")] for text in plain]


async def repos(client: Client) -> list[Card]:
    """The registered repositories."""
    store = await client.store()
    slugs = {row.id: row.slug for row in await store.select(Project)}
    return [
        {
            "name": row.name,
            "project": slugs.get(row.project_id, ""),
            "kind": row.kind,
            "url": row.url,
            "path": row.path,
            "default_branch": row.default_branch,
            "made": _made(row),
        }
        for row in await store.select(Repo, order=[("name", "asc")])
    ]


async def diff(client: Client, name: str) -> str:
    """What a task changed, by git, between the base and the last commit of its receipt."""
    row = await find(client, name)
    store = await client.store()
    results = await store.select(TaskResult, {"task_id": row.id}, order=[("created_at", "desc")], limit=1)
    if not results or not results[0].commits or not results[0].base_commit:
        raise UsageError(f"the task {name} has made no commit", f"it is {row.status}")
    made = results[0]
    for repo in await _candidates(client, row):
        try:
            git = await _repos(client).source(repo)
            if await git.commit_of(made.commits[-1]):
                return await git.diff(str(made.base_commit), to=made.commits[-1])
        except ToolError as error:
            raise PromptDockError(f"the changes of {name} cannot be shown", str(error)) from error
    raise UsageError(
        f"the commits of {name} are in no repository here",
        f"its branch is {made.branch}",
        "fetch it where it was made",
    )


async def gits(client: Client, task: Task) -> list[Git]:
    """git in the repositories of this machine in which the task may have worked."""
    found = []
    for repo in await _candidates(client, task):
        with contextlib.suppress(ToolError):
            found.append(await _repos(client).source(repo))
    return found


async def _candidates(client: Client, row: Task) -> list[Repo]:
    store = await client.store()
    where: dict[str, Any] = {"id": row.repo_id} if row.repo_id else {"project_id": row.project_id}
    return await store.select(Repo, where)


def _repos(client: Client) -> Mirrors:
    """The repositories as they lie on this home; git is only read here."""
    from shared.guard.files.host_id import home_id
    from shared.guard.sandbox.sandbox import Sandbox
    from shared.tasks.worktree.mirrors import Mirrors

    home = client.settings.home
    return Mirrors(
        home,
        home_id(home),
        Sandbox.probe(client.settings.sandbox, [home]),
        hosts=client.settings.allowed_hosts,
    )
