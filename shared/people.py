"""Who a person is, everywhere inside: `ada` is whoever signs as ada, `?ada` who only says so (docs/wire.md).

They are two people. What is kept of one, asked of one or found for one is the other's in nothing, but that ada sees
what was said in her name.
"""

from __future__ import annotations

from shared import failpoints

CLAIM = "?"  # before a name for which nobody signed; no name that somebody signs for begins so


def claimed(name: str) -> str:
    """The person who only says that they are called so."""
    return name if failpoints.without("signed-person") else CLAIM + name


def called(person: str) -> str:
    """The name, as messages of the contract carry it."""
    return person.removeprefix(CLAIM)


def signs(person: str) -> bool:
    """Whether a gateway of the cluster says that it is them."""
    return not person.startswith(CLAIM)


def seen_by(person: str) -> list[str]:
    """Those whose conversations, tasks and questions this person sees: themself, and who only says to be them."""
    return [person, CLAIM + person] if signs(person) else [person]


def sees(person: str, whose: str | None) -> bool:
    """Whether something of that person's is this one's to see."""
    return whose is not None and whose in seen_by(person)
