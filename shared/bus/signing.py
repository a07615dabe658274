"""Signatures: by them a message is known as one that a gateway of this cluster sent (docs/wire.md).

`sig` is `<milliseconds since 1970>.<HMAC-SHA256 in hex>` over the channel, that moment and the message, as canonical
JSON without `sig` and `via`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from shared import secret
from shared.errors import Refused

if TYPE_CHECKING:
    from shared.settings import Settings

FRESH_MS = 15 * 60_000  # an id is recognised for longer than this: a copy is either known or too old
_AHEAD_MS = 60_000  # by which somebody's clock may be ahead of ours
_OUTSIDE = ("sig", "via")
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode  # made once
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][-+.0-9e]*')
# A number that other languages write otherwise.
_OTHERWISE = re.compile(r"[0-9](?:\.0|e[-+][0-9]+)[,}\]]")
_FLOAT = re.compile(r"[.e]")


def canonical(message: dict[str, Any]) -> bytes:
    """The one way to write a message for its signature."""
    covered = {name: value for name, value in message.items() if name not in _OUTSIDE}
    text = _encode(covered)
    # What a message seldom holds is looked for without the expression first, which would read it letter by letter.
    point = ".0," in text or ".0}" in text or ".0]" in text
    if (point or "e-" in text or "e+" in text) and _OTHERWISE.search(text):
        text = _TOKEN.sub(lambda found: _number(found[0]), text)
    return text.encode("utf-8", "replace")


def _number(token: str) -> str:
    """A number as ECMAScript and RFC 8785 write it; a text as it stands."""
    if token[0] == '"' or not _FLOAT.search(token):
        return token
    value = float(token)
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    digits, _, power = token.partition("e-")
    if not power:
        return token
    return f"{digits}e-{int(power)}" if abs(value) < 1e-6 else format(Decimal(token), "f")


def of_home(settings: Settings) -> Signer:
    """What signs with the secret of this home, or with the one that is set."""
    given = settings.secret.get_secret_value() if settings.secret else None
    return Signer(secret.of_home(settings.home, given))


class Signer:
    """Signs and checks with the cluster's secret. `channel` is as it is called on the server."""

    def __init__(self, secret: str) -> None:
        self._key = secret.encode()

    def derived(self, purpose: str) -> str:
        """A secret for another purpose, of which nobody can tell this one."""
        return hmac.new(self._key, f"derived\n{purpose}".encode(), hashlib.sha256).hexdigest()

    def _code(self, channel: str, at: str, message: dict[str, Any]) -> str:
        signed = b"%b\n%b\n%b" % (channel.encode(), at.encode(), canonical(message))
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    def sign(self, channel: str, message: dict[str, Any], at_ms: int | None = None) -> str:
        """The signature of a message that is sent now."""
        at = str(int(time.time() * 1000) if at_ms is None else at_ms)
        return f"{at}.{self._code(channel, at, message)}"

    def stamped(self, channel: str, text: str, **more: Any) -> str:
        """A message that is written as JSON already, with these fields and its signature at the end."""
        added = {**more, "sig": self.sign(channel, json.loads(text) | more)}
        return f"{text[:-1]},{json.dumps(added, ensure_ascii=False)[1:]}"

    def signed(self, channel: str, message: dict[str, Any], since_ms: float = 0) -> bool:
        """Whether it carries a signature of ours that is fresh and not older than `since_ms`."""
        try:
            return bool(message.get("sig")) and self.check(channel, message) >= since_ms
        except Refused:
            return False

    def check(self, channel: str, message: dict[str, Any]) -> int:
        """When it was signed; Refused where the signature is wrong or old."""
        sig = message.get("sig")
        at, _, code = sig.partition(".") if isinstance(sig, str) else ("", "", "")
        if not (at.isascii() and at.isdigit() and len(at) < 16):
            raise Refused("the signature cannot be read", "sig is <ms>.<hex>", _FIX)
        if not hmac.compare_digest(
            code.encode("utf-8", "replace"), self._code(channel, at, message).encode()
        ):
            raise Refused(
                "the signature is wrong", "the message was changed, or signed with another secret", _FIX
            )
        age = time.time() * 1000 - int(at)
        if not -_AHEAD_MS <= age <= FRESH_MS:
            raise Refused("the signature is too old", f"it was made {age / 1000:.0f} s ago", "sign it anew")
        if not message.get("id") and "command" not in message:
            raise Refused("a signed message needs an id", "by it a copy is recognised", "give it one")
        return int(at)


_FIX = "sign it as docs/wire.md says, or leave sig out"
