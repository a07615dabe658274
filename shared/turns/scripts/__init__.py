"""The Lua of one agent's desk. KEYS[1] is its prefix `pd:<namespace>:{<agent>}:`; all keys share its slot.

Each script may be sent again when its reply was lost: it recognises what it has done already. Time is the
server's. `#!lua` makes a server refuse a script that leaves its slot; what frees memory may run when memory
is full.
"""

from shared.turns.scripts.arriving import BUSY, CLOSE, HEAR, JOIN, POST, RESPOND, UNREADABLE, WITHDRAW
from shared.turns.scripts.carrying import ACQUIT, BEAT, CLAIM, FINISH, RELEASE, STEP, TELL

__all__ = [
    "ACQUIT",
    "BEAT",
    "BUSY",
    "CLAIM",
    "CLOSE",
    "FINISH",
    "HEAR",
    "JOIN",
    "POST",
    "RELEASE",
    "RESPOND",
    "STEP",
    "TELL",
    "UNREADABLE",
    "WITHDRAW",
]
