"""What a visitor stands on: the one module of this room that chooses implementations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shared import folders, log
from shared.bus.base import Bus
from shared.client import elsewhere
from shared.errors import ConfigurationError, StoreUnavailable
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.models.base import Model
    from shared.store.base import Store

_SILENCE = 0.75  # of a lease: after so long without an answer, a connection is dead


def line(settings: Settings) -> str:
    """What names the cluster that we talk to, the same also when the embedded server changes its port."""
    url = settings.redis_url
    return f"{log.redact(url.get_secret_value()) if url else 'embedded'}|{settings.namespace}"


def make_bus(url: str, settings: Settings) -> Bus:
    """The bus at this address."""
    from shared.bus.redis import RedisBus

    return RedisBus(url, silence=settings.lease_ms * _SILENCE / 1000, client_name="promptdock-visitor")


def make_store(settings: Settings) -> Store:
    """Supabase where it is configured, else the SQLite file, which only workers make."""
    for one in settings.wrong:
        if one.name == "SUPABASE_URL":
            raise ConfigurationError("nobody knows where the Store is", one.told, one.fix)
    if settings.supabase_url:
        from shared.store.supabase import SupabaseStore

        if settings.supabase_key is None:
            raise ConfigurationError(
                "SUPABASE_URL is set without a key",
                "the store cannot be opened",
                "set SUPABASE_SERVICE_ROLE_KEY",
            )
        return SupabaseStore(settings.supabase_url, settings.supabase_key.get_secret_value())
    from shared.store.sqlite import SqliteStore

    path = store_file(settings)
    if not path.exists():
        other = elsewhere.find(settings.home, folders.here())
        raise StoreUnavailable(
            "there is nothing stored yet",
            other.told if other else f"no cluster has run in {settings.home}",
            other.fix if other else "start one with: promptdock up",
        )
    return SqliteStore(path)


def store_file(settings: Settings) -> Path:
    """Where the SQLite store of this home lies."""
    return settings.home / "promptdock.db"


def make_model(settings: Settings, key: str) -> Model:
    """The provider that takes this key."""
    from shared.models.anthropic import AnthropicModel

    return AnthropicModel(key=lambda: key, base_url=settings.anthropic_base_url)
