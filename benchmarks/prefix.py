"""How much of each request of a conversation is the one before it: what a provider can read from its cache.

A real Chatter, Planner and Researcher talk with a scripted model for many turns in which everything happens that
could change the beginning of a request: minutes pass, tools are loaded, an agent joins, a repository and a project
are added, the conversation goes there and back, and is summarised.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.server import server
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import site
from tests.support.wire import Wire

TURNS = 40
READ, WRITE = (
    0.1,
    1.25,
)  # prices of a token that is read from the cache, and written to it, beside a fresh one
LONG = "It goes on as it was planned, and each part is told in a sentence or two, as people do. " * 6
RULES: list[dict[str, Any]] = [
    {
        "system": "You are a helpful assistant that summarizes",
        "steps": [{"text": "They talked about a shop."}],
    },
    {"system": "You are Planner", "steps": [{"text": LONG}]},
    {
        "user": "plan",
        "steps": [{"tools": [{"name": "consult_planner", "input": {"question": "How?"}}]}, {"text": LONG}],
    },
    {
        "user": "branches",
        "steps": [
            {"tools": [{"name": "load_tools", "input": {"category": "git"}}]},
            {"tools": [{"name": "list_projects", "input": {}}]},
            {"text": LONG},
        ],
    },
    {
        "user": "notes",
        "steps": [
            {"tools": [{"name": "load_tools", "input": {"category": "project"}}]},
            {"tools": [{"name": "list_projects", "input": {}}]},
            {"text": LONG},
        ],
    },
    {"steps": [{"text": LONG}]},
]


@dataclass(frozen=True)
class Step:
    """One request, and how many bytes of it stood in the one before."""

    size: int
    before: int  # bytes of the request before
    shared: int
    loaded: bool  # the model loaded tools in between
    summarised: bool  # the conversation was summarised in between

    @property
    def share(self) -> float:
        """Of the request before, the part with which this one begins."""
        return self.shared / self.before


def wire_form(body: dict[str, Any]) -> bytes:
    """The parts in the order in which a provider's cache reads them."""
    parts = (body.get("tools", []), body.get("system", []), body["messages"])
    return b"".join(json.dumps(part, ensure_ascii=False).encode() for part in parts)


def _common(one: bytes, two: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


def compare(bodies: list[dict[str, Any]]) -> list[Step]:
    """Each request beside the one before it."""
    found = []
    for earlier, later in itertools.pairwise(bodies):
        one, two = wire_form(earlier), wire_form(later)
        shared = _common(one, two)
        loaded = len(later.get("tools", ())) > len(earlier.get("tools", ()))
        summarised = len(later["messages"]) < len(earlier["messages"])
        found.append(Step(len(two), len(one), shared, loaded, summarised))
    return found


def cost(steps: list[Step]) -> float:
    """In bytes of fresh input, with a cache that holds from each request to the next."""
    return sum(READ * step.shared + WRITE * (step.size - step.shared) for step in steps)


def without_keeping(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same requests where each turn begins with the core tools alone."""
    first = bodies[0]["tools"]
    names = {tool["name"] for tool in first}
    found = []
    for body in bodies:
        own = _since_the_person(body)
        loaded = any(block.get("name") == "load_tools" for message in own for block in _blocks(message))
        kept = body["tools"] if loaded else [tool for tool in body["tools"] if tool["name"] in names]
        found.append({**body, "tools": kept})
    return found


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else list(content)


def _since_the_person(body: dict[str, Any]) -> list[dict[str, Any]]:
    said = [
        place
        for place, message in enumerate(body["messages"])
        if any(block.get("text", "").startswith("[from ") for block in _blocks(message))
    ]
    return list(body["messages"][said[-1] :]) if said else []


def talk(home: Path, turns: int, seconds: float) -> list[dict[str, Any]]:
    """The requests of one conversation of so many turns, spread over so many seconds."""
    with server(home / "prefix", "off") as url, MessagesApi(Rules(RULES)) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-bench-key-0000", "ANTHROPIC_BASE_URL": api.url}
        with site(home / "prefix-site", url, **model) as place:
            place.up("chatter", "planner")
            with Wire(place.url, place.names) as wire:
                for turn in range(turns):
                    _happens(turn, place, wire)
                    words = {3: "show the branches", 9: "show the notes"}.get(turn % 16, "and then?")
                    wire.ask("plan it" if turn % 5 == 1 else words, user="ada")
                    time.sleep(seconds / turns)
        return [body for body in api.requests if "[from ada]" in json.dumps(body) and _of_chatter(body)]


def _of_chatter(body: dict[str, Any]) -> bool:
    return bool(body.get("tools")) and "consult_planner" in {tool["name"] for tool in body["tools"]}


def _happens(turn: int, place: Any, wire: Wire) -> None:
    """What changes around the conversation."""
    match turn:
        case 6:
            place.up("researcher")
        case 10:
            wire.command("create_project", user="ada", name="Shop")
        case 14:
            wire.command("set_active_project", user="ada", project_id="shop")
        case 22:
            wire.command("set_active_project", user="ada")


def measure(home: Path, turns: int = TURNS, seconds: float = 0.0) -> None:
    """Print the shares, and what they save."""
    bodies = talk(home, turns, seconds)
    steps = compare(bodies)
    plain = [step.share for step in steps if not (step.summarised or step.loaded)]
    apart = {
        "where tools were loaded in between": [step.share for step in steps if step.loaded],
        "where it was summarised in between": [step.share for step in steps if step.summarised],
    }
    print(
        f"\nA conversation of {turns} turns, {len(bodies)} requests, {seconds:.0f} s: with how much of the one"
        " before it each request begins"
    )
    print(
        f"  within and between turns: median {statistics.median(plain):.1%}, least {min(plain):.1%},"
        f" at least 95 % in {sum(share >= 0.95 for share in plain)} of {len(plain)}"
    )
    for told, shares in apart.items():
        if shares:
            print(f"  {told} ({len(shares)} times): mean {statistics.mean(shares):.1%}")
    fresh = sum(step.size for step in steps)
    dropped = cost(compare(without_keeping(bodies)))
    print(
        f"  at a tenth for what is read and 1.25 for what is written, input costs {cost(steps) / fresh:.1%} of fresh"
        f" input; {dropped / fresh:.1%} if loaded tools were left out after each turn"
    )
