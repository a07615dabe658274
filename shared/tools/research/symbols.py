"""Tools of category symbols: where functions, classes, types and routes are defined.

ripgrep finds the lines that look like a definition; in Python, JavaScript and TypeScript a parser then has the
word, so that text in a string is no function and a method is told from one. The other languages stand on the
patterns alone. A definition whose name does not stand on its first line, or that a macro makes, is not found there.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.secret_files import SHOWN
from shared.guard.permissions.touching import touching
from shared.tools import checkouts
from shared.tools.context import Context, Root
from shared.tools.files.search import Hit, SearchRoot, TextQuery, search
from shared.tools.paths import full, read_text, within
from shared.tools.registry import Category, Result
from shared.tools.research import symbols_script
from shared.tools.research.grammar import ENDINGS as SCRIPTS
from shared.tools.research.languages import LANGUAGES, SymbolKind, compiled, filled

category = Category("symbols", "Find where functions, classes, types and routes are defined")

CANDIDATES = 20_000  # lines that ripgrep may hand over
PARSED = 400  # files that one call parses; beyond them the patterns alone decide
_WORDS = {"if", "for", "while", "switch", "catch", "return", "else", "function", "await", "new", "do", "try"}

Symbol = dict[str, Any]


@category.tool(
    effect="pure",
    detail=lambda arguments: str(arguments.get("path", "")),
    touches=touching("files", path=SHOWN),
)
async def find_symbols(
    context: Context,
    name: Annotated[str, Field(max_length=200)] = "",
    path: str = "",
    kind: SymbolKind | None = None,
    max_results: Annotated[int, Field(ge=1, le=1000)] = 100,
) -> Result:
    """Find definitions: functions, methods, classes, types, constants, routes, tables, modules.

    `name` is a part of the name, in any case (for routes, of the path); names that are equal come first.
    Python, JavaScript and TypeScript are parsed. Go, Rust, Java, Kotlin, C#, C, C++, SQL, Ruby, PHP, shell,
    GraphQL and protobuf are read by line patterns. A definition whose name is not on its first line is missed.
    """
    found: list[Symbol] = []
    truncated = False
    roots = within(context, path)
    where = [SearchRoot(root.path, inner) for root, inner in roots]
    query = TextQuery(_candidates(name, kind), globs=_globs())
    looked = await search(where, query, CANDIDATES, checkouts.sandbox(context))
    for (root, _), hits in zip(roots, looked, strict=True):
        truncated = truncated or hits.truncated
        found += await asyncio.to_thread(_symbols, root, hits.hits, name.casefold(), kind, max_results)
    found.sort(key=lambda symbol: _rank(symbol["name"], name))
    answer: Result = {"symbols": found[:max_results], "source": "repository"}
    return answer | {"truncated": True} if truncated or len(found) > max_results else answer


def _candidates(name: str, kind: SymbolKind | None) -> str:
    """One pattern for every definition that may be meant, in all languages."""
    part = f"(?i:{re.escape(name)})"
    word = rf"[\w$\x80-\xff]*{part}[\w$\x80-\xff]*" if name else r"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"
    path = rf"[^\"'`]*{part}[^\"'`]*" if name else r"[^\"'`]*"
    wanted = {"function", "method"} if kind in ("function", "method") else {kind}
    patterns = {
        filled(pattern.replace("[A-Z][A-Z0-9_]*", "NAME") if name else pattern, word, path)
        for language in LANGUAGES
        for of, pattern in language.rules
        if kind is None or of in wanted
    }
    if not patterns:
        raise ToolError(f"no language has symbols of kind {kind}")
    # Bytes instead of Unicode: the classes of the latter make this pattern about twenty times slower.
    return "(?-u)" + "|".join(f"(?:{pattern})" for pattern in sorted(patterns))


def _globs() -> list[str]:
    return [f"*.{ending}" for language in LANGUAGES for ending in language.endings]


def _rank(found: str, name: str) -> int:
    """Equal names first, then those that begin so, then the others; the order within is by path and line."""
    plain, wanted = found.casefold(), name.casefold()
    return 0 if plain == wanted else 1 if plain.startswith(wanted) else 2


def _symbols(root: Root, hits: Sequence[Hit], name: str, kind: SymbolKind | None, most: int) -> list[Symbol]:
    """The definitions on these lines that are meant; one more than `most` where there are more."""
    found: list[Symbol] = []
    parsed = 0
    for path, group in groupby(hits, key=lambda hit: hit.path):
        lines = list(group)
        ending = PurePosixPath(path).suffix[1:]
        told = None
        if ending in ("py", "pyi", *SCRIPTS) and parsed < PARSED:
            parsed += 1
            told = _parsed(root, path, ending)
        for hit in lines:
            for of, symbol in _told(told, hit) if told is not None else _matched(ending, hit):
                if name in symbol.casefold() and kind in (None, of):
                    where = full(root, path)
                    found.append(
                        {
                            "name": symbol,
                            "kind": of,
                            "path": where,
                            "line": hit.number,
                            "text": hit.text.strip(),
                        }
                    )
        # A name asked for may be met exactly in a later file; without one the first are as good as any.
        if not name and len(found) > most:
            break
    return found


Definitions = dict[int, list[tuple[SymbolKind, str]]]


def _told(definitions: Definitions, hit: Hit) -> Iterator[tuple[SymbolKind, str]]:
    yield from definitions.get(hit.number, ())


def _matched(ending: str, hit: Hit) -> Iterator[tuple[SymbolKind, str]]:
    for kind, pattern in compiled(ending):
        match = pattern.search(hit.text)
        if match:
            symbol = next((group for group in match.groups() if group), "")
            if symbol and symbol not in _WORDS:
                yield kind, symbol
            return


def _parsed(root: Root, path: str, ending: str) -> Definitions | None:
    """The definitions of a file by line; None where it cannot be parsed."""
    try:
        text = read_text(root, path)
        if ending in SCRIPTS:
            return symbols_script.definitions(path, text)
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ToolError):
        return None
    found: Definitions = {}
    _collect(tree, False, found)
    return found


def _collect(node: ast.AST, in_class: bool, found: Definitions) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found.setdefault(child.lineno, []).append(("class", child.name))
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(child.lineno, []).append(("method" if in_class else "function", child.name))
            for decorator in child.decorator_list:
                if route := _route(decorator):
                    found.setdefault(decorator.lineno, []).append(("route", route))
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module):
            for name, kind in _assigned(child):
                found.setdefault(child.lineno, []).append((kind, name))
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            _collect(child, isinstance(child, ast.ClassDef), found)


def _route(node: ast.expr) -> str:
    """The path of a decorator such as `@app.get("/users")`, else empty."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.startswith("/"):
            return first.value
    return ""


def _assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, SymbolKind]]:
    """Names that a module's assignment defines: constants in capitals, and type aliases."""
    called = node.value.func if isinstance(node.value, ast.Call) else None
    maker = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("TypeAlias")
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            if alias or maker in ("TypeVar", "NewType"):
                yield target.id, "type"
            elif target.id.isupper():
                yield target.id, "constant"
