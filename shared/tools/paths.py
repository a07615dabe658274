"""The repositories of a turn, as the reading tools use them: which one is meant, and the text of its files.

A path is `<repository>/<path in it>`; where there is only one repository its name may be left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from shared.errors import Missing, ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.secret_files import is_secret, redacted
from shared.tools.context import Context, Root

READ = 8 * 1024 * 1024  # bytes of a file that we read whole


def full(root: Root, inner: str) -> str:
    """The path under which the model knows a file of this root."""
    inner = inner.strip("/")
    return f"{root.name}/{inner}" if inner and inner != "." else root.name


def within(context: Context, path: str) -> list[tuple[Root, str]]:
    """Where to look for `path`: in one root, or in all of them where the path is empty."""
    if path or len(context.roots) < 2:
        root, inner = context.locate(path)
        return [(root, checked(root, inner))]
    return [(root, "") for root in context.roots.values()]


def locate(context: Context, project_id: str = "", workspace: str = "", path: str = "") -> tuple[Root, str]:
    """The root that is meant by a workspace's name, else by the path, else by there being only one."""
    own(context, project_id)
    workspace = workspace or (project_id if project_id in context.roots else "")
    if not workspace:
        return context.locate(path)
    if workspace not in context.roots:
        raise Missing.named("repository or workspace", workspace, context.roots)
    head, _, rest = path.partition("/")
    return context.roots[workspace], rest if head == workspace else path


def own(context: Context, project_id: str) -> None:
    """ToolError where another project is named: only this one's repositories are open in the turn."""
    if project_id and project_id != context.project_id and project_id not in context.roots:
        raise ToolError(
            f"the repositories of project {project_id!r} are not open here",
            f"this turn works on project {context.project_id!r}",
            "leave project_id out, or ask the person to switch to that project",
        )


def checked(root: Root, inner: str) -> str:
    """`inner`, unless it lies in `.git`: what is there is git's own, and may hold a remote's credentials."""
    try:
        real = os.path.relpath(os.path.realpath(root.path / inner.lstrip("/")), os.path.realpath(root.path))
    except (OSError, ValueError):  # no path at all: the jail says why
        real = ""
    if ".git" in (part.casefold() for part in (*inner.split("/"), *real.split("/"))):
        raise ToolError(
            "files inside .git are not read", "they belong to git", "use git_log, git_diff or git_blame"
        )
    return inner


def read_text(root: Root, inner: str, asked: bool = False) -> str:
    """The text of a file of the root, lines ended by LF; ToolError where it is binary or too large.

    `asked`: the path is what the call itself names, so that a file of secrets was asked for. Else there is none, and
    a private key in another file is left out.
    """
    secrets = asked and is_secret(inner)
    data = Jail(root.path).read(checked(root, inner), READ, secrets)
    if b"\0" in data[:8192]:
        raise ToolError(f"{full(root, inner)} is a binary file", "", "read a text file instead")
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return text if secrets else redacted(text)


def read_lines(root: Root, inner: str, asked: bool = False) -> list[str]:
    """The lines of a file of the root, as `read_text` gives it; the first is at index 0."""
    lines = read_text(root, inner, asked).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def of_kind(roots: Mapping[str, Root], kind: str) -> list[Root]:
    """The roots that hold code of this kind (frontend, backend); `both` counts as either."""
    return [root for root in roots.values() if root.kind in (kind, "both")]
