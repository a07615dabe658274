"""A diff as a terminal shows it: what came green, what went red."""

from __future__ import annotations

from gateways.cli import screen
from gateways.cli.screen import Styled

_STYLES = (
    (("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity ", "rename "), "bold"),
    (("@@",), "cyan"),
    (("+",), "green"),
    (("-",), "red"),
)


def show(text: str) -> None:
    """Print it, line by line."""
    for line in text.split("\n"):
        style = next((style for beginnings, style in _STYLES if line.startswith(beginnings)), None)
        screen.out(Styled(line, style) if style else line)
