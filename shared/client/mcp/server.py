"""The server object: its tools, each an ordinary use of a client's line to the cluster.

Made once in a process; over stdio it has one caller, over HTTP each request has its own, as `who` says. The library
reads the types of the tools' arguments while they are defined, and is imported as late as that: so annotations are
no text in this module.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from uuid import uuid4

from pydantic import Field

from shared.client.client import Client
from shared.client.local.release import release
from shared.client.mcp.callers import Caller, Who
from shared.client.mcp.jobs import Jobs
from shared.client.turn import Asking
from shared.client.types import Card
from shared.client.views import agents, visible
from shared.client.views.permissions import approvals
from shared.client.views.tasks import tasks
from shared.errors import Missing, PromptDockError, UsageError, sentences

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError as Failed

_TELLS = """A cluster of agents that build software together. `ask` talks with Chatter, who answers for all of them;
pass the session_id of an answer on to stay in that conversation. An answer that takes long has the status `working`:
wait for it with `wait_for_answer`. Where it is `awaiting_approval` a person has to decide: show them what is asked, and
call `answer_approval` only with their own decision."""
_PATIENCE = 50.0  # seconds: most programs give a call a minute
_Wait = Annotated[
    float, Field(ge=0, le=600, description="Seconds to wait for the answer; it goes on anyway.")
]
_Text = Annotated[str, Field(min_length=1, max_length=100_000)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


def make(client: Client, jobs: Jobs, who: Who) -> "MCPServer[Any]":
    """A server for this line to the cluster; `jobs` lives as long as it does."""
    from mcp.server.mcpserver import MCPServer

    server: MCPServer[Any] = MCPServer("promptdock", instructions=_TELLS, version=release())
    _talking(server, client, jobs, who)
    _tasks(server, client, jobs, who)
    _approvals(server, client, who)
    return server


def _talking(server: "MCPServer[Any]", client: Client, jobs: Jobs, who: Who) -> None:
    from mcp.server.mcpserver import Context

    hints = _hints()

    @server.tool(annotations=hints.says)
    async def ask(
        message: _Text,
        ctx: Context[Any, Any],
        session_id: Annotated[str, Field(max_length=200, description="To go on in; none begins anew.")] = "",
        project_id: Annotated[str, Field(max_length=200, description="The project to work on.")] = "",
        wait_seconds: _Wait = _PATIENCE,
    ) -> Card:
        """Say something to Chatter, who answers, plans, consults the other agents and gives them tasks."""
        caller = who(ctx)
        with _worded():
            if session_id:
                await _spoken(client, session_id, caller)
            question = Asking(
                message,
                caller.user_id,
                session_id or f"mcp-{uuid4()}",
                roles=caller.roles,
                source="mcp",
                project_id=project_id or None,
            )
            return _answered(await jobs.follow(jobs.say(question), wait_seconds, _reporting(ctx)))

    @server.tool(annotations=hints.reads)
    async def wait_for_answer(
        message_id: _Name, ctx: Context[Any, Any], wait_seconds: _Wait = _PATIENCE
    ) -> Card:
        """Go on waiting for the answer to an earlier `ask` or `consult`."""
        with _worded():
            job = jobs.find(message_id, who(ctx).user_id)
            return _answered(await jobs.follow(job, wait_seconds, _reporting(ctx)))

    @server.tool(annotations=hints.says)
    async def stop_answer(message_id: _Name, ctx: Context[Any, Any]) -> Card:
        """Stop what was begun with `ask`; what was done until then stays as it is."""
        with _worded():
            job = jobs.find(message_id, who(ctx).user_id)
            await client.stop(job.user_id, job.session, job.id)
            return await jobs.follow(job, 10.0, _reporting(ctx))

    @server.tool(annotations=hints.says)
    async def consult(
        agent: Annotated[
            str, Field(max_length=64, description="As list_agents has it: planner, researcher, …")
        ],
        question: _Text,
        ctx: Context[Any, Any],
        wait_seconds: _Wait = _PATIENCE,
    ) -> Card:
        """Ask one agent directly; it answers this question alone and begins no work."""
        caller = who(ctx)
        with _worded():
            given = {"agent": agent, "question": question}
            job = jobs.command("consult_agent", given, caller.user_id, caller.roles)
            return _answered(await jobs.follow(job, wait_seconds, _reporting(ctx)))

    @server.tool(annotations=hints.reads)
    async def list_agents(ctx: Context[Any, Any]) -> list[Card]:
        """The agents of the cluster, what they are for, and whether they are here."""
        who(ctx)
        with _worded():
            return [one.card() for one in await agents.known(client)]


def _tasks(server: "MCPServer[Any]", client: Client, jobs: Jobs, who: Who) -> None:
    from mcp.server.mcpserver import Context

    hints = _hints()

    @server.tool(annotations=hints.says)
    async def create_task(
        title: Annotated[str, Field(min_length=1, max_length=300)],
        description: Annotated[str, Field(max_length=100_000, description="Complete in itself.")],
        ctx: Context[Any, Any],
        project_id: Annotated[str, Field(max_length=200, description="The active project without it.")] = "",
    ) -> Card:
        """Make a task, which an agent works on in a branch of its own as soon as one is free."""
        caller = who(ctx)
        with _worded():
            given = {"title": title, "description": description}
            given |= {"project_id": project_id} if project_id else {}
            return await _ran(client, "create_task", given, caller)

    @server.tool(annotations=hints.reads)
    async def list_tasks(
        ctx: Context[Any, Any],
        project_id: Annotated[str, Field(max_length=200)] = "",
        status: Annotated[str, Field(max_length=40, description="Only of this state, as READY.")] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> list[Card]:
        """Tasks with their states, the newest first."""
        caller = who(ctx)
        with _worded():
            user = None if caller.sight.everything else caller.user_id
            wanted = tasks.Filter([status] if status else (), project_id or None, user, limit=limit)
            return await tasks.tasks(client, wanted)

    @server.tool(annotations=hints.reads)
    async def get_task(task_id: _Name, ctx: Context[Any, Any]) -> Card:
        """A task with its description, history and receipts."""
        with _worded():
            await _seen(client, task_id, who(ctx))
            return await tasks.task(client, task_id)

    @server.tool(annotations=hints.reads)
    async def review_task(task_id: _Name, ctx: Context[Any, Any]) -> Card:
        """What a task changed, file by file, and whether it merges as it is."""
        caller = who(ctx)
        with _worded():
            await _seen(client, task_id, caller)
            return await _ran(client, "review_task", {"task_id": task_id}, caller)


def _approvals(server: "MCPServer[Any]", client: Client, who: Who) -> None:
    from mcp.server.mcpserver import Context

    hints = _hints()

    @server.tool(annotations=hints.reads)
    async def list_approvals(ctx: Context[Any, Any]) -> list[Card]:
        """What waits for your permission: what would be done, why it is asked, and until when."""
        with _worded():
            return [card.shown() for card in await approvals.mine(client, who(ctx).user_id)]

    @server.tool(annotations=hints.decides)
    async def answer_approval(
        approval_id: _Name,
        decision: Literal["allow_once", "deny"],
        ctx: Context[Any, Any],
        reason: Annotated[str, Field(max_length=2000)] = "",
    ) -> Card:
        """Decide what waits for permission. Only the person decides this: ask them first."""
        caller = who(ctx)
        with _worded():
            given = (client, approval_id, decision, caller.user_id)
            try:
                return await approvals.answer(*given, reason=reason or None, roles=caller.roles)
            except UsageError as error:
                raise UsageError(error.what, "", "list_approvals lists what waits for you") from None


class _Hints(NamedTuple):
    """What programs are told of tools that read, that say or make something, and that decide."""

    reads: Any
    says: Any
    decides: Any


def _hints() -> _Hints:
    from mcp.types import ToolAnnotations

    return _Hints(
        ToolAnnotations(read_only_hint=True, open_world_hint=False),
        ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True),
        ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    )


def _failed(words: str) -> "Failed":
    from mcp.server.mcpserver.exceptions import ToolError as Failed

    return Failed(words)


async def _ran(client: Client, tool: str, given: Card, caller: Caller) -> Card:
    """A tool's result, as an agent under `standard` may have it: to call it here is no permission yet."""
    result = await client.command(
        *(tool, given, caller.user_id), patience=_PATIENCE, profile="standard", roles=caller.roles
    )
    return _answered(result)


def _answered(result: Card) -> Card:
    """As it is; what failed is an error of the call."""
    if "error" in result:
        raise _failed(sentences(*(str(result.get(part) or "") for part in ("error", "why", "fix"))))
    return result


async def _spoken(client: Client, session: str, caller: Caller) -> None:
    """Missing, with what a program can do, where the conversation is somebody else's."""
    try:
        await visible.session(client, caller.sight, session)
    except Missing as error:
        raise Missing(error.what, error.why, "leave session_id out to begin anew") from None


async def _seen(client: Client, task_id: str, caller: Caller) -> None:
    try:
        await visible.task(client, caller.sight, task_id)
    except Missing as error:
        raise Missing(error.what, error.why, "list_tasks lists those that you can see") from None


def _reporting(ctx: "Context[Any, Any]") -> Callable[[str], Any]:
    """Progress notifications, where the program asked for them."""
    count = [0]

    async def report(text: str) -> None:
        count[0] += 1
        await ctx.report_progress(count[0], None, text)

    return report


class _worded:
    """Errors of ours as those of a tool: what, why and what to do."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PromptDockError):
            raise _failed(error.told()) from None
