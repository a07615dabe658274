"""`trace`: a turn after the fact."""

from __future__ import annotations

from gateways.cli import screen
from shared.client import Client
from shared.client.types import Card
from shared.client.views import trace
from shared.settings import Settings


async def show(settings: Settings, name: str, user: str, as_json: bool) -> None:
    """Each turn with its steps; the turns of agents that were asked stand below, further in."""
    async with Client(settings) as client:
        turns = await trace.trace(client, name, user)
    if as_json:
        screen.document("trace", turns=turns)
        return
    with screen.paged():
        for turn in turns:
            _turn(turn)
    cost, tokens = sum(t["cost"] for t in turns), sum(t["input"] + t["output"] for t in turns)
    screen.talk(f"… {len(turns)} turn{'' if len(turns) == 1 else 's'}, {tokens} tokens, ${cost:.4f}")


def _turn(turn: Card) -> None:
    inset = "  " * turn["depth"]
    head = f"{inset}{turn['agent']}  {turn['state']}  {_seconds(turn['ms'])}  {turn['model'] or 'no model'}"
    used = f"{turn['input']} in, {turn['output']} out, ${turn['cost']:.4f}"
    screen.out(f"{head}  {used}  {turn['turn']}")
    if turn["error"]:
        screen.out(f"{inset}  error: {turn['error']}")
    for step in turn["steps"]:
        usage = step["usage"]
        tokens = f"  ({usage[0]} in, {usage[1]} out, ${usage[4]:.4f})" if usage else ""
        failed = "  failed" if step["failed"] else ""
        took = _seconds(step["ms"]) if step["ms"] is not None else ""
        at = f"+{_seconds(step['after_ms'])}"
        screen.out(f"{inset}  {at:>9} {took:>8}  {step['kind']:7} {step['what']}{tokens}{failed}")


def _seconds(ms: int | None) -> str:
    return "" if ms is None else f"{ms / 1000:.1f} s"
