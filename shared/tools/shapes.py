"""Shapes: the fields that a TypeScript type and a Python model of the same name declare.

Only the declarations are read. A shape is `open` where it inherits from something that was not found, so that
a missing field proves nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from shared.tools.routes_python import dotted
from shared.tools.routes_script import balanced, blank, line_of

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
class Shape:
    """A type with its fields, those of its bases included."""

    name: str
    file: str
    line: int
    members: Mapping[str, Member]
    bases: tuple[str, ...] = ()
    open: bool = False


def complete(shapes: Iterable[Shape], plain: Iterable[str] = ()) -> dict[str, Shape]:
    """The shapes by name, with the fields of their bases; `plain` bases have no fields of their own.

    A name that is declared twice is ambiguous, and left out.
    """
    seen: dict[str, list[Shape]] = {}
    for shape in shapes:
        seen.setdefault(shape.name, []).append(shape)
    single = {name: found[0] for name, found in seen.items() if len(found) == 1}
    return {name: _whole(shape, single, frozenset(plain), 0) for name, shape in single.items()}


def _whole(shape: Shape, known: Mapping[str, Shape], plain: frozenset[str], depth: int) -> Shape:
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


def python_shapes(file: str, text: str) -> list[Shape]:
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


def _class(file: str, node: ast.ClassDef) -> Shape:
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
    return Shape(node.name, file, node.lineno, members, bases)


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

_DECLARED = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:declare\s+)?"
    r"(?:interface\s+(?P<interface>\w+)(?P<generic>\s*<[^{}]*?>)?(?:\s+extends\s+(?P<bases>[\w\s,.<>]+?))?\s*(?=\{)"
    r"|type\s+(?P<alias>\w+)\s*=\s*(?P<merged>(?:\w+\s*&\s*)*)(?=\{))",
    re.MULTILINE,
)
_MEMBER = re.compile(r"""\s*(?:readonly\s+)?["']?([\w$-]+)["']?\s*\??\s*:\s*(.+)""", re.DOTALL)
_PRIMITIVES = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "Date": "string",
    "object": "object",
}


def script_shapes(file: str, text: str) -> list[Shape]:
    """The interfaces and object types of a TypeScript file."""
    text = blank(text)
    found: list[Shape] = []
    for match in _DECLARED.finditer(text):
        start = match.end()
        end = balanced(text, start)
        members: dict[str, Member] = {}
        for at, part in _parts(text, start + 1, end - 1):
            told = _MEMBER.fullmatch(part)
            if told and "(" not in told[1]:
                shown = " ".join(told[2].split())
                line = line_of(text, at + len(part) - len(part.lstrip()))
                members[told[1]] = Member(told[1], script_kind(shown), shown, line, file)
        name = match["interface"] or match["alias"]
        bases = re.findall(r"(\w+)(?:<[^<>]*>)?", match["bases"] or match["merged"] or "")
        followed = text[end : end + 40].lstrip().startswith(("&", "|"))
        line = line_of(text, match.start("interface" if match["interface"] else "alias"))
        found.append(
            Shape(name, file, line, members, tuple(bases), open=followed or _indexed(text[start:end]))
        )
    return found


def _indexed(body: str) -> bool:
    return bool(re.search(r"[{;,\n]\s*(?:readonly\s+)?\[\s*\w+\s*(?::|in)\s", body))


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The members between two braces, each with its position; they end at `;`, `,` or the end of a line."""
    begun = i = start
    while i < end:
        if text[i] in "{[(<":
            i = min(end, balanced(text, i)) if text[i] != "<" else i + 1
            continue
        part = text[begun:i]
        if (text[i] in ";," and part.count("<") <= part.count(">")) or (
            text[i] == "\n" and _ended(part, text[i:end])
        ):
            yield begun, part
            begun = i + 1
        i += 1
    if text[begun:end].strip():
        yield begun, text[begun:end]


def _ended(part: str, rest: str) -> bool:
    """Whether a member ends with its line: it has a type, and neither side of the break goes on."""
    return (
        ":" in part
        and not part.rstrip().endswith(("|", "&", ":", "="))
        and not rest.lstrip().startswith(("|", "&"))
    )


def script_kind(shown: str) -> str:
    """The kind of a TypeScript type."""
    options = [part.strip() for part in re.split(r"\|(?![^<{(]*[>})])", shown) if part.strip()]
    kinds = [_script_single(part) for part in options if part not in ("null", "undefined")]
    return _one(kinds)


def _script_single(shown: str) -> str:
    if shown.endswith("[]") or re.match(r"(?:Readonly)?(?:Array|Set)<|\[", shown):
        return "list"
    if shown.startswith(("{", "Record<", "Map<")):
        return "object"
    if re.fullmatch(r"""(["'`]).*\1""", shown):
        return "string"
    if re.fullmatch(r"-?[\d.]+", shown):
        return "number"
    return "boolean" if shown in ("true", "false") else _PRIMITIVES.get(shown, UNKNOWN)
