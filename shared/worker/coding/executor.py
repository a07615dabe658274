"""Which executor carries out a task: the one place that chooses, and what each of them needs of a worker."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from pathlib import Path
from typing import Any

from shared import log
from shared.errors import ConfigurationError, PromptDockError, ToolError
from shared.executors.base import Executor, TaskWork
from shared.loop import Call
from shared.models import listing
from shared.profiles.profile import Profile
from shared.settings import Settings
from shared.store.base import Store
from shared.tasks.worktree import orphans
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.context import Context
from shared.turns.turn import Turn
from shared.worker.coding.builtin import BuiltinExecutor
from shared.worker.permissions.approver import Approver
from shared.worker.runners.agent import AgentRunner


async def refuse(_tool: str, _arguments: dict[str, Any], _key: str) -> str:
    """Permission for nothing: what an executor has that asks for none by itself."""
    return "no call is allowed here"


def choose(
    agent_runner: AgentRunner, turn: Turn, context: Context, asked: Approver, work: TaskWork
) -> Executor:
    """The executor that the settings name, else the profile; the demo model has only the built-in one."""
    name = agent_runner.resources.settings.executor or agent_runner.profile.executor
    if name == "loop" or agent_runner.resources.model.demo:
        return BuiltinExecutor(agent_runner, turn, context, asked)
    return _Wrapped(agent_runner, turn, context, asked)


def check(settings: Settings, profile: Profile) -> None:
    """ConfigurationError where the executor of an agent's tasks is not installed: every task would fail."""
    if profile.kind != "coding" or (settings.executor or profile.executor) != "claude-code":
        return
    from shared.executors.claude_code import library, program

    try:
        program(library())
    except ToolError as error:
        fix = f"{error.fix}, or set PROMPTDOCK_EXECUTOR=loop"
        raise ConfigurationError(error.what, f"the tasks of {profile.called} are given to it", fix) from None


class _Wrapped:
    """Claude Code behind our gate: each of its calls needs the permission that a call of ours would need."""

    name = "claude-code"

    def __init__(self, agent_runner: AgentRunner, turn: Turn, context: Context, asked: Approver) -> None:
        from shared.executors.claude_code import ClaudeCode

        self._inner = ClaudeCode()
        self._agent_runner, self._turn, self._context, self._asked = agent_runner, turn, context, asked

    async def run(self, work: TaskWork) -> Any:
        agent_runner, context = self._agent_runner, self._context
        gate = agent_runner.gate(self._turn, self._asked, context, work.live)
        before = context.worktree.changing

        async def permit(tool: str, arguments: dict[str, Any], key: str) -> str:
            verdict = await gate.permission(
                Call(key, key, tool, arguments), agent_runner.registry.bind(tool, arguments), context
            )
            if verdict.allowed and tool in ("create_file", "str_replace"):
                try:
                    await before(str(arguments["path"]))
                except ToolError as error:
                    return str(error)
            return "" if verdict.allowed else verdict.reason

        model = _claude(agent_runner, work.model)
        given = dataclasses.replace(work, permit=permit, environment=_provider(agent_runner), model=model)
        return await self._inner.run(given)


def _claude(agent_runner: AgentRunner, chain: str) -> str:
    """The first model of a chain that Claude Code works with; ToolError where there is none."""
    for name in listing.chain(chain):
        if agent_runner.resources.model.speaker(name) == "Claude":
            return name
    raise ToolError(
        "Claude Code works with models of Claude alone",
        f"the model of {agent_runner.profile.name} is {chain}",
        f"set {agent_runner.profile.name.upper()}_MODEL to one of them, or PROMPTDOCK_EXECUTOR=loop",
    )


def _provider(agent_runner: AgentRunner) -> dict[str, str]:
    """The key and address of the provider, which no command of an agent gets to see."""
    from shared.executors.claude_code import access

    return access(agent_runner.resources.settings)


async def tidy(repos: Mirrors, store: Store) -> None:
    """What workers that died have left here, of tasks that ended since."""
    try:
        await orphans.sweep(repos, store)
    except PromptDockError as error:
        log.get().warning("It was not looked for worktrees that were left behind", why=str(error))


async def forget(scratch: Path) -> None:
    """Remove what an executor kept for a task that has ended."""
    await asyncio.to_thread(shutil.rmtree, scratch, True)
