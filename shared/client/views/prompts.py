"""The prompt of an agent as it is sent, part by part, and the channels that are bound: as all surfaces show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.client.text.safe import line

_HEAD = 80  # characters of a heading's line


@dataclass(frozen=True)
class PromptPart:
    """One part, and whether it is sent."""

    name: str
    text: str
    enabled: bool

    @property
    def heading(self) -> str:
        """The line above it."""
        told = f"── {line(self.name, _HEAD - 20)}{'' if self.enabled else ' (off: it is not sent)'} "
        return told + "─" * max(0, _HEAD - len(told))


@dataclass(frozen=True)
class AgentPrompt:
    """What an agent is told, and what it works with."""

    agent: str
    facts: list[tuple[str, str]]
    parts: list[PromptPart]
    beside: str

    def text(self) -> str:
        """All of it, for a terminal or a page."""
        width = max((len(name) for name, _ in self.facts), default=0)
        told = [f"{name:{width}}  {value}" for name, value in self.facts]
        for part in self.parts:
            told += ["", part.heading, "", part.text]
        return "\n".join([*told, "", f"Beside it are sent: {self.beside}."])


def prompt(result: dict[str, Any]) -> AgentPrompt:
    """What show_prompt found, to be shown."""
    limits = {name: value for name, value in dict(result.get("limits") or {}).items() if value is not None}
    facts = [
        ("agent", str(result["agent_id"])),
        ("profile", f"{result['profile_id']} (a {result['kept']})"),
        ("model", str(result["model"])),
        ("permissions", str(result["permissions"])),
        ("tools", ", ".join(result["tools"]) or "none"),
        ("limits", ", ".join(f"{name} {value}" for name, value in limits.items()) or "none"),
        ("length", f"{result['characters']} characters"),
    ]
    if read := result.get("made_after_reading"):
        facts.append(("written", f"after reading {line(str(read), 200)}"))
    parts = [PromptPart(str(p["name"]), str(p["text"]), bool(p["enabled"])) for p in result["parts"]]
    return AgentPrompt(str(result["agent_id"]), facts, parts, str(result["beside"]))


def bound(channel: dict[str, Any]) -> str:
    """To what a channel is bound, in words."""
    if agent := channel.get("agent"):
        told = f"agent {agent}"
    elif note := channel.get("note"):
        told = f"note {note}"
    else:
        told = ""
    project = channel.get("project_id")
    return " of ".join(part for part in (told, f"project {project}" if project else "") if part)
