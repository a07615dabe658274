"""Conditions, orders and changes, checked against a record class, in the values that databases take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from shared.store.base import Op, Order, Where
from shared.store.records import Row, now
from shared.store.row import clean
from shared.store.schema import columns

# Conditions travel in the address of a request, and addresses have bounds.
IN_LIMIT = 100

_OPS: tuple[str, ...] = get_args(Op)


@dataclass(frozen=True)
class Condition:
    """`column op value`; `null` and `filled` have no value, `in` has a list. Values are as JSON has them."""

    column: str
    op: Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "null", "filled"]
    value: Any = None


@cache
def _adapter(kind: type[Row], column: str) -> TypeAdapter[Any]:
    info = kind.model_fields[column]
    return TypeAdapter(info.rebuild_annotation())


def encode(kind: type[Row], column: str, value: Any) -> Any:
    """One column's value as JSON has it; ValueError where the column does not exist or cannot hold it."""
    if column not in columns(kind):
        raise ValueError(f"{kind.table} has no column {column!r}")
    adapter = _adapter(kind, column)
    return adapter.dump_python(adapter.validate_python(clean(value)), mode="json")


def conditions(kind: type[Row], where: Where | None) -> list[Condition]:
    """`where` taken apart; ValueError for an unknown column or operator, or a value that does not fit."""
    return [_condition(kind, column, given) for column, given in (where or {}).items()]


def _condition(kind: type[Row], column: str, given: Any) -> Condition:
    op, value = given if isinstance(given, tuple) else ("eq", given)
    if op not in _OPS:
        raise ValueError(f"{op!r} is not one of {', '.join(_OPS)}")
    if column not in columns(kind):
        raise ValueError(f"{kind.table} has no column {column!r}")
    if value is None and op in ("eq", "is", "ne"):
        return Condition(column, "filled" if op == "ne" else "null")
    if columns(kind)[column].kind == "json":
        raise ValueError(f"{kind.table}.{column} is JSON: it can only be compared with None")
    if op == "in":
        return Condition(column, "in", _several(kind, column, value))
    return Condition(column, "eq" if op == "is" else op, encode(kind, column, value))


def _several(kind: type[Row], column: str, values: Any) -> list[Any]:
    if isinstance(values, str) or len(values := list(values)) > IN_LIMIT:
        raise ValueError(f"'in' takes a list of at most {IN_LIMIT} values")
    return [encode(kind, column, value) for value in values]


def ordering(kind: type[Row], order: Order) -> list[tuple[str, bool]]:
    """(column, descending) with the id last, so that the order of two rows is never left to chance."""
    parts = [(column, direction == "desc") for column, direction in order]
    for column, _ in parts:
        if column not in columns(kind) or columns(kind)[column].kind == "json":
            raise ValueError(f"{kind.table} cannot be ordered by {column!r}")
    return parts if any(column == "id" for column, _ in parts) else [*parts, ("id", False)]


def changed(kind: type[Row], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to set, with `updated_at` where the table has it; ValueError for none, and for the id."""
    if not changes or "id" in changes:
        raise ValueError("an update needs at least one column, and never the id")
    stamp = {"updated_at": now()} if "updated_at" in columns(kind) else {}
    return {column: encode(kind, column, value) for column, value in {**stamp, **changes}.items()}


def required(kind: type[Row], where: Where) -> list[Condition]:
    """The conditions of a write; ValueError where there are none, which would mean every row."""
    if not where:
        raise ValueError(f"a write to {kind.table} needs a condition")
    return conditions(kind, where)


def pinned(kind: type[Row], where: Where) -> tuple[str, int]:
    """The id and version of a write that other rows stand beside; ValueError for any other condition."""
    values = {
        condition.column: condition.value for condition in conditions(kind, where) if condition.op == "eq"
    }
    if len(where) != 2 or values.keys() != {"id", "version"}:
        raise ValueError(f"what is written beside a row of {kind.table} needs its id and its version")
    return values["id"], values["version"]


def by_table(rows: Sequence[Row]) -> dict[type[Row], list[Row]]:
    """Rows grouped by class in order of appearance; of several with one id the last one counts."""
    groups: dict[type[Row], dict[Any, Row]] = {}
    for row in rows:
        groups.setdefault(type(row), {})[row.id] = row
    return {kind: list(group.values()) for kind, group in groups.items()}
