"""Every error of ours, drawn once and named for the reader who must act.

PromptDockError           what happened, why, and what to do
├─ ConfigurationError     the operator: a setting, key or version is wrong        (exit 4)
├─ Unreachable            the operator: no cluster, Redis or Store answers        (exit 3)
│  ├─ BusUnreachable
│  │  └─ NoCluster        none was started in this home
│  └─ StoreUnavailable
├─ UsageError             the person: a command or argument is wrong              (exit 2)
├─ TimedOut               the person: nothing came in time                        (exit 5)
├─ Denied                 the person: a rule or a person said no                  (exit 6)
├─ Interrupted            nobody: the person ended it                             (exit 130)
├─ Busy                   the sender: a bound is reached, try again later
├─ BadMessage             the sender: the message was not understood
├─ Conflict               the caller: the row changed meanwhile, or exists
├─ ToolError              the model: a tool could not do what was asked
│  ├─ Missing             what it was to work on is not there
│  └─ Lasting             another try changes nothing: somebody has to decide first
├─ ModelError             the person: the model provider failed
│  ├─ ModelRefused        the provider does not take the key
│  ├─ ModelUnusable        the operator: no such model, or the account has no money   (exit 4)
│  └─ ModelOverloaded     busy, stalled or cut; was tried again
└─ Fenced                 nobody: this worker lost its lease and must stop here
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

_NAMES = 20  # that an error lists


_COMMANDS = frozenset({"promptdock", "git", "make", "python", "pip", "docker"})  # what is typed so
_WORD = re.compile(r"[a-z]+(?=['’]?[a-z]*[ ,:;]|$)")


def sentences(*parts: str) -> str:
    """The parts as sentences: what follows a full stop begins with a capital, but for names of commands."""
    told = ""
    for part in (part.rstrip(".") for part in parts if part):
        stop = "" if told[-1:] in ("", "?", "!") else "."
        told = f"{told}{stop} {_capital(part)}" if told else part
    return told


def _capital(text: str) -> str:
    first = _WORD.match(text)
    return text[:1].upper() + text[1:] if first and first[0] not in _COMMANDS else text


class PromptDockError(Exception):
    """An error that says what happened, why, and what to do about it."""

    exit_code = 1

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.fix = what, why, fix

    def __str__(self) -> str:
        return ". ".join(part.rstrip(".") for part in (self.what, self.why, self.fix) if part)

    def told(self) -> str:
        """For people: sentences."""
        return sentences(self.what, self.why, self.fix)

    def as_dict(self) -> dict[str, str]:
        """`{error, why, fix}` without the empty ones: the shape in which tools and HTTP report it."""
        parts = {"error": self.what, "why": self.why, "fix": self.fix}
        return {name: text for name, text in parts.items() if text}


class ConfigurationError(PromptDockError):
    """A setting, a key or a version is wrong."""

    exit_code = 4


class Unreachable(PromptDockError):
    """Something that we stand on does not answer."""

    exit_code = 3


class BusUnreachable(Unreachable):
    """Redis does not answer."""


class NoCluster(BusUnreachable):
    """None was started in this home."""


class StoreUnavailable(Unreachable):
    """The Store does not answer; what needs it can be tried again."""


class UsageError(PromptDockError):
    """A command or an argument is wrong."""

    exit_code = 2


class TimedOut(PromptDockError):
    """Nothing came in time."""

    exit_code = 5


class Denied(PromptDockError):
    """A rule or a person said no."""

    exit_code = 6


class Interrupted(PromptDockError):
    """The person ended it with Ctrl-C."""

    exit_code = 130


class Busy(PromptDockError):
    """A bound is reached; try again later."""


class BadMessage(PromptDockError):
    """A message was not understood."""


class Refused(BadMessage):
    """A message that can be understood says more than its sender may."""


class Conflict(PromptDockError):
    """The row changed meanwhile, or exists already."""


class ToolError(PromptDockError):
    """A tool could not do what was asked; the model reads why."""


class Missing(ToolError):
    """What a tool was to work on is not there (any more)."""

    @classmethod
    def named(cls, kind: str, name: str, there: Iterable[str], fix: str = "") -> Self:
        """For a name that nothing has: the names that there are, and the one that was probably meant."""
        import difflib

        names = list(there)
        told = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if names[_NAMES:] else "")
        near = difflib.get_close_matches(name.casefold(), [one.casefold() for one in names], 1)
        meant = next((one for one in names if one.casefold() in near), "")
        guess = f"Did you mean {meant!r}?" if meant else ""
        return cls(f"there is no {kind} called {name[:100]!r}", f"there are: {told or 'none'}", guess or fix)


class Lasting(ToolError):
    """Another try would end the same: somebody has to decide something first."""


class ModelError(PromptDockError):
    """The model provider failed."""


class ModelRefused(ModelError):
    """The provider does not take the key."""

    exit_code = 4


class ModelUnusable(ModelError):
    """The provider has no such model, or the account cannot pay: somebody has to change that."""

    exit_code = 4


class ModelOverloaded(ModelError):
    """The provider is busy, stalled or cut the answer; trying again later may help."""

    def __init__(self, what: str, why: str = "", fix: str = "", retry_after: float | None = None) -> None:
        super().__init__(what, why, fix)
        self.retry_after = retry_after


class Fenced(PromptDockError):
    """This worker lost its lease: whatever it does now must not count."""
