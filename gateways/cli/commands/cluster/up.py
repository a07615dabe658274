"""`up` and `down`: the cluster on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from gateways.cli import screen
from gateways.cli.commands import repo
from gateways.cli.run import INTERRUPTED
from shared.client import Client
from shared.client.doctor import examine, machine
from shared.client.local import supervision, web_address
from shared.client.local.typed import called, runnable
from shared.client.views import models, status
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError, UsageError
from shared.settings import Settings

_READY = 60.0  # seconds in which all agents should be here
_REDIS = 20.0  # seconds in which Redis must answer
_MODELS = 8.0  # seconds in which the provider may say which models it has
_PATIENT = 2.0  # seconds after which a person is told what is waited for
_EXAMPLE = '{"user_id":"test","content":"Hello"}'


def change(
    without: list[str] | None, added: list[str] | None, scale: list[str] | None
) -> supervision.PlanChange:
    """What was asked for on the command line."""
    return supervision.PlanChange(without or [], added or [], supervision.counts(scale or []))


async def up(settings: Settings, change: supervision.PlanChange, detach: bool) -> int:
    """Start it, show on what it stands, and stay until it ends."""
    supervision.check(settings.home, change)
    for wrong in (machine.executor(settings), *machine.secrets(settings)):
        if wrong is not None:
            raise ConfigurationError(wrong.told, "", wrong.fix)
    for slip in machine.written(settings):
        screen.talk(f"promptdock: {slip.told}\n  do:  {slip.fix}")
    if supervision.is_up(settings.home):
        return await _again(settings, change, detach)
    began = time.monotonic()
    screen.out(f"PromptDock {status.release()}")
    if kept := supervision.kept(settings.home, change):
        told = f"the last cluster here was not ended but killed, so this still holds: {' '.join(kept)}"
        screen.talk(f"{told}\n  do:  to forget it: promptdock down, then promptdock up")
    process = supervision.start(settings.home, change.without, change.added, change.scale)
    asked_to_end = _signals()
    try:
        missing = await _ready(settings, process, began, asked_to_end)
        if asked_to_end.is_set():
            await _end(process, settings.home)
            return INTERRUPTED
        news = supervision.News(settings.home)
        async with Client(settings) as client:
            await _facts(client, time.monotonic() - began, missing)
            await repo.offer(client)
    except PromptDockError:
        if process.poll() is None:  # what did not come up blocks no later try
            await _end(process, settings.home, quiet=True)
        raise
    if detach:
        screen.talk("It runs in the background; end it with: promptdock down")
        return 0
    return await _stay(settings, process, asked_to_end, news)


async def _again(settings: Settings, change: supervision.PlanChange, detach: bool) -> int:
    """A cluster runs here: in the background there is nothing left to do but what is to be changed."""
    if not detach:
        raise UsageError(
            "the cluster is running already",
            f"in {settings.home}",
            "change what runs with promptdock up -d; see promptdock status; end it with promptdock down",
        )
    began = time.monotonic()
    if change:
        supervision.alter(settings.home, change)
    screen.out(f"PromptDock {status.release()}")
    missing = await _ready(settings, None, began, asyncio.Event(), change)
    async with Client(settings) as client:
        await _facts(client, None, missing)
    screen.talk("It was running already; end it with: promptdock down")
    return 0


def _signals() -> asyncio.Event:
    asked = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, asked.set)
    return asked


async def _ready(
    settings: Settings,
    process: subprocess.Popen[bytes] | None,
    began: float,
    asked: asyncio.Event,
    change: supervision.PlanChange | None = None,
) -> set[str]:
    """Wait until all agents are here; those that are not after a minute. What ends the cluster is raised."""
    missing, told = {"the supervisor"}, False
    async with Client(settings) as client:
        while missing and not asked.is_set() and time.monotonic() - began < _READY:
            if process is not None and (code := process.poll()) is not None:
                raise supervision.why(settings.home, code)
            if process is None and not supervision.is_up(settings.home):
                raise PromptDockError("the cluster ended", f"in {settings.home}", "start it: promptdock up")
            found = supervision.running(settings.home)
            if found is not None and (process is None or found.pid == process.pid):
                age = time.monotonic() - began
                try:
                    missing = await _missing(client, found)
                    if change and set(supervision.wanted(settings.home)) != set(found.workers):
                        missing |= set(supervision.wanted(settings.home)) ^ set(found.workers)
                        missing -= set(found.failed)
                except BusUnreachable as error:
                    if age > _PATIENT and not told and supervision.running(settings.home) is not None:
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


async def _missing(client: Client, ours: supervision.Supervised) -> set[str]:
    """Our workers that have not joined, but for those that cannot: others may be on this Redis."""
    here = await status.processes(client, ours.workers.values())
    web = [
        one for one in ours.services if one not in ours.failed and not web_address.found(client.settings.home)
    ]
    workers = [one for one in ours.replicas if one not in ours.failed and ours.workers.get(one) not in here]
    return {*workers, *web}


async def _facts(client: Client, seconds: float | None, missing: set[str]) -> None:
    settings = client.settings
    redis = await status.redis(client)
    kind = "embedded " if redis["embedded"] else ""
    taken = f"port {status.USUAL_PORT} is taken by another program" if status.usual_port_taken(redis) else ""
    _line("ok", "redis", f"{kind}{redis['server']} {redis['version']} on {redis['address']}", taken)
    found = await examine.store(client)
    if found.level != "ok":
        _line("!", "store", found.told)
    elif settings.supabase_url:
        _line("ok", "store", f"Supabase {urlsplit(settings.supabase_url).netloc}")
    else:
        _line("ok", "store", f"SQLite {_near(settings.home / 'promptdock.db')}", "Supabase: set SUPABASE_URL")
    state = await status.status(client)
    if state["demo"] or not state["model"]:
        _line("!", "model", "DEMO: scripted replies, no network, no cost", runnable("promptdock key set"))
    else:
        await _model(settings, state["model"])
    _agents(settings, seconds, missing)
    _web(settings)
    for wrong in machine.home_folder(settings.home):
        if wrong.level != "ok":
            _line("!", "home", wrong.told, wrong.fix)
    if shared := status.other_homes(state["agents"]):
        _line("!", "homes", shared.told, runnable(shared.fix))
    message = shlex.quote(_EXAMPLE)
    if redis["embedded"] and shutil.which("redis-cli"):
        publish = f"{_redis_cli(redis['address'])} PUBLISH {client.names.channel('human-input')}"
    else:
        publish = f"{called()} publish human-input"
    screen.out(f"  Try  {called()} chat   or   {publish} {message}")


def _agents(settings: Settings, seconds: float | None, missing: set[str]) -> None:
    found = supervision.running(settings.home)
    failed = found.failed if found else {}
    here = " ".join(name for name in (found.replicas if found else ()) if name not in {*missing, *failed})
    if missing:
        _line(
            "!", "agents", f"{here}; not yet here: {' '.join(sorted(missing))}", runnable("promptdock logs")
        )
    else:
        _line("ok", "agents", here + (f"  ready in {seconds:.1f} s" if seconds is not None else ""))
    for name, why in failed.items():
        if name not in supervision.SERVICES:
            _line("!", "agents", f"{name} cannot start: {why}")


def _web(settings: Settings) -> None:
    """Where the page is, and that another program has its port."""
    found = supervision.running(settings.home)
    if found is None or "web" not in found.services:
        return
    if why := found.failed.get("web"):
        _line("!", "web", f"it cannot start: {why}")
    elif url := web_address.found(settings.home):
        moved = urlsplit(url).port != settings.web_port
        taken = f"port {settings.web_port} is taken by another program" if moved else ""
        _line("ok", "web", url, taken)


async def _model(settings: Settings, name: str) -> None:
    """The model that speaks, and whether the provider has it; who does not say so in time is not waited for."""
    wrong: list[models.MissingModel] = []
    found: list[models.ModelList] = []
    with contextlib.suppress(PromptDockError, TimeoutError):
        async with asyncio.timeout(_MODELS):
            found = await models.listings(settings)
            wrong = models.missing(settings, models.names(found), found)
    if not wrong:
        _line("ok", "model", name)
    for one in wrong:
        _line("!", "model", one.told, runnable(one.fix))
    for listing in found:
        if listing.state == "refused":
            _line("!", "key", models.told(listing), runnable(f"promptdock key set {listing.provider}"))
        elif listing.state == "away" or len(found) > 1:
            _line("ok" if listing.state == "ok" else "!", "provider", models.told(listing))


def _line(mark: str, name: str, told: str, hint: str = "") -> None:
    styled = screen.good(f"{mark:3}") if mark == "ok" else screen.warning(f"{mark:3}")
    screen.out("  ", styled, f" {name:8} {f'{told}  ({hint})' if hint else told}")


def _near(path: Path) -> str:
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _redis_cli(address: str) -> str:
    """`redis-cli` as it reaches the embedded server, on which everybody of this machine may publish."""
    port = urlsplit(f"//{address}").port
    return "redis-cli" if port in (None, status.USUAL_PORT) else f"redis-cli -p {port}"


async def _stay(
    settings: Settings, process: subprocess.Popen[bytes], asked: asyncio.Event, news: supervision.News
) -> int:
    """Until it ends; what the supervisor warns of meanwhile, such as a worker that died, is told."""
    while process.poll() is None and not asked.is_set():
        for told in news.read():
            screen.complain(told)
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
