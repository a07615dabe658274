"""What a person's words say to a request for permission: yes, no, or something else."""

from __future__ import annotations

import re

from shared.bus.messages import PersonDecision

# What people say to a request for permission, without its commas and points. Nothing but a clear yes is one:
# politeness may follow, a condition may not. "ok thanks" is not here, which may be said of an answer that came.
_YES = "yes|y|yeah|yep|yup|ok|okay|sure|allow|allow it|allow once|go ahead|do it"
_DO = "please|do it|go ahead|allow it|allow once|once|just once|this once"
_THANKS = "please|thanks|thank you"
_NOT = "(?:don't|do not)(?: do it)?"
_DECISIONS: tuple[tuple[PersonDecision, re.Pattern[str]], ...] = (
    ("allow_once", re.compile(rf"(?:please )?(?:{_YES})(?: (?:{_DO}))*")),
    ("allow_once", re.compile(rf"(?:yes|y|yeah|yep|yup)(?: (?:{_DO}))*(?: (?:{_THANKS}))*")),
    (
        "always",
        re.compile(rf"(?:yes )?(?:always|allow always|always allow|always allow it)(?: (?:{_THANKS}))*"),
    ),
    ("deny", re.compile(rf"(?:no|n|nope|deny|deny it|{_NOT})(?: (?:{_THANKS}|{_NOT}))*")),
)
_ANSWERING = re.compile(
    r"(?i)\s*(?:yes|y|yeah|yep|yup|ok|okay|sure|allow|go ahead|always|no|n|nope|deny|don[’']t)\b"
)
# With the first letters of a request's id: of several that are open it means that one.
_NAMED = re.compile(
    r"(?is)([a-z][a-z ,'’]{0,40}?)\s+(?=[a-f]*\d)([0-9a-f]{4,16})"
    r"(?:\s*[,:]\s*|\s+because\s+|\s+(?=please|thank)|[.!]?$)(.{0,500})"
)
_NO_BECAUSE = re.compile(r"(?is)(?:no|deny)(?:\s*[,:]\s*|\s+because\s+)(.{1,500})")


def _clear(text: str) -> PersonDecision | None:
    plain = " ".join(re.sub(r"[.,!]+(?=\s|$)", " ", text.replace("’", "'")).casefold().split())
    return next((how for how, words in _DECISIONS if words.fullmatch(plain)), None)


def decision(text: str) -> tuple[PersonDecision, str] | None:
    """What words say to a request for permission: the decision and a reason; None where they say something else."""
    if len(text) > 600:
        return None
    if how := _clear(text):
        return how, ""
    if (match := _NAMED.fullmatch(text.strip())) and (how := _clear(match[1])):
        if how == "deny":
            return how, match[3].strip()
        return (how, "") if _clear(f"{match[1]} {match[3]}") == how else None
    match = _NO_BECAUSE.fullmatch(text.strip())
    return ("deny", match.group(1).strip()) if match else None


def hedged(text: str) -> bool:
    """Whether words begin as an answer to a request for permission does, and are none: more is said, or asked."""
    return bool(_ANSWERING.match(text)) and decision(text) is None


def named(text: str) -> str:
    """The letters of a request's id that such words name; "" where they name none."""
    match = _NAMED.fullmatch(text.strip()) if decision(text) and not _clear(text) else None
    return match[2].lower() if match and _clear(match[1]) else ""
