"""The definitions of a JavaScript or TypeScript file, from its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.tools.research.grammar import Syntax, bare, line, syntax
from shared.tools.research.languages import VERBS, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_DECLARED: dict[str, SymbolKind] = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "interface_declaration": "type",
    "type_alias_declaration": "type",
    "enum_declaration": "type",
    "internal_module": "type",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_signature": "function",
    "method_definition": "method",
}
_FUNCTIONS = {"arrow_function", "function_expression", "generator_function"}
_NAMES = {"identifier", "type_identifier", "property_identifier", "private_property_identifier"}
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")
_ROUTER = re.compile(r"app|router|server|fastify|\w+[rR]outer")
_VERB = re.compile(VERBS)


def definitions(file: str, text: str) -> dict[int, list[tuple[SymbolKind, str]]] | None:
    """Kinds and names by line; None where a part of the file cannot be read."""
    tree = syntax(file, text)
    if tree is None or tree.broken:
        return None
    found: dict[int, list[tuple[SymbolKind, str]]] = {}
    for node in tree.nodes(*_DECLARED, "variable_declarator", "call_expression"):
        for kind, at, name in _defined(tree, node):
            found.setdefault(line(at), []).append((kind, name))
    return found


def _defined(tree: Syntax, node: Node) -> Iterator[tuple[SymbolKind, Node, str]]:
    if node.type == "call_expression":
        yield from _route(tree, node)
        return
    name = node.child_by_field_name("name")
    if name is None or name.type not in _NAMES:
        return
    text = tree.text(name).removeprefix("#")
    if node.type != "variable_declarator":
        yield _DECLARED[node.type], name, text
        return
    value = bare(node.child_by_field_name("value"))
    if value is not None and value.type in _FUNCTIONS:
        yield "function", name, text
    elif value is not None and _CONSTANT.fullmatch(text) and _is_const(tree, node):
        yield "constant", name, text


def _is_const(tree: Syntax, node: Node) -> bool:
    around = node.parent
    return around is not None and tree.text(around.child_by_field_name("kind")) == "const"


def _route(tree: Syntax, node: Node) -> Iterator[tuple[SymbolKind, Node, str]]:
    function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or function.type != "member_expression" or given is None:
        return
    owner = bare(function.child_by_field_name("object"))
    if owner is not None and owner.type == "member_expression":
        owner = owner.child_by_field_name("property")
    verb = tree.text(function.child_by_field_name("property"))
    path = given.named_child(0) if given.named_child_count else None
    if path is None or path.type not in ("string", "template_string") or not _VERB.fullmatch(verb):
        return
    if _ROUTER.fullmatch(tree.text(owner)) and (text := tree.text(path)[1:-1]):
        yield "route", path, text
