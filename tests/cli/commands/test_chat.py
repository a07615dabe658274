"""The chat as a whole: in a pseudo-terminal, and through a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence

import psutil

from tests.cli.person import PATIENCE, Person
from tests.support.processes import until


class Terminal:
    """80 by 24, with a process on its other side."""

    def __init__(self, person: Person, *words: str, program: Sequence[str] = ()) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            program or [sys.executable, "-m", "gateways.cli", *words],
            cwd=person.folder,
            env=person.environment(TERM="xterm-256color", COLUMNS="80", LINES="24"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C can be a signal
        )
        os.close(theirs)
        self.shown = b""

    def shows(self, words: str) -> None:
        """Wait until these words were drawn since the last time."""
        ends = time.monotonic() + PATIENCE
        while words.encode() not in self.shown:
            assert time.monotonic() < ends, self.shown[-3000:]
            if select.select([self._ours], [], [], 0.5)[0]:
                self.shown += (drawn := os.read(self._ours, 65536))
                if b"\x1b[6n" in drawn:  # where is the cursor? a terminal answers that
                    self.types("\x1b[1;1R")
        self.shown = self.shown.partition(words.encode())[2]

    def asks(self, words: str) -> None:
        """Wait for this question and until its answer is read: a signal just before that waits for a key, too."""
        self.shows(words)
        until(lambda: psutil.Process(self.process.pid).status() == psutil.STATUS_SLEEPING, what="reading")

    def rest(self) -> str:
        """What was drawn since the last time, once nothing more comes."""
        while select.select([self._ours], [], [], 0.2)[0]:
            try:
                self.shown += os.read(self._ours, 65536)
            except OSError:  # its other side is closed
                break
        return self.shown.decode("utf-8", "replace")

    def types(self, text: str) -> None:
        """Keys."""
        os.write(self._ours, text.encode())

    def close(self) -> None:
        """The process and the terminal go."""
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._ours)


def test_a_chat_in_a_terminal_asks_answers_and_leaves(cluster: Person) -> None:
    chat = Terminal(cluster, "chat", "--user", "ada")
    try:
        chat.shows("/help · Ctrl-C twice leaves")
        chat.types("Decide between tea and coffee\r")
        chat.shows("2. coffee")
        chat.shows("tokens in")
        chat.types("2\r")
        chat.shows("Noted: “coffee”")
        chat.shows("DEMO")
        chat.types("/")
        chat.shows("the newest tasks")  # what is offered says what it does
        chat.types("agents\r")
        chat.shows("backend")
        chat.types("\x03")
        chat.shows("once more leaves")
        chat.process.send_signal(signal.SIGINT)  # a Ctrl-C while something is being printed
        assert chat.process.wait(PATIENCE) == 0
    finally:
        chat.close()
    assert "Decide between tea and coffee" in (cluster.home / "history").read_text()


def test_ask_on_a_terminal_shows_the_answer_once_and_through_a_pipe_exactly(cluster: Person) -> None:
    asked = Terminal(cluster, "ask", "Hello", "--session", "drawn")
    try:
        asked.shows("[demo]")
        assert asked.process.wait(PATIENCE) == 0
        assert "[demo]" not in asked.rest()
    finally:
        asked.close()
    assert cluster.does("ask", "Hello", "--session", "plain").startswith("[demo] ")


def test_a_chat_through_a_pipe_is_plain_and_answers_line_by_line(cluster: Person) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateways.cli", "chat", "--session", "pipe"],
        cwd=cluster.folder,
        env=cluster.environment(),
        input="Decide between tea and coffee\n1\n/nonsense\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "  1. tea\n  2. coffee\n" in done.stdout
    assert "Noted: “tea”" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "There is no command /nonsense" in done.stderr
