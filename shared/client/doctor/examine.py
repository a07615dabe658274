"""Doctor: looks for what is wrong, also with nothing running, with a remedy beside each finding."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urlsplit

from shared.bus.keys import CHATTER, SCHEMA
from shared.client.client import Client
from shared.client.doctor import machine
from shared.client.findings import Finding
from shared.client.local import supervision
from shared.client.views import dead_letters, mcp, status
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError, StoreUnavailable

_LOOPBACK = ("127.", "localhost", "::1")
_KINDS = {"inbox": b"stream", "out": b"stream", "archive": b"stream", "dead": b"stream", "due": b"zset"}
_PATIENCE = 20.0  # seconds that the model provider may take


async def examine(client: Client, env_file: Path) -> AsyncGenerator[Finding, None]:
    """All findings, one after the other."""
    settings = client.settings
    yield machine.python()
    yield machine.agents()
    yield machine.git()
    for found in (
        *machine.wrong(settings),
        *machine.files(settings, env_file),
        *machine.secrets(settings),
        *machine.written(settings),
    ):
        yield found
    yield machine.disk(settings)
    yield await asyncio.to_thread(machine.sandbox, settings)
    for found in await asyncio.to_thread(mcp.findings, settings):
        yield found
    for maybe in (
        machine.executor(settings),
        machine.server(settings),
        machine.port(settings),
        machine.leftovers(settings),
    ):
        if maybe is not None:
            yield maybe
    async for found in _redis(client):
        yield found
    yield await store(client)
    try:
        async with asyncio.timeout(_PATIENCE):
            yield await machine.model(settings)
    except TimeoutError:
        told = f"the provider did not answer in {_PATIENCE:.0f} s"
        yield Finding("model", "warn", told, "promptdock key check, later")
    left = client.spool.left()
    if left:
        told = f"{len(left)} messages in {client.spool.folder} were not sent"
        yield Finding("outbox", "warn", told, "they go out with the next promptdock ask or chat")


async def _redis(client: Client) -> AsyncGenerator[Finding, None]:
    try:
        await client.reach()
    except BusUnreachable as error:
        configured = client.settings.redis_url is not None
        told = f"{error.what}: {error.why}".rstrip(": ") if configured else error.what
        yield Finding("redis", "fail" if configured else "warn", told, error.fix)
        return
    except PromptDockError as error:
        yield Finding("redis", "fail", str(error), error.fix)
        return
    facts = await status.redis(client)
    yield Finding("redis", "ok", f"{facts['server']} {facts['version']} on {facts['address']}")
    for found in _kept(await status.info(client)):
        yield found
    for maybe in (await _password(client), await _large(client)):
        if maybe is not None:
            yield maybe
    yield await _schema(client)
    yield await _present(client)
    for found in await _spoiled(client):
        yield found
    if strangers := status.other_homes(await client.presence.here()):
        yield strangers


def _kept(facts: dict[str, str]) -> list[Finding]:
    """Whether this server keeps what it accepted."""
    if not facts:
        return [
            Finding(
                "persistence", "warn", "the server hides INFO, so nobody knows what it keeps", "allow INFO"
            )
        ]
    found = []
    if facts.get("aof_enabled") != "1":
        told = "Redis keeps no append-only file: what was accepted is lost when it dies"
        found.append(Finding("persistence", "fail", told, "redis-cli CONFIG SET appendonly yes"))
    elif facts.get("aof_last_write_status") not in (None, "ok"):
        found.append(
            Finding("persistence", "fail", "Redis cannot write its append-only file", "make room on its disk")
        )
    else:
        found.append(Finding("persistence", "ok", "Redis keeps an append-only file"))
    policy, limit = facts.get("maxmemory_policy", "noeviction"), int(facts.get("maxmemory", "0"))
    if policy != "noeviction":
        level = "fail" if limit else "warn"
        told = f"Redis may throw keys away when its memory is full ({policy})"
        found.append(
            Finding(
                "eviction",
                "fail" if level == "fail" else "warn",
                told,
                "redis-cli CONFIG SET maxmemory-policy noeviction",
            )
        )
    else:
        found.append(Finding("eviction", "ok", "Redis throws nothing away"))
    used = int(facts.get("used_memory", "0"))
    if limit and used > 0.7 * limit:
        told = f"Redis is {used / limit:.0%} full; over 85 % nothing new is accepted"
        found.append(
            Finding("memory", "warn", told, "raise maxmemory, or drain what waits: promptdock pending")
        )
    return found


async def _large(client: Client) -> Finding | None:
    """Whether one message can be so large that the server cuts off whoever listens."""
    try:
        limits = await client.bus.command("CONFIG", "GET", "client-output-buffer-limit")
        most = await client.bus.command("CONFIG", "GET", "proto-max-bulk-len")
        words = limits[1].decode().split()
        hard = int(words[words.index("pubsub") + 1])
        largest = int(most[1])
    except (PromptDockError, IndexError, ValueError):
        return None  # a server that hides its configuration
    if not hard or largest * 2 <= hard:
        return None
    told = f"one message of more than {hard >> 20} MB makes Redis cut off the workers that listen"
    fix = f"redis-cli CONFIG SET proto-max-bulk-len {hard // 2}"
    return Finding("messages", "warn", told, fix)


async def _anybody(client: Client) -> Finding | None:
    """What a program of this machine may do on this Redis without a password."""
    try:
        flat = await client.bus.command("ACL", "GETUSER", "default")
        user = dict(zip(flat[::2], flat[1::2], strict=True)) if flat else {}
        flags, commands = user.get(b"flags", []), user.get(b"commands", b"")
    except (PromptDockError, TypeError, ValueError):
        return None
    if b"on" not in flags or b"nopass" not in flags or b"+@all" not in commands.split():
        return Finding("password", "ok", "Redis asks for a password")
    told = "every user of this machine can read and change everything in Redis: it asks for no password"
    if client.settings.redis_url is None:
        return Finding("password", "warn", told, "start it anew: promptdock down, then promptdock up")
    fix = "set an ACL (docs/deployment.md), and put user and password into REDIS_URL"
    return Finding("password", "warn", told, fix)


async def _password(client: Client) -> Finding | None:
    parts = urlsplit(client.url)
    if parts.scheme == "unix" or (parts.hostname or "").startswith(_LOOPBACK):
        return await _anybody(client)
    if parts.password:
        return Finding("password", "ok", f"Redis on {parts.hostname} asks for a password")
    fix = "set requirepass or an ACL, and put the password into REDIS_URL"
    if await _private_network(parts.hostname or "", parts.port or 6379):
        told = (
            f"Redis on {parts.hostname} asks for no password: all of its private network command the agents"
        )
        return Finding("password", "warn", told, f"keep the network to the cluster alone, or {fix}")
    told = f"Redis on {parts.hostname} answers without a password: whoever reaches it commands the agents"
    return Finding("password", "fail", told, fix)


async def _private_network(host: str, port: int) -> bool:
    """Whether a host is reached by addresses alone that no other network leads to, as in compose or on Render."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port)
        addresses = {ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found}
    except (OSError, ValueError):
        return False
    return bool(addresses) and all(address.is_private for address in addresses)


async def _schema(client: Client) -> Finding:
    schema, cluster = await client.bus.command("HMGET", client.names.meta, "schema", "cluster")
    if schema is None:
        return Finding("cluster", "warn", "no worker has joined this Redis yet", "promptdock up")
    if int(schema) > SCHEMA:
        told = f"the data in Redis has schema {int(schema)}, this release knows {SCHEMA}"
        return Finding("cluster", "fail", told, "run the release that wrote it")
    foreign = [
        card
        for card in await client.presence.here()
        if card.get("cluster") and card["cluster"] != cluster.decode()
    ]
    if foreign:
        who = ", ".join(sorted({str(card["agent"]) for card in foreign}))
        told = f"workers of another cluster are here: {who}"
        return Finding("cluster", "fail", told, "give each cluster its own PROMPTDOCK_NAMESPACE")
    return Finding("cluster", "ok", f"cluster {cluster.decode()}")


async def _spoiled(client: Client) -> list[Finding]:
    """What lies in Redis that nobody can read."""
    found = []
    wrong = []
    for agent in await client.presence.agents():
        keys = client.names.keys(agent)
        for name, kind in _KINDS.items():
            if (await client.bus.command("TYPE", keys.named(name))) not in (kind, b"none"):
                wrong.append(keys.named(name))
    if wrong:
        told = f"a key is not of the kind that it must be: {', '.join(wrong)}"
        fix = "something else writes to this Redis: look at the key, then delete it"
        return [Finding("keys", "fail", told, fix)]
    buried = [one for one in await dead_letters.letters(client, 200) if one.reason.startswith("unreadable")]
    if buried:
        told = f"{len(buried)} entries could not be read, the newest: {buried[0].reason[:120]}"
        found.append(Finding("entries", "warn", told, "look at them: promptdock dead list"))
    return found


async def _present(client: Client) -> Finding:
    state = await status.status(client)
    here = sorted({str(card["agent"]) for card in state["agents"]})
    late = [card for card in state["agents"] if int(card["age_ms"]) > 10_000]
    if late:
        who = ", ".join(f"{card['agent']} ({int(card['age_ms']) / 1000:.0f} s)" for card in late)
        return Finding("presence", "warn", f"no heartbeat lately: {who}", "see promptdock logs")
    gone = [name for name in state["offline"] if name not in state["unannounced"]]
    if state["failed"]:
        name, why = next(iter(state["failed"].items()))
        told = f"{name} cannot start: {why}"
        return Finding("presence", "warn", told, "it is tried again by itself once its folder is edited")
    missing = [name for name in gone if name in state["expected"]]
    if CHATTER not in [*here, *state["unannounced"]]:
        return Finding("presence", "fail", "Chatter is not here, so nobody answers", _start(client, CHATTER))
    if missing:
        return Finding("presence", "warn", f"not here: {', '.join(missing)}", _start(client, missing[0]))
    waited_for = [name for name in gone if state["queues"].get(name)]
    if waited_for:
        told = f"messages wait for {', '.join(waited_for)}, who is not here"
        fix = f"start it where it ran, or: promptdock agents forget {waited_for[0]} --force"
        return Finding("presence", "warn", told, fix)
    return Finding("presence", "ok", f"here: {' '.join(here)}")


def _start(client: Client, agent: str) -> str:
    """How an agent that should be here is started."""
    found = supervision.running(client.settings.home)
    if found is None:
        return "promptdock up" if client.settings.redis_url is None else f"python -m agents --name {agent}"
    return f"promptdock logs {agent}" if agent in found.agents else f"promptdock up -d --with {agent}"


async def store(client: Client) -> Finding:
    """Whether what is to stay can be stored."""
    where = "Supabase" if client.settings.supabase_url else f"SQLite in {client.settings.home}"
    try:
        await client.store()
    except StoreUnavailable as error:
        fresh = client.settings.supabase_url is None and "nothing stored" in error.what
        return Finding(
            "store",
            "ok" if fresh else "fail",
            error.what if fresh else str(error),
            "" if fresh else error.fix,
        )
    except ConfigurationError as error:
        return Finding("store", "fail", f"{error.what}: {error.why}".rstrip(": "), error.fix)
    return Finding("store", "ok", where)
