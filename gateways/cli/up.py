"""`up` and `down`: the cluster on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from gateways.cli import screen
from gateways.cli.run import INTERRUPTED
from shared.errors import BusUnreachable, PromptDockError
from shared.settings import Settings
from shared.visitor import Visitor, look, supervision
from shared.visitor.typed import called, runnable

_READY = 60.0  # seconds in which all agents should be here
_REDIS = 20.0  # seconds in which Redis must answer
_PATIENT = 2.0  # seconds after which a person is told what is waited for
_EXAMPLE = '{"user_id":"test","content":"Hello"}'


async def up(settings: Settings, without: list[str], detach: bool) -> int:
    """Start it, show on what it stands, and stay until it ends."""
    supervision.refuse_second(settings.home)
    began = time.monotonic()
    screen.out(f"PromptDock {look.release()}")
    process = supervision.start(settings.home, without)
    asked_to_end = _signals()
    try:
        missing = await _ready(settings, process, began, asked_to_end)
        if asked_to_end.is_set():
            await _end(process, settings.home)
            return INTERRUPTED
        async with Visitor(settings) as visitor:
            await _facts(visitor, time.monotonic() - began, missing)
    except PromptDockError:
        if process.poll() is None:  # what did not come up blocks no later try
            await _end(process, settings.home, quiet=True)
        raise
    if detach:
        screen.talk("It runs in the background; end it with: promptdock down")
        return 0
    return await _stay(settings, process, asked_to_end)


def _signals() -> asyncio.Event:
    asked = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, asked.set)
    return asked


async def _ready(
    settings: Settings, process: subprocess.Popen[bytes], began: float, asked: asyncio.Event
) -> set[str]:
    """Wait until all agents are here; those that are not after a minute. What ends the cluster is raised."""
    missing, told = {"the supervisor"}, False
    async with Visitor(settings) as visitor:
        while missing and not asked.is_set() and time.monotonic() - began < _READY:
            if (code := process.poll()) is not None:
                raise supervision.why(settings.home, code)
            found = supervision.running(settings.home)
            if found is not None and found.pid == process.pid:
                age = time.monotonic() - began
                try:
                    missing = set(found.agents) - await _here(visitor, found, age)
                except BusUnreachable as error:
                    if age > _PATIENT and not told:
                        screen.talk(f"… waiting for Redis: {error.why or error.what}")
                        told = True
                    if age > _REDIS:
                        fix = (
                            error.fix
                            or "start that Redis, or correct REDIS_URL; unset, an embedded one is started"
                        )
                        raise BusUnreachable(error.what, error.why, fix) from None
            await asyncio.sleep(0.05)
    return missing


async def _here(visitor: Visitor, ours: supervision.Supervised, age: float) -> set[str]:
    """Our agents that joined since we started: others may be on this Redis, and a card lives on for a while."""
    cards = await visitor.presence.here()
    joined = [card for card in cards if float(card.get("uptime") or 0) <= age]
    return {str(card["agent"]) for card in joined if card.get("pid") in ours.processes}


async def _facts(visitor: Visitor, seconds: float, missing: set[str]) -> None:
    settings = visitor.settings
    redis = await look.redis(visitor)
    kind = "embedded " if redis["embedded"] else ""
    _line("ok", "redis", f"{kind}{redis['server']} {redis['version']} on {redis['address']}")
    if settings.supabase_url:
        _line("ok", "store", f"Supabase {urlsplit(settings.supabase_url).netloc}")
    else:
        _line("ok", "store", f"SQLite {_near(settings.home / 'promptdock.db')}", "Supabase: set SUPABASE_URL")
    state = await look.status(visitor)
    if state["demo"] or not state["model"]:
        _line("!", "model", "DEMO: scripted replies, no network, no cost", runnable("promptdock key set"))
    else:
        _line("ok", "model", state["model"])
    found = supervision.running(settings.home)
    here = " ".join(name for name in (found.agents if found else ()) if name not in missing)
    if missing:
        _line(
            "!", "agents", f"{here}; not yet here: {' '.join(sorted(missing))}", runnable("promptdock logs")
        )
    else:
        _line("ok", "agents", f"{here}  ready in {seconds:.1f} s")
    if shared := look.other_homes(state["agents"]):
        _line("!", "homes", shared.told, shared.fix)
    channel = visitor.names.channel("human-input")
    server = _redis_cli(redis["address"], redis["embedded"])
    screen.out(f"  Try  {called()} chat   or   {server} PUBLISH {channel} {shlex.quote(_EXAMPLE)}")


def _line(mark: str, name: str, told: str, hint: str = "") -> None:
    screen.out(f"  {mark:3} {name:8} {f'{told}  ({hint})' if hint else told}")


def _near(path: Path) -> str:
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _redis_cli(address: str, embedded: bool) -> str:
    """`redis-cli` as it reaches this server; a password is left to the person who knows it."""
    port = urlsplit(f"//{address}").port if embedded else None
    if not embedded:
        return "redis-cli -u $REDIS_URL"
    return "redis-cli" if port in (None, 6379) else f"redis-cli -p {port}"


async def _stay(settings: Settings, process: subprocess.Popen[bytes], asked: asyncio.Event) -> int:
    while process.poll() is None and not asked.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await asked.wait()
    if asked.is_set():
        await _end(process, settings.home)
        return 0
    code = process.returncode
    if code == 0:
        screen.talk("The cluster was ended from elsewhere.")
        return 0
    raise supervision.why(settings.home, code)


async def _end(process: subprocess.Popen[bytes], home: Path, quiet: bool = False) -> None:
    """Drained: what runs is handed over, Redis goes last."""
    if not quiet:
        screen.talk("Ending: the workers hand over what they do (20 s at most) …")
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.to_thread(process.wait, supervision.DRAIN)
    except subprocess.TimeoutExpired:
        screen.talk(f"Process {process.pid} did not end; look at {supervision.log_file(home)}")
    else:
        if not quiet:
            screen.talk("Ended.")


async def down(settings: Settings) -> int:
    """Only what `up` started in this home."""
    ended = await asyncio.to_thread(supervision.stop, settings.home)
    told = f"Ended ({'; '.join(ended)})." if ended else f"Nothing that `up` started runs in {settings.home}."
    screen.talk(told)
    return 0
