"""Tasks: the board, and one task with its brief, its changes, its history and what was checked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from markupsafe import Markup, escape
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, called, given, known, view
from gateways.web.render import diff as diffs
from gateways.web.render import words
from gateways.web.render.words import part as quoted
from shared.client.types import Card
from shared.client.views import projects, status, trace
from shared.client.views.tasks import tasks
from shared.client.views.tasks.board import BoardColumn, board, changed
from shared.errors import PromptDockError

router = APIRouter()
_PARTS = ("brief", "diff", "log", "checks")
_RUNS = ("ASSIGNED", "IN_PROGRESS", "VERIFYING", "WAITING_INPUT")


@dataclass(frozen=True)
class Act:
    """Something that a person can do with a task now."""

    name: str
    words: str
    kind: str = ""
    key: str = ""


@dataclass(frozen=True)
class Done:
    """One act of the task's agent; `after` and `ms` are milliseconds."""

    what: str
    after: int
    ms: int
    failed: bool


async def shown(here: Seat, project: str, zone: str = "tasks", before: str = "") -> Response:
    """The board, beside the conversation."""
    columns, listed = await asyncio.gather(
        known(board(here.client, project), list[BoardColumn]()),
        known(projects.listing(here.client), list[Card]()),
    )
    if not here.person.owner:
        mine = here.person.projects
        listed = [one for one in listed if one["id"] in mine]
        columns = [
            BoardColumn(column.name, [card for card in column.cards if card.project in mine])
            for column in columns
        ]
    names = [str(one["id"]) for one in listed]
    nothing = not any(column.cards for column in columns)
    problem = await status.unreadable(here.client) if nothing else ""
    return await view(
        *(here, zone, "tasks.html"),
        columns=columns,
        projects=names,
        project=project,
        before=before,
        problem=problem,
    )


@router.get("/tasks")
async def all_tasks(here: Here, project: str = "") -> Response:
    """The board."""
    return await shown(here, project)


@router.get("/tasks/{id}")
async def brief(here: Here, id: str) -> Response:
    """What is to be done."""
    return await _one(here, id, "brief")


@router.get("/tasks/{id}/{part}")
async def one_part(here: Here, id: str, part: str) -> Response:
    """Another part of a task."""
    if part not in _PARTS:
        raise HttpError(404, "a task has no such part", f"there are: {', '.join(_PARTS)}")
    return await _one(here, id, part)


async def _one(here: Seat, id: str, part: str) -> Response:
    card, row = await asyncio.gather(tasks.task(here.client, id), tasks.find(here.client, id))
    if not here.person.owner and card["project"] not in here.person.projects:
        raise HttpError(404, "there is no such task")
    results = card["results"]
    last = results[-1] if results else None
    more: dict[str, Any] = {
        "files": [],
        "problem": "",
        "side": "",
        "acted": [],
        "pieces": pieces,
        "number": number,
    }
    if part == "diff":
        more |= await _diff(here, card["id"])
    elif part == "log":
        more["acted"] = await _acted(here, card["id"])
    to_merge = row.status == "AWAITING_APPROVAL" or (
        row.status == "COMPLETED" and bool(row.branch) and card["work"] is None and not row.error
    )
    stat = changed(last["diff_stat"]) if last else (0, 0, 0)
    told = f"Diff +{stat[0]} −{stat[1]}" if last and any(stat) else "Diff"
    parts = [("brief", "Brief"), ("diff", told), ("log", "Log"), ("checks", "Checks")]
    card |= {"acceptance": row.acceptance, "feedback": row.feedback}
    return await view(
        *(here, "tasks", "task.html"),
        task=card,
        result=last,
        stat=stat,
        part=part,
        parts=parts,
        states=words.STATES,
        trace=row.request_id or results,
        acts=_acts(row.status, to_merge, str(card["work"] or "")),
        changes=to_merge or row.status in ("COMPLETED", "FAILED", "AWAITING_PLAN_APPROVAL"),
        to_merge=to_merge,
        pr=row.pr_url,
        requests=to_merge and bool(row.branch) and not row.pr_url,
        discards=bool(row.branch) and card["work"] is None and row.status not in _RUNS,
        **more,
    )


def _acts(status: str, to_merge: bool, work: str) -> list[Act]:
    found = []
    if to_merge:
        found.append(Act("merge", "Merge", "primary", "1"))
    if status == "AWAITING_PLAN_APPROVAL":
        found.append(Act("approve", "Approve", "primary", "1"))
    if work == "merged":
        found.append(Act("unmerge", "Undo the merge"))
    if status == "PAUSED":
        found.append(Act("resume", "Resume", "primary", "1"))
    if status in ("READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT"):
        found.append(Act("pause", "Pause"))
    if status in ("ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "READY", "FAILED"):
        found.append(Act("stop", "Stop", "danger"))
    if status in ("FAILED", "BLOCKED"):
        found += [Act("restart", "Restart", "primary", "1"), Act("skip", "Skip")]
    return found


async def _diff(here: Seat, id: str) -> dict[str, Any]:
    side = here.request.query_params.get("view", "")
    try:
        text = await tasks.diff(here.client, id)
    except PromptDockError as error:
        return {"problem": error.told(), "side": side}
    return {"files": await asyncio.to_thread(diffs.files, text), "side": side}


async def _acted(here: Seat, id: str) -> list[Done]:
    try:
        turns = await trace.trace(here.client, id, here.person.user_id)
    except PromptDockError:
        return []
    return [
        Done(str(step["what"]), int(step["after_ms"] or 0), int(step["ms"] or 0), bool(step["failed"]))
        for turn in turns
        if turn["depth"] == 0
        for step in turn["steps"]
    ]


def pieces(line: diffs.Line) -> Markup:
    """A line with the words marked that changed."""
    mark = {"new": "ins", "gone": "del"}.get(line.kind, "b")
    return Markup("").join(
        Markup("<{0}>{1}</{0}>").format(Markup(mark), text) if changed else escape(text)
        for text, changed in line.pieces
    )


def number(file: diffs.FileDiff, line: diffs.Line) -> Markup:
    """The number of a line as it is now; a comment can be put on it."""
    if not line.new:
        return Markup('<td class="no"></td>')
    button = Markup(
        '<button type="button" class="on-line" data-at="{}:{}" title="Comment on line {}">{}</button>'
    )
    return Markup('<td class="no">{}</td>').format(button.format(file.path, line.new, line.new, line.new))


@router.post("/tasks/{id}/act")
async def act(here: Here, id: str) -> Response:
    """Do what a button of the task says."""
    form = await here.request.form()
    name, there = given(form, "act", 40), f"/tasks/{quoted(id)}"
    make = _ACTS.get(name)
    if make is None:
        raise HttpError(422, "there is nothing of that name to do with a task")
    card = await tasks.task(here.client, id)
    if not here.person.owner and card["project"] not in here.person.projects:
        raise HttpError(404, "there is no such task")
    try:
        if name == "pr":
            return back(here, there, "", await _pull_request(here, card, form))
        tool, arguments, told = make(card, form)
        result = await called(here, tool, {"task_id": card["id"], **arguments})
    except PromptDockError as error:
        return back(here, there, "bad", error.told())
    more = f" {result['warning']}" if result.get("warning") else ""
    return back(here, there, "", f"{told}{more}")


async def _pull_request(here: Seat, card: Card, form: Mapping[str, Any]) -> str:
    """Push the task's branch and ask for a pull request; what was made."""
    row = await tasks.find(here.client, str(card["id"]))
    at = {"project_id": str(card["project"]), "branch": str(row.branch or "")}
    at |= {"repo_id": str(row.repo_id)} if row.repo_id else {}
    title = given(form, "title", 300)
    if not row.branch or not title:
        raise HttpError(422, "a pull request needs a branch and a title")
    await called(here, "git_push", at)
    made = await called(here, "git_create_pr", {**at, "title": title, "body": given(form, "body", 60_000)})
    return f"The pull request is open: {made['pr_url']}"


Made = tuple[str, dict[str, Any], str]


def _plain(tool: str, told: str) -> Callable[[Card, Mapping[str, Any]], Made]:
    return lambda _card, _form: (tool, {}, told)


def _approve(card: Card, _form: Mapping[str, Any]) -> Made:
    planned = card["status"] == "AWAITING_PLAN_APPROVAL"
    return ("approve_plan" if planned else "approve_task"), {}, "Approved."


def _changes(card: Card, form: Mapping[str, Any]) -> Made:
    planned = card["status"] == "AWAITING_PLAN_APPROVAL"
    noted = [given({"c": one}, "c") for one in form.getlist("comment")] if hasattr(form, "getlist") else []
    feedback = "\n\n".join(part for part in (given(form, "feedback"), "\n".join(noted)) if part)
    if not feedback:
        raise HttpError(422, "nothing is asked for", "", "say what should be different")
    told = "It goes back, and whoever works on it reads this."
    return ("reject_plan" if planned else "reopen_with_feedback"), {"feedback": feedback}, told


def _answer(_card: Card, form: Mapping[str, Any]) -> Made:
    answer = given(form, "answer") or given(form, "words")
    if not answer:
        raise HttpError(422, "an answer needs words", "", "choose one, or write your own")
    return "answer_task", {"answer": answer}, "Answered."


def _move(_card: Card, form: Mapping[str, Any]) -> Made:
    state = given(form, "status", 40)
    return "set_task_status", {"status": state}, f"Moved: {words.state(state)}."


_ACTS: dict[str, Callable[[Card, Mapping[str, Any]], Made]] = {
    "merge": _plain("merge_task", "Merged."),
    "unmerge": _plain("unmerge_task", "The merge is undone."),
    "discard": _plain("discard_task", "Its branch is thrown away; the receipt stays."),
    "pause": _plain("pause_task", "Paused for a day; Resume lets it go on sooner."),
    "resume": _plain("resume_task", "It goes on."),
    "stop": _plain("stop_task", "Stopped; what it made is on its branch."),
    "restart": _plain("restart_task", "It begins again."),
    "skip": _plain("skip_task", "Skipped; what waited for it alone can begin."),
    "approve": _approve,
    "changes": _changes,
    "answer": _answer,
    "move": _move,
    "pr": _plain("git_create_pr", ""),
}
