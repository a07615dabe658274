"""The gate before a hook's calls: nobody can be asked while it looks, so what needs permission has it, or is not run.

A step is judged by what the hook's maker may do at this moment, and by `standard`. What that asks a person for runs
only as part of exactly the steps that a person allowed, when the hook was made, changed, or by `allow_hook`. Each
decision is a row of the audit log.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from shared import failpoints
from shared.errors import Denied, ToolError
from shared.guard.permissions import grants, presets
from shared.guard.sandbox.addresses import Reach, Unknown, pin
from shared.guard.sandbox.sandbox import Sandbox
from shared.hooks import permission, queries
from shared.hooks.steps import NOT_RUN, StepResult
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.records import Audit, Hook, HookRun, Project
from shared.store.row import derived
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.turns.outbox import Outbox
from shared.worker.permissions import authority
from shared.worker.permissions.authority import Authority, LaterCall

AGENT = "hooks"
_RULES = "standard"
_MOST = 256 * 1024  # bytes of a page


@dataclass(frozen=True)
class HookTools:
    """What the steps of hooks are run with. `hosts`: those that a step may ask over HTTP."""

    executor: ToolExecutor
    store: Store
    outbox: Outbox
    authority: Authority
    sandbox: Sandbox
    repos: Mirrors
    hosts: frozenset[str]


class HookGate:
    """The gate of one run; `dry`, nothing is run that needs permission, whoever gave it."""

    def __init__(
        self,
        tools: HookTools,
        hook: Hook,
        run: HookRun,
        project: Project,
        dry: bool = False,
    ) -> None:
        self._tools = tools
        self._hook, self._run, self._project = hook, run, project
        self._dry = dry and not failpoints.without("dry-run")
        self._count = 0
        self._made = Origin.of(hook.origin)
        self._allowed_by = permission.granted_by(hook, project.slug)

    async def __call__(self, tool: str, arguments: dict[str, Any]) -> StepResult:
        """Run one tool; Denied where it has no permission."""
        self._count += 1
        call = authority.later_call(self._tools.executor.registry, tool, arguments)
        vote, why = await self._ruled(call)
        if vote != "deny" and (barred := self._barred(tool, arguments)):
            vote, why = "deny", barred
        refused = vote == "deny" or (vote == "ask" and not self._allowed_by)
        decision = "deny" if refused else "ask_approved" if vote == "ask" else "allow"
        await self._note(tool, call.detail, decision, why)
        if refused:
            raise Denied(f"{tool} is not allowed in a hook", why, self._remedy(vote))
        if self._dry and vote == "ask":
            return {NOT_RUN: f"it would {authority.does(tool, arguments)}, which {self._allowed_by} allowed"}
        if tool == "http_get":
            return await _fetch(str(arguments["url"]), float(arguments["timeout"]))
        if tool == "named_query":
            rows = await queries.run(self._tools.store, str(arguments["query"]), self._project.id)
            return {"rows": rows, "count": len(rows)}
        assert call.bound is not None  # what hooks alone can do has ended above
        return await self._tools.executor.run(call.bound, self._context(), f"{self._run.id}.{self._count}")

    async def _ruled(self, call: LaterCall) -> tuple[str, str]:
        """What the rules say: those of the maker, and those of `standard`; the stricter holds."""
        if failpoints.without("hook-maker"):
            return "allow", ""
        theirs = await self._tools.authority.policy_of(self._made)
        both = (theirs, presets.preset(_RULES, self._tools.sandbox.offline))
        rulings = map(call.judged, both)
        strictest = authority.strictest(*rulings)
        if strictest.vote == "deny":
            return "deny", f"{self._made.by or 'its maker'} may not do it: {strictest.why}"
        return strictest.vote, strictest.why

    def _barred(self, tool: str, arguments: dict[str, Any]) -> str:
        """What no permission given before is enough for."""
        if tool == "http_get":
            host = urlsplit(str(arguments["url"])).hostname or ""
            named = self._tools.hosts
            return "" if host in named else f"{host or 'this address'} is not among HOOK_HOSTS"
        if grants.needs_each_time(tool, self._tools.sandbox.mode):
            return "there is no sandbox here, so that each command needs permission"
        return ""

    def _remedy(self, vote: str) -> str:
        if vote == "deny":
            return "leave the step out"
        changed = "its steps were changed since; " if self._hook.allowed.get("digest") else ""
        older = "" if self._hook.origin else "it was made before it was kept who allowed what; "
        allow = f"promptdock hooks allow {self._hook.slug}"
        return f"{changed or older}a person allows exactly these steps with: {allow}"

    async def _note(self, tool: str, detail: str, decision: Any, why: str) -> None:
        row = Audit(
            id=derived("audit", "hook", str(self._run.id), self._count),
            agent=AGENT,
            action=f"tool:{tool}:{detail}"[:8000],
            decision=decision,
            person=self._allowed_by if decision == "ask_approved" else None,
            profile=_RULES,
            session_id=self._run.session_id,
            detail={"hook": self._hook.slug, "why": why, "made_by": self._made.by},
        )
        await self._tools.outbox.put([row])

    def _context(self) -> Context:
        return replace(
            Context(AGENT, str(self._run.session_id), str(self._run.id), self._tools.store),
            project_id=self._project.slug,
            sandbox=self._tools.sandbox,
            repos=self._tools.repos,
        )


async def _fetch(url: str, timeout: float) -> StepResult:
    """GET, without following elsewhere; what does not answer is told as `error`, with status 0."""
    import httpx

    try:
        named, place = httpx.URL(url), await _public(url)
        async with (
            asyncio.timeout(min(60.0, max(1.0, timeout))),
            httpx.AsyncClient(follow_redirects=False, trust_env=False) as client,
            # To the address that was looked at: asked again, the name could lead elsewhere.
            client.stream(
                "GET",
                named.copy_with(host=place),
                # Not packed: a few bytes could unpack to more than there is memory.
                headers={"Host": named.netloc.decode("ascii"), "Accept-Encoding": "identity"},
                extensions={"sni_hostname": named.host},
            ) as answer,
        ):
            body = b""
            async for part in answer.aiter_raw():
                body += part
                if len(body) > _MOST:
                    break
            text = body[:_MOST].decode(answer.encoding or "utf-8", "replace")
            return {"status": answer.status_code, "body": text, "url": url}
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, LookupError, Unknown) as error:
        return {"status": 0, "body": "", "url": url, "error": f"{type(error).__name__}: {error}"[:500]}


async def _public(url: str) -> str:
    """Where the host is; ToolError for what is no address of the web. One that its owner named may be this machine."""
    parts = urlsplit(url)
    plain = url.isprintable() and url.isascii() and not set(url) & set(' \\"<>')
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ToolError("this address cannot be asked", url[:200], "name one that begins with https://")
    if failpoints.without("pinned-address"):
        return parts.hostname
    try:
        # Whoever names a host for hooks may mean this machine, or one beside it.
        found = await pin(parts.hostname, Reach(hosts=frozenset({parts.hostname})))
    except Unknown:
        raise
    except ToolError as error:
        raise ToolError("this address cannot be asked", error.why, error.fix) from None
    return str(found[0])
