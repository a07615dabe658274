"""Many tasks on real processes: which share of a worker's time is the model's, and where ours goes.

Not timed alone: each run is checked for lost updates and for commits that are missing or there twice.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.server import server
from tests.support.board import Board, Size, Span, TimedApi
from tests.support.processes import site
from tests.support.wire import Wire

FULL = Size(tasks=50, repositories=5, workers=4, thinking=1.0)
QUICK = Size(tasks=12, repositories=2, workers=3, thinking=1.0)
# As slow as a model that writes code: fewer tasks, since there is less to see.
SLOW = Size(tasks=20, repositories=5, workers=4, thinking=5.0)
QUICK_SLOW = Size(tasks=6, repositories=2, workers=3, thinking=5.0)
_LOOK, _QUIET, _IDLE = 0.5, 3, 0.02  # seconds between looks, idle looks in a row, seconds of processor in one
PHASES: tuple[tuple[str, Callable[[Span], float]], ...] = (
    ("given to its agent, until it began in its worktree", lambda s: s.started - s.assigned),
    ("until the model was asked first", lambda s: s.model[0][0] - s.started),
    ("between the model's answers: tools", lambda s: s.model[-1][1] - s.model[0][0] - s.thinking),
    ("commit, checks, receipt, until its outcome was told", lambda s: s.answered - s.model[-1][1]),
)


def measure(home: Path, *sizes: Size) -> None:
    """Run each size, check it, print it."""
    for number, size in enumerate(sizes):
        print(
            f"\n{size.tasks} tasks, {size.repositories} repositories, {size.workers} workers; "
            f"each answer of the model takes {size.thinking:g} s, appendfsync always:"
        )
        tell(_run(home / f"tasks{number}", size))


def _run(home: Path, size: Size) -> Board:
    with TimedApi(size) as api, server(home / "redis", "always") as url:
        model = {"ANTHROPIC_API_KEY": "sk-ant-bench-key-0000", "ANTHROPIC_BASE_URL": api.url}
        lease = {"PROMPTDOCK_LEASE": "12000"}
        with site(home / "site", url, **model, **lease) as place, Wire(url, place.names) as wire:
            board = Board(size, place, wire, api)
            board.prepare()
            _warm([psutil.Process(worker.pid) for worker in place.workers])
            board.run(patience=600)
            board.check()
    return board


def _warm(workers: list[psutil.Process], patience: float = 60.0) -> None:
    """Until they have loaded the provider's SDK, which each does once when it is ready: then they use no processor."""
    ends, quiet, before = time.monotonic() + patience, 0, -1.0
    while quiet < _QUIET and time.monotonic() < ends:
        time.sleep(_LOOK)
        used = sum(sum(worker.cpu_times()[:2]) for worker in workers)
        quiet = quiet + 1 if used - before < _IDLE * len(workers) else 0
        before = used


def tell(board: Board) -> None:
    """Print what it came to."""
    spans, size = list(board.spans.values()), board.size
    ended = max(span.answered for span in spans)
    wall = ended - spans[0].ready
    room, thinking = wall * size.workers, sum(span.thinking for span in spans)
    busy = sum(span.answered - span.assigned for span in spans)
    waited = _waited(spans, size.workers)
    print(f"  nothing lost, nothing twice; at most {board.at_once()} at once")
    print(
        f"  all told after {wall:.1f} s, merged after {board.wall:.1f} s; model alone {thinking / size.workers:.1f} s"
    )
    limited = _limited(spans, size.workers) / wall
    print(f"  the model's share of the workers' time: {thinking / room:.0%}")
    print(f"  of the time, every worker that had work was waiting for the model: {limited:.0%}")
    print("  ours, for each task, in ms (median, worst):")
    print(f"    {'waited while a worker was free':55} {1000 * waited / len(spans):8.0f} (mean)")
    for name, of in PHASES:
        took = [1000 * of(span) for span in spans]
        print(f"    {name:55} {statistics.median(took):8.0f} {max(took):8.0f}")
    ours = (busy - thinking + waited) / len(spans)
    print(f"    {'together (mean)':55} {1000 * ours:8.0f}")
    print("  beside it:")
    late = [1000 * (span.completed - span.answered) for span in spans]
    print(
        f"    {'from its outcome to the row that says completed':55} {statistics.median(late):8.0f} {max(late):8.0f}"
    )
    merges = [1000 * span.merging for span in spans]
    print(f"    {'merge, as a command':55} {statistics.median(merges):8.0f} {max(merges):8.0f}")


def _waited(spans: list[Span], workers: int) -> float:
    """Seconds of free workers while there were tasks that nobody had."""
    edges = [(span.assigned, 1) for span in spans] + [(span.answered, -1) for span in spans]
    last_given = max(span.assigned for span in spans)
    at, busy, waited = spans[0].ready, 0, 0.0
    for when, step in sorted(edges):
        if when > last_given:
            break
        waited += max(0, workers - busy) * (when - at)
        at, busy = when, busy + step
    return waited


def _limited(spans: list[Span], workers: int) -> float:
    """Seconds in which the model alone was what every task waited for: no free worker could have taken another."""
    edges = [(span.assigned, 1, 0) for span in spans] + [(span.answered, -1, 0) for span in spans]
    for span in spans:
        edges += [(begin, 0, 1) for begin, _ in span.model] + [(end, 0, -1) for _, end in span.model]
    begun = sorted(span.assigned for span in spans)
    at, busy, asking, seconds = spans[0].ready, 0, 0, 0.0
    for when, task, answer in sorted(edges):
        idle = busy < workers and at < begun[-1]
        if busy and asking == busy and not idle:
            seconds += when - at
        at, busy, asking = when, busy + task, asking + answer
    return seconds
