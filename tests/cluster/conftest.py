"""A site for each module: its `RULES` are what the model answers, its `SETTINGS` the workers' environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import Site, site
from tests.support.valkey import valkey
from tests.support.wire import Wire

__all__ = ["valkey"]


@pytest.fixture(scope="module")
def api(request: pytest.FixtureRequest) -> Iterator[MessagesApi]:
    """The model provider, which follows the module's rules."""
    with MessagesApi(Rules(request.module.RULES)) as server:
        yield server


@pytest.fixture(scope="module")
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, valkey: str, api: MessagesApi
) -> Iterator[Site]:
    """A home and a namespace for the module's tests; who works there is theirs to start."""
    model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
    settings = {**model, **getattr(request.module, "SETTINGS", {})}
    with site(tmp_path_factory.mktemp("site"), valkey, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def wire(place: Site) -> Iterator[Wire]:
    """What is published there."""
    with Wire(place.url, place.names) as listening:
        yield listening
