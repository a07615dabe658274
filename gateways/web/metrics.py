"""What Prometheus reads: requests by address and outcome, their time, and who listens."""

from __future__ import annotations

import time

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateways.web.access import Visitor
from gateways.web.events import Hub
from shared.client.views import visible

router = APIRouter(tags=["status"])


class Metrics:
    """Of one application."""

    def __init__(self, hub: Hub) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "promptdock_http_requests", "Requests", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "promptdock_http_seconds", "Until the answer began", ["method", "route"], registry=self.registry
        )
        readers = Gauge("promptdock_http_readers", "Open event streams", registry=self.registry)
        readers.set_function(lambda: hub.readers)


class Measured:
    """Counts what passes."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, int(message["status"]), time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counted)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        # By the pattern of the address: what people type would be without end, and may be secret.
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, status).inc()
        self._metrics.seconds.labels(method, route).observe(seconds)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request, visitor: Visitor) -> Response:
    """In the form of Prometheus."""
    visible.owner(visitor.sight, "what is measured")
    return Response(generate_latest(request.app.state.metrics.registry), media_type=CONTENT_TYPE_LATEST)
