"""`chat` becomes the terminal gateway: one gateway does not know another, so it takes this process over."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def chat(user: str, session: str | None) -> NoReturn:
    """Never comes back."""
    from shared.client.local import supervision, trust
    from shared.client.local.typed import CALLED, called
    from shared.settings import find_home

    trust.ask()
    os.environ[CALLED] = called()
    home = Path(os.environ.get("PROMPTDOCK_HOME") or find_home()).expanduser().resolve()
    named = ["--session", session] if session else []
    sys.stdout.flush()
    folder = ["--folder", str(Path.cwd())]
    supervision.become("gateways.terminal", home, "--user", user, *folder, *named)
