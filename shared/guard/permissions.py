"""The permission engine: may this agent do this? Regexes over action strings, and shell text taken apart.

An action is spelled `tool:<name>:<detail>` and `tool:<category>:<detail>`. A spelling that matches no rule
has no vote; of two votes the stricter holds; where nobody votes, the answer is no. Rules match the whole
string, in the order deny, allow, ask, and `.` matches a line break only where the pattern says so: `(?s)`.

Patterns are RE2's: they take time linear in the text, whatever they are, because what could take longer
(backreferences, look-around, huge repetitions) is refused when the policy is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from shared import faults
from shared.errors import ConfigurationError
from shared.guard import shell

Vote = Literal["allow", "ask", "deny"]
SHELLS = frozenset({"bash", "run_command"})  # tools whose detail is a command line

_STRICT: dict[Vote, int] = {"allow": 0, "ask": 1, "deny": 2}
_ORDER: tuple[Vote, ...] = ("deny", "allow", "ask")
_LONGEST = 2000  # characters of a pattern
_MOST = 1000  # patterns of a policy
_PLAIN = " :/-_,@=\"'<>;&%#!~"  # signs that mean nothing in a pattern
# Only a rule that means any text at all matches this: a grant of the tool as such, not of some command.
_ANYTHING = "\r\n\u2028; % \t\u202e~~ 0 $( any text at all )"


@dataclass(frozen=True)
class Ruling:
    """What a policy says to one action, by which rule, and why a person is asked or told no."""

    vote: Vote
    why: str = ""
    rule: str = ""


def pattern(text: str) -> Any:
    """A compiled pattern; ConfigurationError says what is wrong with it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST} characters")
        return re2.compile(text, options)
    except (re2.error, ValueError) as error:
        reason = error.args[0] if error.args else error
        told = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ConfigurationError(
            f"the permission pattern {text[:100]!r} cannot be used",
            told,
            "write it in the syntax of RE2: no look-around, no backreferences",
        ) from None


def literal(text: str) -> str:
    """The pattern that matches exactly this text."""
    import re2

    # Without the backslashes that say nothing: people read it, and may widen it.
    return re.sub(
        r"\\(.)", lambda mark: mark[1] if mark[1] in _PLAIN else mark[0], re2.escape(clean(text)), flags=re.S
    )


def clean(text: str) -> str:
    """Text that a pattern can be tried on: half characters become question marks."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class _Rule:
    text: str
    compiled: Any = field(compare=False, repr=False)

    def matches(self, action: str) -> bool:
        return self.compiled.fullmatch(action) is not None


Layer = Mapping[Vote, tuple[_Rule, ...]]


@dataclass(frozen=True)
class Policy:
    """A named set of rules, made by `policy`."""

    name: str
    # One set of rules behind the other: the first that has a vote on a spelling decides it.
    layers: tuple[Layer, ...] = field(repr=False)
    # What its name says: nothing that the door asks for on its own account is asked under it.
    unguarded: bool = False

    def decide(self, tool: str, category: str, details: Sequence[str] = ("",)) -> Ruling:
        """The ruling on a call; `details` are the spellings of one and the same detail."""
        if any("\0" in detail for detail in details):
            return Ruling("deny", "it holds a NUL, which no file and no command can")
        details = [clean(detail) for detail in details]
        if tool in SHELLS:
            return self._shell(tool, category, details[0])
        return self._judge([f"tool:{name}:{detail}" for detail in details for name in (tool, category)])

    def hides(self, tool: str, category: str) -> bool:
        """Whether the tool is denied whatever its detail: then a model need not be shown it."""
        blanket = self._votes([f"tool:{name}:{_ANYTHING}" for name in (tool, category)])
        if any(ruling.vote == "deny" for ruling in blanket):
            return True
        return not any(
            _concerns(rule, name)
            for layer in self.layers
            for rule in (*layer["allow"], *layer["ask"])
            for name in (tool, category)
        )

    def _judge(self, spellings: Iterable[str]) -> Ruling:
        votes = self._votes(spellings)
        if not votes:
            if faults.without("no-rule"):
                return Ruling("allow")
            return Ruling("deny", f"no rule of the permissions {self.name!r} allows it")
        return max(votes, key=lambda ruling: _STRICT[ruling.vote])

    def _votes(self, spellings: Iterable[str]) -> list[Ruling]:
        found = (self._vote(action) for action in dict.fromkeys(spellings))
        return [ruling for ruling in found if ruling is not None]

    def _vote(self, action: str) -> Ruling | None:
        rules = ((vote, rule) for layer in self.layers for vote in _ORDER for rule in layer[vote])
        found = next((ruled for ruled in rules if ruled[1].matches(action)), None)
        return found and Ruling(found[0], f"the permissions {self.name!r} say {found[0]}", found[1].text)

    def _shell(self, tool: str, category: str, line: str) -> Ruling:
        """The whole line, and every command in it by itself; the strictest holds."""
        names = (tool, category)
        if faults.without("command-text"):
            return self._judge([f"tool:{name}:{line}" for name in names])
        whole = self._votes([f"tool:{name}:{line}" for name in names])
        reading = shell.read(line)
        for text in (*reading.commands, *reading.traces):
            for ruling in self._votes([f"tool:{name}:{text}" for name in names]):
                if ruling.vote == "deny":
                    return ruling
        blanket = self._votes([f"tool:{name}:{_ANYTHING}" for name in names])
        if blanket and all(ruling.vote == "allow" for ruling in (*blanket, *whole)):
            return blanket[0]
        if reading.doubts:
            asked = Ruling("ask", f"this command cannot be judged by its text: {reading.doubts[0]}")
            return max([self._judge([f"tool:{name}:{line}" for name in names]), asked], key=_strictness)
        parts = [self._judge([f"tool:{name}:{text}" for name in names]) for text in reading.commands]
        return max([*parts, *whole], key=_strictness)


def _strictness(ruling: Ruling) -> int:
    return _STRICT[ruling.vote]


def policy(
    name: str,
    *,
    deny: Sequence[str] = (),
    allow: Sequence[str] = (),
    ask: Sequence[str] = (),
    unguarded: bool = False,
    behind: Policy | None = None,
) -> Policy:
    """A policy, its patterns compiled; one that cannot be used refuses the whole (ConfigurationError).

    On what these rules say nothing about, the policy `behind` them decides.
    """
    if len(deny) + len(allow) + len(ask) > _MOST:
        raise ConfigurationError(f"the policy {name} has too many patterns", f"at most {_MOST} are taken")
    given: dict[Vote, Sequence[str]] = {"deny": deny, "allow": allow, "ask": ask}
    rules = {vote: tuple(_Rule(text, pattern(text)) for text in texts) for vote, texts in given.items()}
    return Policy(name, (rules, *(behind.layers if behind else ())), unguarded)


def _concerns(rule: _Rule, name: str) -> bool:
    """Whether some action of the tool (or category) of this name can match."""
    if rule.matches(f"tool:{name}:") or rule.matches(f"tool:{name}:{_ANYTHING}"):
        return True
    for part in _split(rule.text, "|"):
        flags, rest = ("(?s)", part[4:]) if part.startswith("(?s)") else ("", part)
        fields = _split(rest, ":")
        if len(fields) < 3:
            # Not of the form tool:<name>:<detail>; where that cannot be told, the tool is shown.
            if fields[0] != "tool" or len(fields) == 1:
                return True
            continue
        if fields[0] != "tool" or pattern(f"{flags}(?:{fields[1]})").fullmatch(name):
            return True
    return False


def _split(text: str, mark: str) -> list[str]:
    """`text` cut at a mark that stands outside of groups, classes and escapes."""
    parts, depth, in_class, escaped = [""], 0, False, False
    for char in text:
        if char == mark and not (depth or in_class or escaped):
            parts.append("")
            continue
        parts[-1] += char
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
    return parts
