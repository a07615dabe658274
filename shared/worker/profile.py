"""A profile: what makes an agent, as data. A folder with `profile.toml` and `prompt.md` is an agent."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.errors import ConfigurationError
from shared.guard.presets import Policies

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
    temperature: float | None = None
    tools: list[str] = []
    on_demand: bool = False  # core tools too, and all others can be loaded
    loadable: list[str] = []  # tools of its own that are not shown before they are loaded, on demand
    permissions: Policies = Policies(preset="locked")
    answer_tool: str | None = None  # the tool whose checked result is the answer
    rounds: int | None = None
    turns: Annotated[int, Field(ge=1, le=1024)] = 8  # side by side in one process
    task_minutes: Annotated[float, Field(gt=0)] = 30
    executor: Literal["loop", "claude-code"] = "loop"  # what carries out its tasks
    prompt: str = ""
    foreign: str = (
        ""  # what was read by the turn that changed these words; "" as long as they are the folder's
    )

    @property
    def called(self) -> str:
        """The name for people."""
        return self.title or self.name.capitalize()


def load(folder: Path) -> Profile:
    """Read an agent's folder; ConfigurationError says what is wrong with it."""
    try:
        data = tomllib.loads((folder / "profile.toml").read_text("utf-8"))
        prompt = (folder / "prompt.md").read_text("utf-8")
        return Profile.model_validate({"name": folder.name, **data, "prompt": prompt})
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigurationError(
            f"the agent in {folder} cannot be read", str(error), "it needs a profile.toml and a prompt.md"
        ) from error
