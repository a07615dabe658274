"""The script of a pretended model: what it answers, and how it fails.

A script is a JSON list of rules, tried from the top; the first that fits answers:

    [
      {"user": "plan", "system": "You are Chatter",
       "steps": [{"tools": [{"name": "consult_planner", "input": {"question": "{{user}}"}}]},
                 {"text": "The plan: {{result.summary}}"}]},
      {"steps": [{"text": "Hello."}]}
    ]

`user` and `system` are parts of the last thing the person said and of the system prompt, in any case; left
out, they fit all. `tool` is the name of a tool that must be offered. The first answer is steps[0]; after each
round of tool results since the person's last message comes the next step, and the last one is repeated.
Where no rule fits, the answer is "ok".

A step, every field optional:

    text, thinking      what it says and thinks; {{user}} is the person's last message, {{result}} the last
                        tool result, {{result.a.b}} a field of it (also within the input of a tool)
    tools               [{"name", "input", "id"?}]: calls, several at once if there are several
    stop                stop_reason; else tool_use where there are tools, end_turn where there are none
    usage               {"input_tokens", "output_tokens", "cache_read_input_tokens", …}
    status              an HTTP status other than 200: the answer is an error, with
    error, message        its type (overloaded_error, …) and words, and
    retry_after           the header retry-after in seconds,
    headers               and further headers
    fault               what befalls the stream after the blocks: cut (connection closed), stall (silence),
                        overloaded (error event), unfinished (no stop reason), garbled (an event not JSON),
                        empty (no event at all)
    delay, pace, pings  seconds before the answer, seconds between its pieces, pings before its first block
    hold                a name: no answer before the test has put it among the server's `released`
    tries               [step, …]: what the first times get that this same request is made, to be tried again
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

Body = dict[str, Any]
Fault = Literal["", "cut", "stall", "overloaded", "unfinished", "garbled", "empty"]

ESCALATE = "escalate_to_human"  # ends a turn: words beside its result are the next message
_NOTE = re.compile(r"\[[^\]]*\]")  # a message wholly in brackets is a note of the harness, nobody said it
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")  # what differs when a prompt is written again
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Step:
    """One answer, or one way of failing to give it; the fields are told in the module's docstring."""

    text: str = ""
    thinking: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    status: int = 200
    error: str = ""
    message: str = "as the script wants it"
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault = ""
    delay: float = 0.0
    pace: float = 0.0
    pings: int = 0
    hold: str = ""
    tries: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Step:
        """A step from JSON; ValueError for a field that there is not."""
        if unknown := data.keys() - {known.name for known in fields(cls)}:
            raise ValueError(f"a step has no field called {', '.join(sorted(unknown))}")
        tries = tuple(cls.parse(one) for one in data.get("tries", ()))
        return cls(**{**data, "tools": tuple(data.get("tools", ())), "tries": tries})

    @property
    def stop_reason(self) -> str:
        return self.stop or ("tool_use" if self.tools else "end_turn")

    @property
    def error_type(self) -> str:
        return self.error or _ERRORS.get(self.status, "api_error")


Script = Callable[[Body], Step]


def queue(steps: Iterable[Step]) -> Script:
    """A script that answers with these steps one after the other, and with "ok" when they are used up."""
    waiting = list(steps)
    return lambda _body: waiting.pop(0) if waiting else Step(text="ok")


@dataclass
class Rules:
    """A script of rules; counts how often a request was made, so that `tries` come before the answer."""

    rules: Sequence[Mapping[str, Any]]
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._steps = [[Step.parse(step) for step in rule["steps"]] for rule in self.rules]

    def __call__(self, body: Body) -> Step:
        said, rounds = last_words(body["messages"])
        for rule, steps in zip(self.rules, self._steps, strict=True):
            if _fits(rule, said, body):
                return _filled(self._try(steps[min(rounds, len(steps) - 1)], body), said, body["messages"])
        return Step(text="ok")

    def _try(self, step: Step, body: Body) -> Step:
        same = _MOMENT.sub("", json.dumps(body, sort_keys=True))
        self.seen[same] += 1
        count = self.seen[same]
        return step.tries[count - 1] if count <= len(step.tries) else step


def words(content: str | list[Body]) -> str:
    """The text of a message's or a tool result's content, without notes of the harness beside it."""
    if isinstance(content, str):
        return content
    texts = [str(block["text"]) for block in content if block.get("type") == "text"]
    return "\n".join([text for text in texts if not _NOTE.fullmatch(text)] or texts)


def results(message: Body) -> list[Body]:
    """The tool results that a message carries."""
    content = message["content"]
    return [] if isinstance(content, str) else [b for b in content if b.get("type") == "tool_result"]


def last_words(messages: list[Body]) -> tuple[str, int]:
    """What the person said last, and how many answers of the model have followed since."""
    rounds = 0
    ended = {
        block["id"]
        for message in messages
        if not isinstance(message["content"], str)
        for block in message["content"]
        if block.get("name") == ESCALATE
    }
    for message in reversed(messages):
        if message["role"] == "assistant":
            rounds += 1
            continue
        said = words(message["content"]).strip()
        answered = {block["tool_use_id"] for block in results(message)}
        if said and answered <= ended and not _NOTE.fullmatch(said):
            return said, rounds
    return "", rounds


def _fits(rule: Mapping[str, Any], said: str, body: Body) -> bool:
    offered = {tool.get("name") for tool in body.get("tools", ())}
    return (
        rule.get("user", "").lower() in said.lower()
        and rule.get("system", "").lower() in words(body.get("system", "")).lower()
        and (not rule.get("tool") or rule["tool"] in offered)
    )


def _filled(step: Step, said: str, messages: list[Body]) -> Step:
    """The step with its {{…}} replaced."""
    last = next((found[-1] for message in reversed(messages) if (found := results(message))), None)
    result = words(last.get("content", "")) if last else ""

    def value(match: re.Match[str]) -> str:
        name, _, path = match[1].partition(".")
        return said if name == "user" else _dig(result, path)

    def fill(item: Any) -> Any:
        if isinstance(item, str):
            return re.sub(r"\{\{((?:user|result)[\w.]*)\}\}", value, item)
        if isinstance(item, Mapping):
            return {key: fill(part) for key, part in item.items()}
        return [fill(part) for part in item] if isinstance(item, list) else item

    return replace(
        step, text=fill(step.text), thinking=fill(step.thinking), tools=tuple(fill(t) for t in step.tools)
    )


def _dig(result: str, path: str) -> str:
    """The field at `a.b` of a result that is JSON; the whole result for no path, "" where there is none."""
    if not path:
        return result
    try:
        found = json.loads(result)
        for name in path.split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
    return found if isinstance(found, str) else json.dumps(found)
