"""How full the window of a conversation is: in messages, and in tokens as its model counted them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shared.conversation import summary as summaries
from shared.conversation.past import History
from shared.conversation.window import KEEP
from shared.errors import StoreUnavailable
from shared.models import prices
from shared.store.base import Store
from shared.store.records import TurnStep


@dataclass(frozen=True)
class Fullness:
    """`shown` messages of at most `most`; behind `summarise_at` all but the newest go into a summary, once it rests."""

    shown: int
    most: int
    summarise_at: int
    summarised: int  # messages that the summary tells
    before: int  # messages that the conversation has, and that are not gone on from
    tokens: (
        int | None
    )  # that the newest call of the model was sent; None where there was none since it began anew
    answered: int | None  # tokens of its answer
    model: str
    limit: int | None = None  # tokens that the model takes at most, where that is known

    @property
    def percent(self) -> int | None:
        """How full it is."""
        return round(100 * self.tokens / self.limit) if self.tokens is not None and self.limit else None

    def card(self) -> dict[str, Any]:
        """As programs read it."""
        return {**asdict(self), "percent": self.percent}

    def told(self) -> str:
        """As people read it."""
        lines = [f"{self.shown} of at most {self.most} messages are in view"]
        if self.summarised:
            lines.append(f"a summary tells {self.summarised} before them")
        if self.before:
            lines.append(f"{self.before} earlier ones are in the history, and not in view")
        if self.tokens is not None and self.limit:
            full = f"{self.tokens:,} of the {self.limit:,} tokens that {self.model} takes ({self.percent} %)"
            lines.append(f"the last call sent {full} and got {self.answered:,}")
        elif self.tokens is not None:
            lines.append(
                f"the last call sent {self.tokens:,} tokens to {self.model} and got {self.answered:,}"
            )
        else:
            lines.append("no call of a model was made since it began anew, so its tokens are not known yet")
        return "\n".join([f"{lines[0]}.", *(f"{line[0].upper()}{line[1:]}." for line in lines[1:])])


async def fullness(store: Store, session: str, past: History) -> Fullness:
    """Of a conversation as it is now; without the Store, without tokens."""
    last = past.summary["last"] if past.summary else past.floor
    shown = len(summaries.after(past.window, last))
    tokens, answered, model, limit = await _tokens(store, session, past)
    summarised = last - past.summary["first"] + 1 if past.summary else 0
    before = max(0, past.seq - shown - summarised)
    return Fullness(shown, KEEP, summaries.FULL, summarised, before, tokens, answered, model, limit)


async def _tokens(
    store: Store, session: str, past: History
) -> tuple[int | None, int | None, str, int | None]:
    """What the newest call of a model sent, and got, in this window; and what that model takes."""
    where = {"session_id": session, "kind": "model"}
    nothing = (None, None, "", None)
    try:
        rows = await store.select(TurnStep, where, order=[("created_at", "desc")], limit=1)
    except StoreUnavailable:
        return nothing
    turns = {item["turn"] for item in past.window}
    if not rows or rows[0].turn_id not in turns:
        return nothing
    detail = rows[0].detail
    usage = detail.get("usage")
    if not isinstance(usage, list) or len(usage) < 4:
        return nothing
    sent, got, read, written, *_ = (int(one) for one in usage)
    model, provider = str(detail.get("model") or ""), str(detail.get("provider") or "")
    return sent + read + written, got, model, prices.window(model, provider)
