"""What an operator looks for in the log: turns that failed, calls that were refused or wrong. One line each.

The level says who must act: error and warning the operator, info the model, which corrects itself, or the person,
who said no. No line holds arguments of a call or words of people; session and turn are bound to the log already.
"""

from __future__ import annotations

import re

from shared import log
from shared.errors import PromptDockError
from shared.loop import Call

_LONG = 500  # characters of a reason
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”")  # where our errors name what somebody wrote


def turn_failed(agent: str, error: PromptDockError, dead: str = "") -> None:
    """A turn ended with an error; `dead` is why its message went to the dead letters."""
    more = {"dead": dead} if dead else {}
    log.get().error(
        "A turn failed",
        agent=agent,
        kind=type(error).__name__,
        error=error.what[:_LONG],
        why=error.why[:_LONG],
        **more,
    )


def declined(agent: str, model: str) -> None:
    """The model refused to answer."""
    log.get().warning("The model declined to answer", agent=agent, model=model)


def decided(agent: str, call: Call, decision: str, why: str, profile: str, person: str = "") -> None:
    """What was decided about a call, where it may not run."""
    of = {"agent": agent, "tool": call.tool, "call": call.key}
    if decision == "deny":
        log.get().warning("A tool call was refused", **of, why=_unquoted(why), permissions=profile)
    elif decision == "ask_denied":
        log.get().info("A person denied a tool call", **of, by=person)
    elif decision == "expired":
        log.get().warning("Nobody decided about a tool call in time", **of)


def not_its_own(agent: str, call: Call, why: str) -> None:
    """The model called what it cannot call."""
    of = {"agent": agent, "tool": call.tool[:100], "call": call.key}
    log.get().info("A tool call was refused", **of, why=_unquoted(why))


def could_not(agent: str, call: Call, result: dict[str, object]) -> None:
    """A call came to nothing, for wrong arguments or another reason: the model reads it."""
    of = {"agent": agent, "tool": call.tool[:100], "call": call.key}
    told = {name: _unquoted(str(result[name])) for name in ("error", "why") if result.get(name)}
    log.get().info("A tool call failed", **of, **told)


def _unquoted(text: str) -> str:
    return _QUOTED.sub("…", text)[:_LONG]
