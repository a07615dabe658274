"""The application: made from settings, with a client's line to the cluster for as long as it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI

from gateways.web import api, api_docs, doors, errors, metrics, sign_in
from gateways.web.access import Access
from gateways.web.events import Hub
from gateways.web.guard import Guard
from shared.client.client import Client
from shared.client.local.release import release
from shared.settings import Settings


def create_app(settings: Settings) -> FastAPI:
    """`app.state` has `settings`, `access`, `client` and `hub`; ConfigurationError where it would let everybody in."""
    client = Client(settings)
    access = Access(settings, client.signer.derived("page"))
    access.check_start()
    hub = Hub(client)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with client, hub:
            yield

    app = FastAPI(
        title="PromptDock",
        version=release(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.settings, app.state.access, app.state.client, app.state.hub = settings, access, client, hub
    pages = _pages()
    errors.install(app, pages.failed if pages else None)
    own = (sign_in.router, api_docs.router, metrics.router)
    for router in (*api.ROUTERS, *doors.ROUTERS, *own, *([pages.router] if pages else ())):
        app.include_router(router)
    app.state.metrics = metrics.Metrics(hub)
    app.add_middleware(Guard, access=access)
    app.add_middleware(metrics.Measured, metrics=app.state.metrics)
    return app


def _pages() -> Any:
    """The page, which stands on all that is here: its `router`, and `failed` for what goes wrong."""
    return import_module("gateways.web.pages") if find_spec("gateways.web.pages") else None
