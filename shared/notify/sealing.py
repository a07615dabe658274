"""Addresses hold secrets: they are kept sealed by the cluster's own, and a gateway's word about them as well.

Whoever can read the Store or the bus sees no address, and nobody but a gateway of this cluster can write one: no
model and no stranger makes the cluster send somewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

from shared.bus.signing import Signer
from shared.errors import ToolError
from shared.redaction import hide

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_FRESH = 900  # seconds for which a gateway's word holds


class Seal:
    """Closes and opens with a secret that is derived from the cluster's."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def _fernet(self, purpose: str) -> Fernet:
        from cryptography.fernet import Fernet  # a library of megabytes, for who is told of something

        key = hashlib.sha256(self._signer.derived(f"notifications {purpose}").encode()).digest()
        return Fernet(base64.urlsafe_b64encode(key))

    def close(self, address: str) -> str:
        """The address as it is kept."""
        return self._fernet("address").encrypt(address.encode()).decode()

    def open(self, sealed: str) -> str:
        """The address, which nothing shows from now on; ToolError where another secret sealed it."""
        from cryptography.fernet import InvalidToken

        try:
            address = self._fernet("address").decrypt(sealed.encode()).decode()
        except (InvalidToken, ValueError):
            raise ToolError(
                "the address cannot be read",
                "it was kept under another secret of the cluster",
                "add it again",
            ) from None
        hide(address)
        return address

    def order(self, **asked: Any) -> str:
        """A gateway's word that a person may have this done, after it has looked who they are."""
        return self._fernet("order").encrypt(json.dumps(asked).encode()).decode()

    def ordered(self, order: str) -> dict[str, Any]:
        """What was ordered; ToolError for what no gateway of ours said in the last minutes."""
        from cryptography.fernet import InvalidToken

        try:
            found: dict[str, Any] = json.loads(self._fernet("order").decrypt(order.encode(), ttl=_FRESH))
        except (InvalidToken, ValueError):
            raise ToolError(
                "this order is not ours", "it is old, or no gateway of this cluster gave it", "do it anew"
            ) from None
        return found

    def signing_key(self, subscription: UUID) -> bytes:
        """With which what goes to a webhook is signed: it follows from the cluster's secret, and is kept nowhere."""
        return bytes.fromhex(self._signer.derived(f"webhook {subscription}"))

    def signing_secret(self, subscription: UUID) -> str:
        """The same as a receiver is told it, in the form of Standard Webhooks."""
        return f"whsec_{base64.b64encode(self.signing_key(subscription)).decode()}"
