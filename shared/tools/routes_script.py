"""Routes that a JavaScript or TypeScript file declares, and the addresses that it calls.

There is no parser for these languages in Python's library; patterns on the text without its comments are
enough for what is written as a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.tools.routes import ANY, METHODS, Call, Facts, Mounted, Raw, normal

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""",
    re.DOTALL,
)
_QUOTED = r"""(?P<quote>["'`])(?P<path>[^"'`\n\\]*)(?P=quote)(?P<more>\s*\+)?"""
_VERB = "|".join((*METHODS, "all"))
_ROUTER = re.compile(r"^(?:app|server|fastify|router|\w*[rR]outer)$")

_MADE = re.compile(
    r"\b(?:const|let|var)\s+([\w$]+)(?:\s*:[^=;\n]+)?\s*="
    r"\s*(?:new\s+)?(?:express|fastify|Fastify|Hono|(?:[\w$]+\.)?Router)\s*(?:<[^()]*>)?\((?:\s*\{[^{}]*?prefix:\s*[\"'`]([^\"'`]*))?"
)
_ROUTE = re.compile(rf"\b([\w$]+)\s*\.\s*({_VERB})\s*\(\s*{_QUOTED}")
_CHAIN = re.compile(rf"\b([\w$]+)\s*\.\s*route\s*\(\s*{_QUOTED}\s*\)")
_LINK = re.compile(rf"\s*\.\s*({_VERB})\s*\(")
_USE = re.compile(rf"\b([\w$]+)\s*\.\s*use\s*\(\s*{_QUOTED}\s*,")
_REGISTER = re.compile(
    r"\b([\w$]+)\s*\.\s*register\s*\(\s*([\w$.]+)\s*,\s*\{[^{}]*prefix:\s*[\"'`]([^\"'`]*)"
)
_REQUIRE = re.compile(r"""require\(\s*["']([^"'\n]+)["']\s*\)""")
_IMPORT = re.compile(
    r"""\bimport\s+(?:type\s+)?(?P<names>[\w$*{}\s,]+?)\s+from\s+["'](?P<module>[^"'\n]+)["']"""
    r"""|\b(?:const|let|var)\s+(?P<bound>[\w$]+|\{[^{}]*\})\s*=\s*require\(\s*["'](?P<required>[^"'\n]+)["']\s*\)"""
)
_EXPORTED = re.compile(r"\b(?:export\s+default|module\.exports\s*=)\s+([\w$]+)\s*;?\s*$", re.MULTILINE)

_CLIENT = r"[\w$.]*(?:axios|api|http|client|request|\bky|\bgot)[\w$]*"
_FETCH = re.compile(rf"\b(?P<what>fetch|\$fetch|ofetch|useFetch|useSWR|axios)\s*(?:<[^()]*>)?\(\s*{_QUOTED}")
_METHOD_CALL = re.compile(
    rf"\b(?:{_CLIENT})\s*\.\s*(?P<what>{'|'.join(METHODS)})\s*(?:<[^()]*>)?\(\s*{_QUOTED}", re.IGNORECASE
)
_OBJECT_CALL = re.compile(r"\baxios(?:\.request)?\s*(?:<[^()]*>)?\(\s*\{")
_METHOD = re.compile(r"""\bmethod\s*:\s*(?:["'`](\w+)["'`])?""")
_URL = re.compile(rf"\burl\s*:\s*{_QUOTED}")
_OWN_HOST = re.compile(r"^https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::\d+)?(?=/|$)")

_NEXT_APP = re.compile(r"(?:^|/)app/(?P<path>.+)/route\.[jt]sx?$")
_NEXT_PAGE = re.compile(r"(?:^|/)pages/(?P<path>api(?:/.+)?)\.[jt]sx?$")
_NEXT_METHOD = re.compile(rf"\bexport\s+(?:async\s+)?(?:function|const)\s+({'|'.join(METHODS).upper()})\b")


def blank(text: str) -> str:
    """The text with its comments as spaces; positions and lines stay."""
    return _TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group("comment") else m.group(), text)


def line_of(text: str, position: int) -> int:
    """The line, from 1, on which a position stands."""
    return text.count("\n", 0, position) + 1


def balanced(text: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`; the end of the text where none does."""
    depth, i = 0, start
    while i < len(text):
        if text[i] in "\"'`" and (string := _TOKEN.match(text, i)):
            i = string.end()
            continue
        depth += (text[i] in "([{") - (text[i] in ")]}")
        i += 1
        if depth == 0:
            break
    return i


def facts(file: str, text: str) -> Facts:
    """What this file declares about routing."""
    text = blank(text)
    found = Facts()
    for match in _MADE.finditer(text):
        found.prefixes[match[1]] = match[2] or ""
    for match in _IMPORT.finditer(text):
        module = match["module"] or match["required"]
        for alias, name in _bound(match["names"] or match["bound"]):
            found.imports[alias] = (module, name)
    exported = _EXPORTED.search(text)
    found.exported = exported[1] if exported else ""
    found.routes += [*_routes(text, found), *_next(file, text)]
    _mounts(text, found)
    return found


def _bound(names: str) -> Iterator[tuple[str, str]]:
    """(alias, name) of an import's names; the name of a default import is empty."""
    braces = re.search(r"\{([^{}]*)\}", names)
    for part in braces[1].split(",") if braces else []:
        words = re.split(r"\s+as\s+|\s*:\s*", part.strip())
        if words[0]:
            yield words[-1], words[0]
    for part in re.sub(r"\{[^{}]*\}", "", names).split(","):
        words = part.split()
        if words:
            yield words[-1], ""


def _routes(text: str, found: Facts) -> Iterator[Raw]:
    for match in _ROUTE.finditer(text):
        if _serves(match[1], found) and match["path"].startswith("/"):
            method = ANY if match[2] == "all" else match[2].upper()
            yield Raw(match[1], method, match["path"], line_of(text, match.start(2)))
    for match in _CHAIN.finditer(text):
        if not _serves(match[1], found):
            continue
        at = match.end()
        while link := _LINK.match(text, at):
            method = ANY if link[1] == "all" else link[1].upper()
            yield Raw(match[1], method, match["path"], line_of(text, link.start(1)))
            at = balanced(text, link.end() - 1)


def _serves(owner: str, found: Facts) -> bool:
    return owner in found.prefixes or bool(_ROUTER.match(owner))


def _mounts(text: str, found: Facts) -> None:
    for match in _USE.finditer(text):
        inside = text[match.end() : balanced(text, text.index("(", match.start())) - 1]
        required = _REQUIRE.search(inside)
        last = re.search(r"([\w$.]+)\s*$", inside.strip())
        target = ""
        if required:
            target = f"require {required[1]}"
            found.imports[target] = (required[1], "")
        elif last:
            target = last[1]
        if target:
            found.mounts.append(Mounted(match[1], target, match["path"]))
    for match in _REGISTER.finditer(text):
        found.mounts.append(Mounted(match[1], match[2], match[3]))


def _next(file: str, text: str) -> Iterator[Raw]:
    """Routes that are files, as Next.js has them."""
    if page := _NEXT_PAGE.search(file):
        yield Raw("next", ANY, _next_path(page["path"]), 1)
    elif route := _NEXT_APP.search(file):
        for match in _NEXT_METHOD.finditer(text):
            yield Raw("next", match[1], _next_path(route["path"]), line_of(text, match.start()))


def _next_path(path: str) -> str:
    path = re.sub(r"/index$", "", path)
    path = re.sub(r"\[+\.\.\.\w+\]+", "{...rest}", re.sub(r"\(\w+\)/", "", path))
    return "/" + re.sub(r"\[(\w+)\]", r"{\1}", path)


def calls(file: str, text: str) -> list[Call]:
    """The addresses that this file calls and that are written as literals."""
    text = blank(text)
    found = [*_fetches(file, text), *_method_calls(file, text), *_object_calls(file, text)]
    return sorted(set(found), key=lambda call: (call.line, call.path))


def _fetches(file: str, text: str) -> Iterator[Call]:
    for match in _FETCH.finditer(text):
        options = text[match.end() : balanced(text, text.index("(", match.start())) - 1]
        method = _method(options)
        if match["what"] in ("useSWR", "axios") and not _METHOD.search(options):
            method = "GET"
        yield from _call(file, text, match, method)


def _method_calls(file: str, text: str) -> Iterator[Call]:
    for match in _METHOD_CALL.finditer(text):
        yield from _call(file, text, match, match["what"].upper())


def _object_calls(file: str, text: str) -> Iterator[Call]:
    for start in _OBJECT_CALL.finditer(text):
        end = balanced(text, start.end() - 1)
        if match := _URL.search(text, start.end(), end):
            yield from _call(file, text, match, _method(text[start.end() : end]))


def _method(options: str) -> str:
    """GET unless the options name another; ANY where they are computed."""
    named = _METHOD.search(options)
    if named:
        return named[1].upper() if named[1] else ANY
    return ANY if re.search(r"\.\.\.|^\s*,\s*[\w$.]+\s*$", options) else "GET"


def _call(file: str, text: str, match: re.Match[str], method: str) -> Iterator[Call]:
    path = _OWN_HOST.sub("", match["path"])
    rooted = not path.startswith("${")
    path = re.sub(r"^\$\{[^{}]*\}", "", path)
    if match["more"] and path.endswith("/"):
        path += "{}"
    if path.startswith("/") and not path.startswith("//"):
        yield Call(method, normal(path), rooted, file, line_of(text, match.start("path")))
