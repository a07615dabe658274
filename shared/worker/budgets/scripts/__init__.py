"""The Lua of the ledger, from the `.lua` files beside this one. KEYS[1] is the prefix of its keys (`bus/keys.py`)."""

from shared.bus.base import Script

CHARGE = Script.read(__name__, "charge")
SPENT = Script.read(__name__, "spent")
ALLOW = Script.read(__name__, "allow")
