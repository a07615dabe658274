"""Tools of category files that read: read, browse and search repositories and workspaces.

A path is `<repository>/<path in it>`; where there is only one repository its name may be left out, and an
empty path means all of them. In a conversation a project's id may stand before it.
What comes back was written by others, and is marked so: `"source": "repository"`.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.secret_files import LEFT, SHOWN, is_secret, may_be_key, passed_over
from shared.guard.permissions.touching import touching
from shared.tools import checkouts
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.files.search import FileHits, Hit, SearchRoot, TextQuery, search
from shared.tools.paths import checked, full, locate, own, read_lines, within
from shared.tools.registry import Result

category = tier("files")

CHARACTERS = 100_000  # of one answer: what a model can still use
WIDTH = 2000  # characters of one line that read_file shows
ENTRIES = 1000
_NAMED = 20  # files of secrets that a search names

Lines = Annotated[int, Field(ge=1, le=20_000)]
Most = Annotated[int, Field(ge=1, le=2000)]
Pattern = Annotated[str, Field(min_length=1, max_length=4000)]
Around = Annotated[int, Field(ge=0, le=20)]


def _path(arguments: dict[str, Any]) -> str:
    return str(arguments.get("path", ""))


def _marked(truncated: bool = False, **fields: Any) -> Result:
    answer: Result = {**fields, "source": "repository"}
    return answer | {"truncated": True} if truncated else answer


@category.tool(effect="pure", detail=_path, touches=touching("files", path=SHOWN))
@checkouts.wherever
async def read_file(
    context: Context,
    path: str,
    max_lines: Lines = 2000,
    offset: Annotated[int, Field(ge=1)] = 1,
    limit: Lines | None = None,
    numbered: bool = False,
) -> Result:
    """Read a file's contents from a workspace.

    `offset` is the first line (from 1), `limit` or `max_lines` how many; `numbered` shows line numbers.
    """
    context, path = await checkouts.opened(context, path)
    root, inner = context.locate(path)
    lines = await asyncio.to_thread(read_lines, root, inner, True)
    if offset > max(1, len(lines)):
        raise ToolError(f"{path} has {len(lines)} lines", f"line {offset} is past its end")
    shown = _fit(lines[offset - 1 : offset - 1 + min(limit or max_lines, max_lines)], offset, numbered)
    answer = _marked(path=full(root, inner), lines=len(lines), offset=offset, content="\n".join(shown))
    if offset - 1 + len(shown) < len(lines):
        answer |= {"truncated": True, "next_offset": offset + len(shown)}
    return answer


def _fit(lines: list[str], first: int, numbered: bool) -> list[str]:
    """The lines, each and all together cut to what an answer may hold."""
    shown: list[str] = []
    room = CHARACTERS
    for number, line in enumerate(lines, first):
        text = line if len(line) <= WIDTH else f"{line[:WIDTH]} [… {len(line) - WIDTH} more characters]"
        text = f"{number:>6}\t{text}" if numbered else text
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return shown


@category.tool(effect="pure", detail=_path, touches=touching("files"))
@checkouts.wherever
async def list_directory(
    context: Context, path: str = "", project_id: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """List files and directories at a given path within a project workspace.

    Without a path it lists the repositories, or the top folder of the only one. `workspace` names one.
    """
    workspace = await checkouts.named(context, workspace or repo_id, project_id)
    context, path = await checkouts.opened(context, path, project_id, repo_id, wanted=workspace)
    own(context, project_id)
    if not path and not workspace and len(context.roots) > 1:
        repositories = [
            {"name": root.name, "kind": "repository", "holds": root.kind, "commit": root.commit}
            for root in context.roots.values()
        ]
        return _marked(path="", entries=repositories)
    root, inner = locate(context, project_id, workspace, path)
    found = await asyncio.to_thread(Jail(root.path).list, checked(root, inner) or ".")
    entries = [
        {"name": entry.name, "kind": entry.kind, "size": entry.size}
        for entry in found
        if entry.name != ".git"
    ]
    return _marked(len(entries) > ENTRIES, path=full(root, inner), entries=entries[:ENTRIES])


@category.tool(effect="pure", detail=_path, touches=touching("files"))
@checkouts.wherever
async def glob_files(context: Context, pattern: Pattern, path: str = "") -> Result:
    """Find files matching a glob pattern (e.g. `**/*.py`, `src/**/*.{ts,tsx}`, or `*.md` at any depth)."""
    found = await _everywhere(context, path, TextQuery(mode="files", globs=[pattern]), ENTRIES)
    return _marked(found.truncated, files=[hit.path for hit in found.hits])


@category.tool(effect="pure", detail=_path, touches=touching("files", path=SHOWN))
@checkouts.wherever
async def grep(
    here: Context,
    pattern: Pattern,
    path: str = "",
    context: Around = 0,
    case_insensitive: bool = False,
    glob: Pattern | None = None,
    output_mode: Literal["content", "files_with_matches", "count"] = "content",
    max_results: Most = 100,
) -> Result:
    """Search file contents using regex patterns (ripgrep-style); `context` is lines around a match.

    Files that hold secrets (.env, keys) are searched only where `path` is one.
    """
    query = TextQuery(
        pattern,
        mode="count" if output_mode == "count" else "lines",
        globs=[glob] if glob else [],
        ignore_case=case_insensitive,
        per_file=1 if output_mode == "files_with_matches" else max_results + 1,
    )
    found = await _everywhere(here, path, query, max_results)
    left = await _passed_over(here, path)
    if output_mode == "files_with_matches":
        return _marked(found.truncated, files=[hit.path for hit in found.hits]) | left
    if output_mode == "count":
        counts = [{"path": hit.path, "count": hit.number} for hit in found.hits]
        return _marked(found.truncated, counts=counts, total=sum(hit.number for hit in found.hits)) | left
    matches = _matches(found.hits)
    if context:
        there, _ = await checkouts.opened(here, path)
        await asyncio.to_thread(_surround, there, matches, context)
    return _marked(found.truncated, matches=matches) | left


@category.tool(effect="pure", detail=_path, touches=touching("files", path=SHOWN))
@checkouts.wherever
async def search_files(
    context: Context, pattern: Pattern, path: str = "", mode: Literal["grep", "find"] = "grep"
) -> Result:
    """Search for files or content in a workspace: `grep` by a regex in the text, `find` by file name.

    `grep` passes over files that hold secrets (.env, keys), unless `path` is one.
    """
    if mode == "find":
        glob = pattern if set(pattern) & set("*?[{/") else f"*{pattern}*"
        found = await _everywhere(context, path, TextQuery(mode="files", globs=[glob]), ENTRIES)
        return _marked(found.truncated, files=[hit.path for hit in found.hits])
    found = await _everywhere(context, path, TextQuery(pattern), 100)
    return _marked(found.truncated, matches=_matches(found.hits)) | await _passed_over(context, path)


async def _passed_over(context: Context, path: str) -> Result:
    """Which files were not searched, whatever they hold: that one matches is not told either."""
    context, path = await checkouts.opened(context, path)
    left: list[str] = []
    for root, inner in within(context, path):
        names = await asyncio.to_thread(passed_over, root.path, inner, _NAMED)
        left += [full(root, name) for name in names]
    if not left:
        return {}
    how = "they hold secrets: name one as `path` to search it, which needs the person's permission"
    return {"not_searched": left[:_NAMED], "why_not": how}


def _matches(hits: tuple[Hit, ...]) -> list[dict[str, Any]]:
    return [{"path": hit.path, "line": hit.number, "text": hit.text} for hit in hits]


async def _everywhere(context: Context, path: str, query: TextQuery, limit: int) -> FileHits:
    """Search in every root that `path` means; the hits' paths begin with the root's name."""
    context, path = await checkouts.opened(context, path)
    roots = within(context, path)
    where = [SearchRoot(root.path, inner) for root, inner in roots]
    found = await search(where, query, limit + 1, checkouts.sandbox(context))
    hits = [
        replace(hit, path=full(root, hit.path))
        for (root, _), part in zip(roots, found, strict=True)
        for hit in part.hits
    ]
    if any(hit.number and may_be_key(hit.text) for hit in hits):
        hits = await asyncio.to_thread(_without_keys, context, path, hits)
    return FileHits(tuple(hits[:limit]), len(hits) > limit or any(part.truncated for part in found))


def _without_keys(context: Context, path: str, hits: list[Hit]) -> list[Hit]:
    """The hits, without the text of lines of private keys in files that were not asked for by name."""
    texts: dict[str, list[str]] = {}
    for at, hit in enumerate(hits):
        if not may_be_key(hit.text) or is_secret(path):
            continue
        if hit.path not in texts:
            with contextlib.suppress(ToolError):
                texts[hit.path] = read_lines(*context.locate(hit.path))
        lines = texts.get(hit.path, [])
        if lines[hit.number - 1 : hit.number] == [LEFT]:
            hits[at] = replace(hit, text=LEFT)
    return hits


def _surround(context: Context, matches: list[dict[str, Any]], around: int) -> None:
    """Add the lines `before` and `after` to each match."""
    texts: dict[str, list[str]] = {}
    for match in matches:
        path = str(match["path"])
        if path not in texts:
            texts[path] = [line[:WIDTH] for line in read_lines(*context.locate(path))]
        at = match["line"] - 1
        match["before"] = texts[path][max(0, at - around) : at]
        match["after"] = texts[path][at + 1 : at + 1 + around]
