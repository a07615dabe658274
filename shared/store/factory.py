"""Makes the Store; called by the composition roots alone."""

from __future__ import annotations

from pathlib import Path

from shared.errors import ConfigurationError
from shared.settings import Settings
from shared.store.base import Store


def make_store(settings: Settings) -> Store:
    """Supabase where it is configured, else SQLite in the home; not opened yet."""
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

    return SqliteStore(store_file(settings))


def store_file(settings: Settings) -> Path:
    """Where the SQLite store of this home lies."""
    return settings.home / "promptdock.db"
