"""Tools of category core: post a message; and the rule tools of before, which say what took their place."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result

category = tier("core")

_GONE = (
    "Rules are deprecated and are not kept any more. Write what should always hold into the project's "
    "profile (edit_project_profile) or a note (write_note); what should happen by itself is a hook (create_hook)."
)


@category.tool(
    effect="keyed",
    detail=lambda arguments: str(arguments.get("channel_id") or "here"),
    touches=touching("records", channel_id="address"),
)
async def send_message(
    here: Context,
    content: Annotated[str, Field(min_length=1, max_length=20_000)],
    channel_id: str | None = None,
) -> Result:
    """Post a message to a Discord channel by its id; without one, into this conversation."""
    if channel_id is None:
        await here.say(content)
        return {"sent": True, "to": "this conversation"}
    if not channel_id.isdigit() or len(channel_id) > 20:
        raise ToolError(f"{channel_id[:50]!r} is no id of a Discord channel", "ids are numbers", "look it up")
    if here.cluster is None:
        raise ToolError("the message was not sent", "no cluster is at hand", "use it in a conversation")
    heard = await here.cluster.post(f"discord:{channel_id}", content, here.step_id)
    if not heard:
        raise ToolError(
            "the message was not sent",
            f"no gateway listens on the channel {channel_id}, and nothing is kept for one",
            "start the gateway and send it again, or say it here",
        )
    return {"sent": True, "to": channel_id, "listening": heard}


# Taken from whoever still gives it, and not shown to anybody.
Ignored = SkipJsonSchema[str | None]


def _deprecated(**more: object) -> Result:
    return {"deprecated": True, **more, "message": _GONE}


@category.tool(effect="pure", touches=touching("records"))
async def browse_rules(here: Context, project_id: Ignored = None) -> Result:
    """Deprecated: there are no rules any more. Read the project's profile or notes (memory_search) instead."""
    return _deprecated(rules=[])


@category.tool(effect="pure", touches=touching("records"))
async def load_rule(here: Context, id: Ignored = None) -> Result:
    """Deprecated: there are no rules any more. Read the project's profile or notes (memory_search) instead."""
    return _deprecated()


@category.tool(effect="pure", touches=touching("records"))
async def save_rule(
    here: Context, id: Ignored = None, content: Ignored = None, project_id: Ignored = None
) -> Result:
    """Deprecated, saves nothing: use edit_project_profile or write_note, and create_hook for what happens by itself."""
    return _deprecated(saved=False)


@category.tool(effect="pure", touches=touching("records"))
async def delete_rule(here: Context, id: Ignored = None) -> Result:
    """Deprecated: there are no rules any more. A note is removed with delete_note."""
    return _deprecated(deleted=False)
