"""Routes that a JavaScript or TypeScript file declares, and the addresses that it calls.

Only what is written as a literal counts; a part of an address that is computed is a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.tools.research.grammar import Syntax, bare, line, syntax
from shared.tools.research.routes import ANY, METHODS, CodeFacts, HttpCall, Mounted, Raw, normal

if TYPE_CHECKING:
    from tree_sitter import Node

_ROUTER = re.compile(r"^(?:app|server|fastify|router|\w*[rR]outer)$")
_MAKERS = {"express", "fastify", "Fastify", "Hono", "Router"}
_VERBS = {*METHODS, "all"}
_FETCHES = {"fetch", "$fetch", "ofetch", "useFetch", "useSWR", "axios"}
_CLIENT = re.compile(r"axios|api|http|client|request|\b(?:ky|got)", re.IGNORECASE)
_OWN_HOST = re.compile(r"^https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::\d+)?(?=/|$)")
_HOLE = "${}"  # what is computed inside an address
_LONGEST = 64  # links of a chain, and parts of a sum, that are followed

_NEXT_APP = re.compile(r"(?:^|/)app/(?P<path>.+)/route\.[jt]sx?$")
_NEXT_PAGE = re.compile(r"(?:^|/)pages/(?P<path>api(?:/.+)?)\.[jt]sx?$")


def facts(file: str, text: str) -> CodeFacts:
    """What this file declares about routing."""
    found = CodeFacts()
    page = _NEXT_PAGE.search(file)
    if page:
        found.routes.append(Raw("next", ANY, _next_path(page["path"]), 1))
    tree = syntax(file, text)
    if tree is None:
        return found
    called: list[Node] = []
    exported: list[str] = []
    for node in tree.nodes(
        "import_statement",
        "variable_declarator",
        "export_statement",
        "assignment_expression",
        "call_expression",
    ):
        if node.type == "call_expression":
            called.append(node)
        elif node.type == "import_statement":
            found.imports |= _imported(tree, node)
        elif node.type == "variable_declarator":
            _declared(tree, node, found)
        else:
            exported += _exported(tree, node)
    found.exported = exported[0] if exported else ""
    for node in called:
        found.routes += _routes(tree, node, found)
        _mount(tree, node, found)
    route = _NEXT_APP.search(file)
    if route and not page:
        found.routes += _next(tree, _next_path(route["path"]))
    return found


def calls(file: str, text: str) -> list[HttpCall]:
    """The addresses that this file calls and that are written as literals."""
    tree = syntax(file, text)
    found = (
        [call for node in tree.nodes("call_expression") for call in _call(tree, file, node)] if tree else []
    )
    return sorted(set(found), key=lambda call: (call.line, call.path))


# What a node says ---------------------------------------------------------------------------------


def _name(tree: Syntax, node: Node | None) -> str:
    """The last name of `a`, `a.b` and `a!.b`; empty for anything else."""
    node = bare(node)
    if node is not None and node.type == "member_expression":
        node = node.child_by_field_name("property")
    return tree.text(node) if node is not None and node.type.endswith("identifier") else ""


def _callee(tree: Syntax, node: Node) -> tuple[Node | None, str]:
    """(what it is called on, if that is written, and the name of what is called)."""
    function = bare(node.child_by_field_name("function") or node.child_by_field_name("constructor"))
    owner = function.child_by_field_name("object") if function is not None else None
    return bare(owner), _name(tree, function)


def _arguments(node: Node) -> list[Node]:
    listed = node.child_by_field_name("arguments")
    if listed is None or listed.type != "arguments":
        return []
    return [plain for child in listed.named_children if child.type != "comment" and (plain := bare(child))]


def _literal(tree: Syntax, node: Node | None) -> str | None:
    """The text of a string or a template, what is computed in it as `${}`; None where it is none, or escaped."""
    if node is None or node.type not in ("string", "template_string"):
        return None
    parts: list[str] = []
    for child in node.named_children:
        if child.type == "template_substitution":
            parts.append(_HOLE)
        elif child.type == "string_fragment":
            parts.append(tree.text(child))
        else:
            return None
    text = "".join(parts)
    return None if "\n" in text else text


def _address(tree: Syntax, node: Node) -> str | None:
    """The text of an address that is a literal, or a sum that begins with one; None for any other."""
    terms: list[Node | None] = []
    first: Node | None = node
    while first is not None and first.type == "binary_expression" and len(terms) < _LONGEST:
        if tree.text(first.child_by_field_name("operator")) != "+":
            return None
        terms.append(bare(first.child_by_field_name("right")))
        first = bare(first.child_by_field_name("left"))
    text = _literal(tree, first)
    if text is None:
        return None
    for term in reversed(terms):
        more = _literal(tree, term)
        if more is None and not text.endswith("/"):
            break  # a query, or the end of a word: what follows is not known to be a part of the path
        text += _HOLE if more is None else more
    return text


def _field(tree: Syntax, node: Node | None, name: str) -> Node | None:
    """The value that an object has under a name that is written out; a name alone is its own value."""
    for child in node.named_children if node is not None and node.type == "object" else ():
        if child.type == "pair":
            key = child.child_by_field_name("key")
            if (_literal(tree, key) or tree.text(key)) == name:
                return bare(child.child_by_field_name("value"))
        elif child.type == "shorthand_property_identifier" and tree.text(child) == name:
            return child
    return None


def _required(tree: Syntax, node: Node | None) -> str:
    """The module of `require("module")`, else empty."""
    if node is None or node.type != "call_expression" or _callee(tree, node) != (None, "require"):
        return ""
    given = _arguments(node)
    return (_literal(tree, given[0]) if len(given) == 1 else "") or ""


def _links(node: Node | None) -> Iterator[Node]:
    """A chain of calls and members from its end to what it begins with."""
    for _ in range(_LONGEST):
        if node is None:
            return
        yield node
        node = bare(node.child_by_field_name("function") or node.child_by_field_name("object"))


# Declarations -------------------------------------------------------------------------------------


def _imported(tree: Syntax, node: Node) -> dict[str, tuple[str, str]]:
    module = _literal(tree, node.child_by_field_name("source"))
    clause = next((child for child in node.named_children if child.type == "import_clause"), None)
    if not module or clause is None:
        return {}
    found: dict[str, tuple[str, str]] = {}
    for child in clause.named_children:
        if child.type == "identifier":
            found[tree.text(child)] = (module, "")
        elif child.type == "namespace_import":
            found[tree.text(child.named_child(0))] = (module, "")
        for one in child.named_children if child.type == "named_imports" else ():
            name = tree.text(one.child_by_field_name("name"))
            alias = tree.text(one.child_by_field_name("alias"))
            if name:
                found[alias or name] = (module, "" if name == "default" else name)
    return found


def _declared(tree: Syntax, node: Node, found: CodeFacts) -> None:
    """What a variable holds: a router, or what was required."""
    name, value = node.child_by_field_name("name"), bare(node.child_by_field_name("value"))
    if name is None or value is None:
        return
    if name.type == "identifier":
        for link in _links(value):
            if link.type in ("call_expression", "new_expression") and _callee(tree, link)[1] in _MAKERS:
                given = _arguments(link)
                prefix = _literal(tree, _field(tree, given[0], "prefix")) if given else None
                found.prefixes[tree.text(name)] = prefix or ""
                break
    module = next((module for link in _links(value) if (module := _required(tree, link))), "")
    if not module:
        return
    if name.type == "identifier":
        part = _name(tree, value) if value.type == "member_expression" else ""
        found.imports[tree.text(name)] = (module, "" if part == "default" else part)
    for child in name.named_children if name.type == "object_pattern" else ():
        if child.type == "pair_pattern":
            alias = tree.text(child.child_by_field_name("value"))
            found.imports[alias] = (module, tree.text(child.child_by_field_name("key")))
        elif child.type == "shorthand_property_identifier_pattern":
            found.imports[tree.text(child)] = (module, tree.text(child))


def _exported(tree: Syntax, node: Node) -> Iterator[str]:
    """The name that stands for the module."""
    value = node.child_by_field_name("value")
    if node.type == "assignment_expression":
        left = tree.text(node.child_by_field_name("left"))
        value = node.child_by_field_name("right") if left == "module.exports" else None
    if value is not None and value.type == "identifier":
        yield tree.text(value)


def _routes(tree: Syntax, node: Node, found: CodeFacts) -> Iterator[Raw]:
    """`owner.get("/path", …)`, or a link of `owner.route("/path").get(…).post(…)`."""
    on, verb = _callee(tree, node)
    if verb not in _VERBS or on is None:
        return
    method = ANY if verb == "all" else verb.upper()
    at = line(_property(node) or node)
    owner, given = _name(tree, on), _arguments(node)
    if owner:
        path = _address(tree, given[0]) if given and _serves(owner, found) else None
        if path and path.startswith("/"):
            yield Raw(owner, method, path, at)
        return
    for _ in range(_LONGEST):
        if on is None or on.type != "call_expression":
            return
        above, what = _callee(tree, on)
        if what == "route":
            owner, given = _name(tree, above), _arguments(on)
            path = _literal(tree, given[0]) if len(given) == 1 and _serves(owner, found) else None
            if path is not None:
                yield Raw(owner, method, path, at)
            return
        if what not in _VERBS:
            return
        on = above


def _property(node: Node) -> Node | None:
    function = bare(node.child_by_field_name("function"))
    return function.child_by_field_name("property") if function is not None else None


def _serves(owner: str, found: CodeFacts) -> bool:
    return owner in found.prefixes or bool(_ROUTER.match(owner))


def _mount(tree: Syntax, node: Node, found: CodeFacts) -> None:
    """`owner.use("/path", …, target)` and `owner.register(target, {prefix: "/path"})`."""
    on, what = _callee(tree, node)
    owner = _name(tree, on)
    if what not in ("use", "register") or not owner:
        return
    given = _arguments(node)
    if len(given) < 2:
        return
    if what == "register":
        prefix = _literal(tree, _field(tree, given[1], "prefix"))
        if prefix is not None and (target := _dotted(tree, given[0])):
            found.mounts.append(Mounted(owner, target, prefix))
        return
    path = _literal(tree, given[0])
    module = next(
        (name for item in given[1:] for link in _links(item) if (name := _required(tree, link))), ""
    )
    target = f"require {module}" if module else _dotted(tree, given[-1])
    if module:
        found.imports[target] = (module, "")
    if path is not None and target:
        found.mounts.append(Mounted(owner, target, path))


def _dotted(tree: Syntax, node: Node) -> str:
    return "".join(tree.text(node).split()) if node.type in ("identifier", "member_expression") else ""


def _next(tree: Syntax, path: str) -> Iterator[Raw]:
    """The methods of a route that is a file, as Next.js has them."""
    for node in tree.nodes("export_statement"):
        declared = node.child_by_field_name("declaration")
        if declared is None:
            continue
        makers = [child for child in declared.named_children if child.type == "variable_declarator"]
        for maker in makers or [declared]:
            name = tree.text(maker.child_by_field_name("name"))
            if name.lower() in METHODS and name.isupper():
                yield Raw("next", name, path, line(node))


def _next_path(path: str) -> str:
    path = re.sub(r"/index$", "", path)
    path = re.sub(r"\[+\.\.\.\w+\]+", "{...rest}", re.sub(r"\(\w+\)/", "", path))
    return "/" + re.sub(r"\[(\w+)\]", r"{\1}", path)


# Calls --------------------------------------------------------------------------------------------


def _call(tree: Syntax, file: str, node: Node) -> Iterator[HttpCall]:
    on, what = _callee(tree, node)
    given = _arguments(node)
    if not given:
        return
    where, owner = given[0], _name(tree, on)
    if where.type == "object":
        url = _field(tree, where, "url")
        if url is None or not (what == "axios" or (what == "request" and owner == "axios")):
            return
        where, method = url, _method(tree, where)
    elif what in _FETCHES:
        method = _method(tree, given[1] if len(given) > 1 else None)
        if method == ANY and what in ("useSWR", "axios") and given[1].type != "object":
            method = "GET"  # the second argument of useSWR fetches
    elif what.lower() in METHODS and _CLIENT.search(owner):
        method = what.upper()
    else:
        return
    path = _address(tree, where)
    if path is None:
        return
    path = _OWN_HOST.sub("", path)
    rooted = not path.startswith(_HOLE)
    path = path.removeprefix(_HOLE)
    if path.startswith("/") and not path.startswith("//"):
        yield HttpCall(method, normal(path), rooted, file, line(where))


def _method(tree: Syntax, options: Node | None) -> str:
    """GET unless the options name another; ANY where they are computed."""
    if options is None:
        return "GET"
    if options.type != "object" or options.has_error:
        return ANY
    named = _field(tree, options, "method")
    if named is not None:
        return (_literal(tree, named) or ANY).upper()
    return ANY if any(child.type == "spread_element" for child in options.named_children) else "GET"
