"""Category coding: install the packages that a task's repository needs, from package registries alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.guard.processes.process import run
from shared.guard.processes.reserve import Reserve
from shared.guard.sandbox.registries import RegistryProxy
from shared.tools import binding
from shared.tools.context import Context, Root
from shared.tools.files.writing import workspace
from shared.tools.registry import Category, Result

category = Category("coding", "Create, change and view files, and run commands, in the workspace of a task")

_STDOUT, _STDERR = 4000, 2000


async def _bound(context: Context, **_arguments: Any) -> dict[str, str]:
    """The checkout, and where the command can get to: a standing permission holds only while that is the same."""
    hosts = ", ".join(sorted(context.worktree.registries.hosts))
    return {"address": hosts, **await binding.checkout(context, _root(context))}


def _root(context: Context) -> Root:
    root = workspace(context)  # outside of a task there is nowhere to install to, whatever the owner named
    if not context.worktree.registries.hosts:
        raise ToolError(
            "packages cannot be installed here",
            "no package registry is open to commands",
            "its owner can name the hosts of those that are used in PACKAGE_HOSTS",
        )
    return root


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments["command"]),
    touches=touching("command", "address"),
    binds=_bound,
)
async def install_packages(
    context: Context, command: str, timeout: Annotated[int, Field(ge=1, le=1800)] = 600
) -> Result:
    """Run a command that installs packages in the workspace, such as `npm ci`: a person is asked each time.

    It runs like `bash`, but reaches package registries. Only what it writes in the workspace stays: make a
    `.venv` there for Python. What it installs does not become part of the work; the files that name it do.
    """
    if "\0" in command:
        raise ToolError("the command was not run", "it holds a NUL", "leave it out")
    root, registries = _root(context), context.worktree.registries
    if (sandbox := context.sandbox) is None:
        raise ToolError("commands cannot be run here", "there is no sandbox", "see promptdock doctor")
    async with RegistryProxy(registries.hosts, registries.reach) as proxy:
        argv = proxy.wrap(sandbox, ["/bin/bash", "-c", command], root.path)
        done = await run(
            argv, cwd=root.path, timeout=timeout, limit=_STDOUT, error_limit=_STDERR, lock=context.worktree.lock,
            reserve=Reserve.of(root.path),
        )  # fmt: skip
    result = {"exit_code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr, "ms": done.ms}
    result |= {"warning": f"it was ended after {timeout} s", "timed_out": True} if done.timed_out else {}
    result |= {"warning": done.ended} if done.ended else {}
    result |= {"not_reached": dict(list(proxy.refused.items())[:10])} if proxy.refused else {}
    return {**result, "truncated": done.truncated, "sandbox": sandbox.mode}
