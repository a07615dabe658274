"""The schema of a server's tool, checked: what the model is shown of it, and what arguments are checked by.

A schema is hostile text that providers, models and validators work on. So it must be valid and small, it leads
nowhere else, and checking by it takes bounded time: references are written out, patterns are left to the server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shared.errors import ToolError
from shared.mcp.bounds import SCHEMA

_Object = dict[str, Any]
_NODES = 2000  # that a schema may have once its references are written out
_DEPTH = 24
_CHECKED = 64 * 1024  # characters of a result that is compared with its schema
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what providers take as a name
_TOP = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else")  # which providers refuse at the top
_LEFT = ("pattern", "patternProperties", "uniqueItems", "format", "$ref", "$dynamicRef")  # unbounded in time


class Unusable(Exception):
    """Why a schema cannot be used."""


@dataclass(frozen=True)
class Takes:
    """What a tool takes: `schema` for the model, and a check before a call."""

    schema: _Object
    whole: _Object = field(repr=False)  # as the server gave it

    @classmethod
    def of(cls, given: Any) -> Takes:
        """Unusable says why a model cannot be shown this, or nothing can be checked by it."""
        if not isinstance(given, dict):
            raise Unusable("its schema is no object")
        if given.get("type", "object") != "object":
            raise Unusable(f"its arguments are {str(given['type'])[:20]!r}, no object")
        if len(json.dumps(given, ensure_ascii=False)) > SCHEMA:
            raise Unusable(f"its schema has more than {SCHEMA // 1024} KiB")
        _valid(given)
        _named(given)
        shown = {key: value for key, value in given.items() if key not in (*_TOP, "$schema", "$id")}
        return cls({**shown, "type": "object", "properties": given.get("properties") or {}}, given)

    def check(self, tool: str, arguments: Any) -> _Object:
        """The arguments, as they are handed on; ToolError says what is wrong with them."""
        if not isinstance(arguments, dict):
            raise ToolError(
                f"{tool} cannot take these arguments", "they are no object", "call it again with one"
            )
        if wrong := self._check(arguments):
            fix = "correct them and call it again"
            raise ToolError(f"{tool} cannot take these arguments", "; ".join(wrong), fix)
        return arguments

    @cached_property
    def _plain(self) -> _Object:
        return written_out(self.whole)

    def _check(self, arguments: _Object) -> list[str]:
        return mismatches(self._plain, arguments)


def mismatches(schema: _Object, value: Any) -> list[str]:
    """Where the value is not as the (written out) schema says, in words; [] where it cannot be told."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        found = best_match(Draft202012Validator(schema).iter_errors(value))
    except Exception:  # a schema of somebody else's: the server checks what it is called with anyway
        return []
    if found is None:
        return []
    place = ".".join(map(str, found.absolute_path))
    return [f"{place}: {found.message}"[:300] if place else str(found.message)[:300]]


def answered(schema: _Object, value: Any) -> str:
    """How an answer differs from what the server said that it would be; "" where it does not."""
    if value is None or len(json.dumps(value, default=str)) > _CHECKED:
        return ""
    return "; ".join(mismatches(written_out(schema), value))


def written_out(schema: _Object) -> _Object:
    """The schema without references and without what takes unbounded time; what refers to itself takes anything."""
    left = [_NODES]

    def node(value: Any, depth: int, names: bool) -> Any:
        left[0] -= 1
        if left[0] < 0 or depth > _DEPTH:
            raise Unusable("it is too large")
        if isinstance(value, list):
            return [node(item, depth + 1, False) for item in value]
        if not isinstance(value, dict):
            return value
        if names:
            return {name: node(item, depth + 1, False) for name, item in value.items()}
        target = _found(schema, value["$ref"]) if isinstance(value.get("$ref"), str) else {}
        plain = {
            key: node(item, depth + 1, key in ("properties", "dependentSchemas"))
            for key, item in value.items()
            if key not in (*_LEFT, "$defs", "definitions")
        }
        return {"allOf": [plain, node(target, depth + 1, False)]} if target else plain

    try:
        whole: _Object = node(schema, 0, False)
    except Unusable:
        return {"type": "object", "required": _required(schema)}
    return whole


def _required(schema: _Object) -> list[str]:
    given = schema.get("required")
    return [name for name in given if isinstance(name, str)] if isinstance(given, list) else []


def _found(schema: _Object, reference: str) -> Any:
    """What a reference within the schema means; nothing where it leads elsewhere."""
    if not reference.startswith("#/"):
        return {}
    value: Any = schema
    for part in reference[2:].split("/"):
        if not isinstance(value, dict):
            return {}
        value = value.get(part.replace("~1", "/").replace("~0", "~"))
    return value if isinstance(value, dict) else {}


def _valid(given: _Object) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    plain = {key: value for key, value in given.items() if key != "$schema"}
    try:
        Draft202012Validator.check_schema(plain)
    except SchemaError as error:
        raise Unusable(f"its schema is not valid: {error.message}"[:300]) from None
    except RecursionError:
        raise Unusable("its schema is nested too deeply") from None


def _named(given: _Object) -> None:
    """Names that a provider refuses would make it refuse the whole request."""
    pending: list[Any] = [given]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            names = value.get("properties")
            if isinstance(names, dict) and (bad := [n for n in names if not _PROPERTY.fullmatch(n)]):
                raise Unusable(f"an argument is called {bad[0][:40]!r}")
            pending += value.values()
        elif isinstance(value, list):
            pending += value
