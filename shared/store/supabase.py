"""The Store in a Supabase project, through Supabase's own client."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from shared.errors import ConfigurationError, PromptDockError, StoreUnavailable
from shared.store import fulltext, query, refusal, schema
from shared.store.base import Found, Order, Store, Where
from shared.store.query import Condition
from shared.store.records import Row, Setting, derived

if TYPE_CHECKING:
    import httpx

    from supabase import AsyncClient

R = TypeVar("R", bound=Row)
Build = Callable[["AsyncClient"], Any]

PAGE = 1000  # rows that the server gives at most for one request, unless it is set to less
FLOOR = 100  # a page shorter than this is the last one, whatever the server is set to
BATCH_ROWS, BATCH_BYTES = 500, 4 * 2**20
TRIES = 5  # over about 3 s
_OPS = {"eq": "eq", "ne": "neq", "lt": "lt", "le": "lte", "gt": "gt", "ge": "gte"}


class SupabaseStore(Store):
    """Rows in the project at `url`; every call ends within `limit` seconds.

    Reads, upserts and deletes are tried again while the service is down. An insert or update is tried again
    only where it cannot have arrived: who gets StoreUnavailable from one has to read before trying again.
    """

    name = "supabase"

    def __init__(self, url: str, key: str, limit: float = 15.0) -> None:
        self.url, self.limit = url.strip().rstrip("/"), limit
        self._key = key.strip()
        self._http: httpx.AsyncClient | None = None
        self._client: AsyncClient | None = None

    async def open(self) -> None:
        if self._client is not None:
            return
        try:
            await self._connect()
            await self._probe()
        except BaseException as error:
            await self.close()
            if type(error) is PromptDockError:
                raise refusal.address(self.url, str(error)) from error
            raise

    async def _connect(self) -> None:
        import httpx

        from supabase import AsyncClientOptions, AsyncSupabaseException, acreate_client

        if not self._key.isascii() or not self._key.isprintable() or " " in self._key:
            raise refusal.key("it has characters that no key has")
        # A client of our own: the library's waits 120 s, and it cannot be closed.
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(self.limit, connect=min(5.0, self.limit)),
            event_hooks={"response": [refusal.check]},
        )
        options = AsyncClientOptions(
            auto_refresh_token=False,
            persist_session=False,
            postgrest_client_retry=False,
            httpx_client=self._http,
        )
        try:
            self._client = await acreate_client(self.url, self._key, options)
        except (AsyncSupabaseException, ValueError) as error:
            raise refusal.address(self.url, str(error)) from error

    async def _probe(self) -> None:
        """Really write and read: the client takes any key, and one without rights reads empty tables."""
        probe = Setting(id=derived("setting", "@probe"), scope="@probe", key="write")
        await self.upsert([probe])
        await self.delete(Setting, {"id": probe.id})
        found = await self.select(Setting, {"scope": "@schema", "key": "version"}, limit=1)
        version = int(found[0].value.get("version", 0)) if found else 0
        if version < schema.VERSION:
            raise refusal.tables(f"its schema is {version}, this program needs {schema.VERSION}")
        if version > schema.VERSION:
            raise ConfigurationError(
                "the Supabase project was migrated by a newer PromptDock",
                f"its schema is {version}, this program knows those up to {schema.VERSION}",
                "upgrade PromptDock",
            )

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        body = row.model_dump(mode="json")
        if beside:
            await self._together(type(row), None, body, beside)
            return
        await self._send(lambda c: c.table(row.table).insert(body, returning=_minimal()), again=False)

    async def upsert(self, rows: Sequence[Row]) -> None:
        for kind, group in query.by_table(rows).items():
            for batch in _batches(group):
                await self._upsert(kind, [row.model_dump(mode="json") for row in batch])

    async def _upsert(self, kind: type[Row], body: list[dict[str, Any]]) -> None:
        await self._send(
            lambda c: c.table(kind.table).upsert(body, returning=_minimal(), on_conflict="id"), again=True
        )

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        conditions, parts = query.conditions(kind, where), query.ordering(kind, order)
        if limit is None and not offset:
            return _ordered(await self._all(kind, conditions), parts)
        found: list[R] = []
        while limit is None or len(found) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self._page(kind, conditions, parts, size, offset + len(found))
            found += page
            if _last(page, size):
                break
        return found

    async def _all(self, kind: type[R], conditions: list[Condition]) -> list[R]:
        """Every row that matches, page after page by id: rows written meanwhile shift nothing."""
        found: list[R] = []
        while True:
            after = [Condition("id", "gt", str(found[-1].id))] if found else []
            page = await self._page(kind, conditions + after, [("id", False)], PAGE, 0)
            found += page
            if _last(page, PAGE):
                return found

    async def _page(
        self,
        kind: type[R],
        conditions: list[Condition],
        parts: list[tuple[str, bool]],
        size: int,
        offset: int,
    ) -> list[R]:
        def build(client: AsyncClient) -> Any:
            request = _filtered(client.table(kind.table).select(",".join(schema.columns(kind))), conditions)
            for column, down in parts:
                request = request.order(column, desc=down, nullsfirst=False)
            return request.limit(size).offset(offset) if offset else request.limit(size)

        return [kind.model_validate(record) for record in (await self._send(build, again=True)).data]

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        from postgrest import CountMethod

        conditions = query.conditions(kind, where)

        def build(client: AsyncClient) -> Any:
            return _filtered(
                client.table(kind.table).select("id", count=CountMethod.exact, head=True), conditions
            )

        return int((await self._send(build, again=True)).count or 0)

    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        fulltext.searched(kind)
        asked, conditions = fulltext.asked(words), query.conditions(kind, where)
        if not asked:
            return Found([], 0)
        given = {"kind": kind.table, "words": json.dumps(asked), "amount": min(limit, fulltext.MOST)}
        given |= {"conditions": json.dumps([dataclasses.asdict(condition) for condition in conditions])}
        answer = await self._send(lambda c: c.rpc("search_found", given), again=True)
        found = answer.data or []
        rows = [(kind.model_validate(record["row"]), float(record["score"])) for record in found]
        return Found(rows, int(found[0]["total"]) if found else 0)

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        body, conditions = query.changed(kind, changes), query.required(kind, where)
        if beside:
            return await self._together(kind, query.pinned(kind, where), body, beside)
        answer = await self._send(
            lambda c: _filtered(c.table(kind.table).update(body), conditions), again=False
        )
        return [kind.model_validate(record) for record in answer.data]

    async def _together(
        self, kind: type[R], pin: tuple[str, int] | None, body: Mapping[str, Any], beside: Sequence[Row]
    ) -> list[R]:
        """One transaction, which only a function of the database can be."""
        id, version = pin or (None, None)
        rows = [
            {"kind": table.table, "rows": [row.model_dump(mode="json") for row in group]}
            for table, group in query.by_table(beside).items()
        ]
        given = {"kind": kind.table, "row_id": id, "row_version": version}
        given |= {"given": json.dumps(body), "beside": json.dumps(rows)}
        answer = await self._send(lambda c: c.rpc("write_beside", given), again=False)
        return [kind.model_validate(record) for record in answer.data or []]

    async def delete(self, kind: type[Row], where: Where) -> int:
        from postgrest import CountMethod

        conditions = query.required(kind, where)

        def build(client: AsyncClient) -> Any:
            request = client.table(kind.table).delete(count=CountMethod.exact, returning=_minimal())
            return _filtered(request, conditions)

        return int((await self._send(build, again=True)).count or 0)

    async def _send(self, build: Build, *, again: bool) -> Any:
        """Send what `build` makes, anew for each try; errors come out as ours."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

        client = self._client
        if client is None:
            raise StoreUnavailable(f"the Store at {self.url} is not open", "", "open the Store first")
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: refusal.passing(error, again)),
            stop=stop_after_attempt(TRIES),
            wait=wait_exponential_jitter(multiplier=0.2, max=2, jitter=0.2),
            reraise=True,
        )

        async def send() -> Any:
            return await build(client).execute()

        with refusal.explained(self.url, self.limit):
            async with asyncio.timeout(self.limit):
                return await retrying(send)

    async def close(self) -> None:
        http, self._http, self._client = self._http, None, None
        if http is not None:
            await http.aclose()


def _minimal() -> Any:
    from postgrest import ReturnMethod

    return ReturnMethod.minimal


def _last(page: Sequence[Row], size: int) -> bool:
    return not page or len(page) < min(size, FLOOR)


def _ordered(rows: list[R], parts: list[tuple[str, bool]]) -> list[R]:
    for column, down in reversed(parts):
        value = attrgetter(column)
        filled = sorted((row for row in rows if value(row) is not None), key=value, reverse=down)
        rows = filled + [row for row in rows if value(row) is None]
    return rows


def _batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows in pieces that one request may carry."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        length = len(row.model_dump_json())
        if batch and (len(batch) == BATCH_ROWS or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch


def _filtered(request: Any, conditions: list[Condition]) -> Any:
    for condition in conditions:
        column, value = condition.column, condition.value
        match condition.op:
            case "null":
                request = request.is_(column, "null")
            case "filled":
                request = request.filter(column, "not.is", "null")
            case "in":
                request = request.filter(column, "in", f"({','.join(map(_quoted, value))})")
            case "eq" | "ne" if isinstance(value, str):
                # Only a list can quote: some servers trim bare text, and read a meaning into null and {}.
                request = request.filter(
                    column, "in" if condition.op == "eq" else "not.in", f"({_quoted(value)})"
                )
            case op:
                request = request.filter(column, _OPS[op], _text(value))
    return request


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(value: Any) -> str:
    escaped = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
