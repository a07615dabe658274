"""What requests have in common: names, limits, cursors."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

NamePart = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="How many to pass over.")]
Cursor = Annotated[str, Query(max_length=64, description="`next` of the page before.")]
Long = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]


class Body(BaseModel):
    """What is sent; a field that nobody knows is refused instead of ignored."""

    model_config = ConfigDict(extra="forbid")
