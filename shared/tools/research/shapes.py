"""Shapes: the fields that a TypeScript type and a Python model of the same name declare.

Only the declarations are read. A shape is `open` where it inherits from something that was not found, so that
a missing field proves nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.tools.research.grammar import Syntax, bare, line, syntax
from shared.tools.research.routes_python import dotted

if TYPE_CHECKING:
    from tree_sitter import Node

# Lines that make a file worth reading; also Rust's syntax, for ripgrep takes it.
SCRIPT = r"^\s*(export\s+)?(default\s+)?(declare\s+)?(interface\s+\w+|type\s+\w+.*=)"
PYTHON = r"^\s*class\s+\w+|^\s*@(dataclasses\.)?dataclass"

UNKNOWN = "unknown"  # a type that is not compared: a name, any, a generic


@dataclass(frozen=True)
class Member:
    """A field: `kind` is string, number, boolean, list, object or unknown; `shown` is the written type."""

    name: str
    kind: str
    shown: str
    line: int
    file: str


@dataclass(frozen=True)
class TypeShape:
    """A type with its fields, those of its bases included."""

    name: str
    file: str
    line: int
    members: Mapping[str, Member]
    bases: tuple[str, ...] = ()
    open: bool = False


def complete(shapes: Iterable[TypeShape], plain: Iterable[str] = ()) -> dict[str, TypeShape]:
    """The shapes by name, with the fields of their bases; `plain` bases have no fields of their own.

    A name that is declared twice is ambiguous, and left out.
    """
    seen: dict[str, list[TypeShape]] = {}
    for shape in shapes:
        seen.setdefault(shape.name, []).append(shape)
    single = {name: found[0] for name, found in seen.items() if len(found) == 1}
    return {name: _whole(shape, single, frozenset(plain), 0) for name, shape in single.items()}


def _whole(shape: TypeShape, known: Mapping[str, TypeShape], plain: frozenset[str], depth: int) -> TypeShape:
    members: dict[str, Member] = {}
    is_open = shape.open
    for base in shape.bases:
        if base in plain:
            continue
        if base not in known or depth > 8:
            is_open = True
            continue
        above = _whole(known[base], known, plain, depth + 1)
        members |= above.members
        is_open = is_open or above.open
    return replace(shape, members={**members, **shape.members}, open=is_open)


# Python -------------------------------------------------------------------------------------------

PLAIN = (
    "BaseModel",
    "RootModel",
    "TypedDict",
    "NamedTuple",
    "object",
    "SQLModel",
    "ABC",
    "Generic",
    "Protocol",
)
_NUMBERS = {"int", "float", "PositiveInt", "NonNegativeInt", "PositiveFloat", "NonNegativeFloat"}
_STRINGS = {
    "str",
    "UUID",
    "UUID4",
    "datetime",
    "date",
    "time",
    "EmailStr",
    "HttpUrl",
    "AnyUrl",
    "AwareDatetime",
}
_LISTS = {"list", "List", "set", "Set", "tuple", "Tuple", "frozenset", "Sequence", "Iterable"}
_OBJECTS = {"dict", "Dict", "Mapping", "MutableMapping"}


def python_shapes(file: str, text: str) -> list[TypeShape]:
    """The pydantic models, dataclasses and typed dicts of a file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        _class(file, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _annotated(node)
    ]


def _annotated(node: ast.ClassDef) -> bool:
    return any(isinstance(item, ast.AnnAssign) for item in node.body) or bool(node.bases)


def _class(file: str, node: ast.ClassDef) -> TypeShape:
    camel = "to_camel" in ast.dump(
        ast.Module(body=[i for i in node.body if isinstance(i, ast.Assign)], type_ignores=[])
    )
    members: dict[str, Member] = {}
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        if item.target.id.startswith("_") or dotted(_head(item.annotation)).endswith("ClassVar"):
            continue
        name = _alias(item) or (camelled(item.target.id) if camel else item.target.id)
        shown = ast.unparse(item.annotation)
        members[name] = Member(name, _python_kind(item.annotation), shown, item.lineno, file)
    bases = tuple(dotted(_head(base)).rpartition(".")[2] or "?" for base in node.bases)
    return TypeShape(node.name, file, node.lineno, members, bases)


def _head(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _alias(item: ast.AnnAssign) -> str:
    if isinstance(item.value, ast.Call):
        for keyword in item.value.keywords:
            if keyword.arg in ("serialization_alias", "alias") and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return ""


def camelled(name: str) -> str:
    """`user_name` as `userName`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _python_kind(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _python_kind(ast.parse(node.value, mode="eval").body)
        except (SyntaxError, ValueError):
            return UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _one([_python_kind(side) for side in (node.left, node.right) if not _is_none(side)])
    name = dotted(_head(node)).rpartition(".")[2]
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in ("Optional", "Union"):
            return _one([_python_kind(item) for item in inner if not _is_none(item)])
        if name in ("Annotated", "Mapped"):
            return _python_kind(inner[0])
        if name == "Literal":
            return _one([_constant(item) for item in inner])
    for kind, names in (("string", _STRINGS), ("number", _NUMBERS), ("list", _LISTS), ("object", _OBJECTS)):
        if name in names:
            return kind
    return "boolean" if name == "bool" else UNKNOWN


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _constant(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else UNKNOWN


def _one(kinds: list[str]) -> str:
    """The kind that all parts of a union share, else unknown."""
    return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else UNKNOWN


# TypeScript ---------------------------------------------------------------------------------------

_KINDS = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "object": "object",
    "true": "boolean",
    "false": "boolean",
    "unary_expression": "number",
    "template_literal_type": "string",
    "object_type": "object",
    "array_type": "list",
    "tuple_type": "list",
}
_NAMED = {
    "Date": "string",
    "Array": "list",
    "ReadonlyArray": "list",
    "Set": "list",
    "ReadonlySet": "list",
    "Record": "object",
    "Map": "object",
}


def script_shapes(file: str, text: str) -> list[TypeShape]:
    """The interfaces and object types of a TypeScript file."""
    tree = syntax(file, text)
    if tree is None:
        return []
    declared = tree.nodes("interface_declaration", "type_alias_declaration")
    return [shape for node in declared if (shape := _declared(tree, file, node))]


def _declared(tree: Syntax, file: str, node: Node) -> TypeShape | None:
    """The shape of an interface, or of an alias that is made of objects; None for any other alias."""
    name = node.child_by_field_name("name")
    if name is None:
        return None
    is_open = False
    if node.type == "interface_declaration":
        above = [child for child in node.named_children if child.type == "extends_type_clause"]
        parts = [*above[0].named_children, *_body(node)] if above else _body(node)
    else:
        value = bare(node.child_by_field_name("value"))
        options = list(_split(value, "union_type"))
        is_open = len(options) > 1
        parts = list(_split(options[0], "intersection_type")) if options else []
    objects = [part for part in parts if part.type in ("object_type", "interface_body")]
    if not objects:
        return None
    members = {member.name: member for part in objects for member in _members(tree, file, part)}
    bases = tuple(_head_of(tree, part) for part in parts if part not in objects and part.type != "comment")
    indexed = any(child.type == "index_signature" for part in objects for child in part.named_children)
    is_open = is_open or indexed or node.has_error
    return TypeShape(tree.text(name), file, line(name), members, bases, open=is_open)


def _body(node: Node) -> list[Node]:
    body = node.child_by_field_name("body")
    return [body] if body is not None else []


def _split(node: Node | None, kind: str) -> Iterator[Node]:
    """The parts of a union or an intersection; a long one nests as deep as it is long."""
    waiting = [node]
    while waiting:
        part = bare(waiting.pop())
        if part is not None and part.type == kind:
            waiting += reversed([child for child in part.named_children if child.type != "comment"])
        elif part is not None:
            yield part


def _head_of(tree: Syntax, node: Node) -> str:
    """The name of a type without what it is generic in; `?` where it has none."""
    if node.type == "generic_type":
        node = node.child_by_field_name("name") or node
    return (
        tree.text(node) if node.type in ("type_identifier", "identifier", "nested_type_identifier") else "?"
    )


def _members(tree: Syntax, file: str, body: Node) -> Iterator[Member]:
    for node in body.named_children:
        name, noted = node.child_by_field_name("name"), node.child_by_field_name("type")
        if node.type != "property_signature" or name is None or noted is None or not noted.named_child_count:
            continue
        if name.type not in ("property_identifier", "string", "number"):
            continue
        plain = tree.text(name).strip("\"'")
        yield Member(plain, _script_kind(tree, noted), _written(tree, noted), line(node), file)


def _written(tree: Syntax, noted: Node) -> str:
    """A type as it is written, on one line and without comments."""
    text = tree.text(noted)
    if "/*" in text or "//" in text:
        text = tree.without(noted, "comment")
    return " ".join(text.removeprefix(":").split())


def _script_kind(tree: Syntax, noted: Node) -> str:
    """The kind of a TypeScript type; `null` and `undefined` do not count."""
    if noted.has_error:
        return UNKNOWN
    inner = next((child for child in noted.named_children if child.type != "comment"), None)
    kinds = [_script_single(tree, part) for part in _split(inner, "union_type")]
    return _one([kind for kind in kinds if kind != "null"])


def _script_single(tree: Syntax, node: Node) -> str:
    if node.type == "literal_type":
        node = node.named_child(0) or node
    if node.type in ("null", "undefined"):
        return "null"
    if node.type in ("generic_type", "type_identifier"):
        return _NAMED.get(_head_of(tree, node), UNKNOWN)
    if node.type == "intersection_type":
        first = next(_split(node, "intersection_type"), node)
        return _KINDS.get(first.type, UNKNOWN) if first.type == "object_type" else UNKNOWN
    return _KINDS.get(tree.text(node) if node.type == "predefined_type" else node.type, UNKNOWN)
