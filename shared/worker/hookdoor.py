"""The tool door for hooks: nobody can be asked while a hook looks, so what needs a person's leave is refused.

Rules and standing permissions decide as for every call, and each decision is a row of the audit log.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from shared.errors import Denied, ToolError
from shared.guard import grants, presets
from shared.guard.addresses import is_nowhere
from shared.hooks import queries
from shared.hooks.steps import Found
from shared.store.records import Audit, Hook, HookRun, Project
from shared.store.row import derived
from shared.tools.context import Context
from shared.tools.handler import Handler
from shared.turns.archive import Archive
from shared.worker.parts import Parts

AGENT = "hooks"
_RULES = "builder"  # reads, and commands that are confined without network
_MOST = 256 * 1024  # bytes of a page
_READS = ("named_query",)


class HookDoor:
    """The door of one run."""

    def __init__(
        self, parts: Parts, handler: Handler, archive: Archive, hook: Hook, run: HookRun, project: Project
    ) -> None:
        self._parts, self._handler, self._archive = parts, handler, archive
        self._hook, self._run, self._project = hook, run, project
        self._count = 0

    async def __call__(self, tool: str, arguments: dict[str, Any]) -> Found:
        """Run one tool; Denied where the rules do not allow it."""
        self._count += 1
        detail, category, touched = self._named(tool, arguments)
        why = "" if tool in _READS else await self._refused(tool, category, detail, touched)
        await self._note(tool, detail, "deny" if why else "allow", why)
        if why:
            raise Denied(f"{tool} is not allowed in a hook", why, "allow it for good, or leave the step out")
        if tool == "http_get":
            return await _fetch(str(arguments["url"]), float(arguments["timeout"]))
        if tool == "named_query":
            rows = await queries.run(self._parts.store, str(arguments["query"]), self._project.id)
            return {"rows": rows, "count": len(rows)}
        return await self._handler.execute(tool, arguments, self._context(), f"{self._run.id}.{self._count}")

    def _named(self, tool: str, arguments: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
        if tool in ("http_get", "named_query"):
            return str(arguments.get("url") or arguments.get("query")), "hooks", ()
        known = self._handler.registry.get(tool)
        checked = known.check(arguments)
        return known.detail(checked), known.category, known.touched(checked)

    async def _refused(self, tool: str, category: str, detail: str, touched: tuple[str, ...]) -> str:
        if tool == "http_get":
            host = urlsplit(detail).hostname or ""
            named = self._parts.settings.hook_hosts
            return "" if host in named else f"{host or detail!r} is not among HOOK_HOSTS"
        if grants.needs_each_time(tool, self._parts.sandbox.mode):
            return "there is no sandbox here, so that each command needs leave"
        ruling = presets.preset(_RULES, self._parts.sandbox.offline).decide(tool, category, [detail], touched)
        naming = grants.needs_naming(tool, self._parts.sandbox.mode)
        if ruling.vote == "allow" and not naming:
            return ""
        # At nobody's request: what people were granted is not for it.
        where = grants.Where(str(self._run.session_id), AGENT, self._project.slug, "")
        given = grants.applying(await grants.read(self._parts.store), where)
        if ruling.vote != "deny" and grants.covers(given, tool, category, [detail], exact=naming):
            return ""
        return "under Landlock each command needs leave" if naming else ruling.why

    async def _note(self, tool: str, detail: str, decision: Any, why: str) -> None:
        row = Audit(
            id=derived("audit", "hook", str(self._run.id), self._count),
            agent=AGENT,
            action=f"tool:{tool}:{detail}"[:8000],
            decision=decision,
            profile=_RULES,
            session_id=self._run.session_id,
            detail={"hook": self._hook.slug, "why": why},
        )
        await self._archive.put([row])

    def _context(self) -> Context:
        extras = {"sandbox": self._parts.sandbox, "repos": self._parts.repos}
        return replace(
            Context(AGENT, str(self._run.session_id), str(self._run.id), self._parts.store),
            project_id=self._project.slug,
            extras=extras,
        )


async def _fetch(url: str, timeout: float) -> Found:
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
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, LookupError) as error:
        return {"status": 0, "body": "", "url": url, "error": f"{type(error).__name__}: {error}"[:500]}


async def _public(url: str) -> str:
    """Where the host is; ToolError for what is no address of the web. One that its owner named may be this machine."""
    parts = urlsplit(url)
    plain = url.isprintable() and url.isascii() and not set(url) & set(' \\"<>')
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ToolError("this address cannot be asked", url[:200], "name one that begins with https://")
    found = await asyncio.get_running_loop().getaddrinfo(
        parts.hostname, parts.port or 443, type=socket.SOCK_STREAM
    )
    for *_, address in found:
        place = ipaddress.ip_address(str(address[0]).partition("%")[0])
        if is_nowhere(place):
            raise ToolError("this address cannot be asked", f"{parts.hostname} leads to {place}", "")
    return str(found[0][4][0])
