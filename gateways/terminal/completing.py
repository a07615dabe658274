"""What is offered while a command is typed: commands with what they do, tasks with their titles, agents."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from gateways.terminal import choosing
from gateways.terminal.commands import COMMANDS
from gateways.terminal.conversation import Conversation
from shared.client.text.safe import line
from shared.client.views.conversation import own
from shared.client.views.tasks import tasks
from shared.errors import PromptDockError

_FRESH = 3.0  # seconds for which names are not asked for again
Offer = tuple[str, str]  # a word, and what stands beside it


class Offers(Completer):
    """Of the commands at once; of names what the cluster knows, asked beside the typing."""

    def __init__(self, here: Conversation) -> None:
        self._here = here
        self._known: dict[str, tuple[float, list[Offer]]] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The commands that begin so."""
        typed = document.text_before_cursor
        if not typed.startswith("/") or " " in typed:
            return
        for name, (what, told, _run) in {**COMMANDS, "/quit": ("", "leave; the agents go on", None)}.items():
            if name.startswith(typed):
                yield Completion(name, -len(typed), display=f"{name} {what}".strip(), display_meta=told)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Of what stands behind a command, too."""
        for found in self.get_completions(document, complete_event):
            yield found
        command, parted, rest = document.text_before_cursor.partition(" ")
        if not parted or " " in rest:
            return
        for name, beside in await self._offers(command):
            if rest in name:
                yield Completion(name, -len(rest), display_meta=line(beside, 60))

    async def _offers(self, command: str) -> list[Offer]:
        at, known = self._known.get(command, (float("-inf"), []))
        if time.monotonic() - at > _FRESH:
            with contextlib.suppress(PromptDockError):
                known = await self._ask(command)
            self._known[command] = (time.monotonic(), known)
        return known

    async def _ask(self, command: str) -> list[Offer]:
        client = self._here.client
        match command:
            case "/task" | "/diff" | "/answer":
                rows = await tasks.tasks(client, tasks.Filter(limit=20))
                return [(str(row["id"]), f"{tasks.state(row)}  {row['title']}") for row in rows]
            case "/sessions":
                mine = await own.listed(client, self._here.user)
                return [(str(one["session_id"]), str(one["title"])) for one in mine]
            case "/restore":
                return [(one.id, one.description) for one in await own.saved(client, self._here.user)]
            case "/model":
                return await choosing.offers(self._here)
            case "/stop":
                return [(one.agent, one.question) for one in self._here.work.open]
            case "/approve":
                return [("always", "this, and what is like it, from now on")]
        return []
