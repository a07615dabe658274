"""Notifications of people by `apprise`: in a process of their own, which is ended where a service holds it up.

An address of apprise holds its service's keys: it is handed over on standard input, and nothing of it comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.errors import ConfigurationError, ToolError, UsageError
from shared.guard.sandbox.addresses import Reach, Unknown, pin, refused_text
from shared.notify.webhook import SendOutcome

_PATIENCE = 40.0  # seconds, of which loading the library takes one or two
_MOST = 10  # things that one notification names
_WORDS = 240  # characters of each
_KINDS = {
    "approval.requested": "Permission",
    "question.asked": "Question",
    "plan.ready": "Plan",
    "review.ready": "Review",
    "budget.reached": "Budget",
    "task.blocked": "Blocked",
    "task.completed": "Done",
    "task.failed": "Failed",
    "turn.completed": "Answer",
    "turn.failed": "Error",
}
# They show something on this machine's own screen, read its files or load code: no person is reached by them.
_LOCAL = frozenset({"dbus", "glib", "gnome", "kde", "qt", "macosx", "windows", "syslog", "file", "memory"})


def check(address: str, reach: Reach) -> str:
    """What lists show of an address of apprise; UsageError for what is none that is sent to."""
    scheme, mark, _rest = address.partition("://")
    scheme = scheme.lower()
    if not mark or not scheme.isalnum() or not address.isprintable() or len(address) > 2000:
        raise UsageError(
            "this is no address of a service", "it has the form of apprise", "e.g. ntfy://TOPIC, mailto://…"
        )
    if scheme in _LOCAL:
        raise UsageError(f"{scheme}:// is not sent to", "it reaches nobody but this machine", "")
    if (host := _host(address)) and (why := refused_text(host, reach)):
        raise UsageError(
            f"nothing is sent to {host}", f"it is {why}", f"its owner can allow it: ALLOWED_HOSTS={host}"
        )
    return f"{scheme}://…"


def installed() -> None:
    """ConfigurationError where the library is not here."""
    if find_spec("apprise") is None:
        raise ConfigurationError(
            "notifications need apprise", "it is an extra", 'pip install "promptdock[notify]"'
        )


async def need(address: str) -> None:
    """UsageError for an address of which apprise knows no service; nothing is sent."""
    if not (known := await _run({"address": address})).ok:
        fix = "docs/notifications.md has examples, e.g. ntfy://TOPIC, mailto://…"
        raise UsageError("this is no address of a service", known.error, fix)


def _host(address: str) -> str:
    """What stands where services of one's own have their host; a topic or a token for the others."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def words(bodies: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Title and text of what a person is told, once for all of it."""
    lines = []
    for body in bodies[:_MOST]:
        data, kind = body["data"], _KINDS.get(body["type"], "")
        told = " ".join(_told(data).split())
        short = told if len(told) <= _WORDS else f"{told[:_WORDS]}…"
        lines.append(f"{kind}: {short}\n{body['url']}" if kind else f"{short}\n{body['url']}")
    if len(bodies) > _MOST:
        lines.append(f"and {len(bodies) - _MOST} more")
    waits = sum(body["type"] in _NEEDS for body in bodies)
    if waits:
        return f"PromptDock: {waits} {'things need' if waits > 1 else 'thing needs'} you", "\n\n".join(lines)
    return "PromptDock", "\n\n".join(lines)


_NEEDS = frozenset(list(_KINDS)[:6])


def _told(data: dict[str, Any]) -> str:
    if "task_id" in data:
        why = data.get("question") or data.get("error") or ""
        return f"{data['task_id']} ({data.get('title', '')})" + (f": {why}" if why else "")
    return str(data.get("question") or data.get("content") or "")


async def send(address: str, bodies: Sequence[dict[str, Any]], reach: Reach) -> SendOutcome:
    """Tell the person once of all these; what goes wrong is told without the address."""
    title, text = words(bodies)
    if (host := _host(address)) and "." in host:
        try:
            await pin(host, reach)
        except Unknown:
            pass  # a topic or a token
        except ToolError as error:
            return SendOutcome(False, error=error.why or error.what)
    return await _run({"address": address, "title": title, "text": text})


async def _run(asked: dict[str, str]) -> SendOutcome:
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
    )
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "shared.notify.push_child"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            out, _ = await child.communicate(json.dumps(asked).encode())
    except TimeoutError:
        return SendOutcome(False, error=f"the service did not answer within {_PATIENCE:g} s")
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    try:
        told = json.loads(out)
        return SendOutcome(bool(told["ok"]), error=str(told.get("error", ""))[:200])
    except (ValueError, KeyError, TypeError):
        return SendOutcome(False, error="apprise ended before it said how it went")
