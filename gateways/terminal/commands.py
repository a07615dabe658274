"""What begins with a slash: looking at things without asking Chatter."""

from __future__ import annotations

import os
import secrets
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gateways.terminal import choosing
from gateways.terminal.conversation import Conversation
from shared.bus.messages import default_session
from shared.client.local import key
from shared.client.text import times
from shared.client.text.safe import line
from shared.client.views import agents, lookup, memory, projects, status
from shared.client.views.conversation import own, threads
from shared.client.views.tasks import tasks
from shared.errors import PromptDockError

Command = Callable[[Conversation, str], Awaitable[str]]
LEAVE = ("/quit", "/exit")
_PATIENCE = 20.0  # seconds that a tool of the cluster may take to answer a command


async def _help(_here: Conversation, _rest: str) -> str:
    columns = shutil.get_terminal_size().columns
    rows = [(f"{name} {what}".strip(), told) for name, (what, told, _run) in COMMANDS.items()]
    rows.append(("/quit", "leave; the agents go on"))
    beside = max(len(head) for head, _told in rows) + 2
    beside = beside if columns >= 2 * beside + 10 else 0  # else each is told below its name
    keys = (
        "Enter sends; Alt-Enter, or a backslash before Enter, begins a line.",
        "Ctrl-C stops the turn that runs, twice leaves.",
    )
    told = [_explained(head, text, beside, columns) for head, text in rows]
    return "\n".join([*told, *(textwrap.fill(key, columns) for key in keys)])


def _explained(head: str, told: str, beside: int, columns: int) -> str:
    """A command and what it does, in lines that end between words."""
    if not beside:
        return f"{head}\n{textwrap.fill(told, columns, initial_indent='    ', subsequent_indent='    ')}"
    return textwrap.fill(f"{head:{beside}}{told}", columns, subsequent_indent=" " * beside)


async def _tasks(here: Conversation, _rest: str) -> str:
    rows = await tasks.tasks(here.client, tasks.Filter(limit=20))
    told = _table(
        [(row["id"], tasks.state(row), row["assignee"] or "", line(row["title"], 60)) for row in rows]
    )
    return "\n".join(told) or "There are no tasks yet."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines that this terminal shows whole; the second column is a state, which stays."""
    from shared.client.text.columns import lines

    return lines(rows, shutil.get_terminal_size().columns, {1})


async def _task(here: Conversation, rest: str) -> str:
    card = await tasks.task(here.client, rest or await _newest(here))
    told = [f"{card['id']}  {tasks.state(card)}  {card['title']}"]
    told += tasks.question(card["question"]) if card["question"] else []
    told += [_plain(line) for line in tasks.history(card)]
    for result in card["results"]:
        told += [_plain(line) for line in tasks.receipt(result)]
        told += [f"error: {result['error']}"] if result["error"] else []
    return "\n".join(told)


def _plain(line: tasks.StyledLine) -> str:
    return "".join(text for text, _what in line).rstrip()


async def _diff(here: Conversation, rest: str) -> str:
    return await tasks.diff(here.client, rest or await _newest(here))


async def _newest(here: Conversation) -> str:
    rows = await tasks.tasks(here.client, tasks.Filter(limit=1))
    if not rows:
        raise PromptDockError("there are no tasks yet", "", 'assign one, e.g. "Build a button on the page"')
    return str(rows[0]["id"])


async def _status(here: Conversation, _rest: str) -> str:
    state = await status.status(here.client)
    redis = state["redis"]
    waiting = sum(state["queues"].values())
    model = "DEMO (scripted)" if state["demo"] else state["model"] or "unknown"
    return "\n".join(
        [
            f"PromptDock {state['version']}, {redis['server']} {redis['version']} on {redis['address']}",
            f"model {model}, store {state['store'] or 'unknown'}, home {state['home']}",
            f"{len(state['agents'])} workers, {waiting} messages not ended, {here.client.kept} not sent",
        ]
    )


async def _agents(here: Conversation, _rest: str) -> str:
    state = await status.status(here.client)
    doing = await status.doing(here.client, state["agents"])
    told, most = [], shutil.get_terminal_size().columns
    rows = [
        (
            str(card["agent"]),
            status.state(card),
            "" if card.get("doing") else line(str(card.get("about") or ""), 60),
        )
        for card in state["agents"]
    ]
    gone = [(name, "unannounced" if name in state["unannounced"] else "offline") for name in state["offline"]]
    lines = _table([*rows, *((name, how, "") for name, how in gone)])
    for card, text in zip(state["agents"], lines, strict=False):
        told.append(text)
        told += [f"  {line(working.told(), most - 2)}" for working in doing if working.agent == card["agent"]]
    told += lines[len(rows) :]
    return "\n".join(told) or "Nobody is here."


async def _cost(here: Conversation, _rest: str) -> str:
    spent = here.spent
    turns = f"{spent.turns} turn{'' if spent.turns == 1 else 's'}"
    return f"This chat: {turns}, {spent.input} tokens in, {spent.output} out, ${spent.cost:.4f}"


async def _stop(here: Conversation, rest: str) -> str:
    await here.stop(rest)
    return ""


async def _approve(here: Conversation, rest: str) -> str:
    words = rest.split()
    ids = [word for word in words if word != "always"]
    await here.requests.decide("always" if "always" in words else "allow_once", id=ids[0] if ids else "")
    return ""


async def _deny(here: Conversation, rest: str) -> str:
    await here.requests.decide("deny", rest)
    return ""


async def _inbox(here: Conversation, _rest: str) -> str:
    await here.attention.count()
    told = [text for item in here.attention.waiting for text in item.lines()]
    return "\n".join(told) or "Nothing waits for you."


async def _answer(here: Conversation, rest: str) -> str:
    task, _, words = rest.partition(" ")
    if not words.strip():
        raise PromptDockError(
            "an answer names its task", "", "e.g. /answer calm-otter 2; /inbox shows what is asked"
        )
    found = await _called(here, "answer_task", {"task_id": task, "answer": words.strip()})
    return f"{found['answered']} has the answer to: {found['question']}"


async def _project(here: Conversation, rest: str) -> str:
    active = await projects.active(here.client, here.user, here.session)
    if not rest:
        told = _table(
            [
                (
                    f"{'*' if card['id'] == active else ' '} {card['id']}",
                    f"repositories: {card['repositories']}, open tasks: {card['open_tasks']}",
                    line(card["name"], 40),
                )
                for card in await projects.listing(here.client)
            ]
        )
        return "\n".join([*told, "Another one: /project ID"])
    # A person's own conversation need not wait for what runs there; one that was named is the cluster's to find.
    chosen = {"project_id": await lookup.project(here.client, rest)}
    found = await _called(here, "set_active_project", chosen, here.named or "")
    known = ", ".join(found["repositories"])
    return f"This conversation works on {found['active_project']} ({known or 'no repository yet'})."


async def _model(here: Conversation, rest: str) -> str:
    async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await _called(here, tool, arguments, here.named or "")

    return await choosing.choose(here, rest.strip(), call)


async def _profile(here: Conversation, rest: str) -> str:
    if not rest:
        told = [
            (str(one["id"]), line(str(one["name"]), 60)) for one in await agents.profiles_kept(here.client)
        ]
        none = "There is no profile yet: promptdock tools call create_profile"
        return "\n".join([*_table(told), "One of them: /profile ID; /profile default"]) if told else none
    chosen = {"profile_id": "" if rest == "default" else rest}
    found = await _called(here, "choose_profile", chosen, here.named or "")
    name = found["profile_id"]
    return f"{name} answers in this conversation." if name else "No profile of its own answers here any more."


async def _notes(here: Conversation, rest: str) -> str:
    project = rest or await projects.active(here.client, here.user, here.session)
    found = await _called(here, "list_notes", {"project_id": project})
    told = _table(
        [(str(note["name"]), line(str(note.get("title", "")), 60)) for note in found.get("notes", [])]
    )
    return "\n".join(told) or f"{project} has no notes yet."


async def _why(here: Conversation, _rest: str) -> str:
    found = (await memory.why(here.client, here.user, "", here.session))["remembered"]
    told = _table([(str(one["kind"]), str(one["at"])[:10], line(str(one["text"]), 100)) for one in found])
    return "\n".join(told) or "Nothing was remembered for the last answer."


async def _hooks(here: Conversation, _rest: str) -> str:
    found = await _called(here, "list_hooks", {})
    told = _table(
        [
            (str(hook.get("name", "")), str((hook.get("trigger") or {}).get("type", "")))
            for hook in found.get("hooks", [])
        ]
    )
    return "\n".join(told) or "There are no hooks yet."


async def _trust(here: Conversation, _rest: str) -> str:
    await _called(here, "trust", {"what": "conversation"}, here.session)
    return "What was read in this conversation until now is trusted."


async def _sessions(here: Conversation, rest: str) -> str:
    if not rest:
        found = await own.listed(here.client, here.user)
        told = _table(
            [
                (
                    f"{'*' if one['session_id'] == here.session else ' '} {one['session_id']}",
                    f"{times.since(one['last_active'])} ago",
                    line(str(one["title"]), 60),
                )
                for one in found
            ]
        )
        return "\n".join([*told, "Another one: /sessions ID, or /new"])
    usual = default_session(here.user)  # it can be spoken in, whether anything was said there or not
    name = usual if rest == usual else (await own.meant(here.client, here.user, rest)).key
    if name == here.session:
        return f"This is {name}."
    await here.go(name)
    return f"You speak in {name} now."


async def _new(here: Conversation, rest: str) -> str:
    before = here.session
    if rest:
        key = str((await _called(here, "new_session", {"title": rest}))["session_id"])
    else:  # it is called by the first words that are said there
        key = f"talk-{secrets.token_hex(8)}"
    await here.go(key)
    return f"You speak in {key} now. Back: /sessions {before}"


async def _threads(here: Conversation, rest: str) -> str:
    found = await threads.listed(here.client, here.user, rest)
    rows = [(f"{one['channel']} #{one['number']}", one["state"], line(one["title"], 60)) for one in found]
    return "\n".join([*_table(rows), "End one: /kill NUMBER"] if rows else ["There is no thread now."])


async def _kill(here: Conversation, rest: str) -> str:
    number, _, channel = rest.partition(" ")
    if not number.lstrip("#").isdecimal():
        raise PromptDockError("a thread is named by its number", "", "e.g. /kill 2, or /kill 2 discord:7")
    return await threads.kill(here.client, here.user, int(number.lstrip("#")), channel.strip())


async def _clear(here: Conversation, _rest: str) -> str:
    return await _said(here, "clear_context", {})


async def _save(here: Conversation, rest: str) -> str:
    return await _said(here, "save_context", {"description": rest})


async def _restore(here: Conversation, rest: str) -> str:
    if rest:
        return await _said(here, "restore_context", {"id": rest})
    found = await _called(here, "list_saved", {})
    told = _table([(str(one["id"]), line(str(one["description"]), 60)) for one in found["saved"]])
    return "\n".join([*told, "One of them: /restore ID"]) if told else "Nothing is saved yet: /save"


async def _context(here: Conversation, _rest: str) -> str:
    return await _said(here, "get_context", {})


async def _said(here: Conversation, tool: str, arguments: dict[str, Any]) -> str:
    """Run a tool as a turn of this conversation, whose answer is shown like any other of it."""
    await here.client.command(tool, arguments, here.user, patience=_PATIENCE, session=here.session)
    return ""


async def _called(
    here: Conversation, tool: str, arguments: dict[str, Any], session: str = ""
) -> dict[str, Any]:
    """What a tool of the cluster answers; its error is one of ours."""
    found = await here.client.command(tool, arguments, here.user, patience=_PATIENCE, session=session)
    if "error" in found:
        raise PromptDockError(*(str(found.get(name) or "") for name in ("error", "why", "fix")))
    return found


async def _key(here: Conversation, _rest: str) -> str:
    called = os.environ.get("PROMPTDOCK_CALLED", "promptdock")
    state = "A key is set." if key.is_set(here.client.settings) else "No key is set: the demo model answers."
    return f"{state} In another terminal: {called} key set"


COMMANDS: dict[str, tuple[str, str, Command]] = {
    "/help": ("", "this list", _help),
    "/tasks": ("", "the newest tasks", _tasks),
    "/task": ("[ID]", "one task, the newest by default", _task),
    "/diff": ("[ID]", "what a task changed", _diff),
    "/approve": ("[always] [ID]", "allow what an agent asks permission for", _approve),
    "/deny": ("[WHY]", "refuse it", _deny),
    "/inbox": ("", "all that waits for you, in all conversations", _inbox),
    "/answer": ("ID WORDS", "answer the question of a task, in words or by the number of an option", _answer),
    "/sessions": ("[ID]", "your conversations, or go to one", _sessions),
    "/new": ("[TITLE]", "begin another conversation, and go there", _new),
    "/threads": ("[CHANNEL]", "the threads of channels, and what they do", _threads),
    "/kill": ("N [CHANNEL]", "end what runs in a thread", _kill),
    "/clear": ("", "begin this conversation anew; its history stays", _clear),
    "/save": ("[ABOUT]", "save this conversation as it is", _save),
    "/restore": ("[ID]", "what is saved, or go on from it", _restore),
    "/context": ("", "how full this conversation's window is", _context),
    "/trust": ("", "trust what was read in this conversation until now", _trust),
    "/status": ("", "on what the cluster stands, and what waits", _status),
    "/agents": ("", "who is here, and what they do", _agents),
    "/cost": ("", "what this chat has used up", _cost),
    "/project": ("[ID]", "the projects, or go to one", _project),
    "/model": ("[NAME]", "the models, or another one for this conversation", _model),
    "/profile": ("[ID]", "the profiles, or the one that answers in this conversation", _profile),
    "/notes": ("[PROJECT]", "the notes of a project, the active one by default", _notes),
    "/why": ("", "what was remembered of earlier for the last answer", _why),
    "/hooks": ("", "what runs by itself", _hooks),
    "/key": ("", "whether a model's key is set, and how", _key),
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
