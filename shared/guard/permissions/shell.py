"""Shell text, taken apart: which simple commands it runs, and what in it nobody can judge by reading.

A permission for `git .*` is a permission for one command, not for whatever can be hung on it. So a command
line is parsed (tree-sitter's grammar of bash), and each simple command in it stands for itself. Only plain words,
quotes without expansion, lists, pipelines, groups and harmless redirections are understood; everything else,
and every command that runs another or writes where its options say, is a doubt, and a doubt is asked.
"""

from __future__ import annotations

import functools
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.guard.permissions import programs

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 32 * 1024  # characters that are parsed at all
DEEPEST = 3  # command lines inside command lines

_STRUCTURE = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "negated_command",
        "subshell",
        "compound_statement",
        "redirected_statement",
    }
)
_PIECES = frozenset({"word", "number", "raw_string", "string", "concatenation"})
_WORD = re.compile(r"(?!~)[A-Za-z0-9_./:=,@%+^#~-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
# What turns around, hides or imitates text, and halves of characters: nobody sees what would run.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_EXPANDS = re.compile(r"[$`]")
_NOWHERE = frozenset({"/dev/null", "0", "1", "2"})


@dataclass(frozen=True)
class Reading:
    """What a command line runs.

    `commands` are its simple commands, their words unquoted and quoted again the one POSIX way
    (`shlex.join`). `doubts` say why they are not the whole truth. `traces` are further texts in which a
    forbidden command may show: what a wrapper would run, a program without its path, what stands inside a substitution.
    """

    commands: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()


@dataclass
class _Notes:
    commands: list[str] = field(default_factory=list)
    doubts: dict[str, None] = field(default_factory=dict)  # in order, each once
    traces: list[str] = field(default_factory=list)

    def doubt(self, why: str) -> None:
        self.doubts[why] = None


def read(text: str) -> Reading:
    """Take a command line apart. Never raises, whatever the text is."""
    notes = _Notes()
    if len(text) > LONGEST:
        return Reading(doubts=(f"it is longer than {LONGEST} characters",), traces=(text[:LONGEST],))
    if _CONTROL.search(text):
        notes.doubt("it holds line breaks or control characters")
    if _UNSEEN.search(text):
        notes.doubt("it holds characters that cannot be seen")
    _read(text, notes, 0)
    if not notes.commands:
        notes.doubt("it holds no command")
    return Reading(tuple(notes.commands), tuple(notes.doubts), tuple(dict.fromkeys(notes.traces)))


def _read(text: str, notes: _Notes, depth: int) -> None:
    tree = _parser().parse(text.encode("utf-8", "replace"))
    if tree.root_node.has_error:
        notes.doubt("it cannot be parsed")
    for node in _inside(tree.root_node):
        if node.type == "command":
            _command(node, notes, depth)
        elif node.type == "file_redirect":
            _redirect(node, notes)
        elif node.type not in _STRUCTURE and not _belongs(node):
            notes.doubt(f"it holds a {node.type.replace('_', ' ')}")


@functools.cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _inside(root: Node) -> Iterator[Node]:
    """All named nodes, without recursion: the text decides how deep the tree is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


def _belongs(node: Node) -> bool:
    """Whether a node is a plain part of a command or redirection, which is looked at there."""
    if node.type in ("command_name", "string_content", "file_descriptor"):
        return True
    parent = node.parent
    owners = _PIECES | {"command", "command_name", "file_redirect"}
    return node.type in _PIECES and parent is not None and parent.type in owners


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _command(node: Node, notes: _Notes, depth: int) -> None:
    words: list[str] = []
    for child in node.named_children:
        if child.type == "command_name":
            child = child.named_children[0] if child.named_children else child
        if child.type in _PIECES:
            words.append(_word(child, notes))
        elif child.type == "variable_assignment":
            notes.doubt("it sets a variable for a command")
    if not words:
        notes.doubt("it runs a command that has no name")
        return
    notes.commands.append(shlex.join(words))
    name = posixpath.basename(words[0])
    notes.traces.append(shlex.join([name, *words[1:]]))
    if why := programs.doubt(name, words[1:]):
        notes.doubt(f"{name} {why}")
        _wrapped(words[1:], notes, depth)
    if any(_EXPANDS.search(word) for word in words):
        notes.doubt("a word holds $ or a backtick, which a command may expand")


def _word(node: Node, notes: _Notes) -> str:
    """The word as the command gets it; what would be expanded is a doubt."""
    if node.type == "raw_string":
        return _text(node)[1:-1]
    if node.type == "concatenation":
        return "".join(_word(child, notes) for child in node.named_children)
    text = _text(node)
    if node.type == "string":
        inner = text[1:-1]
        if re.search(r"[$`\\]", inner):
            notes.doubt("a quoted word holds an expansion or a backslash")
        return inner.replace("\\", "")
    if not _WORD.fullmatch(text):
        notes.doubt("a word holds an expansion, a pattern or a backslash")
    return text.replace("\\", "")


def _redirect(node: Node, notes: _Notes) -> None:
    target = node.child_by_field_name("destination")
    if target is None or _text(target) not in _NOWHERE:
        notes.doubt("it redirects to or from a file")


def _wrapped(words: list[str], notes: _Notes, depth: int) -> None:
    """What a command that runs others would run: only deny rules look at it."""
    for at, word in enumerate(words[:16]):
        notes.traces.append(shlex.join([posixpath.basename(word), *words[at + 1 :]]))
        if depth < DEEPEST and re.search(r"[\s;|&(]", word):
            inner = _Notes()
            _read(word.strip("\"'#{}() "), inner, depth + 1)
            notes.traces += inner.commands + inner.traces
