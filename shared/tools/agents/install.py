"""Tools of category agent: what a profile needs on this machine, and profiles as YAML that travel.

A profile's `install` names packages: {npm: […], pip: […], commands: […]}. They go into a folder of the
profile's own in the data folder; no script of a package is run while it is installed.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import ToolError
from shared.guard.permissions.touching import TouchKind, When, touching
from shared.guard.processes import starts
from shared.guard.processes.process import environment, run
from shared.plain import complaints
from shared.store.origin import Origin
from shared.store.records import ProfileRow
from shared.tools import checkouts, lookup
from shared.tools.agents import profiles, shape
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.git import pulls
from shared.tools.registry import Result

if TYPE_CHECKING:
    import urllib.request

category = tier("agent")

SECONDS = 600.0
LARGEST = 256 * 1024  # bytes of a profile that comes from elsewhere
_NAMES = {
    "npm": re.compile(r"(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*(@\^?~?[\w.-]+)?", re.ASCII),
    "pip": re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?((==|>=|<=|~=)[\w.!+*-]+)?", re.ASCII),
    "commands": re.compile(r"[\w.+-]+", re.ASCII),
}
_GIST = re.compile(r"https://gist\.github\.com/([\w-]+)/([0-9a-f]{8,64})/?", re.ASCII)
_FIELDS = {"id", "name", "description", "model", "permission_mode", "allowed_tools", "mcp_servers"} | {
    "system_prompt_suffix", "install", "sections", "categories", "permissions", "limits", "budget",
    "temperature", "max_tokens",
}  # fmt: skip
ProfileSource = Annotated[str, Field(min_length=1, max_length=LARGEST)]


def _profile(arguments: dict[str, Any]) -> str:
    return str(arguments.get("profile_id") or arguments.get("id") or "")


def _is_address(source: str) -> bool:
    return "://" in source[:12]


def _brought(arguments: dict[str, Any]) -> str:
    """The profile's id, and where it comes from, or a name for its text."""
    source = str(arguments.get("source") or "").strip()
    return words(_profile(arguments), source if _is_address(source) else digest(arguments))


def _sent(arguments: dict[str, Any]) -> str:
    return words(_profile(arguments), "gist" if arguments.get("create_gist") else "")


def _reaches(source: Any) -> tuple[TouchKind, ...]:
    return ("address",) if _is_address(str(source).strip()) else ()


def manifest(given: Any) -> dict[str, list[str]]:
    """What is to be installed, checked: plain names with at most a version."""
    if not isinstance(given, dict) or not set(given) <= set(_NAMES):
        raise ToolError("the install manifest cannot be used", f"it has {', '.join(_NAMES)}, lists of names")
    for kind, names in given.items():
        wrong = [name for name in names if not isinstance(name, str) or not _NAMES[kind].fullmatch(name)]
        if not isinstance(names, list) or wrong or len(names) > 50:
            text = ", ".join(repr(name)[:60] for name in wrong[:5])
            raise ToolError("the install manifest cannot be used", f"{kind}: {text or 'too many names'}")
    return {kind: list(names) for kind, names in given.items()}


def _folder(here: Context, row: ProfileRow) -> Path:
    return checkouts.repos(here).home / "profiles" / row.slug


def _bare(kind: str, name: str) -> str:
    """The name without its version."""
    return re.sub(r"(?<=.)@.*", "", name) if kind == "npm" else re.split(r"[\[=<>~]", name, maxsplit=1)[0]


def _missing(folder: Path, wanted: dict[str, list[str]]) -> dict[str, list[str]]:
    there: dict[str, Callable[[str], bool]] = {
        "npm": lambda name: (folder / "node_modules" / name / "package.json").is_file(),
        "pip": lambda name: _is_installed(folder, name),
        "commands": lambda name: starts.program(name) is not None,
    }
    found = {
        kind: [name for name in names if not there[kind](_bare(kind, name))] for kind, names in wanted.items()
    }
    return {kind: names for kind, names in found.items() if names}


def _is_installed(folder: Path, name: str) -> bool:
    plain = re.sub(r"[-_.]+", "-", name).lower()
    for path in ([str(folder / "python")], sys.path):
        for found in importlib.metadata.distributions(path=path):
            if re.sub(r"[-_.]+", "-", found.metadata["Name"] or "").lower() == plain:
                return True
    return False


@category.tool(effect="pure", detail=_profile, touches=touching("records"))
async def check_profile(here: Context, profile_id: str) -> Result:
    """Validate an agent profile's install dependencies."""
    row = await lookup.profile(here.store, profile_id)
    missing = await asyncio.to_thread(_missing, _folder(here, row), manifest(row.install))
    commands = [str(server["command"]) for server in row.mcp_servers.values() if server.get("command")]
    absent = sorted({name for name in commands if starts.program(name) is None})
    result: Result = {"profile_id": row.slug, "valid": not missing and not absent, "missing": missing}
    result |= {"mcp_commands_missing": absent} if absent else {}
    try:
        shape.check(row, here.registry)
    except ToolError as error:
        result |= {"valid": False, "wrong": error.what, "why": error.why}
    return result | profiles.unknown(here, row.tools)


@category.tool(effect="idempotent", detail=_profile, touches=touching("code", "address"))
async def install_profile(here: Context, profile_id: str) -> Result:
    """Install missing npm/pip dependencies for a profile's install manifest."""
    row = await lookup.profile(here.store, profile_id)
    folder = _folder(here, row)
    missing = await asyncio.to_thread(_missing, folder, manifest(row.install))
    failed: dict[str, str] = {}
    for kind in ("npm", "pip"):
        names = missing.get(kind, [])
        if names and (why := await _install(kind, names, folder)):
            failed[kind] = why
    left = await asyncio.to_thread(_missing, folder, manifest(row.install))
    installed = [name for kind, names in missing.items() for name in names if name not in left.get(kind, [])]
    result: Result = {"profile_id": row.slug, "installed": installed, "missing": left}
    if failed:
        raise ToolError(
            f"not everything of profile {row.slug!r} was installed",
            "; ".join(f"{kind}: {why}" for kind, why in failed.items()),
            "correct its install manifest, or install it by hand",
        )
    return result | ({"warning": "commands are installed by hand"} if left.get("commands") else {})


async def _install(kind: str, names: list[str], folder: Path) -> str:
    """Why it failed, or nothing."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    if kind == "npm":
        words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    else:
        target = ["--target", str(folder / "python"), "--upgrade", "--only-binary", ":all:"]
        words = starts.command("pip", "install", "--quiet", "--disable-pip-version-check", *target)
    # A home of its own: another user's settings of npm or pip may lie in /tmp.
    home = folder / "home"
    await asyncio.to_thread(home.mkdir, mode=0o700, exist_ok=True)
    done = await run([*words, "--", *names], cwd=folder, env=environment(home), timeout=SECONDS)
    if done.ok:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[:500] or f"it ended with {done.exit_code}"


@category.tool(effect="once", detail=_sent, touches=touching("records", create_gist="address"))
async def export_profile(here: Context, profile_id: str, create_gist: bool = False) -> Result:
    """Export an agent profile as YAML; values of servers' variables are left out. `create_gist` needs gh."""
    import yaml

    row = await lookup.profile(here.store, profile_id)
    content = {key: value for key, value in profiles.shown(row).items() if value not in (None, "", [], {})}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    result: Result = {"profile_id": row.slug, "yaml": text}
    if create_gist:
        result["gist_url"] = await pulls.gist(f"{row.slug}.yaml", text)
    return result


@category.tool(
    effect="keyed",
    detail=_brought,
    touches=touching("permission", source=When(("address",), _reaches)),
)
async def import_profile(
    here: Context,
    source: ProfileSource,
    id: str | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> Result:
    """Import an agent profile from YAML text or a GitHub gist URL."""
    text = await asyncio.to_thread(_fetched, source.strip()) if _is_address(source.strip()) else source
    content = _parsed(text)
    if extra := sorted(set(content) - _FIELDS):
        raise ToolError("this profile cannot be used", f"unknown fields: {', '.join(map(str, extra[:5]))}")
    row = _row(here, content, id, name)
    shape.check(row, here.registry)
    if "://" in source[:12]:
        row = row.model_copy(update={"origin": replace(here.origin, foreign=source.strip()[:200]).kept()})
    old = await lookup.first(here.store, ProfileRow, slug=row.slug)
    if old is not None and old.id != row.id:
        if not overwrite:
            raise ToolError(f"there is a profile {row.slug!r} already", "", "give another id, or overwrite")
        fields = row.model_dump(exclude={"id", "created_at", "updated_at", "version", "slug"})
        fields["origin"] = Origin.of(row.origin).over(old.origin).kept()
        await lookup.change(here.store, old, **fields)
    else:
        await profiles.insert(here, row)
    result: Result = {"imported": row.slug, "name": row.name, "overwritten": bool(old and old.id != row.id)}
    return result | profiles.unknown(here, row.tools)


def _row(here: Context, content: dict[str, Any], id: str | None, name: str | None) -> ProfileRow:
    tools = content.get("allowed_tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, str) and tool for tool in tools):
        raise ToolError("this profile cannot be used", "allowed_tools is a list of names")
    called = str(name or content.get("name") or content.get("id") or "")
    suffix = str(content.get("system_prompt_suffix") or "")
    servers = content.get("mcp_servers") or {}
    if not isinstance(servers, dict):
        raise ToolError("this profile cannot be used", "mcp_servers are servers by name")
    more = _more(content)
    parts = profiles.kept_sections(more.sections)
    return ProfileRow(
        id=lookup.identity(here, "profile"),
        slug=profiles.slug_of(str(id or content.get("id") or called)),
        name=called[:200],
        description=str(content.get("description") or "")[:50_000],
        model=str(content["model"]) if content.get("model") else None,
        permission_profile=profiles.mode_of(str(content.get("permission_mode") or "standard")),
        tools=tools[:300],
        mcp_servers=profiles.servers_of(servers),
        sections=[
            *parts,
            *([{"name": profiles.SUFFIX, "text": suffix[:50_000], "enabled": True}] if suffix else []),
        ],
        categories=list(more.categories or []),
        permissions=profiles.kept_rules(more.permissions),
        limits=profiles.kept_limits(more.limits),
        budget=more.budget,
        temperature=more.temperature,
        max_tokens=more.max_tokens,
        install=manifest(content.get("install") or {}),
        origin=here.origin.kept(),
    )


class _More(BaseModel):
    """Fields of a profile from elsewhere, as create_profile takes them."""

    model_config = ConfigDict(extra="ignore")

    sections: profiles.Sections | None = None
    categories: profiles.Tools | None = None
    permissions: profiles.RuleLists | None = None
    limits: shape.ProfileLimits | None = None
    budget: profiles.Dollars | None = None
    temperature: profiles.Temperature | None = None
    max_tokens: profiles.AnswerTokens | None = None


def _more(content: dict[str, Any]) -> _More:
    try:
        return _More.model_validate(content)
    except ValidationError as error:
        found = complaints(error.errors(include_input=False, include_url=False))
        raise ToolError("this profile cannot be used", "; ".join(found)[:500], "correct it") from None


def _parsed(text: str) -> dict[str, Any]:
    import yaml

    try:
        # Aliases can make a small text a huge one.
        if any(isinstance(token, yaml.AnchorToken | yaml.AliasToken) for token in yaml.scan(text)):
            raise ToolError("this profile cannot be used", "anchors and aliases of YAML are not taken")
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ToolError("this profile is no YAML", str(error)[:200]) from None
    if not isinstance(content, dict):
        raise ToolError("this profile cannot be used", "it is no mapping of fields")
    return content


def _fetched(url: str) -> str:
    """The text of a gist; no other address is asked."""
    match = _GIST.fullmatch(url)
    if match is None:
        raise ToolError(
            f"{url[:100]!r} is no gist",
            "profiles come from https://gist.github.com/NAME/ID",
            "or give the YAML",
        )
    raw = f"https://gist.githubusercontent.com/{match[1]}/{match[2]}/raw"
    try:
        with _opener().open(raw, timeout=20) as answer:
            data: bytes = answer.read(LARGEST + 1)
    except OSError as error:
        raise ToolError("the gist cannot be read", str(error)[:200], "give the YAML itself") from None
    if len(data) > LARGEST:
        raise ToolError("the gist is too large", f"more than {LARGEST} bytes", "")
    return data.decode("utf-8", "replace")


def _opener() -> urllib.request.OpenerDirector:
    """Reads an address, and follows no redirect."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_arguments: Any) -> None:
            return None

    return urllib.request.build_opener(NoRedirect)
