"""Patterns of definitions, by language, one line each.

They are written in what Python's `re` and Rust's regex (ripgrep's) have in common: no look-around, no
backreference. `NAME` stands for the name that is looked for, and is the last group of a match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

SymbolKind = Literal["function", "method", "class", "type", "constant", "route", "table", "module"]

VERBS = "get|post|put|patch|delete|head|options|all|route|api_route|websocket"


@dataclass(frozen=True)
class Language:
    """File endings, and the kinds of definitions with their patterns; the first that matches holds."""

    endings: tuple[str, ...]
    rules: tuple[tuple[SymbolKind, str], ...]


_EXPORT = r"^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?"
_MODIFIERS = (
    "public|private|protected|internal|static|final|abstract|sealed|open|data|partial|override|async|virtual"
    "|synchronized|suspend|inline|default"
)
_JAVA = rf"^\s*(?:@\w+\s+)*(?:(?:{_MODIFIERS})\s+)*"

LANGUAGES: tuple[Language, ...] = (
    Language(
        ("py", "pyi"),
        (
            ("class", r"^\s*class\s+(NAME)\b"),
            ("function", r"^\s*(?:async\s+)?def\s+(NAME)\b"),
            (
                "type",
                r"^(?:type\s+)?(NAME)\s*(?::\s*(?:\w+\.)?TypeAlias\s*=|=\s*(?:\w+\.)?(?:TypeVar|NewType)\()",
            ),
            ("constant", r"^([A-Z][A-Z0-9_]*)\s*(?::[^=]+)?=[^=]"),
            ("route", rf"^\s*@[\w.]+\.(?:{VERBS})\(\s*[rf]?[\"'](PATH)[\"']"),
        ),
    ),
    Language(
        ("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"),
        (
            (
                "route",
                rf"\b(?:app|router|server|fastify|\w+[rR]outer)\s*\.\s*(?:{VERBS})\(\s*[\"'`](PATH)[\"'`]",
            ),
            ("class", rf"{_EXPORT}(?:abstract\s+)?class\s+(NAME)"),
            ("type", rf"{_EXPORT}(?:const\s+)?(?:interface|enum|namespace)\s+(NAME)"),
            ("type", rf"{_EXPORT}type\s+(NAME)\s*(?:<[^=]*>)?\s*="),
            ("function", rf"{_EXPORT}(?:async\s+)?function\s*\*?\s*(NAME)\s*[<(]"),
            (
                "function",
                rf"{_EXPORT}(?:const|let|var)\s+(NAME)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\(.*=>|\($|[\w$]+\s*=>)",
            ),
            ("constant", rf"{_EXPORT}const\s+([A-Z][A-Z0-9_]*)\s*(?::[^=]+)?="),
            (
                "method",
                r"^\s+(?:(?:public|private|protected|static|override|async|readonly|get|set)\s+)*\*?\s*#?(NAME)\s*(?:<[^()]*>)?\([^()]*\)\s*(?::\s*[^{;]+)?\{\s*$",
            ),
        ),
    ),
    Language(
        ("go",),
        (
            ("method", r"^func\s+\([^)]*\)\s*(NAME)\s*[\[(]"),
            ("function", r"^func\s+(NAME)\s*[\[(]"),
            ("type", r"^\s*(?:type\s+)(NAME)(?:\[[^\]]*\])?\s+(?:=|struct|interface|func|map|chan|\[|\*|\w)"),
            ("constant", r"^(?:const|var)\s+(NAME)\b"),
            (
                "route",
                r"\.(?:HandleFunc|Handle|Get|Post|Put|Patch|Delete|GET|POST|PUT|PATCH|DELETE)\(\s*\"(PATH)\"",
            ),
        ),
    ),
    Language(
        ("rs",),
        (
            (
                "function",
                r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|const|unsafe|extern(?:\s+\"\w+\")?)\s+)*fn\s+(NAME)",
            ),
            ("type", r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|union|trait|type)\s+(NAME)"),
            ("constant", r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?(NAME)\s*:"),
            ("module", r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(NAME)"),
            ("function", r"^\s*macro_rules!\s+(NAME)"),
            ("route", rf"#\[(?:{VERBS})\(\s*\"(PATH)\"|\.route\(\s*\"(PATH)\""),
        ),
    ),
    Language(
        ("java", "kt", "kts", "cs", "scala", "swift"),
        (
            ("route", r"@(?:Get|Post|Put|Patch|Delete|Request)Mapping\(\s*(?:value\s*=\s*)?\"(PATH)\""),
            ("class", rf"{_JAVA}(?:case\s+)?(?:class|object|actor)\s+(NAME)"),
            (
                "type",
                rf"{_JAVA}(?:interface|enum|record|struct|trait|protocol|typealias|@interface)\s+(?:class\s+)?(NAME)",
            ),
            ("function", rf"{_JAVA}(?:fun|func|def)\s+(?:<[^>]*>\s*)?(?:\w+\.)?(NAME)\s*[<(\[]"),
            (
                "method",
                rf"^\s+(?:@\w+\s+)*(?:(?:{_MODIFIERS})\s+)+[\w<>\[\], ?.]+\s+(NAME)\s*\(",
            ),
        ),
    ),
    Language(
        ("sql",),
        (
            (
                "table",
                r"(?i:^\s*create\s+(?:unlogged\s+|temp\s+|temporary\s+)?table\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?:\w+\.)?[\"`\[]?)(NAME)",
            ),
            (
                "type",
                r"(?i:^\s*create\s+(?:or\s+replace\s+)?(?:materialized\s+)?(?:view|type|domain)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?:\w+\.)?[\"`\[]?)(NAME)",
            ),
            (
                "function",
                r"(?i:^\s*create\s+(?:or\s+replace\s+)?(?:function|procedure|trigger)\s+[\"`\[]?(?:\w+\.)?[\"`\[]?)(NAME)",
            ),
        ),
    ),
    Language(
        ("rb", "rake"),
        (
            ("class", r"^\s*class\s+(?:\w+::)*(NAME)"),
            ("module", r"^\s*module\s+(?:\w+::)*(NAME)"),
            ("function", r"^\s*def\s+(?:self\.)?(NAME[?!=]?)"),
            ("route", r"^\s*(?:get|post|put|patch|delete)\s+[\"'](PATH)[\"']"),
        ),
    ),
    Language(
        ("php",),
        (
            ("class", r"^\s*(?:abstract\s+|final\s+|readonly\s+)*class\s+(NAME)"),
            ("type", r"^\s*(?:interface|trait|enum)\s+(NAME)"),
            (
                "function",
                r"^\s*(?:(?:public|private|protected|static|abstract|final)\s+)*function\s+&?(NAME)\s*\(",
            ),
            ("route", r"Route::(?:get|post|put|patch|delete|any)\(\s*[\"'](PATH)[\"']"),
        ),
    ),
    Language(
        ("c", "h", "cc", "cpp", "cxx", "hpp", "hh"),
        (
            (
                "class",
                r"^\s*(?:template\s*<[^>]*>\s*)?class\s+(?:[A-Z_]+\s+)?(NAME)\s*(?:final\s*)?[:{]?[^;]*$",
            ),
            ("type", r"^\s*(?:typedef\s+)?(?:struct|union|enum(?:\s+class)?)\s+(NAME)\s*[:{]?[^;()]*$"),
            ("constant", r"^\s*#\s*define\s+(NAME)\b"),
            ("function", r"^[A-Za-z_][\w\s*&:<>,]*?[\s*&:](NAME)\s*\([^;]*$"),
        ),
    ),
    Language(("sh", "bash"), (("function", r"^\s*(?:function\s+(NAME)|(NAME)\s*\(\)\s*\{?)"),)),
    Language(
        ("proto", "graphql", "gql", "prisma"),
        (("type", r"^\s*(?:message|service|enum|type|input|interface|union|scalar|model)\s+(NAME)"),),
    ),
)


def filled(pattern: str, name: str, path: str) -> str:
    """A rule's pattern for one name (and one route's path); both are patterns themselves."""
    return re.sub("NAME|PATH", lambda match: name if match[0] == "NAME" else path, pattern)


@cache
def compiled(ending: str) -> tuple[tuple[SymbolKind, re.Pattern[str]], ...]:
    """The rules for files of this ending, for any name."""
    return tuple(
        (kind, re.compile(filled(pattern, r"[^\W\d][\w$]*", r"[^\"'`\n]*")))
        for language in LANGUAGES
        if ending in language.endings
        for kind, pattern in language.rules
    )
