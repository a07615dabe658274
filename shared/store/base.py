"""What the Store is to us: rows in, rows out, and one conditional write.

Above stand the archive (which upserts what happened), tasks, projects and settings (which need compare and
set). Below stand the implementations side by side: `sqlite` and `supabase`. One suite in
`tests/store` is run against both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from shared.store.records import Row

R = TypeVar("R", bound=Row)

Op = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "is"]
Where = Mapping[str, Any]  # column -> value (equality; None means IS NULL), or -> (Op, value)
Order = Sequence[tuple[str, Literal["asc", "desc"]]]


@dataclass(frozen=True)
class Found(Generic[R]):
    """What a search found: rows with their scores, best first, and how many there are in all.

    Scores of one Store can be compared, also those of rows of several classes.
    """

    rows: list[tuple[R, float]]
    total: int


class Store(ABC):
    """Rows by table; the row's class names the table.

    Every call raises StoreUnavailable when the Store cannot be asked within its time limit.
    """

    name: str = ""

    @abstractmethod
    async def open(self) -> None:
        """Connect, bring the schema up to date where that is ours to do, and check that writing is allowed.

        Raises ConfigurationError where the key or the schema is wrong: what, why, what to do.
        """

    @abstractmethod
    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        """Write a new row; Conflict if its id, or another unique key of it, exists.

        `beside` is written with it: all or nothing, whatever dies. Of these, rows that are there already stay.
        """

    @abstractmethod
    async def upsert(self, rows: Sequence[Row]) -> None:
        """Write rows by primary key; writing twice is writing once. Rows may be of several tables."""

    @abstractmethod
    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        """Read rows; without a limit, all of them (paged where the server pages)."""

    @abstractmethod
    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        """How many rows match."""

    @abstractmethod
    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        """The rows that match and hold any of the words, in any of its forms; of `kind.searched`, the best first.

        No sign among the words has a meaning, and stop words are left out; so are words that stand in thousands of
        rows, beside rarer ones. At most 1000 rows are given.
        """

    @abstractmethod
    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        """Change the rows that match, atomically, and return them as they now are; [] means none matched.

        `beside` is written where one matched, as with `insert`; then `where` is the row's id and version.
        """

    @abstractmethod
    async def delete(self, kind: type[Row], where: Where) -> int:
        """Delete the rows that match; how many it were. An empty `where` is a ValueError."""

    @abstractmethod
    async def close(self) -> None:
        """Give back connections and files."""
