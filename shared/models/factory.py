"""The providers of models, and which one the settings choose; called by the composition roots alone.

A provider is one module with an adapter, a subclass of `Model` that is made as `Adapter` says, and one entry in
`PROVIDERS`. Its key and its address are settings like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Protocol, cast

from pydantic import SecretStr

from shared.errors import ConfigurationError
from shared.models.base import Model
from shared.settings import Settings


class Adapter(Protocol):
    """How an adapter is made. `key` is called when a key is needed; `idle` is how many seconds may be silent."""

    def __call__(self, key: Callable[[], str], *, base_url: str | None, idle: float) -> Model: ...


@dataclass(frozen=True)
class Provider:
    """A provider as it is registered: what can be said of it before its library is loaded."""

    called: str  # the company, for people
    key_field: str  # of the settings
    address_field: str  # of the settings
    recommended: str  # the model where none is named
    adapter: str  # `module:class`

    @property
    def key_name(self) -> str:
        """The variable that holds its key."""
        return str(Settings.model_fields[self.key_field].alias)

    def key(self, settings: Settings) -> str | None:
        """Its key, where one is set."""
        found: SecretStr | None = getattr(settings, self.key_field)
        return found.get_secret_value() if found else None

    def address(self, settings: Settings) -> str | None:
        """Its address, where another one than its own is set."""
        found: str | None = getattr(settings, self.address_field)
        return found

    def connect(self, settings: Settings, key: Callable[[], str]) -> Model:
        """Its model; `key` is called when a key is needed."""
        adapter = cast(Adapter, resolve_name(self.adapter))
        return adapter(key, base_url=self.address(settings), idle=settings.model_silence_ms / 1000)


# The first one whose key is set answers; keys are typed in for the first one.
PROVIDERS = (
    Provider(
        called="Anthropic",
        key_field="anthropic_api_key",
        address_field="anthropic_base_url",
        recommended="claude-sonnet-5-5",
        adapter="shared.models.anthropic:AnthropicModel",
    ),
)


def provider(settings: Settings) -> Provider | None:
    """The provider that is configured; None where the demo model answers."""
    return next((one for one in PROVIDERS if one.key(settings) is not None), None)


def make_demo(settings: Settings) -> Model:
    """The scripted model; ConfigurationError in production, where nobody may take it for a real one."""
    if settings.env == "production":
        raise ConfigurationError(
            "no model is configured",
            "PROMPTDOCK_ENV is production, where the demo model does not answer",
            f"set {' or '.join(one.key_name for one in PROVIDERS)}",
        )
    from shared.models.demo import DemoModel

    return DemoModel()
