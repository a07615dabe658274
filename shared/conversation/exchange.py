"""A conversation outside of this cluster: the JSON document that is exported and imported, and Markdown for reading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shared.errors import UsageError

RESTORED = "restored"  # the source of a message that was loaded again where it had been said
NOTED = "noted"  # the source of what the model is told was done; nobody said it
_FORM = "{title?, messages: [{role, content, id?, user_name?, timestamp?}]}"
_KINDS = {
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "nothing",
}
_TOLD = 3  # faults of a file that are named


def _text(content: Any) -> Any:
    """A list of blocks is what other programs write for a text."""
    if not isinstance(content, list):
        return content
    found = [block.get("text") if isinstance(block, dict) else block for block in content]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found):
        raise ValueError("only text can be imported: a string, or blocks with a `text`")
    return "\n".join(texts)


def _zoned(moment: datetime) -> datetime:
    """A time that names no zone is meant in UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


class SessionLine(BaseModel):
    """One message: who said it, and what."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["user", "assistant", "system", "tool"]
    content: Annotated[str, BeforeValidator(_text)]
    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    user_name: Annotated[str, Field(max_length=200)] | None = None
    timestamp: Annotated[datetime, AfterValidator(_zoned)] | None = None


class SessionDocument(BaseModel):
    """A whole conversation, the oldest message first."""

    model_config = ConfigDict(extra="ignore")

    title: Annotated[str, Field(max_length=500)] = ""
    messages: Annotated[list[SessionLine], Field(min_length=1)]

    @property
    def said(self) -> list[SessionLine]:
        """Those in which something is said: no provider takes an empty one."""
        return [line for line in self.messages if line.content.strip()]


def parse(text: str) -> SessionDocument:
    """The document that a file holds; UsageError says what is wrong with it, and where."""
    try:
        given = json.loads(text)
        if not isinstance(given, dict):
            what = f"the file holds {_KINDS[type(given)]}, and no object with `messages`"
            raise UsageError("this is no conversation that can be imported", what, _FORM)
        document = SessionDocument.model_validate(given)
    except ValidationError as error:
        faults = error.errors()
        told = "; ".join(_fault(fault) for fault in faults[:_TOLD])
        more = f"; and {len(faults) - _TOLD} more" if faults[_TOLD:] else ""
        raise UsageError("this is no conversation that can be imported", told + more, _FORM) from None
    except (ValueError, RecursionError) as error:
        raise UsageError("this is no JSON that can be read", str(error)[:200], _FORM) from None
    if not document.said:
        raise UsageError("this is no conversation that can be imported", "all its messages are empty", _FORM)
    return document


def _fault(fault: Any) -> str:
    match fault["loc"]:
        case ("messages", int(number), *rest):
            where = " ".join([f"message {number + 1}", *(str(part) for part in rest)])
        case where_else:
            where = ".".join(map(str, where_else)) or "the file"
    return f"{where}: {fault['msg']}"


def as_json(title: str, messages: Sequence[SessionLine]) -> str:
    """The document, which `parse` reads again."""
    found = {"title": title} if title else {}
    kept = [line.model_dump(mode="json", exclude_none=True) for line in messages]
    return json.dumps({**found, "messages": kept}, ensure_ascii=False, indent=2) + "\n"


def as_markdown(title: str, messages: Sequence[SessionLine]) -> str:
    """The same for reading: a heading for each message, its words below."""
    parts = [f"# {title}"] if title else []
    for line in messages:
        at = f" · {line.timestamp:%Y-%m-%d %H:%M} UTC" if line.timestamp else ""
        parts += [f"## {line.user_name or line.role}{at}", line.content.strip()]
    return "\n\n".join(parts) + "\n"
