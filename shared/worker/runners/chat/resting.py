"""A conversation in which nobody spoke for long: it is summed up, saved and cleared, and its person is told.

Nobody asked for it, and so says its line of the audit log.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared import log
from shared.conversation import sessions
from shared.conversation.context import SHORT, Parting, WindowChange
from shared.conversation.past import History
from shared.errors import StoreUnavailable
from shared.store.records import Audit, Session
from shared.store.row import derived
from shared.turns import threads
from shared.turns.queue import Completion
from shared.turns.turn import Turn
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.chat.keeping import WindowKeeper
from shared.worker.runners.chat.output import TurnOutput

_BY = "PromptDock, after {how_long} without a word,"
_TOLD = (
    "Nothing was said for {how_long}, so this conversation was saved as {id} and cleared. "
    "To go on where it was: promptdock sessions restore {id}, in a chat /restore {id}."
)


async def rest(agent_runner: AgentRunner, turn: Turn, output: TurnOutput, past: History) -> None:
    """Put the conversation to rest, unless somebody has spoken since that was asked for."""
    turn.alone = True
    row = await _session(agent_runner, turn)
    idle = timedelta(milliseconds=agent_runner.resources.settings.session_idle_ms)
    if row is None or not idle or not await _rested(agent_runner, turn, row, past, idle):
        await leave(turn)
        return
    how_long = _in_words(idle)
    change = WindowChange("save", str(derived("snapshot", turn.id)), "")
    keeper = WindowKeeper(agent_runner, turn, past, [], _BY.format(how_long=how_long), None)
    if keeper.empty:
        await leave(turn)
        return
    parting = await keeper.part([change, WindowChange("clear")])
    parting.rows.append(_audit(agent_runner, turn, change.id, parting))
    output.who = {"user_id": row.user_id or "", "roles": []}
    log.get().info("A conversation was put to rest", of=turn.session)
    told = _TOLD.format(how_long=how_long, id=change.id[:SHORT])
    await output.close("complete", told, past=past, parting=parting, result=parting.result)


async def leave(turn: Turn, dead: str = "") -> None:
    """Nothing is done, and nobody is told."""
    await turn.finish(Completion(dead=dead))


async def _session(agent_runner: AgentRunner, turn: Turn) -> Session | None:
    rows = await agent_runner.resources.store.select(Session, {"key": turn.session}, limit=1)
    return rows[0] if rows else None


async def _rested(
    agent_runner: AgentRunner, turn: Turn, row: Session, past: History, idle: timedelta
) -> bool:
    """Whether nobody has spoken for so long: by the window itself, which knows it first, and in other threads."""
    now = datetime.fromtimestamp(turn.now() / 1000, UTC)
    if past.window and now - datetime.fromtimestamp(past.window[-1]["at"] / 1000, UTC) < idle:
        return False
    try:
        last = await sessions.last_word(agent_runner.resources.store, row)
        connection = agent_runner.resources.connection
        said = await threads.last_word(connection.bus, connection.names, row.channel) if row.channel else None
        return now - max(last, said or last) >= idle
    except StoreUnavailable:
        return False


def _audit(agent_runner: AgentRunner, turn: Turn, saved: str, parting: Parting) -> Audit:
    agent = agent_runner.profile.name
    return Audit(
        id=derived("audit", agent, turn.id),
        agent=agent,
        action="tool:clear_context:idle",
        decision="allow",
        person=None,
        session_id=turn.session,
        turn_id=turn.id,
        detail={"by": "idle", "saved": saved, "messages": parting.result.get("messages")},
    )


def _in_words(time: timedelta) -> str:
    """A length of time: `3 hours`, `90 minutes`, `2 seconds`."""
    seconds = max(1, round(time.total_seconds()))
    for size, word in ((3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            return f"{seconds // size} {word}{'' if seconds == size else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
