"""`chat` becomes the terminal gateway: one gateway does not know another, so it takes this process over."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def chat(user: str, session: str | None) -> NoReturn:
    """Never comes back."""
    from shared.visitor.typed import CALLED, called

    os.environ[CALLED] = called()
    named = ["--session", session] if session else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "gateways.terminal", "--user", user, *named])
