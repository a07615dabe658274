"""The Lua of live events, from the `.lua` file beside this one; its header names its keys and arguments."""

from shared.bus.base import Script

EVENTS = Script.read(__name__, "events")
