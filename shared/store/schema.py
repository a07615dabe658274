"""The columns of a record class, and the SQLite schema that follows from them.

Postgres has its own text in `supabase/migrations`; a test compares the two with the record classes.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from shared.store.records import TABLES, Row

ColumnKind = Literal["uuid", "time", "text", "whole", "real", "flag", "json"]

# Raised with every migration; a program refuses a schema that is newer than its own.
VERSION = 7

_KINDS: dict[Any, ColumnKind] = {
    UUID: "uuid",
    datetime: "time",
    str: "text",
    int: "whole",
    float: "real",
    bool: "flag",
    dict: "json",
    list: "json",
}
_SQLITE: Mapping[ColumnKind, str] = {
    "uuid": "TEXT",
    "time": "TEXT",
    "text": "TEXT",
    "whole": "INTEGER",
    "real": "REAL",
    "flag": "INTEGER",
    "json": "TEXT",
}


@dataclass(frozen=True)
class Column:
    """One column. `default` is a JSON value, or None where the row has to bring its own."""

    name: str
    kind: ColumnKind
    nullable: bool
    default: Any = None


@cache
def columns(kind: type[Row]) -> dict[str, Column]:
    """The columns of a record class by name, in the order of its fields."""
    return {name: _column(name, info) for name, info in kind.model_fields.items()}


def _column(name: str, info: FieldInfo) -> Column:
    kind, nullable = _kind(info.annotation)
    default = None if info.default is PydanticUndefined else info.default
    return Column(name, kind, nullable, default)


def _kind(annotation: Any) -> tuple[ColumnKind, bool]:
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return _kind(parts[0])[0], len(parts) < len(get_args(annotation))
    if get_origin(annotation) is Literal:
        return "text", False
    return _KINDS[get_origin(annotation) or annotation], False


def tables() -> Iterator[str]:
    """SQL that makes the tables that are missing."""
    for kind in TABLES:
        lines = ", ".join(_definition(kind, column) for column in columns(kind).values())
        yield f"CREATE TABLE IF NOT EXISTS {kind.table} ({lines})"


def indexes() -> Iterator[str]:
    """SQL that makes the indexes that are missing, the unique ones too."""
    for kind in TABLES:
        for names, unique in [(n, "UNIQUE ") for n in kind.unique] + [(n, "") for n in kind.index]:
            name = "_".join((kind.table, *names, "key" if unique else "idx"))
            yield f"CREATE {unique}INDEX IF NOT EXISTS {name} ON {kind.table} ({', '.join(names)})"


def additions(present: Mapping[str, set[str]]) -> Iterator[str]:
    """SQL that adds the columns that an older file lacks; `present` are its columns by table.

    So a column that is added later is nullable, or has a constant as its default.
    """
    for kind in TABLES:
        for column in columns(kind).values():
            if column.name not in present[kind.table]:
                yield f"ALTER TABLE {kind.table} ADD COLUMN {_definition(kind, column)}"


def makers() -> Iterator[str]:
    """SQL that notes a person as the maker of repositories and workspaces from before these had an origin.

    That is known where the audit log has a person's own command for exactly this folder or url, and no agent's; all
    others stay without one, so that they count as marked. `supabase/migrations` has the same text.
    """
    for table, actions in _ADDING.items():
        said = f"a.decision in ('allow', 'ask_approved') and a.action in ({actions})"
        yield (
            f"update {table} set origin = '{{\"by\": \"person\"}}' where origin = '{{}}'"
            f" and exists (select 1 from audit_log a where cast(a.detail as text) like {_BY} and {said})"
            f" and not exists (select 1 from audit_log a where cast(a.detail as text) not like {_BY} and {said})"
        )


_BY = """'%"by": "command"%'"""  # of a check of a person's own command; older SQLite knows no ->>
_LINKED = "'tool:add_workspace:' || p.slug || ' link ' || workspaces.path"
_ADDING = {
    "repos": ", ".join(
        f"'tool:add_repo:{how} ' || repos.{place}{name}"
        for how, place in (("link", "path"), ("clone", "url"))
        for name in ("", " || ' as ' || repos.name")
    ),
    "workspaces": f"(select {_LINKED} from projects p where p.id = workspaces.project_id)",
}


def _definition(kind: type[Row], column: Column) -> str:
    text = f"{column.name} {_SQLITE[column.kind]}"
    if column.name == "id":
        return f"{text} PRIMARY KEY NOT NULL"
    text += "" if column.nullable else " NOT NULL"
    text += "" if column.default is None else f" DEFAULT {_literal(column)}"
    if owner := kind.belongs.get(column.name):
        text += f" REFERENCES {owner} (id) ON DELETE CASCADE"
    return text


def _literal(column: Column) -> str:
    value = json.dumps(column.default) if column.kind == "json" else column.default
    return f"'{value}'" if isinstance(value, str) else str(int(value) if column.kind == "flag" else value)
