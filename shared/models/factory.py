"""The providers of models, and which of them the settings choose; called by the composition roots alone.

A provider is one module with an adapter, a subclass of `Model` that is made as `Adapter` says, and one entry in
`PROVIDERS`. Its key and its address are settings like all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Literal, Protocol, cast

from pydantic import SecretStr

from shared.errors import ConfigurationError
from shared.models.base import Model
from shared.models.listing import ModelListCache
from shared.models.router import ProviderLink, RouterModel
from shared.settings import Settings


class Adapter(Protocol):
    """How an adapter is made. `key` is called when a key is needed; `idle` is how many seconds may be silent."""

    def __call__(
        self, key: Callable[[], str], *, base_url: str | None, idle: float, **options: Any
    ) -> Model: ...


@dataclass(frozen=True)
class Provider:
    """A provider as it is registered: what can be said of it before its library is loaded."""

    name: str  # as people type it
    called: str  # the company, for people
    key_field: str  # of the settings
    address_field: str  # of the settings
    recommended: str  # the model where none is named; "" is the newest that it lists
    adapter: str  # `module:class`
    needs: Literal["key", "address", "either"] = "key"  # what has to be set for it to answer
    family: str = r"(?!)"  # its names begin so, also where it lists none
    options: Mapping[str, str] = field(default_factory=dict, hash=False)  # of the adapter, by their settings

    @property
    def key_name(self) -> str:
        """The variable that holds its key."""
        return str(Settings.model_fields[self.key_field].alias)

    @property
    def address_name(self) -> str:
        """The variable that holds its address."""
        return str(Settings.model_fields[self.address_field].alias)

    def key(self, settings: Settings) -> str | None:
        """Its key, where one is set."""
        found: SecretStr | None = getattr(settings, self.key_field)
        return found.get_secret_value() if found else None

    def address(self, settings: Settings) -> str | None:
        """Its address, where another one than its own is set."""
        found: str | None = getattr(settings, self.address_field)
        return found

    def configured(self, settings: Settings) -> bool:
        """Whether it answers."""
        key, address = self.key(settings) is not None, self.address(settings) is not None
        return {"key": key, "address": address, "either": key or address}[self.needs]

    def connect(self, settings: Settings, key: Callable[[], str]) -> Model:
        """Its model; `key` is called when a key is needed."""
        adapter = cast(Adapter, resolve_name(self.adapter))
        options = {name: getattr(settings, one) for name, one in self.options.items()}
        idle = settings.model_silence_ms / 1000
        return adapter(key, base_url=self.address(settings), idle=idle, **options)

    def link(self, settings: Settings, key: Callable[[], str]) -> ProviderLink:
        """Its place among all that are configured."""
        model = self.connect(settings, key)
        address = self.address(settings) or ""
        # A server of one's own has other models than the company whose protocol it speaks.
        recommended = self.recommended if self.needs == "key" or not address else ""
        keyed = self.key(settings) is not None
        return ProviderLink(
            self.name, self.called, recommended, re.compile(self.family), address, model, keyed
        )


# In this order: of two that have a model of one name, the first answers; a key is typed in for the first.
PROVIDERS = (
    Provider(
        name="anthropic",
        called="Anthropic",
        key_field="anthropic_api_key",
        address_field="anthropic_base_url",
        recommended="claude-sonnet-5-5",
        adapter="shared.models.anthropic:AnthropicModel",
        family=r"claude",
    ),
    Provider(
        name="openai",
        called="OpenAI",
        key_field="openai_api_key",
        address_field="openai_base_url",
        recommended="gpt-6.1-sol",
        adapter="shared.models.openai:OpenAIModel",
        needs="either",
        family=r"(chat)?gpt-|o\d",
    ),
    Provider(
        name="ollama",
        called="Ollama",
        key_field="ollama_api_key",
        address_field="ollama_base_url",
        recommended="",
        adapter="shared.models.ollama:OllamaModel",
        needs="address",
        family=r"[^:/]+:[^:/]+$",
        options={"context": "ollama_context"},
    ),
)


def configured(settings: Settings) -> list[Provider]:
    """The providers that answer, in their order; none where the demo model does."""
    return [one for one in PROVIDERS if one.configured(settings)]


def make_router(
    providers: list[Provider],
    settings: Settings,
    key: Callable[[Provider], str],
    cache: ModelListCache | None = None,
) -> RouterModel:
    """All of these as one model; `key` is called when one is needed."""

    def link(one: Provider) -> ProviderLink:
        return one.link(settings, lambda: key(one))

    return RouterModel([link(one) for one in providers], cache)


def make_demo(settings: Settings) -> Model:
    """The scripted model; ConfigurationError in production, where nobody may take it for a real one."""
    if settings.env == "production":
        names = [one.address_name if one.needs == "address" else one.key_name for one in PROVIDERS]
        raise ConfigurationError(
            "no model is configured",
            "PROMPTDOCK_ENV is production, where the demo model does not answer",
            f"set {' or '.join(names)}",
        )
    from shared.models.demo import DemoModel

    return DemoModel()
