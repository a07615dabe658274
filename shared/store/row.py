"""What every row has: an id made by us, a time in UTC, and text that both databases can hold."""

from __future__ import annotations

import math
import os
import time
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID, uuid5

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

_NAMESPACE = UUID("6f1d3c0e-5b0a-5f0e-9d57-2f6a1c8e4b90")
_REPLACED = str.maketrans({"\x00": "\ufffd", **{chr(code): "\ufffd" for code in range(0xD800, 0xE000)}})


def new_id() -> UUID:
    """A UUID of version 7: random, and later ones sort after earlier ones (to the millisecond)."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def derived(*parts: str | int) -> UUID:
    """The UUID that these parts always give: a row written again after a crash is the same row."""
    return uuid5(_NAMESPACE, "\x1f".join(map(str, parts)))


def now() -> datetime:
    return datetime.now(UTC)


def clean(value: Any) -> Any:
    """`value` as Postgres can hold it: U+FFFD for NUL and lone surrogates, None for NaN and infinity."""
    if isinstance(value, str):  # most of them are plain: looking is quicker than translating
        return value if value.isascii() and "\x00" not in value else value.translate(_REPLACED)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _parsed(value: Any) -> Any:
    # Postgres may write a time without the T and with a two-digit offset, which pydantic does not read.
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs its zone")
    return value.astimezone(UTC)


def _written(value: datetime) -> str:
    # Always the same width, so that SQLite, which compares times as text, orders them rightly.
    return value.isoformat(timespec="microseconds")


Time = Annotated[
    datetime,
    BeforeValidator(_parsed),
    AfterValidator(_in_utc),
    PlainSerializer(_written, return_type=str, when_used="json"),
]
# What a signed 64-bit column can hold.
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Json = dict[str, Any]
Columns = tuple[str, ...]


class Row(BaseModel):
    """A row of one table. Rows are values: a change goes through `Store.update`.

    Unknown columns are ignored, so that a release reads rows of the one after it. NUL and lone surrogates
    become U+FFFD when the row is made, so that what is read equals what was written.
    """

    # Built on first use: most processes touch few of the tables, and all wait for the imports.
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)

    table: ClassVar[str]
    unique: ClassVar[tuple[Columns, ...]] = ()
    index: ClassVar[tuple[Columns, ...]] = ()
    # column -> table; the rows go with the row that they belong to (ON DELETE CASCADE)
    belongs: ClassVar[dict[str, str]] = {}
    # what is searched by its words: the column of its title, or "", and those of its text (JSON: blocks of words)
    searched: ClassVar[Columns] = ()
    # columns by whose value a search is narrowed mostly
    scopes: ClassVar[Columns] = ()

    id: UUID = Field(default_factory=new_id)
    created_at: Time = Field(default_factory=now)

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, data: Any) -> Any:
        return clean(data)


class Changing(Row):
    """A row that changes after it was written; `Store.update` sets `updated_at` where the caller does not."""

    updated_at: Time = Field(default_factory=now)


class Versioned(Changing):
    """A row that is compared and set: update with `where={"id": …, "version": seen}`, `version: seen + 1`."""

    version: Whole = 1
