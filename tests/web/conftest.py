"""The page's process on a free port, beside a real Chatter whose model follows the module's `RULES`."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import Site, Worker, site
from tests.support.valkey import valkey
from tests.support.wire import Wire
from tests.web.support import serve

__all__ = ["valkey"]


@pytest.fixture(scope="module")
def api(request: pytest.FixtureRequest) -> Iterator[MessagesApi]:
    """The model provider."""
    with MessagesApi(Rules(request.module.RULES)) as server:
        yield server


@pytest.fixture(scope="module")
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, valkey: str, api: MessagesApi
) -> Iterator[Site]:
    """A home and a namespace for the module's tests."""
    model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
    settings = {**model, **getattr(request.module, "SETTINGS", {})}
    with site(tmp_path_factory.mktemp("site"), valkey, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def chatter(place: Site) -> Worker:
    """Chatter, ready."""
    return place.up("chatter")[0]


@pytest.fixture(scope="module")
def wire(place: Site) -> Iterator[Wire]:
    """What is published there."""
    with Wire(place.url, place.names) as listening:
        yield listening


@pytest.fixture(scope="module")
def url(place: Site) -> str:
    """Where the page is."""
    return serve(place)[1]


@pytest.fixture(scope="module")
def web(url: str) -> Iterator[httpx.Client]:
    """A program on this machine."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        yield client
