"""The permission engine: may this agent do this? Regexes over action strings, and shell text taken apart.

An action is spelled `tool:<name>:<detail>` and `tool:<category>:<detail>`. A spelling that matches no rule
has no vote; of two votes the stricter holds; where nobody votes, the answer is no. Rules match the whole
string, in the order deny, allow, ask, and `.` matches a line break only where the pattern says so: `(?s)`.

The policies that ship do not know tools by name. Their rules are tried on what a call touches as well, spelled
`tool:@<class>:<kind>` (`touching.py`): where they say nothing about the name, that is their vote on it.
It takes a rule for each kind that a call touches, and the strictest holds.

Patterns are RE2's: they take time linear in the text, whatever they are, because what could take longer
(backreferences, look-around, huge repetitions) is refused when the policy is made.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from shared import failpoints
from shared.errors import ConfigurationError
from shared.guard.permissions import shell, touching

Vote = Literal["allow", "ask", "deny"]
SHELLS = frozenset({"bash", "run_command", "install_packages"})  # tools whose detail is a command line

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

    @cached_property
    def compiled(self) -> Any:
        """Made when first tried; ConfigurationError says what is wrong with it."""
        return pattern(self.text)

    def matches(self, action: str) -> bool:
        return self.compiled.fullmatch(action) is not None


@dataclass(frozen=True)
class Layer:
    """Rules that belong together. Those of a shipped policy are tried on what a call touches, too."""

    rules: Mapping[Vote, tuple[_Rule, ...]]
    shipped: bool = False

    def vote(self, action: str) -> tuple[Vote, _Rule] | None:
        """The first rule that matches, and what it says."""
        tried = ((vote, rule) for vote in _ORDER for rule in self.rules[vote])
        return next((one for one in tried if one[1].matches(action)), None)

    def by_class(self, touched: Sequence[str]) -> tuple[Vote, _Rule] | None:
        """The strictest vote on what is touched; None where a part of it has none."""
        votes = [self.vote(one) for one in touched] if self.shipped else []
        found = [one for one in votes if one is not None]
        return max(found, key=lambda one: _STRICT[one[0]]) if found and len(found) == len(votes) else None


@dataclass(frozen=True)
class Spelling:
    """One spelling of a call, and with the tool's name what it touches."""

    action: str
    touched: tuple[str, ...] = ()


def _spell(tool: str, category: str, detail: str, touched: Sequence[str]) -> list[Spelling]:
    return [Spelling(f"tool:{tool}:{detail}", tuple(touched)), Spelling(f"tool:{category}:{detail}")]


@dataclass(frozen=True)
class Policy:
    """A named set of rules, made by `policy`."""

    name: str
    # One set of rules behind the other: the first that has a vote on a spelling decides it.
    layers: tuple[Layer, ...] = field(repr=False)
    # What its name says: nothing that the gate asks for on its own account is asked under it.
    unguarded: bool = False

    def decide(
        self, tool: str, category: str, details: Sequence[str] = ("",), touched: Sequence[str] | None = None
    ) -> Ruling:
        """The ruling on a call; `details` are the spellings of one and the same detail.

        `touched` is what it touches; where that is left out, it is what every call of the tool does.
        """
        touched = touching.of(tool) if touched is None else touched
        if any("\0" in detail for detail in details):
            return Ruling("deny", "it holds a NUL, which no file and no command can")
        details = [clean(detail) for detail in details]
        if tool in SHELLS:
            return self._shell(tool, category, details[0], touched)
        return self._judge([one for detail in details for one in _spell(tool, category, detail, touched)])

    def hides(self, tool: str, category: str, touched: Sequence[str] | None = None) -> bool:
        """Whether the tool is denied whatever its detail: then a model need not be shown it."""
        touched = touching.of(tool) if touched is None else touched
        blanket = self._votes(_spell(tool, category, _ANYTHING, touched))
        if any(ruling.vote == "deny" for ruling in blanket):
            return True
        return not any(
            layer.by_class(touched)
            or any(
                _concerns(rule, name)
                for rule in (*layer.rules["allow"], *layer.rules["ask"])
                for name in (tool, category)
            )
            for layer in self.layers
        )

    def _judge(self, spellings: Iterable[Spelling]) -> Ruling:
        votes = self._votes(spellings)
        if not votes:
            if failpoints.without("no-rule"):
                return Ruling("allow")
            return Ruling("deny", f"no rule of the permissions {self.name!r} allows it")
        return max(votes, key=_strictness)

    def _votes(self, spellings: Iterable[Spelling]) -> list[Ruling]:
        found = (self._vote(one) for one in dict.fromkeys(spellings))
        return [ruling for ruling in found if ruling is not None]

    def _vote(self, spelling: Spelling) -> Ruling | None:
        for layer in self.layers:
            if found := layer.vote(spelling.action) or layer.by_class(spelling.touched):
                return Ruling(found[0], f"the permissions {self.name!r} say {found[0]}", found[1].text)
        return None

    def _shell(self, tool: str, category: str, line: str, touched: Sequence[str]) -> Ruling:
        """The whole line, and every command in it by itself; the strictest holds."""

        def spell(text: str) -> list[Spelling]:
            return _spell(tool, category, text, touched)

        if failpoints.without("command-text"):
            return self._judge(spell(line))
        whole = self._votes(spell(line))
        reading = shell.read(line)
        for text in (*reading.commands, *reading.traces):
            for ruling in self._votes(spell(text)):
                if ruling.vote == "deny":
                    return ruling
        blanket = self._votes(spell(_ANYTHING))
        if blanket and all(ruling.vote == "allow" for ruling in (*blanket, *whole)):
            return blanket[0]
        if reading.doubts:
            asked = Ruling("ask", f"this command cannot be judged by its text: {reading.doubts[0]}")
            return max([self._judge(spell(line)), asked], key=_strictness)
        parts = [self._judge(spell(text)) for text in reading.commands]
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
    shipped: bool = False,
    behind: Policy | None = None,
) -> Policy:
    """A policy; a pattern that cannot be used refuses the whole (ConfigurationError).

    Those of a shipped policy are known to be right: they are compiled when one is tried. On what these rules say
    nothing about, the policy `behind` them decides.
    """
    if len(deny) + len(allow) + len(ask) > _MOST:
        raise ConfigurationError(f"the policy {name} has too many patterns", f"at most {_MOST} are taken")
    given: dict[Vote, Sequence[str]] = {"deny": deny, "allow": allow, "ask": ask}
    rules = {vote: tuple(_Rule(text) for text in texts) for vote, texts in given.items()}
    if not shipped:
        for rule in itertools.chain(*rules.values()):
            _ = rule.compiled
    return Policy(name, (Layer(rules, shipped), *(behind.layers if behind else ())), unguarded)


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
