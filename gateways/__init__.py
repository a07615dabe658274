"""Where people and programs come in; they know only a client's side of the bus."""

import os
import sys


def _alone() -> None:
    """`python -m` puts the folder in which somebody stands first on the import path: what lies there is not ours."""
    without = os.environ.get("PROMPTDOCK_WITHOUT", "").split(",")
    if "safe-path" in without and os.environ.get("PROMPTDOCK_ENV") != "production":
        return
    try:
        here = ("", os.getcwd())  # noqa: PTH109
    except FileNotFoundError:  # it was deleted
        return
    tree = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - nothing is imported yet
    sys.path[:] = [place for place in sys.path if place not in here or os.path.realpath(place) == tree]


_alone()
