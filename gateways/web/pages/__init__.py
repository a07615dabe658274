"""The page: views that are rendered here, live over one stream, usable without script for reading and sending."""

from __future__ import annotations

from fastapi import APIRouter

from gateways.web.pages import (
    agents,
    answers,
    budgets,
    health,
    hooks,
    inbox,
    live,
    lost,
    memory,
    models,
    notes,
    notifications,
    palette,
    profiles,
    sessions,
    static,
    talk,
    tasks,
    trace,
)

_VIEWS = (
    *(static, talk, live, answers, tasks, inbox, trace, sessions, notes, hooks, memory, agents, profiles),
    *(models, budgets, health, palette, notifications),
)

failed = lost.failed  # for what goes wrong at an address of the page

router = APIRouter(include_in_schema=False)
for one in _VIEWS:
    router.include_router(one.router)
