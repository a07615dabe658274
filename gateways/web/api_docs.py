"""/api/docs: the addresses as the schema has them, on one plain page that loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code,pre{font-family:ui-monospace,monospace;font-size:.875rem}pre{overflow:auto;padding:.75rem;"
    "border:1px solid #8886;border-radius:.375rem}summary{cursor:pointer;padding:.375rem 0}"
    "b{display:inline-block;min-width:4.5rem}table{border-collapse:collapse}td,th{text-align:left;padding:.25rem 1rem"
    " .25rem 0;vertical-align:top}"
)


@router.get("/api/docs")
async def docs(request: Request) -> HTMLResponse:
    """All addresses, with what they take and give."""
    schema = request.app.openapi()
    by_tag: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            tag = (told.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_route(path, method, told, schema))
    parts = "".join(f"<h2>{html.escape(tag)}</h2>{''.join(routes)}" for tag, routes in by_tag.items())
    return HTMLResponse(
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'><title>API · PromptDock</title>"
        "<link rel='icon' href='data:,'>"
        f"<style nonce='{request.state.nonce}'>{_STYLE}</style><main><h1>PromptDock API</h1>"
        f"<p>Version {html.escape(schema['info']['version'])}. For programs: "
        f"<a href='/api/openapi.json'>openapi.json</a>.</p>{parts}</main></html>"
    )


def _route(path: str, method: str, told: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    words = html.escape(str(told.get("description") or ""))
    takes = _parameters(told.get("parameters", []))
    body = _schema_of(told.get("requestBody", {}), schema)
    gives = next((_schema_of(one, schema) for code, one in told["responses"].items() if code[0] == "2"), None)
    parts = [f"<p>{words}</p>", takes, _block("Takes", body), _block("Gives", gives)]
    head = f"<b>{html.escape(method.upper())}</b> <code>{html.escape(path)}</code>"
    return f"<details><summary>{head}</summary>{''.join(parts)}</details>"


def _parameters(given: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for one in given:
        told = one.get("description") or one.get("schema", {}).get("description") or ""
        cells = (str(one["name"]), str(one["in"]), "required" if one.get("required") else "", str(told))
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>" if rows else ""


def _schema_of(told: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    kinds: list[Mapping[str, Any]] = list(told.get("content", {}).values())
    return _named(kinds[0].get("schema"), schema) if kinds else None


def _named(found: Any, schema: Mapping[str, Any]) -> Any:
    """The schema itself, in place of its name."""
    if isinstance(found, Mapping) and "$ref" in found:
        return schema["components"]["schemas"].get(str(found["$ref"]).rpartition("/")[2])
    return found


def _block(head: str, found: Any) -> str:
    if not found:
        return ""
    return f"<p>{head}</p><pre>{html.escape(json.dumps(found, indent=2))}</pre>"
