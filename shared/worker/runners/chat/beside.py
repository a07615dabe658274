"""What goes on beside a turn for its person: other threads that are active, and what agents work on.

It stands in the newest message, with the rest of the situation: what came before stays byte for byte.
"""

from __future__ import annotations

import contextlib

from shared import people
from shared.bus.activity import doing
from shared.errors import PromptDockError
from shared.turns import threads
from shared.turns.threads import Thread
from shared.turns.turn import Turn
from shared.worker.connection import Connection

_SOME = 10  # that are named; of the others it is said how many there are
_MINUTE = 60_000


async def lines(connection: Connection, turn: Turn, user: str) -> list[str]:
    """Lines for the situation; none where nothing goes on, or where that cannot be told now."""
    with contextlib.suppress(PromptDockError):
        bus, names = connection.bus, connection.names
        found = await threads.listed(bus, names, user) if turn.thread.others else []
        # What is said unsigned in a person's name stands in no request of theirs.
        mine = [thread for thread in found if people.signs(user) == people.signs(thread.user)]
        others = [thread for thread in mine if thread.active and thread.session != turn.session]
        running = _running(connection, turn, user)
        return [
            *_told("Other threads that are active now:", [_thread(one, turn, user) for one in others]),
            *_told("Running now:", running),
        ]
    return []


def _running(connection: Connection, turn: Turn, user: str) -> list[str]:
    """What agents do for this person in processes of their own: tasks, by their ids."""
    return [
        f"{card['agent']} works on task {activity.task}, since {max(0, turn.now() - activity.since) // _MINUTE} min"
        for card in connection.presence.at_hand()
        for activity in doing(card)
        if activity.kind == "task" and activity.task and activity.user == user
    ]


def _thread(thread: Thread, turn: Turn, user: str) -> str:
    where = "" if thread.channel == turn.thread.channel else f" of {thread.channel}"
    whose = "" if thread.user == user else f", {thread.user}'s"
    return f"#{thread.number}{where} ({thread.state}{whose}): {thread.words}"


def _told(title: str, found: list[str]) -> list[str]:
    if not found:
        return []
    more = [f"- and {len(found) - _SOME} more"] if found[_SOME:] else []
    return ["\n".join([title, *(f"- {one}" for one in found[:_SOME]), *more])]
