"""Tools of category system: prompt templates of a project, kept as rows or as `prompts/*.md` in its repositories.

A file may begin with a head between two lines of `---`: YAML with category, tags, description, variables.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from shared import log
from shared.errors import PromptDockError, ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.touching import touching
from shared.store.origin import Origin, marked
from shared.store.records import Project, Prompt
from shared.tools import checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context, Root
from shared.tools.paths import read_text
from shared.tools.registry import Result

category = tier("system")

FOLDER = "prompts"
MOST = 200
_HEAD = re.compile(r"---\n(.*?)\n---\n?(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


@category.tool(effect="pure", touches=touching("records"))
async def list_prompts(
    here: Context, project_id: str, category: str | None = None, tag: str | None = None
) -> Result:
    """List all prompt templates for a project."""
    project = await lookup.project(here.store, project_id)
    found = [
        prompt
        for prompt in await _all(here, project)
        if (not category or prompt.category == category) and (not tag or tag in prompt.tags)
    ]
    return {"prompts": [_head(prompt) for prompt in found[:MOST]], "total": len(found)} | marked(found[:MOST])


@category.tool(effect="pure", touches=touching("records"))
async def read_prompt(here: Context, project_id: str, name: str) -> Result:
    """Read a prompt template's full content and metadata."""
    prompt = await _one(here, project_id, name)
    return {**_head(prompt), "content": prompt.body} | marked([prompt])


@category.tool(effect="pure", touches=touching("records"))
async def render_prompt(
    here: Context, project_id: str, name: str, variables: dict[str, Any] | None = None
) -> Result:
    """Render a prompt template with variable substitution; `{{names}}` that are not given stay as they are."""
    prompt = await _one(here, project_id, name)
    given = {str(item.get("name")): item["default"] for item in prompt.variables if "default" in item}
    given |= variables or {}
    text = _VARIABLE.sub(lambda found: str(given.get(found[1], found[0])), prompt.body)
    missing = [key for key in dict.fromkeys(_VARIABLE.findall(prompt.body)) if key not in given]
    result: Result = {"name": prompt.name, "rendered": text} | marked([prompt])
    return result | ({"warning": f"not given: {', '.join(missing)}"} if missing else {})


def _head(prompt: Prompt) -> dict[str, Any]:
    names = list(dict.fromkeys(_VARIABLE.findall(prompt.body)))
    return {
        "name": prompt.name,
        "category": prompt.category,
        "tags": prompt.tags,
        "description": prompt.description,
        "variables": prompt.variables or [{"name": name} for name in names],
    }


async def _one(here: Context, project_id: str, name: str) -> Prompt:
    project = await lookup.project(here.store, project_id)
    for prompt in await _all(here, project):
        if prompt.name == name:
            return prompt
    raise ToolError(f"there is no prompt called {name!r}", f"in project {project.slug}", "see list_prompts")


async def _all(here: Context, project: Project) -> list[Prompt]:
    """Rows first; a file of the same name is hidden by one."""
    kept = await here.store.select(Prompt, {"project_id": project.id}, order=[("name", "asc")])
    names = {prompt.name for prompt in kept}
    return [*kept, *(prompt for prompt in await _files(here, project) if prompt.name not in names)]


async def _files(here: Context, project: Project) -> list[Prompt]:
    try:
        there, _ = await checkouts.opened(here, project_id=project.slug)
    except PromptDockError:
        return []  # a project without a repository
    found: list[Prompt] = []
    for root in there.roots.values():
        found += await asyncio.to_thread(_in, root, project)
    return found


def _in(root: Root, project: Project) -> list[Prompt]:
    jail = Jail(root.path)
    try:
        entries = jail.list(FOLDER) if jail.exists(FOLDER) else []
    except PromptDockError:
        return []
    found = []
    for entry in [entry for entry in entries if entry.kind == "file" and entry.name.endswith(".md")][:MOST]:
        try:
            found.append(
                _parsed(
                    entry.name.removesuffix(".md"),
                    read_text(root, f"{FOLDER}/{entry.name}"),
                    project,
                    root.name,
                )
            )
        except PromptDockError as error:
            log.get().warning("A prompt cannot be read", file=entry.name, why=str(error))
    return found


def _parsed(name: str, text: str, project: Project, root: str) -> Prompt:
    import yaml

    head: Any = {}
    if match := _HEAD.fullmatch(text):
        try:
            head, text = yaml.safe_load(match[1]) or {}, match[2]
        except yaml.YAMLError as error:
            raise ToolError(f"the head of {name!r} is no YAML", str(error)[:200]) from None
    head = head if isinstance(head, dict) else {}
    listed = head.get("variables") or []
    variables = [item if isinstance(item, dict) else {"name": str(item)} for item in listed]
    return Prompt(
        project_id=project.id,
        name=name,
        category=str(head.get("category") or ""),
        tags=[str(tag) for tag in head.get("tags") or []],
        description=str(head.get("description") or ""),
        variables=variables,
        body=text,
        origin=Origin(foreign=f"the repository {root}").kept(),
    )
