"""Syntax trees of JavaScript and TypeScript, and of the scripts in Vue's and Svelte's files.

Text that does not keep to the grammar has a tree as well: what could be read stands in it, the rest is an
`ERROR`. A file that is too long, or at which the parser works too long, has none.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Language, Node

LONGEST = 2_000_000  # bytes; whoever writes by hand writes less
PATIENCE = 2.0  # seconds of processor time for one tree
_PIECE = 1 << 16

Grammar = Literal["javascript", "typescript", "tsx"]

_GRAMMARS: dict[str, tuple[Grammar, ...]] = {
    # Flow's types look like those of TypeScript.
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), ("javascript", "tsx")),
    **dict.fromkeys(("ts", "mts", "cts"), ("typescript",)),
    "tsx": ("tsx",),
}
COMPONENTS = ("vue", "svelte")
ENDINGS = (*_GRAMMARS, *COMPONENTS)

_SCRIPT_TAG = re.compile(rb"<script\b([^>]{0,500})>", re.IGNORECASE)
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_TYPED = re.compile(rb"""\blang\s*=\s*["']?ts""")
# What markup computes: values of attributes, and what stands in braces.
_COMPUTED = re.compile(
    rb"""=\s*"(?P<double>[^"]*)"|=\s*'(?P<single>[^']*)'|\{(?P<braces>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"""
)
_WRAPPERS = {
    "await_expression",  # the grammar takes `await get<T>(x)` for a call of `await get`
    "parenthesized_expression",
    "as_expression",
    "satisfies_expression",
    "non_null_expression",
    "parenthesized_type",
    "readonly_type",
}


@dataclass(frozen=True)
class Syntax:
    """The trees of one file; places in them are places in `source`."""

    source: bytes
    roots: tuple[Node, ...]

    @property
    def broken(self) -> bool:
        """Whether a part of the code could not be read."""
        return bool(self.roots) and self.roots[0].has_error

    def nodes(self, *kinds: str) -> Iterator[Node]:
        """The nodes of these kinds in the order of the text; without recursion, for the text sets the depth."""
        wanted = frozenset(kinds)
        for root in self.roots:
            yield from (node for node in _inside(root) if node.type in wanted and node.is_named)

    def text(self, node: Node | None) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace") if node else ""

    def without(self, node: Node, kind: str) -> str:
        """The text of a node without the parts of one kind."""
        parts: list[bytes] = []
        at = node.start_byte
        for part in _inside(node):
            if part.type == kind and part.start_byte >= at:
                parts.append(self.source[at : part.start_byte])
                at = part.end_byte
        return b" ".join([*parts, self.source[at : node.end_byte]]).decode("utf-8", "replace")


def _inside(root: Node) -> Iterator[Node]:
    cursor = root.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def syntax(file: str, text: str) -> Syntax | None:
    """The trees of a file by its ending; None where the parser would take, or took, too long."""
    source = text.encode("utf-8", "replace")
    ending = PurePosixPath(file).suffix[1:]
    if len(source) > LONGEST:
        return None
    parts: tuple[bytes, ...]
    if ending in COMPONENTS:
        grammars, parts = _component(source)
    else:
        grammars, parts = _GRAMMARS.get(ending, ("typescript",)), (source,)
    roots = [_root(part, grammars) for part in parts]
    whole = tuple(root for root in roots if root is not None)
    return Syntax(source, whole) if len(whole) == len(roots) else None


def _root(source: bytes, grammars: tuple[Grammar, ...]) -> Node | None:
    """The tree of the first grammar that takes the text whole, else of the last one."""
    root = None
    for grammar in grammars:
        root = _parsed(source, grammar)
        if root is None or not root.has_error:
            break
    return root


def _parsed(source: bytes, grammar: Grammar) -> Node | None:
    from tree_sitter import Parser

    until = time.thread_time() + PATIENCE
    try:
        # Handed over in pieces, because only then does the parser ask whether to go on, and others get a turn.
        return (
            Parser(_language(grammar))
            .parse(
                lambda at, _: source[at : at + _PIECE],
                progress_callback=lambda at, failed: time.thread_time() > until,
            )
            .root_node
        )
    except ValueError:
        return None


@functools.cache
def _language(grammar: Grammar) -> Language:
    from tree_sitter import Language

    if grammar == "javascript":
        import tree_sitter_javascript

        return Language(tree_sitter_javascript.language())
    import tree_sitter_typescript

    if grammar == "tsx":
        return Language(tree_sitter_typescript.language_tsx())
    return Language(tree_sitter_typescript.language_typescript())


def _component(source: bytes) -> tuple[tuple[Grammar, ...], tuple[bytes, bytes]]:
    """The scripts of a component, and what its markup computes, each with the rest of the text as spaces."""
    scripts: list[tuple[int, int]] = []
    typed = False
    at = 0
    while opened := _SCRIPT_TAG.search(source, at):
        ended = _SCRIPT_END.search(source, opened.end())
        at = ended.start() if ended else len(source)
        scripts.append((opened.end(), at))
        typed = typed or bool(_TYPED.search(opened[1]))
    begins, ends = [begin for begin, _ in scripts], [end for _, end in scripts]
    markup = _only(source, list(zip([0, *ends], [*begins, len(source)], strict=True)))
    computed = [match.span(match.lastgroup or 0) for match in _COMPUTED.finditer(markup)]
    grammars: tuple[Grammar, ...] = ("typescript", "tsx") if typed else ("javascript", "tsx")
    return grammars, (_only(source, scripts), _only(markup, computed))


def _only(source: bytes, spans: list[tuple[int, int]]) -> bytes:
    """The text at these places, apart from each other by `;`, and spaces elsewhere; lines stay."""
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts += [_blank(source[at:start]), source[start:end]]
        at = end
    return b"".join([*parts, _blank(source[at:])])


_ANY = re.compile(rb"[^\n]+")


def _blank(text: bytes) -> bytes:
    return _ANY.sub(lambda match: b";" + b" " * (len(match[0]) - 1), text)


def bare(node: Node | None) -> Node | None:
    """A node without its parentheses, without `await`, and without what only says its type."""
    while node is not None and node.type in _WRAPPERS and node.named_child_count:
        node = node.named_child(0)
    return node


def line(node: Node) -> int:
    """The line, from 1, on which a node begins."""
    return node.start_point.row + 1
