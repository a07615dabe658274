"""What a client stands on: the one module of this room that chooses implementations."""

from __future__ import annotations

from shared import folders, log
from shared.bus import factory as buses
from shared.bus.base import Bus
from shared.client import elsewhere
from shared.errors import ConfigurationError, StoreUnavailable
from shared.models import factory as models
from shared.models.base import Model
from shared.models.factory import Provider
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


def provider(settings: Settings) -> Provider | None:
    """The provider whose key is set; None where the demo model answers."""
    return models.provider(settings)


def meant_provider(settings: Settings) -> Provider:
    """The provider whose key is set, else the one for which a key would be."""
    return models.provider(settings) or models.PROVIDERS[0]


def make_model(settings: Settings, key: str) -> Model:
    """A model of the provider, with this key in place of the one that is set."""
    return meant_provider(settings).connect(settings, lambda: key)
