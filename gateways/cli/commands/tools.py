"""`tools`: what the agents can do, and any tool called by hand through the same door as theirs."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import calling, complete, screen
from gateways.cli.options import group
from gateways.cli.run import me, run
from shared.client.types import Card
from shared.client.views import tools as known
from shared.errors import UsageError
from shared.settings import Settings

app = group()
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(
    category: Annotated[str | None, typer.Argument(help="Only those of this category.")] = None,
    as_json: Json = False,
) -> NoReturn:
    """All tools by category; works with the cluster down."""
    run(lambda _settings: _list(category, as_json))


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.tools)], as_json: Json = False
) -> NoReturn:
    """One tool: what it does, and the arguments that it takes."""
    run(lambda _settings: _show(name, as_json))


@app.command("call")
def call(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.tools)],
    user: Annotated[str, typer.Option("--user", help="Who calls.", default_factory=me)],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments; - reads stdin.")] = "{}",
    profile: Annotated[str | None, typer.Option(help="The permission profile to call it under.")] = None,
    session: Annotated[str, typer.Option(help="The conversation to call it in; none by default.")] = "",
    role: Annotated[
        list[str] | None, typer.Option(help="A role of yours, of those in APPROVER_ROLES.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the result.")] = 300.0,
    as_json: Json = False,
) -> NoReturn:
    """Run one tool in the cluster; its result is JSON on stdout."""
    how: dict[str, Any] = {"profile": profile, "session": session, "roles": role or (), "patience": timeout}
    run(lambda settings: _call(settings, name, arguments, user, as_json, how))


async def _list(category: str | None, as_json: bool) -> None:
    found = known.catalogue(category)
    if as_json:
        screen.document("tools", tools=found)
        return
    rows = [(card["name"], card["category"], card["effect"], _first(card)) for card in found]
    screen.table(rows, ("name", "category", "effect", "does"))


def _first(card: Card) -> str:
    return str(card["description"]).partition("\n")[0]


async def _show(name: str, as_json: bool) -> None:
    card = known.tool(name)
    if as_json:
        screen.document("tool", **card)
        return
    screen.out(f"{card['name']}  ({card['category']}, {card['effect']})")
    screen.out(card["description"])
    required = card["input_schema"].get("required", [])
    for field, schema in card["input_schema"]["properties"].items():
        screen.out(f"  {field:24} {_kind(schema)}{'' if field in required else _default(schema)}")


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if schema.get("type") == "array" and schema.get("items"):
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("const", schema.get("type", "object")))


def _default(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return "  (may be left out)" if default in (None, "", [], {}) else f"  (by default {json.dumps(default)})"


def _unread(error: json.JSONDecodeError) -> str:
    quoted = error.msg.startswith("Expecting property name")
    wanted = "a name in double quotes is missing" if quoted else "it cannot be read on"
    return f"at character {error.pos + 1} {wanted}"


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        why = (
            _unread(error) if isinstance(error, json.JSONDecodeError) else "it is no text or nested too deep"
        )
        raise UsageError("the arguments are no JSON", why, 'give an object: \'{"name": "x"}\'') from None
    if not isinstance(value, dict):
        raise UsageError("the arguments are no JSON object", f"they are a {type(value).__name__}", "give {…}")
    return value


async def _call(
    settings: Settings, name: str, text: str, user: str, as_json: bool, how: dict[str, Any]
) -> None:
    arguments = _parsed(text)
    if not known.is_of_server(name):
        known.tool(name, exact=True)
    result = await calling.call(settings, name, user, arguments, exact=True, **how)
    if as_json:
        screen.document("tool_result", tool=name, result=result)
    else:
        screen.out(json.dumps(result, indent=2, ensure_ascii=False))
