"""Category coding: change files and run commands in the one workspace that a task has."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.reading import only_reads
from shared.guard.permissions.secret_files import SHOWN, is_secret, redacted
from shared.guard.permissions.touching import touching
from shared.guard.processes.process import run
from shared.guard.processes.reserve import Reserve
from shared.tools import binding
from shared.tools.context import Context, Root
from shared.tools.files.writing import before, changing, digest, encoded, workspace
from shared.tools.paths import checked, full
from shared.tools.registry import Category, Result

category = Category("coding", "Create, change and view files, and run commands, in the workspace of a task")

STDOUT, STDERR = 4000, 2000
LINES, LINE, CHARACTERS = 2000, 2000, 60_000

# Commands whose success says something about the work, where they stand alone: a pipe, `||` or `;` behind
# them would answer with the exit code of something else.
_CHECK = re.compile(
    r"(\w+=\S*\s+)*((uv|poetry|hatch|pdm|bundle|pnpm|npm|yarn)\s+(run|exec)\s+|npx\s+|(\S*/)?python[\d.]*\s+-m\s+)*"
    r"(\S*/)?(pytest|unittest|tox|nox|ruff|mypy|pyright|flake8|eslint|tsc|vitest|jest|mocha|playwright"
    r"|(npm|pnpm|yarn|bun)\s+(run\s+)?(test|lint|build|check|typecheck)|make\s+(test|check|lint|build)"
    r"|cargo\s+(test|check|clippy|build)|go\s+(test|vet|build)|mvn\s+\S*(test|verify)|gradlew?\s+\S*(test|check))"
    r"(\s.*)?"
)
_NO_CHECK = re.compile(r"[;|\n\r`]|(?<!&)&(?!&)|\$\(|\s--?(version|help|collect-only|co|h|V)\b")


def is_check(command: str) -> bool:
    """Whether the success of a command says something about the work: tests, linters, builds."""
    parts = [part.strip() for part in command.split("&&")]
    return not _NO_CHECK.search(command) and any(_CHECK.fullmatch(part) for part in parts)


def _inside(context: Context, root: Root, path: str) -> str:
    """`path` in the workspace; the workspace's name may stand before it, as in the tools that read."""
    head, slash, rest = path.partition("/")
    jail = Jail(root.path)
    return rest if slash and head == root.name and not jail.exists(head) else path


async def _checkout(context: Context, **_arguments: Any) -> dict[str, str]:
    return await binding.checkout(context, workspace(context))


@category.tool(
    effect="idempotent", detail=lambda arguments: str(arguments["path"]), touches=touching("files")
)
async def create_file(context: Context, path: str, content: str) -> Result:
    """Create a file in the workspace, or replace the whole of it. Missing folders are made."""
    root = workspace(context)
    path, data = _inside(context, root, path), encoded(content)
    jail = Jail(root.path, writable=True)
    async with changing(context, jail, path):
        old = before(jail, path)
        jail.write(path, data)
    sums = {"before": digest(old), "after": digest(data)}
    return {"path": full(root, path), "created": old is None, **sums, "bytes": len(data)}


@category.tool(
    effect="once",
    detail=lambda arguments: str(arguments["path"]),
    probes=True,
    touches=touching("files", path=SHOWN),
)
async def str_replace(context: Context, path: str, old_str: str, new_str: str) -> Result:
    """Replace text in a file of the workspace. `old_str` must occur exactly once, with its white space."""
    if not old_str:
        raise ToolError("old_str is empty", "", "give the text to replace, or use create_file")
    root = workspace(context)
    path, old, new = _inside(context, root, path), encoded(old_str), encoded(new_str)
    jail = Jail(root.path, writable=True)
    async with changing(context, jail, path):
        text = jail.read(path, secrets=is_secret(path))
        if context.intended and context.intended["after"] == digest(text):
            return dict(context.intended)  # it was done before a crash
        if (count := text.count(old)) != 1:
            why = "it does not occur in the file" if not count else f"it occurs {count} times"
            raise ToolError(
                f"old_str was not replaced in {path!r}", why, "view the file and give more of its text"
            )
        after = text.replace(old, new)
        line = text[: text.index(old)].count(b"\n") + 1
        result = {"path": full(root, path), "line": line, "before": digest(text), "after": digest(after)}
        await context.intend(result)
        jail.write(path, after)
    return result


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments["path"]), touches=touching("files", path=SHOWN)
)
async def view(
    context: Context,
    path: str,
    offset: Annotated[int, Field(ge=1)] = 1,
    limit: Annotated[int, Field(ge=1, le=LINES)] = LINES,
) -> Result:
    """Show a file of the workspace with line numbers, from line `offset`; or what a folder holds."""
    root = workspace(context)
    path = checked(root, _inside(context, root, path))
    jail, answer = Jail(root.path), {"path": full(root, path), "source": "repository"}
    if jail.stat(path).kind == "dir":
        entries = [{"name": e.name, "kind": e.kind, "size": e.size} for e in jail.list(path)]
        return {**answer, "entries": entries[:limit], "truncated": len(entries) > limit}
    secrets = is_secret(path)
    data = jail.read(path, secrets=secrets)
    if b"\0" in data[:8192]:
        return {**answer, "binary": True, "bytes": len(data)}
    text = data.decode("utf-8", "replace").removesuffix("\n")
    lines = (text if secrets else redacted(text)).split("\n")
    shown, content, room = lines[offset - 1 : offset - 1 + limit], [], CHARACTERS
    for number, line in enumerate(shown, offset):
        content.append(f"{number}\t{line[:LINE]}")
        room -= len(content[-1])
        if room < 0:
            break
    last = offset - 1 + len(content)
    return {**answer, "content": "\n".join(content), "lines": len(lines), "truncated": last < len(lines)}


@category.tool(
    effect="once",
    detail=lambda arguments: str(arguments["command"]),
    reads=lambda arguments: only_reads(str(arguments.get("command", ""))),
    touches=touching("command"),
    binds=_checkout,
)
async def bash(context: Context, command: str, timeout: Annotated[int, Field(ge=1, le=1800)] = 120) -> Result:
    """Run a shell command in the workspace, confined to it and without network; `timeout` in seconds.

    Each call is a new shell, and what it leaves in the background ends with it. Git's own folder is
    read-only here: changes are committed for you after each step. A check (tests, linter, build) counts
    as proof of the work only as a command by itself, without a pipe, `||` or `;`.
    """
    if "\0" in command:
        raise ToolError("the command was not run", "it holds a NUL", "leave it out")
    root = workspace(context)
    if (sandbox := context.sandbox) is None:
        raise ToolError("commands cannot be run here", "there is no sandbox", "see promptdock doctor")
    argv = sandbox.wrap(["bash", "-c", command], root.path, writable=True)
    done = await run(
        argv, cwd=root.path, timeout=timeout, limit=STDOUT, error_limit=STDERR, lock=context.worktree.lock,
        reserve=Reserve.of(root.path),
    )  # fmt: skip
    result = {"exit_code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr, "ms": done.ms}
    told = {"timed_out": True, "warning": f"it was ended after {timeout} s"} if done.timed_out else {}
    told |= {"warning": done.ended} if done.ended else {}
    return {**result, **told, "truncated": done.truncated, "sandbox": sandbox.mode}
