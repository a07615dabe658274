"""What one Chatter of the cluster does for all, each under a lease: tasks, hooks, and what is too old."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from shared.notify import page
from shared.notify.sealing import Seal
from shared.store.records import Hook
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.turns.lease import Lease
from shared.turns.outbox import Outbox
from shared.worker.changes import Changes
from shared.worker.resources import Resources
from shared.worker.runners import prompts
from shared.worker.runners.agent import AgentRunner
from shared.worker.services import hooks as hooking
from shared.worker.services import idle, memory, retention
from shared.worker.services.hook_gate import AGENT, HookTools
from shared.worker.services.hooks import HookService
from shared.worker.services.idle import IdleService
from shared.worker.services.memory import MemoryService
from shared.worker.services.notices import NAME as NOTIFICATIONS
from shared.worker.services.notifying import NotificationService
from shared.worker.services.retention import RetentionService
from shared.worker.services.scheduler import ACTOR, SchedulerService

Services = Callable[[str], dict[str, Coroutine[Any, Any, None]]]  # by the name of the worker's instance


def _hook_tools(agent_runner: AgentRunner, instance: str = "") -> HookTools:
    resources, connection = agent_runner.resources, agent_runner.resources.connection
    return HookTools(
        agent_runner.handler,
        resources.store,
        Outbox(connection.bus, connection.names, resources.store, agent_runner.profile.name, instance),
        resources.authority,
        resources.sandbox,
        resources.repos,
        frozenset(resources.settings.hook_hosts),
    )


@dataclass(frozen=True)
class ConversationServices:
    """What Chatter's tools are handed: how to speak to its services, and to see what is sent."""

    agent_runner: AgentRunner

    @property
    def seal(self) -> Seal:
        return Seal(self.agent_runner.resources.connection.signer)

    async def show_prompt(self, agent: str) -> Result:
        return await prompts.of(self.agent_runner, agent)

    async def fire_hook(self, hook: Hook, here: Context, key: str) -> Result:
        return await hooking.fire(here, hook, key)

    async def preview_hook(self, hook: Hook, key: str) -> Result:
        return await hooking.preview(_hook_tools(self.agent_runner), hook, key)


def of_chatter(resources: Resources, agent_runner: AgentRunner) -> Services:
    """The services of a Chatter."""

    connection = resources.connection

    def lease(name: str, instance: str, least: int = 0) -> Lease:
        ms = max(least, resources.settings.lease_ms)
        return Lease(connection.bus, connection.names, name, instance, ms)

    def begin(instance: str) -> dict[str, Coroutine[Any, Any, None]]:
        changes = Changes(connection.bus, connection.names)
        scheduler = SchedulerService(
            connection,
            resources.store,
            lease(ACTOR, instance),
            changes,
            resources.settings.home,
            resources.settings.budget_day,
        )
        sweeps = lease(retention.NAME, instance, least=60_000)
        days = {str(table): kept for table, kept in resources.settings.retention.items()}
        tidies = lease(memory.NAME, instance, least=60_000)
        remembering = MemoryService(
            *(
                connection,
                resources.store,
                tidies,
                agent_runner.profile.name,
                resources.settings.memory_rest_ms,
            )
        )
        hooks = HookService(_hook_tools(agent_runner, instance), connection, lease(AGENT, instance), changes)
        return {
            "changes": changes.run(),
            "scheduler": scheduler.run(),
            "hooks": hooks.run(),
            "notifications": NotificationService(
                *(connection, resources.store, lease(NOTIFICATIONS, instance), changes),
                *(page.address(resources.settings), resources.settings.allowed_hosts),
            ).run(),
            "recollection": remembering.run(),
            "idle": IdleService(
                *(connection, resources.store, lease(idle.NAME, instance)),
                *(agent_runner.profile.name, resources.settings.session_idle_ms),
            ).run(),
            "retention": RetentionService(resources.store, sweeps, days).run(),
        }

    return begin
