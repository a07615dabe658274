"""Addresses and orders: closed and opened by one cluster, and by no other."""

from __future__ import annotations

import base64

import pytest

from shared.bus.signing import Signer
from shared.errors import ToolError
from shared.notify import sealing
from shared.notify.sealing import Seal
from shared.redaction import redact
from shared.store.records import new_id

OURS, THEIRS = Seal(Signer("o" * 64)), Seal(Signer("t" * 64))


def test_an_address_is_opened_by_its_cluster_alone_and_shown_by_nobody() -> None:
    address = "ntfy://a-topic-that-nobody-knows"
    kept = OURS.close(address)
    assert "topic" not in kept and kept != OURS.close(address)
    assert OURS.open(kept) == address
    assert "nobody-knows" not in redact(f"could not reach {address} today")
    for wrong in (THEIRS.close(address), kept[:-4], "", "é", OURS.order(address=address)):
        with pytest.raises(ToolError, match="cannot be read"):
            OURS.open(wrong)


def test_an_order_holds_for_a_while_and_only_a_gateway_of_the_cluster_gives_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = OURS.order(does="add", name="ci")
    assert OURS.ordered(order) == {"does": "add", "name": "ci"}
    for wrong in (THEIRS.order(does="add"), OURS.close('{"does": "add"}'), "x"):
        with pytest.raises(ToolError, match="not ours"):
            OURS.ordered(wrong)
    monkeypatch.setattr(sealing, "_FRESH", -10)
    with pytest.raises(ToolError, match="not ours"):
        OURS.ordered(order)


def test_the_secret_of_a_webhook_follows_from_the_cluster_and_the_subscription() -> None:
    one, other = new_id(), new_id()
    assert OURS.signing_secret(one) == OURS.signing_secret(one)
    assert len({OURS.signing_secret(one), OURS.signing_secret(other), THEIRS.signing_secret(one)}) == 3
    prefix, _, rest = OURS.signing_secret(one).partition("_")
    assert prefix == "whsec" and base64.b64decode(rest) == OURS.signing_key(one)
    assert 24 <= len(OURS.signing_key(one)) <= 64
