"""One person's or program's line to the cluster: what gateways stand on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.client.client import Client
    from shared.client.types import Heard, Sent

__all__ = ["Client", "Heard", "Sent"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: whoever needs a small module of this room waits for no Redis and no rows."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{'client' if name == 'Client' else 'types'}"), name)
    globals()[name] = found
    return found
