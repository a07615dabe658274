"""What a tool touches, as it declares it, and which class follows: it reads, it changes, or it widens.

A kind is one sort of thing that a call can touch. What a tool touches may depend on its arguments: editing a task
touches records, and money where a budget is given. The class is never declared. It is spelled for the shipped
permissions, `tool:@<class>:<kind>`, once for each kind; rules that people write see a tool's name and category alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from shared import failpoints

TouchKind = Literal[
    "files",  # of the checkouts that are open
    "records",  # tasks, projects, notes and the like; words to agents and to the people of this cluster
    "loss",  # something is deleted
    "merge",  # work joins a branch that others build on
    "command",  # a command line runs in the sandbox
    "code",  # code runs outside of this call, or of the sandbox
    "root",  # another folder of this machine is opened
    "address",  # something outside of this machine is reached
    "money",  # what may be spent
    "approval",  # what waits for a person is decided
    "schedule",  # something will act later, without anybody looking
    "permission",  # what an agent may do
    "agent",  # agents themselves: what they are, whether they work
    "secret",  # a file that holds secrets is shown
]
Class = Literal["read", "change", "widen"]

KINDS: tuple[TouchKind, ...] = get_args(TouchKind)
_HOME: frozenset[TouchKind] = frozenset(
    {"files", "records", "loss", "merge"}
)  # they stay inside of what is open
# What a turn that has read foreign text must not do by a rule alone: it lasts, or it leaves.
LASTING: frozenset[TouchKind] = frozenset(KINDS) - _HOME - {"command"}

_WORDS: dict[TouchKind, str] = {
    "loss": "deletes what cannot be brought back",
    "merge": "merges work into a branch that others build on",
    "command": "runs a command",
    "code": "makes code run outside of this call",
    "root": "opens a folder of this machine",
    "address": "connects to an address",
    "money": "changes what may be spent",
    "approval": "decides what waits for a person",
    "schedule": "makes something act later",
    "permission": "changes what agents may do",
    "agent": "changes agents themselves",
    "secret": "shows a file that holds secrets",
}


@dataclass(frozen=True)
class When:
    """What is touched by giving an argument: `kinds` are all that can come of it, `of` says which do."""

    kinds: tuple[TouchKind, ...]
    of: Callable[[Any], Iterable[TouchKind]]


def given(*kinds: TouchKind) -> When:
    """These, whatever is given."""
    return When(kinds, lambda _value: kinds)


def chosen(**choices: TouchKind | Sequence[TouchKind]) -> When:
    """For each value of the argument what it means; a value that is not named means nothing more."""
    meant: dict[str, tuple[TouchKind, ...]] = {
        name: (one,) if isinstance(one, str) else tuple(one) for name, one in choices.items()
    }
    every = tuple(dict.fromkeys(kind for kinds in meant.values() for kind in kinds))
    return When(every, lambda value: meant.get(str(value), ()))


@dataclass(frozen=True)
class Touches:
    """A tool's declaration: what each call touches, and what more where an argument is given.

    Given is an argument that is not its parameter's default.
    """

    always: tuple[TouchKind, ...]
    by: Mapping[str, When] = field(default_factory=dict)

    def kinds(self, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[TouchKind, ...]:
        """What a call with these arguments touches."""
        found: dict[TouchKind, None] = dict.fromkeys(self.always)
        for name, when in self.by.items():
            if name in arguments and arguments[name] != defaults.get(name, _NOTHING):
                found.update(dict.fromkeys(when.of(arguments[name])))
        return tuple(found)

    @property
    def possible(self) -> tuple[TouchKind, ...]:
        """All that some call can touch."""
        more = (kind for when in self.by.values() for kind in when.kinds)
        return tuple(dict.fromkeys([*self.always, *more]))


_NOTHING = object()
# What declares nothing may be anything: a tool of another server, or one that nobody has looked at.
UNKNOWN = Touches(("address",))


def touching(*always: TouchKind, **by: When | TouchKind) -> Touches:
    """A declaration: `touching("records", budget="money")`."""
    return Touches(always, {name: one if isinstance(one, When) else given(one) for name, one in by.items()})


def class_of(kind: TouchKind, reads: bool) -> Class:
    """The class that follows from a kind, for a tool that only reads or one that does more."""
    if kind not in _HOME:
        return "widen"
    return "read" if reads else "change"


def spelled(kinds: Iterable[TouchKind], reads: bool) -> tuple[str, ...]:
    """As the shipped permissions see them."""
    if failpoints.without("classes"):
        return ("tool:@change:records",)
    return tuple(f"tool:@{class_of(kind, reads)}:{kind}" for kind in kinds)


_declared: dict[str, tuple[str, ...]] = {}


def declare(tool: str, touches: Touches, reads: bool) -> None:
    """Keep what every call of a tool touches, for those who know no more of a call than the tool's name."""
    _declared[tool] = spelled(touches.always, reads)


def of(tool: str) -> tuple[str, ...]:
    """What every call of this tool touches; a name that nobody declared may be anything."""
    return _declared.get(tool) or spelled(UNKNOWN.always, reads=False)


def in_words(kinds: Iterable[TouchKind]) -> str:
    """In words, what of it a person has to know: `changes what may be spent and connects to an address`."""
    words = [_WORDS[kind] for kind in kinds if kind in _WORDS]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
