"""A real store."""

from __future__ import annotations

from tests.support.sqlite import store

__all__ = ["store"]
