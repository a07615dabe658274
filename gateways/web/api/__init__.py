"""The HTTP API under /api: a module per noun, each with a `router`."""

from __future__ import annotations

from fastapi import APIRouter

from gateways.web.api import events, status

ROUTERS: tuple[APIRouter, ...] = (
    status.router,
    events.router,
)
