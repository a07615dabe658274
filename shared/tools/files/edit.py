"""Tools of category files that change something: write and edit files, run commands in a workspace."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.reading import only_reads
from shared.guard.permissions.secret_files import SHOWN, is_secret, named, untracked
from shared.guard.permissions.touching import touching
from shared.guard.processes.process import run
from shared.guard.processes.reserve import Reserve
from shared.tools import binding, checkouts
from shared.tools.categories import tier
from shared.tools.context import Context, Root
from shared.tools.files.writing import before, changing, digest, encoded
from shared.tools.paths import checked, full
from shared.tools.registry import Result

category = tier("files")

STDOUT, STDERR = 4000, 2000
FileText = Annotated[str, Field(max_length=2_000_000)]


def _path(arguments: dict[str, Any]) -> str:
    return str(arguments.get("path", ""))


async def _open(here: Context, path: str) -> tuple[Root, str, Jail]:
    here, path = await checkouts.opened(here, path)
    root, inner = here.locate(path)
    checkouts.checkout(here, root, change=True)  # says why, where it may not be changed
    return root, inner, Jail(root.path, writable=True)


@category.tool(effect="idempotent", detail=_path, touches=touching("files"))
async def write_file(here: Context, path: str, content: FileText) -> Result:
    """Write content to a file. It is made, or replaced as a whole; missing folders are made."""
    root, inner, jail = await _open(here, path)
    data = encoded(content)
    async with changing(here, jail, inner):
        old = before(jail, inner)
        jail.write(inner, data)
    sums = {"before": digest(old), "after": digest(data)}
    return {"path": full(root, inner), "written": True, "created": old is None, "bytes": len(data), **sums}


@category.tool(effect="once", detail=_path, probes=True, touches=touching("files", path=SHOWN))
async def edit_file(
    here: Context, path: str, old_string: FileText, new_string: FileText, replace_all: bool = False
) -> Result:
    """Perform targeted string replacement in a file. Without `replace_all` the old text must occur once."""
    if not old_string:
        raise ToolError("old_string is empty", "", "give the text to replace, or use write_file")
    if old_string == new_string:
        raise ToolError("nothing is to be changed", "old_string and new_string are the same", "")
    root, inner, jail = await _open(here, path)
    old, new = encoded(old_string), encoded(new_string)
    async with changing(here, jail, inner):
        text = jail.read(inner, secrets=is_secret(inner))
        if here.intended and here.intended["after"] == digest(text):
            return dict(here.intended)  # it was done before a crash
        count = text.count(old)
        if count == 0 or (count > 1 and not replace_all):
            why = "it does not occur in the file" if not count else f"it occurs {count} times"
            fix = "read the file and give its text exactly" if not count else "give more text, or replace_all"
            raise ToolError(f"old_string was not replaced in {path!r}", why, fix)
        after = text.replace(old, new)
        line = text[: text.index(old)].count(b"\n") + 1
        result: Result = {"path": full(root, inner), "replacements": count, "line": line}
        result |= {"before": digest(text), "after": digest(after)}
        await here.intend(result)
        jail.write(inner, after)
    return result


async def _checkout(here: Context, working_dir: str, **_arguments: Any) -> dict[str, str]:
    return await binding.checkout(here, *await _folder(here, working_dir))


@category.tool(
    effect="once",
    detail=lambda arguments: str(arguments.get("command", "")),
    reads=lambda arguments: only_reads(str(arguments.get("command", ""))),
    touches=touching("command"),
    binds=_checkout,
)
async def run_command(
    here: Context,
    command: Annotated[str, Field(min_length=1, max_length=32_000)],
    working_dir: str,
    timeout: Annotated[int, Field(ge=1, le=120)] = 30,
) -> Result:
    """Execute a shell command in a workspace directory, confined to it and without network.

    `working_dir` is a workspace, a folder in one, or a project with one repository. Each call is a new shell.
    """
    if "\0" in command:
        raise ToolError("the command was not run", "it holds a NUL", "leave it out")
    root, inner = await _folder(here, working_dir)
    sandbox = checkouts.sandbox(here)
    shell = ["bash", "-c", command]
    if inner:  # the sandbox starts in the workspace; the folder is a word of its own, never shell text
        shell = ["bash", "-c", 'cd -- "$1" && shift && exec "$@"', "bash", inner, *shell]
    # What git does not have was made by people: permission for the command is permission for what it names.
    masked = await asyncio.to_thread(untracked, root.path, named(command)) if sandbox.mode == "bwrap" else []
    argv = sandbox.wrap(shell, root.path, writable=root.writable, masked=masked)
    done = await run(
        argv, cwd=root.path, timeout=timeout, limit=STDOUT, error_limit=STDERR, lock=here.worktree.lock,
        reserve=Reserve.of(root.path) if root.writable else None,
    )  # fmt: skip
    result: Result = {
        "returncode": done.exit_code,
        "stdout": done.stdout,
        "stderr": done.stderr,
        "ms": done.ms,
    }
    if done.timed_out:
        result |= {"timed_out": True, "warning": f"it was ended after {timeout} s"}
    if done.ended:
        result |= {"warning": done.ended}
    return result | {"truncated": done.truncated, "sandbox": sandbox.mode}


async def _folder(here: Context, working_dir: str) -> tuple[Root, str]:
    if working_dir.startswith(("/", "~")):  # the folder of a repository, as a person knows it
        working_dir = await checkouts.named(here, working_dir)
    here, path = await checkouts.opened(here, working_dir, wanted=working_dir.partition("/")[0])
    if path and path == working_dir == here.project_id and len(here.roots) == 1:
        path = ""
    root, inner = here.locate(path)
    inner = checked(root, inner).strip("/")
    if inner and Jail(root.path).stat(inner).kind != "dir":
        raise ToolError(f"{working_dir!r} is no folder", "", "name a workspace or a folder in it")
    return root, inner
