"""Imports that take seconds, in a thread that can be told to give up: a worker that ends does not wait for them."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from importlib.abc import MetaPathFinder
from typing import Any


class _Halt(MetaPathFinder):
    """Finds nothing, and ends what its thread imports once nobody waits for it any more."""

    def __init__(self) -> None:
        self.given_up = False
        self._thread = 0

    def find_spec(self, fullname: str, *_: Any) -> None:
        if self.given_up and threading.get_ident() == self._thread:
            raise ImportError(f"{fullname} is not waited for any more")

    def load(self, names: tuple[str, ...]) -> None:
        self._thread = threading.get_ident()
        sys.meta_path.insert(0, self)
        try:
            for name in names:
                importlib.import_module(name)
        except ImportError:
            if not self.given_up:
                raise
        finally:
            sys.meta_path.remove(self)


async def load(*names: str) -> None:
    """Import these; whoever is cancelled here leaves no thread that goes on for long."""
    halt = _Halt()
    try:
        await asyncio.to_thread(halt.load, names)
    finally:
        halt.given_up = True
