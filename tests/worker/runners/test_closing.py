"""What an agent answers another with."""

from __future__ import annotations

import json

from shared.bus.messages import AgentMessage
from shared.redaction import hide
from shared.worker.runners.closing import envelope


def test_an_answer_holds_none_of_the_clusters_secrets() -> None:
    hide(secret := "sk-ant-of-the-answer-0123456789")
    question = {"id": "q", "from": "chatter", "to": "backend", "type": "task", "payload": {"question": "?"}}
    request = AgentMessage.model_validate(question)
    sent = json.loads(
        envelope("backend", request, "response", {"summary": f"used {secret}"}, "agent:chatter")
    )
    assert sent["payload"] == {"request_id": "q", "summary": "used [hidden]"}
