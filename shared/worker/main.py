"""Start one worker: the start-up lines, the loop of events, the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from shared import log
from shared.bus.keys import HUMAN_INPUT
from shared.conversation import sessions
from shared.errors import ConfigurationError, PromptDockError
from shared.settings import Settings
from shared.settings import load as load_settings
from shared.tools import toolbox
from shared.tools.handler import Handler
from shared.turns.turn import Turn
from shared.worker import executing, owning, scratch, services
from shared.worker import parts as composition
from shared.worker.answering import Answering, answers_leave
from shared.worker.chat import Chat
from shared.worker.coding import Coding, apply_tasks
from shared.worker.condense import Condense, condenses
from shared.worker.consult import Consult
from shared.worker.ended import Ended, apart
from shared.worker.engine import Engine
from shared.worker.hand import Runner
from shared.worker.homes import Home
from shared.worker.profile import Profile, load
from shared.worker.runtime import Worker


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
    log.bind_contextvars(agent=profile.name)
    if settings.agent_name and settings.agent_name != profile.name:
        raise ConfigurationError(
            f"AGENT_NAME is {settings.agent_name}",
            f"this process is {profile.name}",
            "unset it, or start that agent",
        )
    executing.check(settings, profile)
    log.get().info(f"{profile.called} agent starting...")
    parts = await composition.build(settings, profile.name)
    log.get().info("Connected to Redis")
    try:
        engine = Engine(parts, profile, tools := toolbox.registry(), Handler(tools))
        engine.shelf.shown()  # an unknown tool or a wrong permission is said now, not in the first turn
        beside = services.of_chatter(parts, engine) if profile.kind == "chat" else services.none
        worker: Worker = Worker(
            parts,
            profile,
            lambda turn: _runner(worker, engine, turn),
            {"task": apply_tasks, "session": sessions.touch},
            lambda: engine.model,
            lambda instance: {**beside(instance), "home": Home(parts, profile.name, engine.handler).run()},
        )
        worker.listen_for_signals()
        if parts.model.demo and profile.kind == "chat":
            await scratch.ensure(parts)
        if profile.kind == "chat":
            worker.spawn(owning.learn(parts))
        if profile.kind == "coding":
            worker.spawn(executing.tidy(parts))
        await worker.run()
    finally:
        await parts.close()


def _runner(worker: Worker, engine: Engine, turn: Turn) -> Runner:
    match engine.profile.kind:
        case "chat" if answers_leave(turn):
            return Answering(engine.parts, turn)
        case "chat" if apart(turn, engine.parts.names.channel(HUMAN_INPUT)):
            return Ended(engine.parts, turn)
        case "chat" if condenses(turn, engine.parts.names.channel(HUMAN_INPUT)):
            return Condense(engine, turn)
        case "chat":
            return Chat(engine, turn, worker.spawn)
        case "coding":
            return Coding(engine, turn)
        case _:
            return Consult(engine, turn)
