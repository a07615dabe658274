"""The Lua of one agent's queue, from the `.lua` files beside this one. KEYS[1] is the prefix of the agent's keys,
`pd:<namespace>:{<agent>}:`; all of them share its slot.

Each script may be sent again when its reply was lost: it recognises what it has done already. Time is the
server's. `#!lua` makes a server refuse a script that leaves its slot; what frees memory may run when memory
is full. A line `-- include: …` stands for the files of `parts` that it names.
"""

from __future__ import annotations

import re
from importlib import resources

from shared import failpoints
from shared.bus.base import Script

# What a refusal says; without anything that a pattern or a string of Lua or JSON would take for something else.
BUSY = "busy: too much is waiting, try later"
NOT_YOURS = "this session belongs to somebody else: leave session_id out, or name one of your own"
NO_THREAD = "no such thread is known in this channel now: leave thread and reply_to out, or name session_id"
NOT_SIGNED = (
    "this is not signed, so it allows nothing: answer with promptdock approvals, sign it as docs/wire.md says, "
    "or let everybody do it: UNSIGNED_MAY=approve"
)

_FILES = resources.files(__name__)
_INCLUDE = re.compile(r"^-- include: (.+)\n", re.MULTILINE)


def _part(name: str) -> str:
    if name == "fence" and failpoints.without("fencing"):
        name = "no_fence"
    return _FILES.joinpath("parts", f"{name}.lua").read_text("utf-8")


def _script(name: str) -> Script:
    text = Script.read(__name__, name).source
    return Script(name, _INCLUDE.sub(lambda line: "".join(map(_part, line[1].split())), text))


def __getattr__(name: str) -> Script:
    """`scripts.POST` is `post.lua`, read when it is first asked for: not before the process knows its switches.

    From then on it is an attribute like any other: each message and each step asks for one.
    """
    if not name.isupper() or not _FILES.joinpath(f"{name.lower()}.lua").is_file():
        raise AttributeError(f"there is no script {name}")
    script = globals()[name] = _script(name.lower())
    return script
