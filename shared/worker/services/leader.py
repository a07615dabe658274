"""What one Chatter of the cluster does for all, each under a lease: tasks, hooks, and what is too old."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from shared.store.records import Hook
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.turns.outbox import Archive
from shared.worker.changes import Changes
from shared.worker.resources import Parts
from shared.worker.runners.agent import Engine
from shared.worker.services import hooks as hooking
from shared.worker.services.hooks import Hooking
from shared.worker.services.retention import Ageing
from shared.worker.services.scheduler import Scheduling

Services = Callable[[str], dict[str, Coroutine[Any, Any, None]]]  # by the name of the worker's instance


def of_chatter(parts: Parts, engine: Engine) -> Services:
    """The services of a Chatter; its tools are handed what they need to speak to them."""

    def archive(instance: str) -> Archive:
        return Archive(parts.bus, parts.names, parts.store, engine.profile.name, instance)

    async def preview(hook: Hook, key: str) -> Result:
        return await hooking.preview(parts, engine.handler, archive(""), hook, key)

    async def fire(context: Context, hook: Hook, key: str) -> Result:
        return await hooking.fire(context, hook, key)

    engine.extras.update(fire_hook=fire, preview_hook=preview)

    def begin(instance: str) -> dict[str, Coroutine[Any, Any, None]]:
        changes = Changes(parts.bus, parts.names)
        scheduler = Scheduling(parts, instance, changes)
        hooks = Hooking(parts, engine.handler, archive(instance), instance, changes)
        return {
            "changes": changes.run(),
            "scheduler": scheduler.run(),
            "hooks": hooks.run(),
            "retention": Ageing(parts, instance).run(),
        }

    return begin
