"""All sides by name; the first is what the others are compared with."""

from __future__ import annotations

from benchmarks.durable import Consult, Message
from benchmarks.plain import Plain
from benchmarks.raw import Raw
from benchmarks.side import Side

SIDES: dict[str, type[Side]] = {side.name: side for side in (Plain, Raw, Message, Consult)}
