"""A command line as the one who answers: the text of a request is its stdin, its stdout the answer.

It runs as whoever started the bridge, in their folder and with their environment but for what reaches the cluster
itself; nothing else confines it.
"""

from __future__ import annotations

import os

from shared import folders
from shared.bus.messages import AgentMessage
from shared.guard.processes import starts
from shared.guard.processes.process import Finished, run
from shared.profiles.bridged import Bridged
from shared.worker.runners.task_run import Payload

_ANSWER = 128 * 1024  # bytes of stdout that are the answer, head and tail
_ERRORS = 4000  # bytes of stderr
# What reaches the cluster itself: a command has no use for it.
_KEPT_BACK = ("REDIS_", "SUPABASE_", "PROMPTDOCK_", "DISCORD_")


async def carry_out(bridged: Bridged, request: AgentMessage, text: str) -> Finished:
    """Run it for one request; where it is cancelled nothing of it runs on."""
    given = starts.undone(os.environ)
    kept = {name: value for name, value in given.items() if not name.startswith(_KEPT_BACK)}
    about = {"PROMPTDOCK_REQUEST": request.id, "PROMPTDOCK_SENDER": request.sender}
    return await run(
        ["/bin/sh", "-c", bridged.command],
        cwd=folders.here(),
        env={**kept, **about},
        timeout=bridged.seconds,
        limit=_ANSWER,
        error_limit=_ERRORS,
        stdin=text.encode("utf-8", "replace"),
    )


def told(done: Finished, seconds: float) -> Payload:
    """What every answer says of how it ended; `error` and `why` where it did not come to its end."""
    ended = {"exit_code": done.exit_code, "ms": done.ms}
    if done.timed_out:
        return ended | {"error": f"the command was ended after {seconds:g} s"}
    if not done.ok:
        why = done.stderr[-1000:]
        return ended | {"error": f"the command ended with exit code {done.exit_code}", "why": why}
    return ended
