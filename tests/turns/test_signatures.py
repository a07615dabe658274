"""What a request on an agent's channel may say of who stands behind it."""

from __future__ import annotations

from typing import Any

from shared.bus.keys import Names
from shared.bus.messages import agent
from shared.bus.signing import Signer
from shared.turns.signatures import Signatures
from shared.worker.permissions.approver import origin_of
from tests.support.guards import guarded

NAMES = Names("here")
ASKED: dict[str, Any] = {
    "id": "q-1",
    "from": "x",
    "to": "planner",
    "type": "question",
    "payload": {"question": "Push it?"},
    "timestamp": "2026-01-01T00:00:00Z",
    "on_behalf_of": {"user_id": "ada", "roles": ["lead"]},
    "origin": {"by": "person", "user": "ada"},
}


@guarded("signature")
def test_what_nobody_signed_says_neither_for_whom_it_speaks_nor_what_it_has_read() -> None:
    judged, signed = Signatures(NAMES, Signer("s" * 64)).judge(NAMES.agent("planner"), ASKED)
    assert not signed and "on_behalf_of" not in judged
    assert origin_of(agent(judged)).foreign == "the words of x"


def test_a_worker_of_the_cluster_says_both() -> None:
    signer, channel = Signer("s" * 64), NAMES.agent("planner")
    judged, signed = Signatures(NAMES, signer).judge(channel, {**ASKED, "sig": signer.sign(channel, ASKED)})
    assert signed and judged["on_behalf_of"]["user_id"] == "ada"
    assert origin_of(agent(judged)).foreign == ""
