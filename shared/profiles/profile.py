"""A profile: what makes an agent, as data. A folder with `profile.toml` and `prompt.md` is an agent."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.errors import ConfigurationError
from shared.guard.permissions.presets import Policies
from shared.plain import complaints
from shared.store.records import RepoKind
from shared.store.sections import SHIPPED as LEAD
from shared.store.sections import Section, compose
from shared.tasks.defaults import Kinds

_SHIPPED = Path(__file__).resolve().parents[2] / "agents"
AgentName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]


class Profile(BaseModel):
    """One agent: how it takes work in, what it is told, what it may use, and where it stops."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: AgentName
    title: str = ""
    description: str = ""
    # chat: a person's conversation; consult: a question and its answer; coding: a task in a worktree
    kind: Literal["chat", "consult", "coding"] = "consult"
    model: str | None = None
    chosen_model: str | None = None  # that it switched to itself
    max_tokens: Annotated[int, Field(ge=1)] = 4096
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tools: list[str] = []
    on_demand: bool = False  # core tools too, and all others can be loaded
    loadable: list[str] = []  # tools of its own that are not shown before they are loaded, on demand
    permissions: Policies = Policies(preset="locked")
    answer_tool: str | None = None  # the tool whose checked result is the answer
    rounds: int | None = None
    turns: Annotated[int, Field(ge=1, le=1024)] = 8  # side by side in one process
    task_minutes: Annotated[float, Field(gt=0)] = 30
    # of a coding agent: the kinds of repositories whose tasks it takes
    repositories: Annotated[list[RepoKind], Field(min_length=1)] = ["frontend", "backend", "both"]
    plans: bool = False  # it takes tasks of type `plan` that name nobody
    executor: Literal["loop", "claude-code"] = "loop"  # what carries out its tasks
    # by name, or as in mcp.json; without it all that are configured where it is on demand, else none
    mcp_servers: list[str] | dict[str, dict[str, Any]] | None = None
    categories: list[str] = []  # whose tools it is shown, all of each
    budget: Annotated[float, Field(gt=0)] | None = None  # dollars of one turn
    row: str = ""  # the id of the row that holds it; "" for a folder's
    place: str = ""  # the folder that holds it
    lead: str = ""  # what stands before every profile
    prompt: str = ""
    sections: tuple[Section, ...] = ()
    foreign: str = (
        ""  # what was read by the turn that changed these words; "" as long as they are the folder's
    )

    @property
    def called(self) -> str:
        """The name for people."""
        return self.title or self.name.capitalize()

    @property
    def servers(self) -> list[str] | None:
        """The MCP servers whose tools it has, by name; None for all of them."""
        if self.mcp_servers is None:
            return None if self.on_demand else []
        return list(self.mcp_servers)

    @property
    def own_servers(self) -> dict[str, dict[str, Any]]:
        """The MCP servers that it brings itself, as they are written."""
        return self.mcp_servers if isinstance(self.mcp_servers, dict) else {}

    @property
    def system(self) -> str:
        """What it is told: the words before every profile, its own prompt, and its sections that are on."""
        parts = (self.lead, self.prompt, compose(self.sections))
        return "\n\n".join(part.strip() for part in parts if part.strip())

    @property
    def works_on(self) -> Kinds:
        """The kinds of repositories whose tasks it takes; none where it takes no tasks in worktrees."""
        return frozenset(self.repositories) if self.kind == "coding" else frozenset()


FILES = ("profile.toml", "prompt.md")


def find(home: Path, name: str) -> Path | None:
    """The folder of an agent: of a person's own in this home, which stand in for shipped ones, else shipped."""
    places = (home / "agents" / name, _SHIPPED / name)
    return next((folder for folder in places if (folder / "profile.toml").is_file()), None)


def _stood_in_for(folder: Path) -> dict[str, Any]:
    """Which tasks go to the shipped agent of that name: who stands in for it takes them, unless it says otherwise."""
    shipped = _SHIPPED / folder.name / "profile.toml"
    if folder == shipped.parent or not shipped.is_file():
        return {}
    said = tomllib.loads(shipped.read_text("utf-8"))
    return {name: said[name] for name in ("repositories", "plans") if name in said}


def load(folder: Path) -> Profile:
    """Read an agent's folder; ConfigurationError says what is wrong with it."""
    file = folder / "profile.toml"
    try:
        data = _stood_in_for(folder) | tomllib.loads(file.read_text("utf-8"))
        file = folder / "prompt.md"
        prompt = file.read_text("utf-8")
        fixed = {"prompt": prompt, "lead": LEAD, "row": "", "place": str(folder)}
        return Profile.model_validate({"name": folder.name, **data, **fixed})
    except FileNotFoundError:
        raise _wrong(
            folder, f"{file.name} is missing", "an agent is a profile.toml and a prompt.md in one folder"
        ) from None
    except OSError as error:
        raise _wrong(folder, f"{file.name}: {error.strerror or error}", "make it readable") from error
    except UnicodeDecodeError:
        raise _wrong(folder, f"{file.name} is not UTF-8", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _wrong(folder, f"profile.toml is not TOML: {error}", "correct that line") from None
    except ValidationError as error:
        found = complaints(error.errors(include_input=False, include_url=False))
        raise _wrong(
            folder,
            f"profile.toml: {'; '.join(found)}",
            f"correct it; the fields are: {', '.join(_FIELDS)} (docs/agents.md)",
        ) from None


_OURS = ("name", "chosen_model", "prompt", "foreign", "lead", "row", "place")
_FIELDS = [name for name in Profile.model_fields if name not in _OURS]


def _wrong(folder: Path, why: str, fix: str) -> ConfigurationError:
    return ConfigurationError(f"the agent in {folder} cannot be read", why, fix)
