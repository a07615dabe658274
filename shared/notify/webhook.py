"""One event sent to an address of the web, signed as Standard Webhooks says (standardwebhooks.com).

The name is looked up once and judged, and the request goes to the address that was judged; nowhere else, whatever the
receiver answers. Of its answer only the status is read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from shared import failpoints
from shared.errors import ToolError, UsageError
from shared.guard.sandbox.addresses import Reach, Unknown, pin, refused_text

_PATIENCE = 15.0  # seconds for all of it
_LONGEST = 2000  # characters of an address
_WAIT = 6 * 3600  # seconds for which a receiver may ask to be left alone


@dataclass(frozen=True)
class SendOutcome:
    """How it went. `gone`: the receiver wants nothing more; `after`: in so many seconds at the earliest."""

    ok: bool
    status: int | None = None
    error: str = ""
    gone: bool = False
    after: int = 0


def check(address: str, reach: Reach) -> str:
    """What lists show of an address; UsageError for one to which nothing is sent."""
    plain = address.isascii() and address.isprintable() and not set(address) & set(' \\"<>')
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError:
        plain, host = False, None
    usable = plain and len(address) <= _LONGEST and host and parts.scheme in ("http", "https")
    if not usable or not host or "@" in parts.netloc or parts.fragment:
        raise UsageError(
            "this is no address of a webhook",
            "it begins with https:// or http:// and holds no name or password before its host",
            "e.g. https://example.com/hooks/promptdock",
        )
    if why := refused_text(host, reach):
        raise UsageError(
            f"nothing is sent to {host}", f"it is {why}", f"its owner can allow it: ALLOWED_HOSTS={host}"
        )
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{rest}"


def headers(key: bytes, id: str, at: int, body: bytes) -> dict[str, str]:
    """By which the receiver knows whose it is, drops what it had already, and refuses what is old."""
    signed = hmac.new(key, b"%b.%d.%b" % (id.encode(), at, body), hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }


async def send(address: str, key: bytes, id: str, at: int, body: dict[str, Any], reach: Reach) -> SendOutcome:
    """POST it once. What goes wrong is told without the address."""
    import httpx

    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        named = httpx.URL(address)
        async with asyncio.timeout(_PATIENCE):
            place = named.host
            if not failpoints.without("pinned-address"):
                place = str((await pin(named.host, reach))[0])
            async with (
                httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=_PATIENCE) as client,
                client.stream(
                    "POST",
                    named.copy_with(host=place),
                    content=data,
                    headers={
                        "Host": named.netloc.decode("ascii"),
                        "Content-Type": "application/json",
                        "User-Agent": "PromptDock",
                        "Accept-Encoding": "identity",
                        **headers(key, id, at, data),
                    },
                    extensions={"sni_hostname": named.host},
                ) as answer,
            ):
                return _judged(answer.status_code, answer.headers.get("retry-after", ""))
    except TimeoutError:
        return SendOutcome(False, error=f"it did not answer within {_PATIENCE:g} s")
    except Unknown:
        return SendOutcome(False, error="its name leads nowhere")
    except ToolError as error:
        return SendOutcome(False, error=error.why or error.what)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, LookupError, ValueError) as error:
        return SendOutcome(False, error=_words(error))


def _judged(status: int, after: str) -> SendOutcome:
    if 200 <= status < 300:
        return SendOutcome(True, status)
    wait = min(_WAIT, int(after)) if after.isascii() and after.isdigit() and len(after) < 9 else 0
    if status == 410:
        return SendOutcome(False, status, "it answered 410: it wants nothing more", gone=True)
    if 300 <= status < 400:
        return SendOutcome(
            False, status, f"it answered {status}: nothing is sent to where it points", after=wait
        )
    return SendOutcome(False, status, f"it answered {status}", after=wait)


_WORDS = {
    "ConnectError": "nobody takes a connection there",
    "ConnectTimeout": "nobody takes a connection there",
    "ReadTimeout": "it did not answer in time",
    "ReadError": "it closed the connection",
    "WriteError": "it closed the connection",
    "RemoteProtocolError": "what it answered is no HTTP",
}


def _words(error: Exception) -> str:
    name = type(error).__name__
    return _WORDS.get(name, f"it cannot be reached ({name})")
