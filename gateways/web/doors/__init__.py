"""Doors for clients that people already have, each with a `router`; ordinary visitors of the bus."""

from __future__ import annotations

from fastapi import APIRouter

from gateways.web.doors import ag_ui, mcp, openai

ROUTERS: tuple[APIRouter, ...] = (openai.router, ag_ui.router, mcp.router)
