"""`budget`: what a day, a project and a task may cost, how often a hook may run, and what was spent on what."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import result_for_people
from gateways.cli.options import Project, group
from gateways.cli.run import me, run
from shared.client import Client
from shared.client.text import times
from shared.client.text.safe import dollars
from shared.errors import UsageError
from shared.settings import Settings

app = group()
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[str, typer.Option("--user", help="Who decides.", default_factory=me)]
Dollars = Annotated[str, typer.Argument(metavar="DOLLARS", help="A number, or none.")]


@app.command("show")
def show(as_json: Json = False) -> NoReturn:
    """The budgets that are set; works with the cluster down."""
    run(lambda settings: _show(settings, as_json))


@app.command("spent")
def spent(
    by: Annotated[
        Literal["agent", "model", "task", "project", "day"],
        typer.Option(help="What it is told by; days are those of the budget, in UTC."),
    ] = "day",
    since: Annotated[str, typer.Option(help="A span, as 12h or 7d, or a moment.")] = "7d",
    project: Project = None,
    as_json: Json = False,
) -> NoReturn:
    """What was spent on model calls, by agent, model, task, project or day; works with the cluster down."""
    run(lambda settings: _spent(settings, by, since, project, as_json))


@app.command("day")
def day(dollars: Dollars, user: User, as_json: Json = False) -> NoReturn:
    """What all model calls of one day may cost; none goes back to BUDGET_DAY."""
    run(lambda settings: _set(settings, "set_day_budget", user, as_json, dollars=_amount(dollars)))


@app.command("project")
def project(
    project: Annotated[str, typer.Argument(metavar="ID", autocompletion=complete.projects)],
    dollars: Dollars,
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """What a project may cost, over all time."""
    given: dict[str, Any] = {"project_id": project, "budget_limit": _amount(dollars)}
    run(lambda settings: _set(settings, "edit_project", user, as_json, **given))


@app.command("task")
def task(
    task: Annotated[str, typer.Argument(metavar="ID", autocompletion=complete.tasks)],
    dollars: Dollars,
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """What a task may cost."""
    run(lambda settings: _set(settings, "edit_task", user, as_json, task_id=task, budget=_amount(dollars)))


@app.command("hook")
def hook(
    hook: Annotated[str, typer.Argument(metavar="ID", autocompletion=complete.hooks)],
    runs: Annotated[int, typer.Argument(min=0, metavar="RUNS", help="How often.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """How often a hook may run in a day."""
    run(lambda settings: _set(settings, "edit_hook", user, as_json, hook_id=hook, daily_cap=runs))


def _amount(text: str) -> float | None:
    if text.strip().casefold() == "none":
        return None
    try:
        return float(text.strip().removeprefix("$"))
    except ValueError:
        raise UsageError(f"{text!r} is no amount of dollars", "", "give a number, as 2.50, or none") from None


async def _set(settings: Settings, tool: str, user: str, as_json: bool, **arguments: Any) -> None:
    result = await result_for_people(settings, tool, "budget", user, as_json, **arguments)
    if result is None:
        return
    value = next(value for name, value in arguments.items() if not name.endswith("_id"))
    what = next((f"of {value}" for name, value in arguments.items() if name.endswith("_id")), "of a day")
    amount = f"{value} runs a day" if tool == "edit_hook" else "none" if value is None else dollars(value)
    screen.out(f"the budget {what} is now {amount}")
    if result.get("note"):
        screen.talk(str(result["note"]))


async def _show(settings: Settings, as_json: bool) -> None:
    from shared.client.views import budgets  # reads the Store, which no other command's start should pay for

    async with Client(settings) as client:
        found = await budgets.budgets(client)
    if as_json:
        screen.document("budgets", budgets=found)
        return
    rows = [
        (card["scope"], card["name"], *(_amounts(card[part], card["unit"]) for part in ("budget", "spent")))
        for card in found
    ]
    screen.table(rows, ("of", "name", "budget", "spent"), "No budget is set: promptdock budget day DOLLARS")


def _amounts(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return dollars(value) if unit == "dollars" else f"{value} {unit}"


async def _spent(settings: Settings, by: str, since: str, project: str | None, as_json: bool) -> None:
    from shared.client.views import budgets, lookup

    start = times.back(since)
    async with Client(settings) as client:
        slug = await lookup.project(client, project) if project else None
        found = await budgets.spent(client, by, start, slug)
    total = budgets.total(found)
    if as_json:
        screen.document(
            "spent", by=by, since=start.astimezone(UTC).isoformat(), project=slug, spent=found, total=total
        )
        return
    rows = [(card["name"] or f"no {by}", *_counts(card)) for card in found]
    if len(found) > 1:
        rows.append((screen.strong("in all"), *_counts(total)))
    empty = f"No model was called since {screen.moment(start.isoformat())}"
    screen.table(rows, (by, "calls", "tokens in", "of them cached", "tokens out", "cost"), empty + ".")


def _counts(card: dict[str, Any]) -> tuple[object, ...]:
    read = card["input"] + card["cache_read"] + card["cache_write"]
    return (card["calls"], read, card["cache_read"], card["output"], dollars(card["cost"]))
