"""Routes that a Python file declares: Flask, FastAPI and Starlette, read with `ast`."""

from __future__ import annotations

import ast

from shared.tools.research.routes import ANY, METHODS, CodeFacts, Mounted, Raw

_MOUNTS = {"include_router": "prefix", "register_blueprint": "url_prefix"}
_ADDS = {"add_api_route", "add_url_rule", "add_route"}
_BARE = "routes"  # the owner of Route(…) entries that stand in a list


def facts(text: str) -> CodeFacts:
    """What this file declares; nothing where it is no Python that we can parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CodeFacts()
    found = CodeFacts()
    _visit(tree, found, "")
    return found


def _visit(node: ast.AST, found: CodeFacts, prefix: str) -> None:
    """Walk the tree; `prefix` is that of the Mount(…) whose routes are being walked."""
    if isinstance(node, ast.ImportFrom):
        for name in node.names:
            found.imports[name.asname or name.name] = (node.module or "", name.name)
    elif isinstance(node, ast.Import):
        for name in node.names:
            found.imports[name.asname or name.name] = (name.name, "")
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        _assigned(node, node.value, found)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                _decorated(decorator, found)
    elif isinstance(node, ast.Call):
        prefix = _called(node, found, prefix)
    for child in ast.iter_child_nodes(node):
        _visit(child, found, prefix)


def _assigned(node: ast.Assign, call: ast.Call, found: CodeFacts) -> None:
    prefix = _string(call, "prefix") or _string(call, "url_prefix")
    for target in node.targets:
        if prefix and (name := dotted(target)):
            found.prefixes[name] = prefix


def _decorated(call: ast.Call, found: CodeFacts) -> None:
    if not isinstance(call.func, ast.Attribute):
        return
    name, owner = call.func.attr, dotted(call.func.value)
    path = _path(call)
    if not owner or path is None or name not in (*METHODS, "route", "api_route"):
        return
    methods = [name.upper()] if name in METHODS else _methods(call)
    found.routes += [Raw(owner, method, path, call.lineno) for method in methods]


def _called(call: ast.Call, found: CodeFacts, prefix: str) -> str:
    """Note what a call declares; the prefix that holds for what stands inside of it."""
    name = dotted(call.func).rpartition(".")[2]
    owner = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else _BARE
    if name in _MOUNTS and call.args:
        target = dotted(call.args[0])
        found.mounts.append(Mounted(owner, target, _string(call, _MOUNTS[name])))
    elif name in _ADDS and (path := _path(call)) is not None:
        found.routes += [Raw(owner, method, path, call.lineno) for method in _methods(call)]
    elif name == "Route" and (path := _path(call)) is not None:
        found.routes += [Raw(_BARE, method, f"{prefix}{path}", call.lineno) for method in _methods(call)]
    elif name == "Mount" and (path := _path(call)) is not None:
        return f"{prefix}{path}"
    return prefix


def _path(call: ast.Call) -> str | None:
    """The path of a route; None for other text, such as that of `mock.patch("a.b")`."""
    first = call.args[0] if call.args else None
    value = first.value if isinstance(first, ast.Constant) else None
    if value is None:
        value = next((_string(call, name) for name in ("path", "rule") if _string(call, name)), None)
    return value if isinstance(value, str) and (value == "" or value.startswith("/")) else None


def _methods(call: ast.Call) -> list[str]:
    for keyword in call.keywords:
        if keyword.arg == "methods" and isinstance(keyword.value, ast.List | ast.Tuple | ast.Set):
            return [str(item.value).upper() for item in keyword.value.elts if isinstance(item, ast.Constant)]
        if keyword.arg == "methods":
            return [ANY]
    return ["GET"]


def _string(call: ast.Call, name: str) -> str:
    for keyword in call.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value or "")
    return ""


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of names, else empty."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (above := dotted(node.value)):
        return f"{above}.{node.attr}"
    return ""
