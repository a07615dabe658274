"""`tail` and `publish`: the channels themselves."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from gateways.cli import screen
from shared.bus import reading
from shared.client import Client
from shared.client.text.traffic import in_words
from shared.client.views import status
from shared.errors import BadMessage, UsageError
from shared.settings import Settings

_WATCHED = ("human-input", "chatter-output", "agent:*", "home:*", "broadcast")
_BEATS = "agent:status"
_CHATTER = "chatter"
_OURS = ("chatter-output", _BEATS)  # where the workers sign


async def tail(settings: Settings, channels: list[str], as_json: bool) -> None:
    """Until it is interrupted; heartbeats only where they are asked for. In words on a terminal."""
    words = sys.stdout.isatty() and not as_json
    async with Client(settings) as client:
        await client.reach()
        screen.talk(f"listening on {' '.join(channels or _WATCHED)}; Ctrl-C ends it")
        async with contextlib.aclosing(client.tail(channels or _WATCHED)) as passing:
            async for channel, data in passing:
                if not channels and channel == _BEATS:
                    continue
                message = _read(data)
                unsigned = channel in _OURS and not _signed(client, channel, message)
                if words:
                    screen.out(("[unsigned] " if unsigned else "") + in_words(channel, message))
                else:
                    more = {"unsigned": True} if unsigned else {}
                    screen.record({"channel": channel, "message": message, **more})


def _signed(client: Client, channel: str, message: Any) -> bool:
    return isinstance(message, dict) and client.signer.signed(client.names.channel(channel), message)


def _read(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def publish(settings: Settings, channel: str, message: str, as_json: bool) -> None:
    """Post or publish it; UsageError for what nobody could read."""
    text = screen.typed(message)
    async with Client(settings) as client:
        try:
            content = reading.read(text.encode())
            await client.reach()
            sent = await client.publish(channel, content)
            unread = await _unread(client, channel) if sent.outcome == "accepted" else ""
        except BadMessage as error:
            raise UsageError(error.what, error.why, error.fix) from error
    if as_json:
        screen.document(
            "publish",
            id=sent.id,
            outcome=sent.outcome,
            waiting=sent.waiting,
            heard=sent.heard,
            channel=channel,
        )
        return
    if sent.id:  # a plain PUBLISH has none
        screen.out(sent.id)
    screen.talk(
        {
            "accepted": f"accepted; {sent.waiting} were waiting before it",
            "known": "accepted before: a message of this id is known",
            "kept": "Redis is away: kept in the outbox",
            "heard": f"published; {sent.heard} heard it, nobody acknowledges it",
        }[sent.outcome]
    )
    if unread:
        screen.talk(f"nobody is here as {unread}: the message waits until somebody is (promptdock status)")


async def _unread(client: Client, channel: str) -> str:
    """The agent whose inbox took the message, where nobody is there to read it."""
    agent = _CHATTER if channel == "human-input" else channel.removeprefix("agent:")
    return "" if await status.serves(client, agent) else agent
