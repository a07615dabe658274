"""`approvals`: calls that wait for permission, the answer to them, and what was allowed for good."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import group
from gateways.cli.run import me, run
from shared.bus.messages import PersonDecision
from shared.client import Client
from shared.client.text.safe import line
from shared.errors import Denied, UsageError
from shared.settings import Settings

app = group()
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[str, typer.Option("--user", help="Who answers.", default_factory=me)]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="The id, or its first letters.", autocompletion=complete.approvals)
]
Role = Annotated[list[str] | None, typer.Option(help="A role of yours, of those in APPROVER_ROLES.")]
Scope = Literal["session", "project", "everywhere"]


@app.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Answered ones too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """What waits, and what is allowed for good; works with the cluster down."""
    run(lambda settings: _list(settings, everything, as_json))


@app.command("show")
def show(approval: Id, as_json: Json = False) -> NoReturn:
    """All about one request: what will happen, why, and what an answer of always would cover."""
    run(lambda settings: _show(settings, approval, as_json))


@app.command("allow")
def allow(
    approval: Id,
    user: User,
    always: Annotated[bool, typer.Option("--always", help="From now on, without asking.")] = False,
    pattern: Annotated[str | None, typer.Option(help="What always means; this very call by default.")] = None,
    scope: Annotated[Scope | None, typer.Option(help="Where always holds; this session by default.")] = None,
    role: Role = None,
    as_json: Json = False,
) -> NoReturn:
    """Allow a call once, or always."""
    decision: PersonDecision = "always" if always or pattern or scope else "allow_once"
    run(lambda settings: _answer(settings, approval, decision, user, pattern, scope, None, role, as_json))


@app.command("deny")
def deny(
    approval: Id,
    user: User,
    why: Annotated[
        list[str] | None, typer.Argument(metavar="[REASON]...", help="Why; the agent reads it.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="The same, as an option.")] = None,
    role: Role = None,
    as_json: Json = False,
) -> NoReturn:
    """Deny a call; the agent goes on without it."""
    if why and reason:
        raise UsageError("the reason is given twice", "as words and with --reason", "give one of them")
    told = " ".join(why or ()) or reason
    run(lambda settings: _answer(settings, approval, "deny", user, None, None, told, role, as_json))


@app.command("revoke")
def revoke(permission: Id, user: User, as_json: Json = False) -> NoReturn:
    """End what was allowed for good: it is asked for again."""
    run(lambda settings: _revoke(settings, permission, user, as_json))


async def _list(settings: Settings, everything: bool, as_json: bool) -> None:
    from shared.client.views.permissions import approvals as requests

    async with Client(settings) as client:
        waiting = await requests.listing(client, everything)
        standing = await requests.standing(client)
    if as_json:
        screen.document("approvals", approvals=waiting, standing=standing)
        return
    if waiting:
        heads = ("id", "state", "agent", "for", "age", "where", "request")
        screen.table([_row(one) for one in waiting], heads)
        screen.talk(
            "… all about one: promptdock approvals show ID; answer it: promptdock approvals allow ID, or deny"
        )
    else:
        screen.out("Nothing waits for a permission.")
    if standing:
        screen.out("\nallowed for good:")
        names = ("id", "for", "scope", "agent", "by", "pattern")
        kept = [tuple(str(one[name]) for name in names) for one in standing]
        screen.table(kept, ("id", "for", "where", "agent", "by", "pattern"))
        _bound(standing)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    where = one["about"]["task"].split(" ")[0] or one["session"] or ""
    where += f" in {one['project']}" if one["project"] else ""
    texts = (one["short"], one["state"], one["agent"], one["user_id"] or "approvers")
    return (*texts, screen.since(one["created_at"]), where, one["does"])


async def _show(settings: Settings, approval: str, as_json: bool) -> None:
    from shared.client.views.permissions import approvals as requests

    async with Client(settings) as client:
        one = await requests.shown(client, approval)
    if as_json:
        screen.document("approval", **one)
        return
    for told in one["lines"]:
        screen.out(told)
    screen.out(
        f"  {one['id']}: {one['state']}, for {one['user_id'] or 'approvers'}, {screen.since(one['created_at'])} old"
    )
    screen.out(f"  In the conversation {one['session'] or '-'}, project {one['project'] or 'unknown'}")
    for name, value in one["arguments"].items():
        screen.out(line(f"  {name}: {value}", 4000))


def _bound(listed: list[dict[str, Any]]) -> None:
    """What each is bound to: where it goes, and with what."""
    for one in listed:
        if one["bound_to"]:
            screen.out(line(f"{one['id']}: {one['bound_to']}", 1000))


async def _answer(
    settings: Settings,
    approval: str,
    decision: PersonDecision,
    user: str,
    pattern: str | None,
    scope: Scope | None,
    reason: str | None,
    roles: list[str] | None,
    as_json: bool,
) -> None:
    from shared.client.views.permissions import approvals as requests

    async with Client(settings) as client:
        told = await requests.answer(
            *(client, approval, decision, user),
            pattern=pattern,
            scope=scope,
            reason=reason,
            roles=roles or (),
        )
    if as_json:
        screen.document("approval", **told)
    elif told["yours"]:
        screen.out(told["told"])
    if not told["yours"]:
        raise Denied("nothing was changed", f"it was {told['told']} before", "")


async def _revoke(settings: Settings, permission: str, user: str, as_json: bool) -> None:
    await call(settings, "revoke_permission", user, {"permission_id": permission})
    if as_json:
        screen.document("revoked", id=permission)
    else:
        screen.out(f"{permission} is revoked: it is asked for again")
