"""Chatter's own tools: consult an agent, assign a task, look who is there, ask the person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Agent, Project, Repo, RepoKind, Task
from shared.store.row import derived
from shared.tasks import command, states
from shared.tasks.create import create
from shared.tasks.defaults import KINDS, Kinds, best_for
from shared.tasks.estimate import estimate, recall
from shared.tasks.worktree import message
from shared.tools import lookup
from shared.tools.context import CONSULTED, ClusterCalls, Context
from shared.tools.registry import Category, Result

category = Category("consult", "Consult the other agents, assign tasks to them, and ask the person")

Urgency = Literal["low", "medium", "high"]
_PRIORITY = {"low": 200, "medium": 100, "high": 50}


def _cluster(here: Context) -> ClusterCalls:
    if here.cluster is None:
        raise ToolError("no cluster is at hand", "this tool runs inside a turn only")
    return here.cluster


async def _ask(here: Context, agent: str, payload: dict[str, Any]) -> Result:
    """Whoever is asked answers for the project of the one who asks."""
    return await _cluster(here).ask(agent, payload | {"project": here.project_id}, here.step_id)


@category.tool(effect="keyed", touches=touching("records"), foreign=True)
async def consult_planner(
    here: Context,
    question: Annotated[str, Field(description="The question or request for the Planner")],
    context: Annotated[
        dict[str, Any] | None,
        Field(description="Any relevant context (user's previous messages, project state, etc.)"),
    ] = None,
    priority: Annotated[Urgency | None, Field(description="Priority level for this request")] = None,
) -> Result:
    """Ask the Planner agent to create a project plan, break down tasks, or coordinate work between agents. \
Use this when you need strategic planning or task delegation."""
    payload: dict[str, Any] = {"question": question, "context": context or {}}
    if priority:
        payload["priority"] = priority
    return await _ask(here, CONSULTED["consult_planner"], payload)


@category.tool(effect="keyed", touches=touching("records"), foreign=True)
async def consult_researcher(
    here: Context,
    question: Annotated[str, Field(description="What to research or analyze")],
    repos: Annotated[
        list[RepoKind | str],
        Field(description="Which repositories to analyze"),
    ],
    focus_areas: Annotated[
        list[str] | None,
        Field(
            description="Specific areas to focus on (e.g., 'auth patterns', 'database schema', 'API routes')"
        ),
    ] = None,
) -> Result:
    """Ask the Researcher agent to analyze existing code, check for conflicts, or validate integration points. \
Use this when you need to understand what already exists in the codebase."""
    asked = [repo if repo in KINDS else (await lookup.repo(here, repo)).name for repo in repos]
    payload = {"question": question, "repos": asked, "focus_areas": focus_areas or []}
    return await _ask(here, CONSULTED["consult_researcher"], payload)


@category.tool(effect="keyed", touches=touching("records"), foreign=True)
async def consult_agent(
    here: Context, agent: str, question: str, context: dict[str, Any] | None = None
) -> Result:
    """Ask another agent, by name."""
    return await _ask(here, agent, {"question": question, "context": context or {}})


@category.tool(effect="keyed", touches=touching("records"))
async def assign_task(
    here: Context,
    agent: Annotated[str, Field(description="Which worker to assign the task to")],
    command_file: Annotated[str, Field(description="The complete command file content in markdown format")],
    priority: Urgency | None = None,
    repo: str | None = None,
) -> Result:
    """Assign a specific implementation task to Frontend or Backend worker. Only use this after Planner has \
approved the task and Researcher has validated there are no conflicts."""
    if missing := here.unasked():
        raise ToolError(
            f"the task is not validated: {' and '.join(missing)} did not answer in this conversation",
            "a task is assigned after Planner planned it and Researcher checked it",
            "consult " + " and ".join(missing) + " first; only the person can override this, with force",
        )
    if not command_file.strip():
        raise ToolError(
            "the command file is empty", "the worker sees nothing but it", "write the whole task into it"
        )
    cluster = _cluster(here)
    await _need_taking(here, agent)
    target = await _repo_for(here, agent, await _kinds(here, agent), repo)
    expected = estimate(await recall(here.store), target.project_id, agent)
    task = await _write(here, agent, command_file, priority or "medium", target)
    payload = await command.payload(here.store, task, here.project_id) | {"command_file": command_file}
    place = await cluster.send(agent, payload, here.step_id)
    result: Result = {
        "task_id": task.slug,
        "status": "assigned",
        "agent": agent,
        "repo": target.name,
        "waiting": place,
        **({"expected": expected.as_dict()} if expected.of else {}),
    }
    status = await cluster.status(agent)
    if not status["online"]:
        result["warning"] = f"{agent} is offline: the task waits until it is started"
    elif place or status.get("current"):
        result["warning"] = f"{agent} is busy: the task is number {place + 1} in its queue"
    return result


async def _need_taking(here: Context, agent: str) -> None:
    if await here.store.select(Agent, {"name": agent, "state": "paused"}, limit=1):
        raise ToolError(f"{agent} takes no new tasks", "it is paused", "resume it with resume_agent")


@category.tool(effect="pure", touches=touching("records"))
async def check_agent_status(
    here: Context,
    agent: Annotated[str, Field(description="Agent name (e.g., 'frontend', 'backend', 'planner')")],
) -> Result:
    """Check if an agent is online and what it's currently working on"""
    return await _cluster(here).status(agent)


@category.tool(effect="pure", touches=touching("records"))
async def escalate_to_human(
    here: Context,
    question: Annotated[str, Field(description="The question for the human")],
    context: Annotated[str, Field(description="Why this requires human input")],
    options: Annotated[list[str] | None, Field(description="Possible options or paths forward")] = None,
) -> Result:
    """When there's ambiguity, conflict, or a decision that requires human judgment, use this to ask the user \
directly"""
    return {
        "asked": question,
        "options": options or [],
        "context": context,
        "status": "waiting for the person",
    }


async def _kinds(here: Context, agent: str) -> Kinds:
    """The kinds of repositories in which an agent works; ToolError where it takes no tasks."""
    kinds = await lookup.works_on(here, agent)
    if kinds is None:
        raise ToolError(f"there is no agent called {agent}", "nobody knows it", "get_agents names them")
    if not kinds:
        raise ToolError(f"{agent} takes no tasks", "it answers questions", "assign it to a coding agent")
    return kinds


async def _repo_for(here: Context, agent: str, kinds: Kinds, name: str | None) -> Repo:
    projects = await here.store.select(Project, {"slug": here.project_id}, limit=1)
    repos = (
        await here.store.select(Repo, {"project_id": projects[0].id}, order=[("name", "asc")])
        if projects
        else []
    )
    if name is not None:
        return await lookup.repo(here, name)
    fitting = best_for(repos, kinds)
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(repo.name for repo in (fitting or repos)) or "none"
    special = " or ".join(sorted(kinds - {"both"})) or "both"
    why = f"several fit {agent}: {names}" if fitting else f"none is of kind {special}; registered: {names}"
    raise ToolError("it is not clear which repository is meant", why, "name it with repo, or register one")


async def _write(here: Context, agent: str, command_file: str, priority: Urgency, repo: Repo) -> Task:
    identity = derived("task", here.step_id)
    rows = await here.store.select(Task, {"id": identity}, limit=1)
    if rows:  # written before a crash
        return await _assigned(here, rows[0], agent) if rows[0].status == "READY" else rows[0]
    person, conversation = here.owner
    task = Task(
        id=identity,
        slug="",
        project_id=repo.project_id,
        title=message.title(command_file)[:120],
        description=command_file,
        status="READY",
        priority=_PRIORITY[priority],
        assignee=agent,
        repo_id=repo.id,
        session_id=conversation,
        user_id=person,
        request_id=here.step_id,
        origin=here.origin.kept(),
    )
    [task] = await create(here.store, here.agent, [task])
    return await _assigned(here, task, agent)


async def _assigned(here: Context, task: Task, agent: str) -> Task:
    """By the state machine, and before it is sent: what is sent is nobody else's to give away."""
    moved = await states.move(
        here.store, task.id, "assigned", here.agent, here.step_id, states.next_epoch(task),
        assignee=agent, request_id=here.step_id,
    )  # fmt: skip
    return moved or task
