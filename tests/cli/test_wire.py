"""What passes on the channels, in words."""

from __future__ import annotations

from shared.client.text.traffic import in_words


def test_what_people_and_agents_say_to_each_other_is_told_with_who_and_to_whom() -> None:
    assert (
        in_words("human-input", {"user_id": "ada", "content": "Hello\nthere"}) == "ada → chatter: Hello there"
    )
    said = {"user_id": "ada", "content": "Good day", "status": "complete"}
    assert in_words("chatter-output", said) == "chatter → ada (complete): Good day"
    asked = {"from": "chatter", "to": "planner", "type": "question", "payload": {"question": "How?"}}
    assert in_words("agent:planner", asked) == "chatter → planner (question): How?"


def test_events_and_heartbeats_say_what_is_done() -> None:
    call = {"event": "tool_call", "tool": "bash", "arguments": {"command": "make test"}}
    assert in_words("events:backend:r-1", call) == "backend:r-1: bash: make test"
    ended = {"event": "tool_result", "tool": "bash", "ms": 12, "is_error": True}
    assert in_words("events:s", ended) == "s: bash failed in 12 ms"
    assert in_words("events:s", {"event": "chunk", "content": "One"}) == "s: “One”"
    beat = {
        "agent": "backend",
        "status": "working",
        "doing": [{"turn": "t", "task": "calm-otter", "act": "writes"}],
    }
    assert in_words("agent:status", beat) == "backend is working: calm-otter · writes"


def test_what_commands_a_terminal_is_taken_out_of_what_anybody_published() -> None:
    assert in_words("anything", "a\x1b[2Jb") == "anything: ab"
    assert "\x1b" not in in_words("events:s", {"event": "x\x1b]0;y\x07", "content": "\x1b[2J"})
