"""The HTTP API under /api: a module per noun, each with a `router`."""

from __future__ import annotations

from fastapi import APIRouter

from gateways.web.api import (
    agents,
    approvals,
    chat,
    events,
    hooks,
    mcp,
    memory,
    money,
    notifications,
    profiles,
    projects,
    sessions,
    status,
    tasks,
    threads,
    tools,
    turns,
)

_NOUNS = (
    chat,
    events,
    sessions,
    threads,
    turns,
    tasks,
    approvals,
    agents,
    profiles,
    projects,
    hooks,
    memory,
    mcp,
    money,
    notifications,
    tools,
    status,
)
ROUTERS: tuple[APIRouter, ...] = tuple(noun.router for noun in _NOUNS)
