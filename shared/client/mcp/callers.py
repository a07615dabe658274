"""Who calls the server: over stdio whoever started it, over HTTP whoever the gateway let in with the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.client.views.visible import Sight


@dataclass(frozen=True)
class Caller:
    """A person, with the roles that they have, and how far they see."""

    user_id: str
    sight: Sight
    roles: tuple[str, ...] = ()


Who = Callable[[Any], Caller]  # given the library's context of a call


def owner(user_id: str) -> Caller:
    """Who started a server over stdio: they see what they see in a terminal."""
    return Caller(user_id, Sight(user_id, everything=True))
