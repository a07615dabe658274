"""What the nursery imports before it has children: all that a worker needs, also what it loads late."""

import aiosqlite  # noqa: F401
import anthropic
import anthropic.types  # noqa: F401
import hiredis  # noqa: F401
import uvloop  # noqa: F401

import shared.bus.redis
import shared.models.anthropic
import shared.models.demo
import shared.store.sqlite
import shared.worker.main  # noqa: F401
