"""Category members: what an agent is told, as it is sent, and the words that stand before every profile."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.sections import SHIPPED
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.detail import digest
from shared.tools.registry import Category, Result

category = Category("members", "Make agents, change them, give them channels, and look at their prompts")

SCOPE, GLOBAL = "prompts", "global"  # the setting with the words that people put before every profile
GlobalText = Annotated[str, Field(max_length=20_000)]


def _written(arguments: dict[str, Any]) -> str:
    return f"global:{digest(arguments)}"


@category.tool(effect="idempotent", detail=_written, touches=touching("agent"))
async def set_global_prompt(here: Context, text: GlobalText) -> Result:
    """Replace the words that stand before every agent's own prompt, from the next turn on; empty: the shipped ones."""
    before = await lookup.setting(here.store, SCOPE, GLOBAL)
    origin = here.origin.over(before.get("origin") or here.origin.kept()).kept()
    kept = {"text": text.strip() or SHIPPED, "origin": origin}
    await lookup.keep_setting(here.store, SCOPE, GLOBAL, kept)
    return {
        "updated": GLOBAL,
        "before": before.get("text", SHIPPED),
        "message": "it holds from the next turn on",
    }


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments.get("agent_id", "")), touches=touching("records")
)
async def show_prompt(here: Context, agent_id: str) -> Result:
    """The prompt of an agent or profile as it is sent with its next turn: its parts, tools, model and permissions."""
    if here.services is None:
        raise ToolError("no prompt can be composed here", "this call has no worker", "ask Chatter for it")
    return await here.services.show_prompt(agent_id)
