"""Start one worker: the start-up lines, the loop of events, the exit code."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared import log
from shared.bus.keys import HUMAN_INPUT
from shared.errors import ConfigurationError, PromptDockError
from shared.profiles.profile import Profile, load
from shared.settings import Settings
from shared.settings import load as load_settings

if TYPE_CHECKING:
    from shared.turns.turn import Turn
    from shared.worker.pool import Runner
    from shared.worker.resources import Resources
    from shared.worker.runners.agent import AgentRunner
    from shared.worker.services.leader import Services
    from shared.worker.worker import Worker


def main(folder: Path) -> None:
    """Run the agent in this folder until SIGTERM; the exit code is that of the error, 0 after a drain."""
    sys.exit(run_safely(lambda settings: serve(settings, load(folder))))


def run_safely(work: Any) -> int:
    """Read the settings, run `work(settings)`, and turn an error into words and an exit code."""
    log.setup()  # also for what is wrong with the settings
    try:
        settings = load_settings()
        log.setup(settings.log_level)
        _run(work(settings))
    except PromptDockError as error:
        log.get().error(error.what, why=error.why, fix=error.fix)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception:  # Python would print what it says as it is
        log.get().critical("It ended with an error that nobody foresaw", exc_info=True)
        return 1
    return 0


def _run(work: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def serve(settings: Settings, profile: Profile) -> None:
    """One replica, until it is stopped."""
    # Whoever only supervises workers imports this module, too.
    from shared.worker import resources as composition

    log.bind_contextvars(agent=profile.name)
    if settings.agent_name and settings.agent_name != profile.name:
        raise ConfigurationError(
            f"AGENT_NAME is {settings.agent_name}",
            f"this process is {profile.name}",
            "unset it, or start that agent",
        )
    if profile.kind == "coding":
        from shared.worker.coding import executor

        executor.check(settings, profile)
    log.get().info(f"{profile.called} agent starting...")
    resources = await composition.build(settings, profile.name)
    log.get().info("Connected to Redis")
    try:
        worker = await make(resources, profile)
        worker.listen_for_signals()
        await worker.run()
    finally:
        await resources.close()


async def make(resources: Resources, profile: Profile) -> Worker:
    """A worker of this agent, ready to run; ConfigurationError or ToolError where its profile cannot be used."""
    from shared.conversation import sessions, threads
    from shared.memory import keeping
    from shared.tools import catalog
    from shared.tools.execute import ToolExecutor
    from shared.tools.mcp.source import ServerTools
    from shared.worker import provider
    from shared.worker.duties import AgentDuties
    from shared.worker.runners.agent import AgentRunner
    from shared.worker.runners.hosts import RemoteHost
    from shared.worker.runners.task_run import apply_tasks
    from shared.worker.worker import Worker

    tools = catalog.registry()
    source = ServerTools(resources.mcp)
    agent_runner = AgentRunner(resources, profile, tools, ToolExecutor(tools), source=source)
    agent_runner.check()
    if profile.kind == "chat":
        from shared.worker.services.leader import ConversationServices

        agent_runner = dataclasses.replace(agent_runner, services=ConversationServices(agent_runner))
    beside = _services(resources, agent_runner)
    runner = _runners(agent_runner)
    duties = AgentDuties(
        resources,
        profile,
        {
            "task": apply_tasks,
            "session": sessions.touch,
            sessions.TITLED: sessions.entitle,
            threads.MOVED: threads.move,
            keeping.APPLIER: keeping.apply,
        },
        lambda: agent_runner.model,
        lambda instance: {
            **beside(instance),
            "home": RemoteHost(
                resources.connection,
                resources.store,
                resources.repos,
                agent_runner.replies,
                agent_runner.handler,
                resources.signatures,
            ).run(),
        },
    )
    worker: Worker = Worker(resources, profile, lambda turn: runner(worker, turn), duties)
    worker.spawn(provider.keep(resources.model))
    worker.spawn(agent_runner.warm())
    if profile.kind == "chat":
        from shared.worker import scratch_repository
        from shared.worker.services import ownership

        if resources.model.demo:
            await scratch_repository.ensure(resources.store, resources.repos, resources.settings.home)
        worker.spawn(ownership.learn(resources.connection, resources.store))
    if profile.kind == "coding":
        from shared.worker.coding import executor

        worker.spawn(executor.tidy(resources.repos, resources.store))
    return worker


def _services(resources: Resources, agent_runner: AgentRunner) -> Services:
    """What it does beside its turns, by its kind."""
    if agent_runner.profile.kind != "chat":
        return lambda _instance: {}
    from shared.worker.services import leader

    return leader.of_chatter(resources, agent_runner)


def _runners(agent_runner: AgentRunner) -> Callable[[Worker, Turn], Runner]:
    """What carries a turn out; a worker loads only what its kind needs, and before its first turn."""
    match agent_runner.profile.kind:
        case "chat":
            return _chats(agent_runner)
        case "coding":
            from shared.worker.coding.question import QuestionRefusal, asks
            from shared.worker.coding.runner import TaskRunner

            return lambda _worker, turn: (QuestionRefusal if asks(turn) else TaskRunner)(agent_runner, turn)
        case _:
            from shared.worker.runners.consult import ConsultRunner

            return lambda _worker, turn: ConsultRunner(agent_runner, turn)


def _chats(agent_runner: AgentRunner) -> Callable[[Worker, Turn], Runner]:
    from shared.worker.runners.approval import ApprovalRunner, answers_leave
    from shared.worker.runners.chat.drawing import DrawingRunner, draws
    from shared.worker.runners.chat.runner import ChatRunner
    from shared.worker.runners.chat.summary import SummaryRunner, condenses
    from shared.worker.runners.chat.titling import TitleRunner, titles
    from shared.worker.runners.command import CommandRunner, apart

    names = agent_runner.resources.connection.names
    human = names.channel(HUMAN_INPUT)

    def runner(worker: Worker, turn: Turn) -> Runner:
        if answers_leave(turn):
            return ApprovalRunner(agent_runner.resources.approvals, names, turn)
        if apart(turn, human):
            return CommandRunner(names, turn)
        if draws(turn, human):
            return DrawingRunner(agent_runner, turn)
        if titles(turn, human):
            return TitleRunner(agent_runner, turn)
        return (
            SummaryRunner(agent_runner, turn)
            if condenses(turn, human)
            else ChatRunner(agent_runner, turn, worker.spawn)
        )

    return runner
