"""Event streams of the page's process: how late an event is at its readers, and what a page takes of memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil
import redis.asyncio as redis

from benchmarks import paint
from benchmarks.server import environment, free_port
from shared.bus.embedded import Embedded
from shared.bus.keys import Names

PAGES, TURNS, PAUSE = 200, 50, 0.05
_GROUP = 10  # turns that tell at the same moment
_WARM, _LEAVE = 1.0, 5.0
_NAMESPACE = "bench"


async def measure(home: Path, seconds: float) -> None:
    """Print both sides, and the ratio."""
    place = home / "web"
    place.mkdir()
    server = Embedded(place, free_port())
    url = server.start()
    try:
        ours, memory = await _ours(place, url, seconds)
        bare = await _bare(place, seconds)
        await _painted(place, url)
    finally:
        server.stop()
    print(f"\n{PAGES} open streams, {TURNS} conversations with {1 / PAUSE:.0f} events a second each:")
    for name, delays in (("ours", ours), ("bare", bare)):
        p50, p99 = _at(delays, 0.5), _at(delays, 0.99)
        told = f"p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, {len(delays) / seconds:,.0f} events a second"
        print(f"  {name:5} {told}")
    print(f"  ratio p50 {_at(ours, 0.5) / _at(bare, 0.5):.1f}, p99 {_at(ours, 0.99) / _at(bare, 0.99):.1f}")
    print(f"  memory of a page {memory / PAGES / 1024:.0f} KiB")


def _at(delays: Sequence[float], share: float) -> float:
    return sorted(delays)[int(share * (len(delays) - 1))] * 1000


async def _ours(place: Path, url: str, seconds: float) -> tuple[list[float], int]:
    port = free_port()
    more = {"REDIS_URL": url, "PROMPTDOCK_NAMESPACE": _NAMESPACE, "PROMPTDOCK_HOME": str(place)}
    async with _process(
        place, ["-m", "gateways.web"], {**more, "PROMPTDOCK_WEB_PORT": str(port)}, port
    ) as pid:
        before = psutil.Process(pid).memory_info().rss
        enough = asyncio.Event()
        telling = asyncio.create_task(_tell(url, enough))
        _, stuck = await asyncio.open_connection(
            "127.0.0.1", port, limit=1
        )  # reads nothing, holds nobody back
        stuck.write(f"GET /api/sessions/s0/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        delays = await _read(
            port, [f"/api/sessions/s{page % TURNS}/events" for page in range(PAGES)], seconds
        )
        enough.set()
        await telling
        stuck.close()
        return delays, psutil.Process(pid).memory_info().rss - before


async def _painted(place: Path, url: str) -> None:
    """The page itself, in a browser."""
    port, bare = free_port(), free_port()
    await paint.fill(place)
    more = {"REDIS_URL": url, "PROMPTDOCK_NAMESPACE": _NAMESPACE, "PROMPTDOCK_HOME": str(place)}
    words = ["-m", "benchmarks.bare_stream", str(bare), str(_GROUP), str(paint.PAUSE)]
    async with (
        _process(place, ["-m", "gateways.web"], {**more, "PROMPTDOCK_WEB_PORT": str(port)}, port),
        _process(place, words, {}, bare),
    ):
        await paint.measure(port, url, bare)


async def _bare(place: Path, seconds: float) -> list[float]:
    port = free_port()
    words = ["-m", "benchmarks.bare_stream", str(port), str(TURNS), str(PAUSE)]
    async with _process(place, words, {}, port):
        return await _read(port, [f"/{page % TURNS}" for page in range(PAGES)], seconds)


@contextlib.asynccontextmanager
async def _process(place: Path, words: list[str], more: dict[str, str], port: int) -> AsyncIterator[int]:
    root = str(Path(__file__).parents[1])
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
        [sys.executable, *words],
        cwd=place,
        env={**environment(**more), "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(OSError):
                    _, line = await asyncio.open_connection("127.0.0.1", port)
                    line.close()
                    break
                await asyncio.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 20)


async def _tell(url: str, enough: asyncio.Event) -> None:
    """As the workers of so many turns: kept, then told, each turn in its moment."""
    names, server = Names(_NAMESPACE), redis.Redis.from_url(url)
    while not enough.is_set():
        began = time.time()
        for first in range(0, TURNS, _GROUP):
            data = json.dumps({"event": "tick", "at": time.time()})
            pipe = server.pipeline(transaction=False)
            for number in range(first, first + _GROUP):
                pipe.xadd(names.stream(f"s{number}"), {"data": data}, maxlen=2000, approximate=True)
                pipe.publish(names.events(f"s{number}"), data)
            await pipe.execute()
            await asyncio.sleep(max(0.0, began + PAUSE * (first + _GROUP) / TURNS - time.time()))
    await server.aclose()


async def _read(port: int, paths: Sequence[str], seconds: float) -> list[float]:
    delays: list[float] = []
    counting = asyncio.Event()
    readers = [asyncio.create_task(_reader(port, path, delays, counting)) for path in paths]
    await asyncio.sleep(_WARM + len(paths) / 100)
    counting.set()
    await asyncio.sleep(seconds)
    counting.clear()
    for reader in readers:
        reader.cancel()
    await asyncio.wait(readers, timeout=_LEAVE)
    return delays


async def _reader(port: int, path: str, delays: list[float], counting: asyncio.Event) -> None:
    come, go = await asyncio.open_connection("127.0.0.1", port)
    go.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    try:
        while line := await come.readline():
            if line.startswith(b"data: ") and b'"at"' in line and counting.is_set():
                delays.append(time.time() - float(json.loads(line[6:])["at"]))
    finally:
        go.close()
