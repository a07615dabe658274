"""A request for permission in words: what will happen, why, and what a standing permission would cover.

The words are made once, by the worker that asks, since it alone can look; they lie in the request's card, and each
surface shows them by `lines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from shared import log, people
from shared.guard.permissions import bound
from shared.guard.permissions.display import plainly

if TYPE_CHECKING:
    from shared.guard.permissions.requests import ApprovalRequest

SHORT = 8  # letters of an id by which a person may name a request
_REASON = 400  # characters of a model's own words
_FACTS = 24
_FACT = 400
_EXACT = frozenset({"bash", "run_command", "install_packages"})


@dataclass(frozen=True)
class About:
    """What one call is about. All of it is for people to read; what binds is beside it in the card."""

    does: str = ""  # what will happen: `merge promptdock/calm-otter into main of shop`
    facts: tuple[str, ...] = ()  # more of it, a line each
    reason: str = ""  # the model's own words before the call
    task: str = ""  # the task that is worked on: `calm-otter (A page)`
    always: str = ""  # what an answer of `always` would cover

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> About:
        """From a card; one of a release that had no such words has none."""
        known = {one.name: kept[one.name] for one in fields(cls) if one.name in kept}
        return cls(**{**known, "facts": tuple(map(str, known.get("facts") or ()))})

    def kept(self) -> dict[str, Any]:
        """As a card keeps and every surface shows it: no code point in it that is not plainly visible."""
        texts = {name: plainly(text, _REASON) for name, text in asdict(self).items() if name != "facts"}
        return {**texts, "facts": [plainly(fact, _FACT) for fact in self.facts[:_FACTS]]}


def does(card: ApprovalRequest) -> str:
    """What will happen, in one line."""
    return log.redact(About.of(card.shown()["about"]).does) or f"use {card.tool}"


def command(card: ApprovalRequest) -> str:
    """How it is answered from anywhere."""
    return f"promptdock approvals allow {card.id[:SHORT]}"


def always(card: ApprovalRequest, each_time: bool = False) -> str:
    """What `always` would cover, as it is where nobody writes a pattern; `each_time`: it holds for no such call."""
    if not card.user_id:
        return "nothing: nobody asked for this, so that nobody could hold it"
    if not people.signs(card.user_id):
        return "nothing: nobody knows who asked for this, so that anybody would hold it"
    if each_time:
        return "nothing: without a sandbox each command is asked for"
    call = "this very command line" if card.tool in _EXACT else "this very call again"
    where = "; ".join(f"as long as it leads to {address}" for address in bound.lasting(card.bound).values())
    kept = ", whatever the files hold then" if "files" in card.bound else ""
    kept = ", whatever commits there are then" if "commit" in card.bound else kept
    return f"{call}{kept}, by {card.agent}, in this conversation" + (f", {where}" if where else "")


def lines(card: ApprovalRequest, verb: str = "asks for permission") -> list[str]:
    """The request as a person reads it, on every surface."""
    shown = card.shown()
    about = About.of(shown["about"])
    told = [f"{card.agent.capitalize()} {verb}: {does(card)}"]
    told += [f"  {fact}" for fact in about.facts]
    told.append(f"  Action: {shown['action']}")
    if about.task:
        told.append(f"  For the task {about.task}")
    if about.reason:
        told.append(f"  {card.agent.capitalize()}'s own words: “{about.reason}”")
    told.append(f"  Why you are asked: {shown['why']}")
    if held := bound.describe(shown["bound"]):
        told.append(f"  Bound to: {held}")
    told.append(f"  Always would cover: {about.always or always(card)}")
    return [log.redact(line) for line in told]
