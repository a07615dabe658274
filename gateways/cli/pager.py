"""The pager: long text on a terminal is read page by page, as git does it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess


def wanted(text: str) -> bool:
    """Whether the text is longer than the terminal is high."""
    return text.count("\n") >= shutil.get_terminal_size().lines


def shows(text: str) -> bool:
    """Show it in $PAGER, else in `less`; False where there is none, and nothing was shown."""
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return False
    if not words or words == ["cat"]:
        return False
    # Colours pass, one page needs no key, and the text stays on the screen: what git sets, too.
    environment = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        process.communicate(text.encode("utf-8", "replace"))
    except BrokenPipeError:  # it was left before the end
        process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return True
