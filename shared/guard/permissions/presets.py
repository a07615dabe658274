"""The policies that ship with the project, by name, and policies of one's own made from them."""

from __future__ import annotations

import functools
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import ConfigurationError
from shared.guard.permissions.policy import Policy, policy

Preset = Literal["open", "standard", "guarded", "locked", "builder"]

# By what a call touches (`shared/guard/permissions/touching.py`), never by the names of tools.
_READ = "tool:@read:.*"
_ORDINARY = "tool:@change:(files|records)"  # the other changes are deletions and merges
_COMMAND = "tool:@widen:command"
_ANY = "tool:@.*"


class Policies(BaseModel):
    """Permissions as a profile writes them: a preset's name, or a table with rules of one's own before it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Preset | None = None
    deny: list[str] = []
    allow: list[str] = []
    ask: list[str] = []
    approval_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = 15.0  # that a person has for an answer

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        return {"preset": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _usable(self) -> Policies:
        try:
            policy("own", deny=self.deny, allow=self.allow, ask=self.ask)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return self

    def make(self, name: str, confined: bool) -> Policy:
        """The policy; `confined` says that shell commands run in a sandbox of their own without network."""
        if not (self.deny or self.allow or self.ask):
            return preset(self.preset, confined) if self.preset else policy(name)
        behind = preset(self.preset, confined) if self.preset else None
        called = f"{self.preset} with rules of {name}" if self.preset else name
        return policy(called, deny=self.deny, allow=self.allow, ask=self.ask, behind=behind)


def _rules(name: str, confined: bool) -> dict[str, list[str]]:
    match name:
        case "open":
            return {"allow": ["(?s)tool:.*"]}
        case "standard":
            return {"allow": [_READ, _ORDINARY], "ask": [_ANY]}
        case "guarded":  # whatever stays here: also deletions and merges, commands, and agents as they are
            return {"allow": [_READ, "tool:@change:.*", "tool:@widen:(command|agent)"], "ask": [_ANY]}
        case "builder":
            return {"allow": [_READ, _ORDINARY, *([_COMMAND] if confined else [])], "ask": [_ANY]}
        case _:
            return {"allow": [_READ]}


@functools.cache
def preset(name: str, confined: bool = False) -> Policy:
    """A shipped policy; ConfigurationError for a name that none has."""
    if name not in get_args(Preset):
        raise ConfigurationError(
            f"there is no permission profile {name!r}",
            f"there are: {', '.join(get_args(Preset))}",
            "name one of them",
        )
    rules = _rules(name, confined)
    return policy(
        name, allow=rules["allow"], ask=rules.get("ask", []), unguarded=name == "open", shipped=True
    )
