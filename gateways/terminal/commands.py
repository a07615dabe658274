"""What begins with a slash: looking at things without asking Chatter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateways.terminal.conversation import Conversation
from shared.errors import PromptDockError
from shared.visitor import look, tasks
from shared.visitor.plain import line

Command = Callable[[Conversation, str], Awaitable[str]]
LEAVE = ("/quit", "/exit")


async def _help(_here: Conversation, _rest: str) -> str:
    return "\n".join(
        [
            *(f"{f'{name} {what}'.strip():16} {told}" for name, (what, told, _run) in COMMANDS.items()),
            f"{'/quit':16} leave; the agents go on",
            "Ctrl-C stops the turn that runs, twice leaves.",
        ]
    )


async def _tasks(here: Conversation, _rest: str) -> str:
    rows = await tasks.tasks(here.visitor, limit=20)
    told = [f"{r['id']:20} {r['status']:12} {r['assignee'] or '':10} {line(r['title'], 60)}" for r in rows]
    return "\n".join(told) or "There are no tasks yet."


async def _task(here: Conversation, rest: str) -> str:
    card = await tasks.task(here.visitor, rest or await _newest(here))
    told = [f"{card['id']}  {card['status']}  {card['title']}"]
    told += [f"  {event['at'][11:19]} {event['event']} → {event['to']}" for event in card["history"]]
    for result in card["results"]:
        told.append(f"{result['verified']}: {result['branch'] or 'no branch'}")
        told += [f"  commit {commit[:12]}" for commit in result["commits"]]
        told += [f"  exit {run['exit_code']}  {run['command']}" for run in result["commands"]]
        told += [result["diff_stat"].rstrip()] if result["diff_stat"] else []
        told += [f"error: {result['error']}"] if result["error"] else []
    return "\n".join(told)


async def _diff(here: Conversation, rest: str) -> str:
    return await tasks.diff(here.visitor, rest or await _newest(here))


async def _newest(here: Conversation) -> str:
    rows = await tasks.tasks(here.visitor, limit=1)
    if not rows:
        raise PromptDockError("there are no tasks yet", "", 'assign one, e.g. "Build a button on the page"')
    return str(rows[0]["id"])


async def _status(here: Conversation, _rest: str) -> str:
    state = await look.status(here.visitor)
    redis = state["redis"]
    waiting = sum(state["queues"].values())
    model = "DEMO (scripted)" if state["demo"] else state["model"] or "unknown"
    return "\n".join(
        [
            f"PromptDock {state['version']}, {redis['server']} {redis['version']} on {redis['address']}",
            f"model {model}, store {state['store'] or 'unknown'}, home {state['home']}",
            f"{len(state['agents'])} workers, {waiting} messages not ended, {here.visitor.kept} not sent",
        ]
    )


async def _agents(here: Conversation, _rest: str) -> str:
    state = await look.status(here.visitor)
    told = []
    for card in state["agents"]:
        does = line(str(card.get("current") or card.get("about", "")), 60)
        told.append(f"{card['agent']:12} {card.get('status', ''):9} {does}")
    gone = ("unannounced" if name in state["unannounced"] else "offline" for name in state["offline"])
    told += [f"{name:12} {how}" for name, how in zip(state["offline"], gone, strict=True)]
    return "\n".join(told) or "Nobody is here."


async def _cost(here: Conversation, _rest: str) -> str:
    spent = here.spent
    return f"This chat: {spent.turns} turns, {spent.input} tokens in, {spent.output} out, ${spent.cost:.4f}"


async def _stop(here: Conversation, rest: str) -> str:
    await here.stop(rest)
    return ""


COMMANDS: dict[str, tuple[str, str, Command]] = {
    "/help": ("", "this list", _help),
    "/tasks": ("", "the newest tasks", _tasks),
    "/task": ("[ID]", "one task, the newest by default", _task),
    "/diff": ("[ID]", "what a task changed", _diff),
    "/status": ("", "on what the cluster stands, and what waits", _status),
    "/agents": ("", "who is here, and what they do", _agents),
    "/cost": ("", "what this chat has used up", _cost),
    "/stop": ("[AGENT]", "end the turn, or what one agent does for it", _stop),
}


async def obey(here: Conversation, text: str) -> bool:
    """Carry out one line of the person, command or words; False to leave."""
    name, _, rest = text.strip().partition(" ")
    if name in LEAVE:
        return False
    if not name.startswith("/"):
        if name:
            await here.say(text)
        return True
    if name not in COMMANDS:
        here.screen.error(f"There is no command {name}. /help lists them.")
        return True
    try:
        told = await COMMANDS[name][2](here, rest.strip())
    except PromptDockError as error:
        here.screen.error(str(error))
        return True
    if told:
        here.screen.block(told)
    return True
