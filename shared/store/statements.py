"""The SQL of one row, of conditions and of a search, as SQLite is given it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from shared.store import fulltext, schema
from shared.store.query import Condition
from shared.store.records import Row

R = TypeVar("R", bound=Row)

_OPS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def names(kind: type[Row]) -> str:
    """The columns, as a list in SQL."""
    return ", ".join(schema.columns(kind))


def insert(kind: type[Row]) -> str:
    """SQL that writes a new row, whose `values` follow."""
    marks = ", ".join("?" for _ in schema.columns(kind))
    return f"INSERT INTO {kind.table} ({names(kind)}) VALUES ({marks})"


def upsert(kind: type[Row]) -> str:
    """SQL that writes a row, over one of the same key."""
    sets = ", ".join(f"{name} = excluded.{name}" for name in schema.columns(kind) if name != "id")
    return f"{insert(kind)} ON CONFLICT (id) DO UPDATE SET {sets}"


def values(row: Row) -> list[Any]:
    """What stands in its columns, in their order."""
    return list(stored(type(row), row.model_dump(mode="json")).values())


def stored(kind: type[Row], values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON columns as text; the other values are what SQLite takes."""
    known = schema.columns(kind)
    return {
        name: json.dumps(value, ensure_ascii=False)
        if known[name].kind == "json" and value is not None
        else value
        for name, value in values.items()
    }


def parsed(kind: type[R], record: Any) -> R:
    """The row of a record that `names` chose."""
    values = dict(zip(schema.columns(kind), record, strict=True))
    for column in schema.columns(kind).values():
        if column.kind == "json" and values[column.name] is not None:
            values[column.name] = json.loads(values[column.name])
    return kind.model_validate(values)


def where(conditions: list[Condition]) -> tuple[str, list[Any]]:
    """` WHERE …` and its values; empty where there are no conditions."""
    if not conditions:
        return "", []
    values: list[Any] = []
    for condition in conditions:
        if condition.op == "in":
            values += condition.value
        elif condition.op not in ("null", "filled"):
            values.append(condition.value)
    # Without statistics SQLite takes an index of two columns for narrower than the key, and reads a whole table for a
    # few rows that are named. A plus before a column keeps its index out of it.
    named = any(one.column == "id" and one.op in ("eq", "in") for one in conditions)
    tests = (_test(one, "+" if named and one.column != "id" else "") for one in conditions)
    return f" WHERE {' AND '.join(tests)}", values


def _test(condition: Condition, sign: str) -> str:
    column = f"{sign}{condition.column}"
    match condition.op:
        case "null":
            return f"{column} IS NULL"
        case "filled":
            return f"{column} IS NOT NULL"
        case "in":
            return f"{column} IN ({', '.join('?' for _ in condition.value)})"
        case op:
            return f"{column} {_OPS[op]} ?"


def best(kind: type[Row], match: str, tests: tuple[str, list[Any]], limit: int) -> tuple[str, list[Any]]:
    """SQL of the best rows that fit `match` and the conditions, with their score and how many there are."""
    text, values = tests
    # Apart from the rows: a score is known only where the index is read.
    sql = (
        "WITH found AS MATERIALIZED (SELECT s.row, -bm25(search_words, 0.0, 2.0, 1.0) AS score FROM search_words"
        " JOIN search_rows s ON s.number = search_words.rowid WHERE search_words MATCH ?),"
        f" fits AS MATERIALIZED (SELECT id, score FROM found JOIN {kind.table} ON id = found.row{text})"
        f" SELECT {names(kind)}, score, (SELECT count(*) FROM fits) FROM {kind.table} JOIN"
        " (SELECT id AS at, score FROM fits ORDER BY score DESC, id DESC LIMIT ?) ON at = id"
        " ORDER BY score DESC, id DESC"
    )
    return sql, [match, *values, min(limit, fulltext.MOST)]
