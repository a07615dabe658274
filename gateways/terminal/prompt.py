"""The chat on a terminal: a prompt that stays below, and a live area of a few lines above it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys as Key
from prompt_toolkit.patch_stdout import patch_stdout

from gateways.terminal.commands import LEAVE, obey
from gateways.terminal.completing import Offers
from gateways.terminal.conversation import Conversation
from shared.client.local.typed import runnable
from shared.client.text.safe import line, safe

_TWICE = 2.0  # seconds in which a second Ctrl-C means leave
_REFRESH = 0.25
_MENU = 6  # lines of what is offered, while it is
_LEAVE = 3.0  # seconds that sending what was typed may take when the person leaves


@Condition
def _goes_on() -> bool:
    """Whether a backslash stands before the cursor: the line is not the last one, as in a shell."""
    return get_app().current_buffer.document.text_before_cursor.endswith("\\")


def typed_ahead(source: Input, waits: bool) -> str:
    """What was typed before the first prompt: it is sent, as a shell does, but for what stands behind the last Enter.

    Where something `waits` for an answer that could not be read yet, nothing may answer it unseen: all of it is
    returned as a draft.
    """
    with source.raw_mode():
        keys = [*source.read_keys(), *source.flush_keys()]
    if not waits:
        store_typeahead(source, keys)
        return ""
    typed = "".join("\n" if key.key in (Key.ControlJ, Key.ControlM) else key.data for key in keys)
    return safe(typed).strip()


class Keys:
    """What Ctrl-C means: stop the turn, take back what was typed, or, pressed twice, leave."""

    def __init__(self, here: Conversation) -> None:
        self._here = here
        self._pressed = -_TWICE
        self._tasks: set[asyncio.Task[None]] = set()
        self.bindings = KeyBindings()
        self.bindings.add("c-c")(lambda event: self.interrupt(event.app))
        # Enter sends, as a line feed too: that is what Enter is while the terminal is not in our hands, as before the
        # first prompt. These begin a line:
        self.bindings.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        self.bindings.add("enter", filter=_goes_on)(self._break)

    @staticmethod
    def _break(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor()
        event.current_buffer.insert_text("\n")

    def interrupt(self, app: Application[Any]) -> None:
        """Ctrl-C, as a key or, in the moments in which something is printed above the prompt, as a signal."""
        again = time.monotonic() - self._pressed < _TWICE
        self._pressed = time.monotonic()
        if again and app.is_running and not app.is_done:
            app.exit(exception=EOFError)
        elif app.current_buffer.text:
            app.current_buffer.reset()
        elif self._here.working:
            self._tasks.add(task := asyncio.get_running_loop().create_task(self._here.stop()))
            task.add_done_callback(self._tasks.discard)
        else:
            stays = "; the request above stays open, and is in /inbox" if self._here.requests.open else ""
            self._here.screen.note(f"Ctrl-C once more leaves; the agents go on{stays}")


def above(here: Conversation) -> FormattedText:
    """The live area and the prompt: who works, and the end of the block that is being written."""
    width, rows = shutil.get_terminal_size()
    width -= 1
    parts: list[tuple[str, str]] = [("ansicyan", f"{text}\n") for text in here.watch.lines(width)]
    parts += [("ansibrightblack", f"  {text}\n") for text in here.being_written(width - 3, rows // 3)]
    return FormattedText([*parts, ("bold", "> ")])


def below(here: Conversation) -> FormattedText:
    """The footer: what is waited for, and by whom; which model speaks; where we are."""
    kept = [f"{here.client.kept} kept until Redis is back"] if here.client.kept else []
    if here.watch.away:
        state = runnable(here.watch.away)
    elif here.requests.open:
        state = "waits for you: 1, 2 or 3"
    elif here.question:
        state = "waits for your answer"
    else:
        state = (
            f"working {here.waited:.0f} s · Ctrl-C stops" if here.working else "/help · Ctrl-C twice leaves"
        )
    waits = [f"{len(here.attention.elsewhere)} for you: /inbox"] if here.attention.elsewhere else []
    model = [here.watch.model] if here.watch.model else []
    parts = [state, *waits, *kept, *model, line(here.session, 40)]
    width = shutil.get_terminal_size().columns - 1
    while len(parts) > 1 and len(" · ".join(parts)) > width:  # the last says least
        parts.pop()
    return FormattedText([("", f" {' · '.join(parts)}")])


def reflow(app: Application[Any]) -> None:
    """A terminal that gets narrower breaks the lines that are drawn: they are taken away as many as they are then."""
    drawn, cursor = app.renderer.last_rendered_screen, app.renderer._cursor_pos
    columns = max(1, app.output.get_size().columns)
    if drawn is None:
        return
    rows = [drawn.data_buffer[y] for y in range(cursor.y)]
    widths = [max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0) for row in rows]
    more = sum(max(0, width - 1) // columns for width in widths) + cursor.x // columns
    if more:
        app.output.cursor_up(more)


def _reflowing(app: Application[Any]) -> None:
    redraw = app._on_resize

    def resized() -> None:
        reflow(app)
        redraw()

    app._on_resize = resized  # type: ignore[method-assign]


def _history(home: Path) -> History:
    """The lines of earlier chats, for their owner alone."""
    if not home.is_dir():
        return InMemoryHistory()
    file = home / "history"
    file.touch(mode=0o600)
    return FileHistory(str(file))


async def converse(here: Conversation) -> int:
    """Until the person leaves."""
    keys = Keys(here)
    session: PromptSession[str] = PromptSession(
        history=_history(here.client.settings.home),
        completer=Offers(here),
        complete_while_typing=Condition(lambda: get_app().current_buffer.text.startswith("/")),
        key_bindings=keys.bindings,
        bottom_toolbar=lambda: below(here),
        refresh_interval=_REFRESH,
        erase_when_done=True,  # what was typed is printed by us; the live area leaves no trace
        reserve_space_for_menu=_MENU,
        prompt_continuation="  ",
    )
    _reflowing(session.app)
    lines: asyncio.Queue[str] = asyncio.Queue()
    # Beside the prompt: while none is shown, Ctrl-C would end us, and what is typed would be drawn anywhere.
    obeying = asyncio.create_task(_obey(here, lines))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, keys.interrupt, session.app)
    with patch_stdout(raw=True):
        draft = typed_ahead(session.app.input, waits=bool(here.requests.open or here.question))
        if draft:
            here.screen.note("what you typed before this stood here is not sent yet: Enter sends it")
        try:
            while not obeying.done():
                text = await session.prompt_async(lambda: above(here), handle_sigint=False, default=draft)
                draft = ""
                if text.strip():
                    here.screen.person(text)
                    lines.put_nowait(text)
                if text.strip() in LEAVE:
                    break
        except EOFError:
            pass
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return await _ended(obeying, lines)


async def _obey(here: Conversation, lines: asyncio.Queue[str]) -> None:
    """One line after the other, in the order in which they were typed."""
    while await obey(here, await lines.get()):
        lines.task_done()
    lines.task_done()


async def _ended(obeying: asyncio.Task[None], lines: asyncio.Queue[str]) -> int:
    """What was typed is sent before we go."""
    sent = asyncio.create_task(lines.join())
    await asyncio.wait({obeying, sent}, timeout=_LEAVE, return_when=asyncio.FIRST_COMPLETED)
    sent.cancel()
    if obeying.done():
        obeying.result()
    obeying.cancel()
    return 0
