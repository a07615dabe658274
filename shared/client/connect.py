"""What a client stands on: the one module of this room that chooses implementations."""

from __future__ import annotations

from shared import folders, log
from shared.bus import factory as buses
from shared.bus.base import Bus
from shared.client import elsewhere
from shared.errors import ConfigurationError, StoreUnavailable, UsageError
from shared.models import factory as models
from shared.models.base import Model
from shared.models.factory import Provider
from shared.models.listing import ModelListCache
from shared.models.router import RouterModel
from shared.settings import Settings
from shared.store import factory as stores
from shared.store.base import Store


def line(settings: Settings) -> str:
    """What names the cluster that we talk to, the same also when the embedded server changes its port."""
    url = settings.redis_url
    return f"{log.redact(url.get_secret_value()) if url else 'embedded'}|{settings.namespace}"


def make_bus(url: str, settings: Settings) -> Bus:
    """The bus at this address."""
    return buses.make_bus(url, settings, "promptdock-visitor")


def make_store(settings: Settings) -> Store:
    """Supabase where it is configured, else the SQLite file, which only workers make."""
    for one in settings.wrong:
        if one.name == "SUPABASE_URL":
            raise ConfigurationError("nobody knows where the Store is", one.told, one.fix)
    if not (settings.supabase_url or stores.store_file(settings).exists()):
        other = elsewhere.find(settings.home, folders.here())
        raise StoreUnavailable(
            "there is nothing stored yet",
            other.told if other else f"no cluster has run in {settings.home}",
            other.fix if other else "start one with: promptdock up",
        )
    return stores.make_store(settings)


def providers(settings: Settings) -> list[Provider]:
    """The providers that are configured, in their order; none where the demo model answers."""
    return models.configured(settings)


def known_providers() -> tuple[Provider, ...]:
    """All that there are."""
    return models.PROVIDERS


def provider(settings: Settings, name: str = "") -> Provider:
    """The one of that name; without one the first that is configured, else the one for which a key would be."""
    if not name:
        return next(iter(providers(settings)), models.PROVIDERS[0])
    if found := next((one for one in models.PROVIDERS if one.name == name.lower()), None):
        return found
    known = ", ".join(one.name for one in models.PROVIDERS)
    raise UsageError(f"there is no provider {name[:40]!r}", "", f"name one of: {known}")


def make_model(settings: Settings, provider: Provider, key: str) -> Model:
    """A model of this provider, with this key in place of the one that is set."""
    return provider.connect(settings, lambda: key)


def make_router(settings: Settings, cache: ModelListCache | None = None) -> RouterModel:
    """All that are configured; what they list is kept in `cache`."""
    found = providers(settings)
    return models.make_router(found, settings, lambda one: one.key(settings) or "", cache)
