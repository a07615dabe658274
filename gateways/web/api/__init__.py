"""The HTTP API under /api: a module per noun, each with a `router`."""

from __future__ import annotations

from fastapi import APIRouter

from gateways.web.api import chat, events, sessions, status

ROUTERS: tuple[APIRouter, ...] = (
    chat.router,
    status.router,
    events.router,
    sessions.router,
)
